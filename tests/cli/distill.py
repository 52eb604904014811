"""ridge distill: made texts, training, resuming, what it refuses. What trains is skipped where libtorch is not there."""
import json
import os
import resource
import signal
import subprocess
import time

from harness import A, Skip, T, check, fails, main, run, tiny_file, write


def made_texts():
    """Texts need no libtorch, and are the same every time."""
    a, b, c = (os.path.join(T, name) for name in ("a.txt", "b.txt", "c.txt"))
    for path, more in ((a, []), (b, []), (c, ["--seed", "2"])):
        r = run("distill", "--make-corpus", path, "--bytes", "100K", *more)
        check(r.returncode == 0 and r.stdout == "", f"--make-corpus: {r.returncode} {r.stderr}")
    texts = [open(path, encoding="utf-8").read() for path in (a, b, c)]
    check(texts[0] == texts[1] != texts[2], "--make-corpus is not decided by its seed")
    check(len(texts[0]) >= 100 * 1024 and "Question: " in texts[0] and "Answer: " in texts[0], "the corpus lacks something")
    lines = os.path.join(T, "items.jsonl")
    r = run("distill", "--make-rationales", lines, "--items", "50")
    items = [json.loads(line) for line in open(lines, encoding="utf-8")]
    check(r.returncode == 0 and len(items) == 50 and set(items[0]) == {"question", "steps", "answer"}, f"--make-rationales: {r.stderr} {items[:1]}")
    if os.path.exists("/dev/full"):
        fails(5, ["distill", "--make-corpus", os.path.join(T, "gone", "x.txt")], "gone")


def misuse(text):
    out = os.path.join(T, "no")
    fails(2, ["distill"], "no text to learn from")
    fails(2, ["distill", text], "-o")
    fails(2, ["distill", "--make-corpus", out, text], "leave DATA")
    fails(2, ["distill", text, "-o", out, "--ffn", "gelu"], "reglu")
    fails(2, ["distill", text, "-o", out, "--divergence", "x"], "skew-forward")
    fails(2, ["distill", text, "-o", out, "--dim", "30"], "multiple of 8")
    fails(2, ["distill", text, "-o", out, "--kv-heads", "3"], "--kv-heads 3")
    fails(2, ["distill", text, "-o", out, "--layers", "0"], "--layers 0")
    fails(2, ["distill", text, "-o", out, "--dim", "99999999999"], "--dim")
    fails(2, ["distill", text, "-o", out, "--record", "x"], "SwiGLU")
    fails(2, ["distill", text, "-o", out, "--exit-layer", "9"], "--exit-layer 9")
    fails(2, ["distill", text, "-o", out, "--seed", "-1"], "-1")
    check(not os.path.exists(out), "a refused command left its folder")


TINY = ["--dim", "16", "--layers", "2", "--ffn-dim", "24", "-c", "32", "--batch", "2", "--steps", "20", "--validation-tokens", "256",
        "--evaluate-every", "10", "--checkpoint-every", "5", "-t", "1"]


def refused(text):
    """Bad input: each with its exit code, one line, and nothing written."""
    out = os.path.join(T, "refused")
    for name, data, part in (("empty.txt", b"", "no text"), ("binary.txt", b"text\0text" * 1000, "zero byte at offset 4"),
                             ("latin.txt", b"caf\xe9 " * 1000, "no UTF-8 at offset 3"), ("short.txt", b"short", "too few")):
        fails(3, ["distill", write(os.path.join(T, name), data), "-o", out, *TINY], part)
    fails(3, ["distill", os.path.join(T, "gone.txt"), "-o", out, *TINY], "gone.txt")
    fails(2, ["distill", text, "-o", out, *TINY, "--kd", "0.5"], "--teacher")
    fails(2, ["distill", text, "-o", out, *TINY, "--l1", "1"], "--ffn reglu")
    fails(2, ["distill", text, "-o", out, *TINY, "--rate", "nan"], "--rate nan")
    fails(2, ["distill", text, "-o", out, *TINY, "--temperature", "0"], "--temperature 0")
    fails(4, ["distill", text, "-o", out, "--dim", "16384", "--layers", "256"], "make it smaller")
    fails(3, ["distill", text, "-o", out, *TINY, "--resume"], "leave --resume out")
    # A teacher of another vocabulary.
    teacher = tiny_file(layers=1)
    fails(3, ["distill", text, "-o", out, *TINY, "--teacher", teacher, "--tokenizer", "byte"], "vocabular")
    fails(3, ["distill", text, "-o", out, *TINY, "--weights", write(os.path.join(T, "map.json"), b"{}")], "ridge-layer-weights")


