"""A random llama, as ../shared/tools makes them, in memory cgroups between its smallest budget and its size: nothing fails, equal text."""
import json
import os
import subprocess
import sys

from harness import A, T, Skip, check, main, run

SHAPE = ["--layers", "6", "--dim", "1024", "--ffn", "2816", "--heads", "16", "--kv-heads", "4", "--vocab", "4096", "--type", "Q4_0"]


def make(path):
    """By the tool of ../shared, which needs two packages; else by the one of this repository."""
    tool = os.path.join(A.shared, "tools", "make_random_gguf.py")
    if os.path.exists(tool) and subprocess.run([sys.executable, tool, path, *SHAPE], capture_output=True).returncode == 0:
        return
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/random_model.py")
    subprocess.run([sys.executable, own, path, *SHAPE], check=True)


def ids_of(done):
    return json.loads(done.stdout)["tokens"] if done.returncode == 0 else []


def limited(tool, limit, *words):
    r = subprocess.run([tool, str(limit), A.ridge, *words], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    last = r.stderr.strip().splitlines()[-1].split()
    return r, int(last[1]), int(last[3])


def test_random_model():
    tool = os.path.join(A.shared, "tools", "under_limit.sh")
    if not os.path.exists(tool):
        raise Skip("needs ../shared: " + tool)
    model = os.path.join(T, "random.gguf")
    make(model)
    info = json.loads(run("info", model, "--json").stdout)
    need = next(n for n in info["needs"] if n["context"] == 512)
    least, size = need["smallest_budget"], need["resident"]
    check(size - least > 20 << 20, f"nothing streams: {need}")
    # Its tokens have no texts: the ids are compared.
    words = ["run", model, "--raw", "-p", "the ", "-n", "12", "--ignore-eos", "--temp", "0", "--context", "512", "--json"]
    want = ids_of(run(*words))
    check(len(want) == 12, f"no text: {want}")
    budgets = [least + (size - least) * part // 4 for part in range(5)]
    for io in ("uring", "threads", "buffered"):
        r = run(*words, "--memory", str(least), "--io", io, "--threads", "1")
        check(r.returncode == 0 and ids_of(r) == want, f"--io {io} in {least}: {r.returncode} {r.stderr}")
    refused = run(*words, "--memory", str(least - (2 << 20)))
    check(refused.returncode == 4 and "--memory" in refused.stderr, f"below the smallest budget: {refused.returncode}")
    if os.geteuid() != 0 or subprocess.run([tool, "64M", "true"], capture_output=True).returncode != 0:
        raise Skip("needs a memory cgroup that can be made here")
    for budget in budgets:
        r, _, failed = limited(tool, budget, *words, "--memory", str(budget))
        check(r.returncode == 0 and failed == 0 and ids_of(r) == want, f"in {budget}: exit {r.returncode}, failcnt {failed}, {r.stderr}")
        r, peak, _ = limited(tool, 8 * budget, *words, "--memory", str(budget))
        check(r.returncode == 0 and peak <= budget and ids_of(r) == want, f"--memory {budget}: exit {r.returncode}, peak {peak}")


main(test_random_model)
