"""Files that change, vanish or are none, full disks, closed streams, kills: one line, the right exit code, nothing left."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from harness import A, T, check, fails, main, run, tiny_file, write

ROOT = pathlib.Path(__file__).resolve().parents[2]
STREAMS = ["--memory", "28M", "--context", "256"]  # a third of the weights of random_file() fit beside the rest


def random_file(name="random.gguf"):
    """A llama of 32 MiB of weights."""
    path = os.path.join(T, name)
    subprocess.run([sys.executable, ROOT / "bench/random_model.py", path, "--type", "Q8_0", "--layers", "4", "--dim", "768", "--ffn", "2048",
                    "--heads", "12", "--vocab", "2048"], check=True)
    return path


def inputs(model):
    fifo = os.path.join(T, "fifo")
    os.mkfifo(fifo)
    for path, part in ((fifo, "pipe or device"), ("/dev/zero", "pipe or device"), ("/dev/null", "pipe or device"), (T, "folder"),
                       ("/proc/self/mem", "")):
        for words in (["info", path], ["run", path, "-p", "hi"], ["pack", path], ["tokenize", path, "hi"], ["plan", path]):
            fails(3, words, part)
        fails(3, ["run", model, "-p", "hi", "--load-state", path], part)
    fails(3, ["run", model, "-f", "/dev/zero"], "longer than a context")
    fails(3, ["run", model, "-f", T], "directory")
    fails(3, ["perplexity", model, T], "directory")
    # NUL is a character; surrogates, overlong forms and what is beyond Unicode are not.
    nul = run("run", model, "-", "-n", "3", "--raw", "-q", stdin="a\0b")
    check(nul.returncode == 0 and nul.stdout, f"a NUL in the prompt: {nul.returncode} {nul.stderr}")
    check(run("tokenize", model, "-", stdin="a\0b").stdout.split() == ["97", "0", "98"], "tokens of a NUL")
    for bad in (b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"a\xff"):
        fails(3, ["run", model, "-p", bad], "UTF-8")
    filled = run("run", model, "-p", "hi", "-n", str(2**63 - 1), "--ignore-eos", "--context", "32")
    check(filled.returncode == 0 and "context of 32 is full" in filled.stderr, f"a huge -n: {filled.returncode} {filled.stderr}")
    fails(3, ["run", model, "-p", "x" * 100_000], "context")
    fails(3, ["run", model, "-"], "can hold", stdin="y" * 5_000_000)


def no_permission(model):
    """As a user who may read nothing of it: root may read everything."""
    if os.geteuid() != 0:
        return
    own = os.path.join(T, "own.gguf")
    shutil.copyfile(model, own)
    os.chmod(own, 0o600)
    os.chmod(T, 0o755)
    nobody = {"preexec_fn": lambda: os.setuid(65534), "env": {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"}}
    if subprocess.run([A.ridge, "--version"], capture_output=True, **{"preexec_fn": nobody["preexec_fn"]}).returncode != 0:
        return                                     # that user cannot reach the program
    for words in (["info", own], ["run", own, "-p", "hi"], ["pack", own], ["run", own, "-p", "hi", "--memory", "64M"]):
        fails(3, words, "ermission", **nobody)
    for words in (["pack", model], ["logits", model, "--tokens", "1", "-o", os.path.join(T, "no.npy")]):
        fails(5, words, "ermission", **nobody)
    os.chmod(T, 0o700)


def closed_streams(model):
    """A stream that is not there stays an error of writing, and no file of ours takes its place."""
    want = os.path.join(T, "want.npy")
    run("logits", model, "--tokens", "1,2", "-o", want)
    for closed in ("<&-", "2>&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        got = os.path.join(T, "got.npy")
        r = subprocess.run(["bash", "-c", f'"$0" -q logits "$1" --tokens 1,2 -o "$2" {closed}', A.ridge, model, got])
        check(r.returncode == 0 and open(got, "rb").read() == open(want, "rb").read(), f"logits with {closed}: {r.returncode}")
        out = 5 if ">&-" in closed.replace("2>&-", "") else 0
        for words in ("info", "plan", "run -p hi -n 2"):
            command, *more = words.split()
            r = subprocess.run(["bash", "-c", f'"$0" {command} "$1" {" ".join(more)} {closed}', A.ridge, model], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
            check(r.returncode == out, f"{words} with {closed}: {r.returncode}")


def running(path):
    """A run that streams, after its first letter."""
    going = subprocess.Popen([A.ridge, "run", path, "--raw", "-p", "the", "--temp", "0", "-n", "250", "--ignore-eos", *STREAMS],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    going.stdout.read(1)
    return going


def changing_files():
    def shrink(path):
        os.truncate(path, 8 << 20)

    def replace(path):
        shutil.copyfile(path, path + ".new")
        os.replace(path + ".new", path)

    def write_to(path):
        with open(path, "r+b") as f:
            f.seek(20 << 20)
            f.write(b"!" * 4096)

    model = random_file()
    want = run("run", model, "--raw", "-p", "the", "--temp", "0", "-n", "250", "--ignore-eos", *STREAMS)
    check(want.returncode == 0 and "then read" in want.stderr, f"the random model does not stream: {want.stderr}")
    copy = os.path.join(T, "changes.gguf")
    for change in (shrink, replace, write_to):
        shutil.copyfile(model, copy)
        going = running(copy)
        change(copy)
        _, said = going.communicate(timeout=300)
        check(going.returncode == 3 and len(said.splitlines()) == 1 and b"changes.gguf" in said,
              f"{change.__name__} while running: exit {going.returncode}, {said!r}")
    shutil.copyfile(model, copy)
    going = running(copy)
    os.remove(copy)                                # whoever has it open keeps it
    rest, said = going.communicate(timeout=300)
    check(going.returncode == 0 and want.stdout[1:].encode(errors="replace") != b"" and len(rest) > 0, f"removed while running: {said!r}")
    return model


def killed_packs(model):
    pack = os.path.join(T, "killed.ridge")
    before = sorted(os.listdir(T))
    whole = 0
    for wait in (0.0, 0.01, 0.02, 0.04, 0.08):
        going = subprocess.Popen([A.ridge, "pack", model, "-o", pack, "-t", "1"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        going.send_signal(signal.SIGKILL)
        going.wait()
        if os.path.exists(pack):                   # it was faster
            check(run("pack", "--check", pack).returncode == 0, "a killed pack left a file that is not whole")
            os.remove(pack)
            whole += 1
        check(sorted(os.listdir(T)) == before, f"a killed pack left {set(os.listdir(T)) - set(before)}")
    check(whole < 5, "every pack was faster than its kill")
    check(run("pack", model, "-o", pack).returncode == 0 and run("pack", "--check", pack).returncode == 0, "a pack after killed ones")


def full_disk(model, large):
    """On a file system of 256 KiB, where it can be mounted."""
    disk = os.path.join(T, "disk")
    os.mkdir(disk)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode != 0:
        return
    out = os.path.join(disk, "out")
    ids = ",".join(["1"] * 250)
    long = write(os.path.join(T, "long.txt"), b"the theme of this text " * 50)
    try:
        for words in (["pack", large, "-o"], ["pack", model, "-o"], ["logits", model, "--tokens", ids, "-o"],
                      ["run", large, "-f", long, "-n", "1", "--context", "2048", "--save-state"]):
            if words[:2] == ["pack", model]:
                write(os.path.join(disk, "rest"), b"x" * 200_000)   # the tiny pack does not fit beside it
            fails_with_output(5, [*words, out], "free")
            check(set(os.listdir(disk)) <= {"rest"}, f"{words}: left {os.listdir(disk)}")
    finally:
        subprocess.run(["umount", disk], check=True)


def fails_with_output(code, words, part):
    r = run(*words)
    said = [line for line in r.stderr.splitlines() if line.strip()]
    check(r.returncode == code and part in r.stderr and len(said) == 1, f"{words[:2]} on a full disk: {r.returncode} {r.stderr!r}")


def test_hostile():
    model = tiny_file()
    inputs(model)
    no_permission(model)
    closed_streams(model)
    large = changing_files()
    killed_packs(large)
    full_disk(model, large)


main(test_hostile)
