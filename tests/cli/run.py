"""`ridge run`: prompts, seeds, stops, JSON, budgets and I/O engines, a file that shrinks."""
import json
import os
import shutil
import subprocess

from harness import A, T, check, demo_model, main, run, tiny_file, write


def test_run():
    model = tiny_file()
    a = run("run", model, "-p", "the", "-n", "20", "--seed", "7", "--ignore-eos")
    b = run("run", model, "-p", "the", "-n", "20", "--seed", "7", "--ignore-eos", "--threads", "1", "--isa", "scalar")
    check(a.returncode == 0 and a.stdout == b.stdout, f"the same seed: {a.stdout!r} and {b.stdout!r}")
    check("tokens at" in a.stderr and "peak" in a.stderr, f"no summary: {a.stderr!r}")
    check(run("run", model, "-p", "the", "-n", "5", "-q").stderr == "", "-q says something")
    file = write(os.path.join(T, "p.txt"), b"the")
    c = run("run", model, "-f", file, "-n", "20", "--seed", "7", "--ignore-eos")
    d = run("run", model, "-", "-n", "20", "--seed", "7", "--ignore-eos", stdin="the")
    check(c.stdout == a.stdout and d.stdout == a.stdout, "-p, -f and - differ")
    j = json.loads(run("run", model, "-p", "the", "-n", "20", "--seed", "7", "--ignore-eos", "--json").stdout)
    check(j["text"].replace("\ufffd", "") + "\n" == a.stdout.replace("\ufffd", "") and j["stop_reason"] == "length" and len(j["tokens"]) == 20, f"--json: {j}")
    e = run("run", model, "-p", "the", "-n", "3", "--temp", "0", "--explain", "--stats")
    check("plan for" in e.stderr and "share of the bound" in e.stderr, f"--explain --stats: {e.stderr[-300:]!r}")
    filled = run("run", model, "-p", "the", "--context", "16", "--ignore-eos", "--temp", "0")
    check(filled.returncode == 0 and "context" in filled.stderr, f"a full context: {filled.returncode} {filled.stderr!r}")
    smol = demo_model("SmolLM2-135M-Instruct.Q4_1.gguf")
    want = run("run", smol, "-p", "Count from one to five.", "--temp", "0", "-n", "24")
    check(want.returncode == 0 and len(want.stdout) > 10, f"smollm2: {want.stderr}")
    stop = run("run", smol, "-p", "Count from one to five.", "--temp", "0", "-n", "24", "--stop", want.stdout[4:9])
    check(stop.stdout == want.stdout[:4] + "\n", f"--stop: {stop.stdout!r}")
    copy = os.path.join(T, "shrinks.gguf")
    shutil.copyfile(smol, copy)
    going = subprocess.Popen([A.ridge, "run", copy, "-p", "Tell a long story.", "--temp", "0", "-n", "400", "--ignore-eos", "--memory",
                              "45M", "--context", "512"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    going.stdout.read(1)                       # the first letter of the answer
    os.truncate(copy, 50_000_000)
    _, said = going.communicate(timeout=300)
    check(going.returncode == 3 and len(said.splitlines()) == 1 and b"shrinks.gguf" in said,
          f"a file that shrinks: exit {going.returncode}, {said!r}")
    for budget in ("110M", "80M", "64M", "45M"):
        for io in ("uring", "threads", "buffered"):
            got = run("run", smol, "-p", "Count from one to five.", "--temp", "0", "-n", "24", "--memory", budget,
                      "--context", "512", "--io", io)
            check(got.returncode == 0 and got.stdout == want.stdout, f"--memory {budget} --io {io}: {got.stdout!r} {got.stderr}")


main(test_run)
