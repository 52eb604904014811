"""`ridge tokenize` and `ridge detokenize`, also against the golden tokens."""
import json
import os

from harness import A, Skip, T, check, fails, main, run, tiny_file, write


def test_tokenizer_files():
    """A spiece.model and a tokenizer.json in the place of a model."""
    spiece = os.path.join(os.path.dirname(__file__), "..", "data", "unigram-ties", "spiece.model")
    golden = json.load(open(os.path.join(os.path.dirname(spiece), "tokens.json")))
    got = run("tokenize", spiece, "--lines-json", "--no-special", stdin=json.dumps(golden["strings"]))
    check(got.returncode == 0 and json.loads(got.stdout) == golden["ids"], f"spiece.model: {got.stderr[:200]}")
    check(run("tokenize", spiece, "").stdout.split() == ["1"], "a spiece.model ends a text with </s>")
    file = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}}
    path = write(os.path.join(T, "tokenizer.json"), json.dumps(file).encode())
    check(run("tokenize", path, "aab").stdout.split() == ["0", "2"], "tokenizer.json: ids")
    check(run("detokenize", path, "0", "2").stdout == "aab\n", "tokenizer.json: text")
    data = open(spiece, "rb").read()
    fails(3, ["tokenize", write(os.path.join(T, "cut.model"), data[:-3]), "a"], "cut short")
    file["normalizer"] = {"type": "Lowercase"}
    fails(3, ["tokenize", write(path, json.dumps(file).encode()), "a"], "'Lowercase'")


def test_tokens():
    model = tiny_file()
    r = run("tokenize", model, "the cat", "--no-special")
    check(r.stdout.split()[0] == "256", f"tokenize: {r.stdout!r}")
    ids = run("tokenize", model, stdin="the cat\n").stdout
    back = run("detokenize", model, "-", stdin=ids)
    check(back.stdout == "the cat\n\n", f"there and back: {back.stdout!r}")
    lines = run("tokenize", model, "--lines-json", "--no-special", stdin=json.dumps(["a", "", "th"]))
    check(json.loads(lines.stdout) == [[97], [], [256]], f"--lines-json: {lines.stdout!r} {lines.stderr!r}")
    special = run("tokenize", model, "<s>", "--parse-special")
    check(special.stdout.split() == ["257"], f"--parse-special: {special.stdout!r}")
    plain = run("tokenize", model, "<s>")
    check(plain.stdout.split() == [str(ord(c)) for c in "<s>"], f"plain: {plain.stdout!r}")
    as_json = json.loads(run("tokenize", model, "th", "--json").stdout)
    check(as_json == [{"id": 256, "text": "th"}], f"--json: {as_json}")
    fails(3, ["tokenize", model, "--lines-json"], "JSON", stdin="{}")
    test_tokenizer_files()
    golden = os.path.join(A.shared, "golden", "tokens.json")
    if not os.path.exists(golden):
        raise Skip("needs ../shared: " + golden)
    data = json.load(open(golden))
    for name in ("llama-bpe", "llama-spm", "qwen2", "gpt-2", "deepseek-llm", "phi-3"):
        vocab = os.path.join(A.shared, "vocab", name + ".gguf")
        for flag, key in (("--no-special", "plain"), ("--parse-special", "special")):
            got = run("tokenize", vocab, "--lines-json", flag, stdin=json.dumps(data["strings"]))
            check(got.returncode == 0 and json.loads(got.stdout) == data["vocabularies"][name][key],
                  f"tokens of {name}, {key}: {got.stderr[:200]}")


main(test_tokens)
