"""--lora of the engine's commands, and ridge tune. What trains is skipped where libtorch is not there."""
import json
import os
import signal
import subprocess
import time

from gguf_files import Gguf, tiny
from harness import A, Skip, T, check, fails, main, run, tiny_file, write


def adapter(rank=2, alpha=4.0, names=("attn_q", "ffn_down"), dim=32, ffn=64, arch="llama", kind="adapter", scale=0.3):
    """An adapter of gguf_files.tiny()."""
    g = Gguf()
    g.keys = {"general.architecture": arch, "general.type": kind, "adapter.type": "lora", "adapter.lora.alpha": alpha}
    for name in names:
        cols = ffn if name == "ffn_down" else dim
        g.tensor(f"blk.0.{name}.weight.lora_a", [cols, rank], scale)
        g.tensor(f"blk.0.{name}.weight.lora_b", [rank, dim], scale)
    return g.bytes()


def runs_adapters():
    model, lora = write(os.path.join(T, "model.gguf"), tiny().bytes()), write(os.path.join(T, "lora.gguf"), adapter())
    ids = "1,2,3,70,90,11"

    def logits(*more):
        out = os.path.join(T, "logits.npy")
        r = run("logits", model, "--tokens", ids, "-o", out, *more)
        check(r.returncode == 0, f"logits {more}: {r.returncode} {r.stderr}")
        return open(out, "rb").read() if r.returncode == 0 else b""

    plain, once = logits(), logits("--lora", lora)
    check(plain != once, "an adapter changes nothing")
    check(once == logits("--lora", lora + "=1") == logits("--lora", lora, "-t", "1", "--io", "buffered"), "an adapter is not the same in every mode")
    check(logits("--lora", lora + "=0.5", "--lora", lora + "=0.5") != plain, "two adapters change nothing")
    check(logits("--lora", lora + "=0") == plain, "half of nothing is something")
    odd = write(os.path.join(T, "a=b.gguf"), adapter())
    check(logits("--lora", odd) == once, "a name with = in it")
    text = write(os.path.join(T, "few.txt"), b"the theatre of the north, the weather there and then. " * 20)
    plain, adapted = (json.loads(run("perplexity", model, text, "--json", *more).stdout) for more in ([], ["--lora", lora]))
    check(plain["perplexity"] != adapted["perplexity"], f"perplexity with an adapter: {plain} {adapted}")
    for words in (["run", model, "--lora", lora, "--raw", "-p", "the", "-n", "4", "--temp", "0", "--ignore-eos"],
                  ["bench", model, "--lora", lora, "-p", "8", "-n", "2", "-r", "1"]):
        r = run(*words)
        check(r.returncode == 0, f"{words}: {r.returncode} {r.stderr}")
    r = run("plan", model, "--lora", lora, "--explain")
    check(r.returncode == 0 and "adapters" in r.stdout, f"plan: {r.returncode} {r.stdout} {r.stderr}")
    state = os.path.join(T, "state")
    r = run("run", model, "--lora", lora, "--raw", "-p", "the", "-n", "1", "--save-state", state)
    check(r.returncode == 0, f"--save-state: {r.stderr}")
    fails(3, ["run", model, "--raw", "-p", "the", "-n", "1", "--load-state", state], "state")
    return model, lora


