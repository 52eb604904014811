"""What users of other engines filed, on this system itself."""
import json
import os
import shutil
import subprocess
import tempfile

from harness import A, Skip, check, main, run, tiny_file


def without_io_uring():
    """In the child: io_uring_setup, _enter and _register answer EPERM, as under the profiles of container engines."""
    import ctypes

    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction))]

    load, at_least, above, ret = 0x20, 0x35, 0x25, 0x06
    filter = (Instruction * 5)(Instruction(load, 0, 0, 0), Instruction(at_least, 0, 2, 425), Instruction(above, 1, 0, 427),
                               Instruction(ret, 0, 0, 0x00050000 | 1), Instruction(ret, 0, 0, 0x7FFF0000))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(Program(5, filter)), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no seccomp filter")


def test_cases():
    """What users of other engines filed, on this system itself (docs/cases.md)."""
    model = tiny_file(layers=3)
    words = ["-p", "the", "-n", "8", "--temp", "0", "--ignore-eos"]
    want = run("run", model, *words)
    check(want.returncode == 0, f"cases: {want.stderr}")
    locked = subprocess.run(["bash", "-c", f"ulimit -l 0; '{A.ridge}' run '{model}' {' '.join(words)}"], capture_output=True, text=True,
                            errors="replace", stdin=subprocess.DEVNULL)
    check(locked.returncode == 0 and locked.stdout == want.stdout, f"no locked memory: {locked.returncode} {locked.stderr}")
    if os.access("/dev/shm", os.W_OK):
        # A file system in memory: kernels before 6.6 refuse O_DIRECT there with EINVAL.
        folder = tempfile.mkdtemp(prefix="ridge-cli-", dir="/dev/shm")
        try:
            there = run("run", shutil.copy(model, folder), *words)
        finally:
            shutil.rmtree(folder)
        check(there.returncode == 0 and there.stdout == want.stdout, f"from tmpfs: {there.returncode} {there.stderr}")
    try:
        forbidden = run("run", model, *words, preexec_fn=without_io_uring)
        doctor = json.loads(run("doctor", model, "--json", preexec_fn=without_io_uring).stdout)
    except subprocess.SubprocessError:
        raise Skip("needs seccomp filters")
    check(forbidden.returncode == 0 and forbidden.stdout == want.stdout, f"io_uring forbidden: {forbidden.returncode} {forbidden.stderr}")
    if "io_uring" in run("doctor", model).stdout and "O_DIRECT is refused" not in forbidden.stderr and "not part of this build" not in forbidden.stderr:
        check("io_uring is not permitted here" in forbidden.stderr, f"io_uring forbidden, and nothing said: {forbidden.stderr!r}")
        ring = [f for f in doctor["findings"] if f["topic"] == "io_uring"][0]
        check(ring["verdict"] == "note" and "refused" in ring["fact"], f"doctor without io_uring: {ring}")


main(test_cases)
