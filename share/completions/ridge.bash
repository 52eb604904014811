# bash completion for ridge(1). tests/project/manual_test.py compares it with the program's help.

_ridge_options() {
  local engine="--memory --floor --pins --context --threads --cpus --isa --numerics --kv-type --io"
  case $1 in
    run)
      echo "$engine --lora --prompt --file --n-predict --system --save-state --load-state --record --map --task --mask-absent --expert-policy --all-neurons --stop --raw --show-prompt --ignore-eos --json --trace --stats --explain --temp --top-k" \
        "--top-p --min-p --repeat-penalty --presence-penalty --frequency-penalty --penalty-window --logit-bias --seed --draft-ngram --draft-model --draft-tokens"
      ;;
    info) echo "--kv-type --tensors --json" ;;
    tokenize) echo "--no-special --parse-special --json --lines-json" ;;
    detokenize) echo "--show-special" ;;
    logits) echo "$engine --lora --tokens --output" ;;
    perplexity) echo "$engine --lora --map --task --mask-absent --record --window --windows --kl --json" ;;
    importance)
      echo "$engine --data --task --output --svg --imatrix --from-imatrix --fisher --neurons --window --windows --leave-out --json"
      ;;
    bench)
      echo "$engine --lora --prompt --generate --depth --repetitions --profile --json --jsonl --csv --sql --trace --db --label --compare"
      ;;
    roofline)
      echo "$engine --scenarios --lengths --tokens --repetitions --machine --sweep --output --svg --db --label --history --paper-compat --json --csv"
      ;;
    kernels) echo "--all --quick --isa --json" ;;
    probe) echo "--quick --file --folder --threads --no-storage --storage --opencl --device --output --json" ;;
    sim) echo "$engine --machine --policy --worth --map --task --mix --turn --train --passes --export --trace --steps --spectrum --computed --merge --lock --json" ;;
    ladder)
      echo "--step --contexts --stop-available --stop-swap --memory --hold --pools --tokens --threads --isa --io --json"
      ;;
    image)
      echo "--prompt --negative --size --init --strength --mask --lora --sampler --seed --batch --spectrum --reference --capture --capture-steps --capture-rows --preview --preview-every --repeat --output --tokenizer-qwen --tokenizer-t5 --bundle --model" \
        "--text-encoder --vae --inputs --dump --steps --cfg --shift --memory --threads --cpus --isa --io" \
        "--lifecycle --stats --json"
      ;;
    doctor) echo "--memory --context --json" ;;
    compare) echo "--json" ;;
    claims) echo "--machine --folder --output --seeds --steps --teacher-steps --validation-tokens --l1 --threads --full --no-training --json" ;;
    distill)
      echo "--output --make-corpus --make-rationales --bytes --items --teacher --tokenizer --rationales --rationale-share --held-out --layers --dim --heads --kv-heads --ffn-dim --ffn --untied --share-blocks --exit-layer --exit-weight --kd --divergence --skew --temperature \
        --hidden --l1 --l1-ramp --on-policy --on-policy-tokens --weights --steps --batch --rate --warmup --decay --clip --seed --resume --checkpoint-every --evaluate-every --validation-tokens --record --neurons --fisher --fisher-windows --natural --memory --threads --context --json"
      ;;
    tune)
      echo "--output --data --rank --alpha --targets --context --batch --steps --rate --warmup --decay --clip --seed --held-out --validation-tokens --evaluate-every --checkpoint-every --resume --memory --threads --json"
      ;;
    plan) echo "$engine --lora --machine --explain --json --svg --steps --spectrum --computed --merge --lock" ;;
    quantize) echo "--output --type --bits --size --max-kl --data --imatrix --map --check --max-loss --window --windows --threads --explain --json" ;;
    pack) echo "--output --neurons --map --machine --memory-map --check --threads" ;;
    ir) echo "--machine --memory --output --check" ;;
    models) echo "" ;;
    report) echo "--output --pass" ;;
    *) echo "--version --verbose --quiet" ;;
  esac
}

_ridge() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' word
  local commands="run info tokenize detokenize logits perplexity importance bench roofline kernels probe pack quantize ir models sim ladder doctor compare distill tune claims plan image report"
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word != -* ]]; then
      command=$word
      break
    fi
  done
  COMPREPLY=()
  case $previous in
    --pins) mapfile -t COMPREPLY < <(compgen -W "planned leading none lru" -- "$current"); return ;;
    --isa) mapfile -t COMPREPLY < <(compgen -W "scalar avx2 avx512 neon" -- "$current"); return ;;
    --io) mapfile -t COMPREPLY < <(compgen -W "auto uring threads buffered" -- "$current"); return ;;
    --kv-type) mapfile -t COMPREPLY < <(compgen -W "f16 bf16 q8_0 f32" -- "$current"); return ;;
    --numerics) mapfile -t COMPREPLY < <(compgen -W "default exact fast" -- "$current"); return ;;
    --folder | --bundle) mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
    -f | --file | --data | --imatrix | --from-imatrix | --fisher | -o | --output | --db | --trace | --save-state | --load-state | --record | --machine | --train | --export | --draft-model | --svg | --model | --text-encoder | --vae | --inputs | --dump | --init | --mask | --lora) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_ridge_options "$command") --help" -- "$current")
  elif [[ -z $command ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
  elif [[ $command == models ]]; then
    if [[ $previous == get ]]; then
      mapfile -t COMPREPLY < <(compgen -W "smollm2-135m gemma3-270m" -- "$current")
    else
      mapfile -t COMPREPLY < <(compgen -W "get" -- "$current")
    fi
  else
    mapfile -t COMPREPLY < <(compgen -W "smollm2-135m gemma3-270m" -- "$current"; compgen -f -- "$current")
  fi
}

complete -o filenames -F _ridge ridge
