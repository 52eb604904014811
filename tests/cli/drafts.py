"""Drafts: --draft-ngram and --draft-model."""
import json
import os

import gguf_files
from harness import T, check, fails, main, run, tiny_file, write


def test_drafts():
    """Guesses change no byte: greedy or sampled, whatever ends the text, under a budget, with states."""
    model, state = tiny_file(layers=2), os.path.join(T, "d.state")
    text = "the theme of the theme of the theme"
    foreign = gguf_files.tiny()
    foreign.keys["tokenizer.ggml.tokens"][40] = "other"
    small = write(os.path.join(T, "small.gguf"), gguf_files.tiny(layers=1, ffn=96).bytes())
    foreign = write(os.path.join(T, "foreign.gguf"), foreign.bytes())
    long = gguf_files.tiny()
    long.keys["tokenizer.ggml.tokens"] += [f"more{i}" for i in range(600)]
    long.keys["tokenizer.ggml.token_type"] += [1] * 600
    long.tensors = [t for t in long.tensors if t[0] != "token_embd.weight"]
    long.tensor("token_embd.weight", [32, 859], 0.5)
    long = write(os.path.join(T, "long.gguf"), long.bytes())
    bare = write(os.path.join(T, "bare.gguf"), gguf_files.tiny(tokenizer=False).bytes())
    ways = (["--draft-ngram", "3"], ["--draft-ngram", "1", "--draft-tokens", "64"], ["--draft-model", model],
            ["--draft-model", small, "--draft-tokens", "3"])
    words = ["run", model, "--raw", "-p", text, "--ignore-eos", "--context", "200"]

    def answer(*more):
        r = run(*words, *more, "--json")
        check(r.returncode == 0, f"run {more}: {r.returncode} {r.stderr}")
        return json.loads(r.stdout) if r.returncode == 0 else {"stats": {}}

    for sampling in (["--temp", "0"], ["--seed", "5"], ["--seed", "6", "--temp", "2", "--top-k", "0", "--repeat-penalty", "1.3"]):
        want = answer("-n", "60", *sampling)
        for way in ways:
            got = answer("-n", "60", *sampling, *way)
            check(got.get("tokens") == want.get("tokens") and got.get("text") == want.get("text"),
                  f"{sampling} {way}: {got.get('text')!r}, without {want.get('text')!r}")
            s = got["stats"]
            check(s["decode_passes"] + s["accepted_tokens"] == s["decode_tokens"] == 59 and s["accepted_tokens"] <= s["drafted_tokens"],
                  f"{way}: {s}")
            if way[1] == model:                    # it agrees with itself
                check(s["accepted_tokens"] == s["drafted_tokens"] > 0, f"the model drafts for itself: {s}")
    want = answer("--seed", "5")
    for way in ways:                               # to the end of the context
        got = answer("--seed", "5", *way)
        check(got["stop_reason"] == want["stop_reason"] == "context" and got["tokens"] == want["tokens"], f"a full context, {way}")
    stop = want["text"][20:23]
    want = answer("--seed", "5", "--stop", stop)
    for way in ways:
        got = answer("--seed", "5", "--stop", stop, *way)
        check((got["text"], got["stop_reason"]) == (want["text"], want["stop_reason"]), f"--stop {stop!r}, {way}: {got['text']!r}")
    run(*words, "-n", "0", "--save-state", state)
    got = answer("-n", "40", "--seed", "5", "--load-state", state, *ways[0])
    check(got["tokens"] == answer("-n", "40", "--seed", "5")["tokens"] and got["reused_tokens"] > 0, f"with a state: {got}")
    told = run(*words, "-n", "60", "--temp", "0", "--stats", *ways[0])
    check("tokens per pass" in told.stderr and "checked" in told.stderr, f"--stats: {told.stderr!r}")

    refused = run(*words, "--memory", "1M", *ways[3])
    check(refused.returncode == 4 and "draft model: pinned weights" in refused.stderr and "checking 3 drafts" in refused.stderr,
          f"--memory 1M: {refused.returncode} {refused.stderr}")
    least = refused.stderr.split("give --memory ")[-1].split()[0]
    want, got = answer("-n", "30", "--seed", "9"), answer("-n", "30", "--seed", "9", "--memory", least, *ways[3])
    check(got.get("tokens") == want["tokens"], f"--memory {least}: {got}")

    fails(2, [*words, "--draft-ngram", "0"], "--draft-ngram 0")
    fails(2, [*words, "--draft-ngram", "-3"], "--draft-ngram")
    fails(2, [*words, "--draft-ngram", "99999999999"], "1 to 32")
    fails(2, [*words, "--draft-ngram", "x"], "--draft-ngram")
    fails(2, [*words, "--draft-ngram", "3", "--draft-tokens", "0"], "--draft-tokens 0")
    fails(2, [*words, "--draft-ngram", "3", "--draft-tokens", "65"], "1 to 64")
    fails(2, [*words, "--draft-tokens", "4"], "--draft-ngram or --draft-model")
    fails(2, [*words, "--draft-ngram", "3", "--draft-model", small], "one of them")
    fails(3, [*words, "--draft-model", foreign], "token 40")
    fails(3, [*words, "--draft-model", long], "859 tokens")
    fails(3, [*words, "--draft-model", bare], "bare.gguf")
    fails(3, [*words, "--draft-model", os.path.join(T, "absent.gguf")], "absent.gguf")


main(test_drafts)