def files_of(folder):
    return sorted(os.listdir(folder))


def contents(folder, name="checkpoint.safetensors"):
    return open(os.path.join(folder, name), "rb").read()


def trains(text):
    folder = os.path.join(T, "student")
    words = ["distill", text, *TINY, "--ffn", "reglu", "--l1", "0.1", "--exit-layer", "1"]
    r = run(*words, "-o", folder, "--json", "--record", os.path.join(T, "visits"))
    check(r.returncode == 0, f"distill: {r.returncode} {r.stderr}")
    report = json.loads(r.stdout)
    check(report["steps"] == 20 and report["architecture"] == "reglu-llama" and [p["step"] for p in report["curve"]] == [10, 20], f"report: {report}")
    check(report["curve"][1]["held_out"] < report["curve"][0]["held_out"] < 5.7, f"it does not learn: {report['curve']}")
    check(0 < report["gates"]["sparsity"] < 1 and report["gates"]["touched_sorted"] <= 1, f"gates: {report['gates']}")
    check(files_of(folder) == ["checkpoint.safetensors", "config.json", "curves.csv", "curves.svg", "draft.gguf", "model.safetensors", "student.gguf"],
          f"files: {files_of(folder)}")
    check(open(os.path.join(folder, "curves.csv")).read().startswith("step,loss,"), "curves.csv has no head")
    check("<svg" in open(os.path.join(folder, "curves.svg")).read(), "curves.svg is no picture")
    s = run("run", os.path.join(folder, "student.gguf"), "--raw", "-p", "One day", "-n", "8", "--temp", "0", "--ignore-eos")
    check(s.returncode == 0, f"the student does not run: {s.stderr}")
    sim = run("sim", os.path.join(T, "visits.judge.json"), "--memory", "2K", "--policy", "all", "--train", os.path.join(T, "visits.train.json"), "--json")
    check(sim.returncode == 0 and json.loads(sim.stdout)["passes"] == 256, f"visits: {sim.returncode} {sim.stderr} {sim.stdout[:200]}")
    fails(2, [*words, "-o", folder], "--resume")
    # Finished already: judged and written again.
    again = run(*words, "-o", folder, "--resume", "--json", "--fisher", os.path.join(T, "fisher.safetensors"), "--fisher-windows", "4")
    check(again.returncode == 0 and json.loads(again.stdout)["held_out"] == report["held_out"], f"resume at the end: {again.stderr}")
    return words, folder


def sensitivities(student, text):
    """From the Fisher information, and from nothing else than that of this very student."""
    fisher, maps = os.path.join(T, "fisher.safetensors"), []
    words = ["importance", student, "--data", text, "--window", "32", "--windows", "2", "--neurons", "16"]
    for more in ([], ["--fisher", fisher]):
        out = os.path.join(T, "map.json")
        check(run(*words, *more, "-o", out).returncode == 0, f"importance {more}")
        maps.append(json.load(open(out))["blocks"])
    check([b["touch"] for b in maps[0]] == [b["touch"] for b in maps[1]], "sensitivities change touches")
    check([b["sensitivity"] for b in maps[0]] != [b["sensitivity"] for b in maps[1]], "--fisher changes nothing")
    check(all(b["sensitivity"] > 0 for b in maps[1] if b["kind"] == "part"), f"a part that does not matter: {maps[1]}")
    fails(2, [*words, "--fisher", fisher, "--from-imatrix", fisher], "not both")
    fails(3, ["importance", tiny_file(layers=3), "--data", text, "--window", "32", "--fisher", fisher], "another model")
    fails(3, [*words, "--fisher", student], "safetensors")


