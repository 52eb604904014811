"""The promise of --memory, in memory cgroups."""
import os
import subprocess

from harness import A, Skip, check, demo_model, main, run


def test_memory():
    """In a memory cgroup of the budget nothing fails, and in a large one the peak stays below the budget."""
    tool = os.path.join(A.shared, "tools", "under_limit.sh")
    if not os.path.exists(tool):
        raise Skip("needs ../shared: " + tool)
    if os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK):
        raise Skip("needs root and a writable cgroup file system")
    trial = subprocess.run([tool, "64M", "true"], capture_output=True, text=True)
    if "peak_bytes" not in trial.stderr or trial.returncode != 0:
        raise Skip("needs a memory cgroup that can be made here")

    def limited(limit, *words):
        r = subprocess.run([tool, limit, A.ridge, *words], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
        last = r.stderr.strip().splitlines()[-1].split()
        return r, int(last[1]), int(last[3])

    for file, budgets in (("SmolLM2-135M-Instruct.Q4_1.gguf", (40, 64, 90)), ("gemma-3-270m-Q4_K_M.gguf", (80, 96, 160, 250))):
        model = demo_model(file)
        words = ["run", model, "-p", "The capital of France is", "--temp", "0", "-n", "8", "--context", "512"]
        want = run(*words).stdout
        for m in budgets:
            r, _, failed = limited(f"{m}M", *words, "--memory", f"{m}M")
            check(r.returncode == 0 and failed == 0 and r.stdout == want, f"{file} in {m}M: exit {r.returncode}, failcnt {failed}, {r.stderr}")
            r, peak, failed = limited(f"{8 * m}M", *words, "--memory", f"{m}M")
            check(r.returncode == 0 and peak <= m << 20, f"{file} with --memory {m}M: peak {peak}")


main(test_memory)
