"""`ridge doctor`."""
import json
import os
import subprocess

import gguf_files
from harness import A, T, check, fails, main, run, tiny_file, write


def test_doctor():
    model = tiny_file()
    r = run("doctor", model)
    check(r.returncode == 0 and r.stderr == "", f"doctor: {r.returncode} {r.stderr}")
    check(all(len(line.encode()) <= 90 for line in r.stdout.splitlines()), f"doctor: long lines in {r.stdout}")
    j = json.loads(run("doctor", model, "--json").stdout)
    check(j["runs"] and j["exit_code"] == 0, f"doctor: {j}")
    topics = [f["topic"] for f in j["findings"]]
    for topic in ("memory", "cgroup", "locked memory", "huge pages", "CPU", "CPUs", "O_DIRECT", "io_uring", "storage", "system", "choice", "budget", "context", "plan"):
        check(topic in topics, f"doctor says nothing of {topic}: {topics}")
    check(all(f["verdict"] in ("ok", "note", "problem") and f["fact"] and (f["verdict"] == "ok") == ("advice" not in f) for f in j["findings"]), f"doctor: {j['findings']}")
    before = sorted(os.listdir(T))
    here = run("doctor", "--json", cwd=T)
    check(here.returncode == 0 and sorted(os.listdir(T)) == before, f"doctor without a model: {here.returncode} {here.stderr} {os.listdir(T)}")
    check("this folder" in here.stdout or "O_DIRECT is refused" in here.stdout, f"doctor without a model: {here.stdout}")
    gone = run("doctor", "--json", cwd="/proc")          # a folder that nobody can write
    check(gone.returncode == 0 and "cannot be written" in gone.stdout, f"doctor in /proc: {gone.returncode} {gone.stdout[:200]}")
    small = run("doctor", model, "--memory", "1M", "--json")
    check(small.returncode == 4 and not json.loads(small.stdout)["runs"] and "does not fit" in small.stderr, f"doctor --memory 1M: {small.returncode} {small.stderr}")
    absent = run("doctor", os.path.join(T, "absent.gguf"), "--json")
    check(absent.returncode == 3 and json.loads(absent.stdout)["exit_code"] == 3, f"doctor of no file: {absent.returncode}")
    cut = run("doctor", write(os.path.join(T, "cut.gguf"), open(model, "rb").read()[:-4000]))
    check(cut.returncode == 3 and "problem" in cut.stdout and "cut.gguf" in cut.stderr, f"doctor of half a file: {cut.returncode}")
    mute = run("doctor", write(os.path.join(T, "mute.gguf"), gguf_files.tiny(tokenizer=False).bytes()))
    check(mute.returncode == 3 and "tokenizer" in mute.stderr, f"doctor of a model without tokenizer: {mute.returncode} {mute.stderr}")
    fails(2, ["doctor", "--memory", "1G"], "MODEL")
    fails(2, ["doctor", model, "--memory", "10Q"], "10Q")
    fails(2, ["doctor", model, "--context", "0"], "--context")
    # Where the address space is limited, it says so and still works.
    limited = subprocess.run(["bash", "-c", f"ulimit -v 8000000; '{A.ridge}' doctor --json"], capture_output=True, text=True, cwd=T)
    if "AddressSanitizer" not in limited.stderr and "ThreadSanitizer" not in limited.stderr:
        check(limited.returncode == 0 and "RLIMIT_AS" in limited.stdout, f"doctor under ulimit -v: {limited.returncode} {limited.stderr}")


main(test_doctor)