def resumes(words, finished):
    """Ctrl-C, then --resume: the same weights, bit for bit."""
    whole, folder = os.path.join(T, "whole"), os.path.join(T, "stopped")
    longer = [w if w != "20" else "300" for w in words]
    p = subprocess.Popen([A.ridge, *longer, "-o", folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while p.poll() is None and not os.path.exists(os.path.join(folder, "checkpoint.safetensors")):
        time.sleep(0.02)
    p.send_signal(signal.SIGINT)
    said = p.communicate(timeout=300)[1]
    check(p.returncode in (0, 130), f"Ctrl-C: {p.returncode} {said}")  # 0: it was at its end already
    if p.returncode == 130:
        check("--resume" in said and "student.gguf" not in files_of(folder), f"Ctrl-C: {said}, {files_of(folder)}")
    for out, more in ((whole, []), (folder, ["--resume"])):
        r = run(*longer, "-o", out, *more)
        check(r.returncode == 0, f"distill {more}: {r.returncode} {r.stderr}")
    check(contents(folder) == contents(whole), "resumed, the weights are others")
    check(contents(folder, "model.safetensors") == contents(whole, "model.safetensors"), "resumed, the model is another")
    fails(3, [*words, "-o", finished, "--resume", "--seed", "9"], "other settings")


def full_disk(words):
    folder = os.path.join(T, "full")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    r = run(*words, "-o", folder, preexec_fn=limit, restore_signals=False)
    check(r.returncode == 5 and len(r.stderr.splitlines()) == 1, f"a full disk: {r.returncode} {r.stderr}")
    check(files_of(folder) == [], f"a full disk leaves {files_of(folder)}")


def diverges(words):
    """A loss that is no number: exit 6, and the last checkpoint stays readable."""
    folder = os.path.join(T, "diverged")
    r = run(*words, "-o", folder, "--rate", "1e6", "--clip", "1e9", "--decay", "10", "--warmup", "0")
    check(r.returncode == 6 and "no finite numbers" in r.stderr, f"divergence: {r.returncode} {r.stderr}")
    check("student.gguf" not in files_of(folder), "a broken student is exported")


def teachers(text, words, folder):
    """Students of a checkpoint, and of the same model run by the engine under a budget."""
    checkpoint, gguf = (os.path.join(folder, f) for f in ("checkpoint.safetensors", "student.gguf"))
    pack = os.path.join(T, "teacher.ridge")
    run("pack", gguf, "-o", pack)
    items = os.path.join(T, "few.jsonl")
    run("distill", "--make-rationales", items, "--items", "40")
    losses = []
    for i, more in enumerate(([checkpoint, "--hidden", "0.1", "--on-policy", "0.3", "--on-policy-tokens", "4"], [checkpoint], [gguf], [pack])):
        out = os.path.join(T, f"taught{i}")
        r = run("distill", text, *TINY, "--divergence", "skew-reverse", "-o", out, "--json", "--share-blocks", "--teacher", *more)
        check(r.returncode == 0, f"teacher {more}: {r.returncode} {r.stderr}")
        losses.append(json.loads(r.stdout)["held_out"] if r.returncode == 0 else 0)
    check(abs(losses[1] - losses[2]) < 0.05, f"checkpoint and engine teach differently: {losses}")
    check(losses[2] == losses[3], f"a model and its pack teach differently: {losses}")
    fails(2, ["distill", text, *TINY, "-o", os.path.join(T, "x1"), "--teacher", gguf, "--hidden", "1"], "checkpoint")
    long = [w if w != "32" else "256" for w in TINY]
    r = run("distill", text, *long, "--rationales", items, "-o", os.path.join(T, "reasons"), "--json")
    check(r.returncode == 0 and 0 <= json.loads(r.stdout)["right_answers"] <= 1, f"rationales: {r.returncode} {r.stderr}")


def test_distill():
    made_texts()
    text = os.path.join(T, "a.txt")
    misuse(text)
    r = run("distill", text, "-o", os.path.join(T, "probe"), *TINY)
    if r.returncode == 5 and "libtorch" in r.stderr:
        check(len(r.stderr.splitlines()) == 1 and "scripts/setup --distill" in r.stderr, f"without libtorch: {r.stderr}")
        raise Skip("needs libtorch: scripts/setup --distill installs it")
    refused(text)
    words, folder = trains(text)
    resumes(words, folder)
    full_disk(words)
    sensitivities(os.path.join(folder, "student.gguf"), text)
    diverges(words)
    teachers(text, words, folder)


main(test_distill)