def refuses_adapters(model, lora):
    words = ["run", model, "--raw", "-p", "the", "-n", "1", "--lora"]

    def wrong(part, **how):
        fails(3, [*words, write(os.path.join(T, "wrong.gguf"), adapter(**how))], part)

    wrong("'gemma3', and this model is 'llama'", arch="gemma3")
    wrong("is no adapter", kind="model")
    wrong("expected [32, rank] and [rank, 32]", dim=16)
    wrong("does not have", names=("attn_q", "ffn_sideways"))
    fails(3, [*words, model], "is no adapter")
    fails(3, [*words, os.path.join(T, "gone.gguf")], "gone.gguf")
    fails(3, ["run", lora, "-p", "x"], "--lora")
    raw = adapter()
    for keep in (0, 20, len(raw) // 2, len(raw) - 1):
        fails(3, [*words, write(os.path.join(T, "cut.gguf"), raw[:keep])], "cut.gguf")
    for scale in ("nan", "inf", "", "x", "1e9"):
        fails(2, [*words, lora + "=" + scale], "FILE=SCALE")
    fails(2, [*words, "=1"], "names no file")
    fails(2, ["logits", model, "--tokens", "1,2", "--lora", lora, "-o", lora], "is the input itself")
    # Experts are no plain products.
    experts = write(os.path.join(T, "experts.gguf"), adapter(names=("ffn_down_exps",)))
    fails(3, ["run", tiny_file(experts=4), "--raw", "-p", "x", "--lora", experts], "no plain product")


TINY = ["--rank", "2", "-c", "16", "--batch", "2", "--steps", "20", "--validation-tokens", "128", "--evaluate-every", "10",
        "--checkpoint-every", "5", "-t", "1", "--rate", "0.02"]


def misuse(model, text):
    out = os.path.join(T, "no.gguf")
    words = ["tune", model, "--data", text, "-o", out]
    fails(2, ["tune", model, "-o", out], "--data")
    fails(2, ["tune", model, "--data", text], "-o is missing")
    for more, part in ((["--rank", "0"], "--rank 0"), (["--rank", "-3"], "--rank"), (["--targets", "attn_q,ffn"], "--targets ffn"),
                       (["--targets", "attn_q,attn_q"], "twice"), (["--targets", ","], "--targets"), (["--alpha", "nan"], "--alpha nan"),
                       (["--rate", "inf"], "--rate"), (["-c", "4"], "--context 4"), (["--steps", "99999999999"], "--steps"),
                       (["--memory", "much"], "much"), (["--seed", "-1"], "-1")):
        fails(2, [*words, *more], part)
    fails(2, ["tune", model, "--data", text, "-o", model], "-o")
    fails(2, ["tune", model, "--data", text, "-o", text], "-o")
    fails(5, ["tune", model, "--data", text, "-o", os.path.join(T, "gone", "x.gguf")], "gone")
    check(not os.path.exists(out), "a refused command left its adapter")


def refused(model, text):
    out = os.path.join(T, "refused.gguf")
    before = sorted(os.listdir(T))
    fails(3, ["tune", tiny_file(arch="gemma3"), "--data", text, "-o", out, *TINY], "gemma3")
    fails(3, ["tune", tiny_file(experts=4), "--data", text, "-o", out, *TINY], "ffn_gate_inp")
    fails(3, ["tune", model, "--data", os.path.join(T, "gone.txt"), "-o", out, *TINY], "gone.txt")
    fails(3, ["tune", model, "--data", write(os.path.join(T, "short.txt"), b"short"), "-o", out, *TINY], "too few")
    fails(3, ["tune", model, "--data", text, "-o", out, *TINY, "--resume"], "leave --resume out")
    r = run("tune", model, "--data", text, "-o", out, *TINY, "--memory", "20M")
    check(r.returncode == 4 and "the largest matrix as floats" in r.stderr and "--memory" in r.stderr, f"--memory 20M: {r.returncode} {r.stderr}")
    check(sorted(set(os.listdir(T)) - set(before)) in ([], ["short.txt"]), f"refused, and left {sorted(set(os.listdir(T)) - set(before))}")


def trains(model, text):
    out = os.path.join(T, "tuned.gguf")
    r = run("tune", model, "--data", text, "-o", out, *TINY, "--memory", "2G", "--json")
    check(r.returncode == 0, f"tune: {r.returncode} {r.stderr}")
    report = json.loads(r.stdout)
    check(report["steps"] == 20 and [p["step"] for p in report["curve"]] == [0, 10, 20], f"report: {report}")
    check(report["held_out"] < report["held_out_before"] - 0.1, f"it does not learn: {report['curve']}")
    check(report["peak_bytes"] <= report["needed_bytes"] <= 2 << 30, f"memory: {report['peak_bytes']} of {report['needed_bytes']}")
    files = sorted(f for f in os.listdir(T) if f.startswith("tuned"))
    check(files == ["tuned.curve.csv", "tuned.curve.svg", "tuned.gguf"], f"files: {files}")
    check(open(os.path.join(T, "tuned.curve.csv")).read().startswith("step,loss,held_out,"), "the curve has no head")
    # The engine finds the held-out loss lower as well.
    held = write(os.path.join(T, "held.txt"), open(text, "rb").read()[-2000:])
    plain, adapted = (json.loads(run("perplexity", model, held, "--json", *more).stdout)["perplexity"] for more in ([], ["--lora", out]))
    check(adapted < plain, f"the engine finds {adapted} with the adapter and {plain} without")
    return out


def resumes(model, text):
    for folder in ("whole", "stopped"):
        os.mkdir(os.path.join(T, folder))
    whole, stopped = os.path.join(T, "whole", "a.gguf"), os.path.join(T, "stopped", "a.gguf")
    words = ["tune", model, "--data", text, *[w if w != "20" else "400" for w in TINY], "-o"]
    p = subprocess.Popen([A.ridge, *words, stopped], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while p.poll() is None and not os.path.exists(stopped + ".checkpoint.safetensors"):
        time.sleep(0.02)
    p.send_signal(signal.SIGINT)
    said = p.communicate(timeout=300)[1]
    check(p.returncode in (0, 130), f"Ctrl-C: {p.returncode} {said}")
    if p.returncode == 130:
        check("--resume" in said and not os.path.exists(stopped), f"Ctrl-C: {said}")
        fails(2, [*words, stopped], "--resume")
        fails(3, [*words, stopped, "--resume", "--seed", "9"], "other settings")
        r = run(*words, stopped, "--resume")
        check(r.returncode == 0, f"--resume: {r.returncode} {r.stderr}")
    r = run(*words, whole)
    check(r.returncode == 0, f"tune: {r.returncode} {r.stderr}")
    one, other = (open(path, "rb").read() for path in (whole, stopped))
    check(one == other, "resumed, the adapter is another")
    check(sorted(os.listdir(os.path.dirname(stopped))) == ["a.curve.csv", "a.curve.svg", "a.gguf"], "a checkpoint is left")


def test_tune():
    model, lora = runs_adapters()
    refuses_adapters(model, lora)
    text = os.path.join(T, "text.txt")
    run("distill", "--make-corpus", text, "--bytes", "30K")
    misuse(model, text)
    r = run("tune", model, "--data", text, "-o", os.path.join(T, "probe.gguf"), *TINY)
    if r.returncode == 5 and "libtorch" in r.stderr:
        check(len(r.stderr.splitlines()) == 1 and "scripts/setup --distill" in r.stderr, f"without libtorch: {r.stderr}")
        raise Skip("needs libtorch: scripts/setup --distill installs it")
    check(r.returncode == 0, f"tune: {r.returncode} {r.stderr}")
    refused(model, text)
    trains(model, text)
    resumes(model, text)


main(test_tune)
