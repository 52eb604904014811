"""The probe: what it writes, and measuring storage alone."""
import os
import re

from harness import T, check, main, run, tiny_file


def figures(path, name):
    """The lines of a list of a profile."""
    with open(path) as f:
        return re.findall(r"^\s*\{.*\}", re.search(rf"^{name} = \[(.*?)^\]", f.read(), re.S | re.M).group(1), re.M)


def opencl(model):
    """A device's profile where there is a driver, else one line that says what is missing; never over that of the host."""
    check(run("probe", "--opencl").returncode == 2, "probe: --opencl without -o")
    check(run("probe", "--device", "1").returncode == 2, "probe: --device without --opencl")
    for words in (["--storage"], ["--no-storage"], ["--folder", T], ["-t", "1"]):
        both = run("probe", "--opencl", *words, "-o", os.path.join(T, "gpu.toml"))
        check(both.returncode == 2, f"probe: --opencl {words}: {both.returncode} {both.stderr}")
    below = run("probe", "--opencl", "--device=-1", "-o", os.path.join(T, "gpu.toml"))
    check(below.returncode == 2 and "from 0" in below.stderr, f"probe: --device -1: {below.returncode} {below.stderr}")
    absent = run("probe", "--opencl", "--device", "999", "-o", os.path.join(T, "gpu.toml"))
    check(absent.returncode in (2, 5) and absent.stderr.count("\n") <= 3 and not os.path.exists(os.path.join(T, "gpu.toml")),
          f"probe: --opencl --device 999: {absent.returncode} {absent.stderr}")
    check(absent.returncode == 2 or "install" in absent.stderr, f"probe: without OpenCL: {absent.stderr}")


def tests():
    model = tiny_file(layers=5, dim=96, ffn=512)
    profile = os.path.join(T, "machine.toml")
    refused = run("probe", "--storage", "--quick", "--file", model, "-o", profile)
    check(refused.returncode == 3 and "machine.toml" in refused.stderr and not os.path.exists(profile),
          f"probe: --storage without a profile: {refused.returncode} {refused.stderr}")
    r = run("probe", "--quick", "--no-storage", "-t", "1", "-o", profile)
    check(r.returncode == 0 and "memory, read only" in r.stdout, f"probe: {r.returncode} {r.stderr}")
    reads = figures(profile, "reads")
    check(len(reads) >= 4 and "request_bytes" not in open(profile).read(), f"probe: --no-storage: {reads}")
    r = run("probe", "--storage", "--quick", "--file", model, "-o", profile)
    check(r.returncode == 0 and model in r.stdout, f"probe: --storage: {r.returncode} {r.stderr}")
    check(figures(profile, "reads") == reads, "probe: --storage changed the figures of memory")
    check(len(figures(profile, "storage")) >= 2, "probe: --storage wrote no figures")
    peaks = figures(profile, "peaks")
    check(any("isa = 'scalar'" in p for p in peaks), f"probe: peaks name no ISA: {peaks}")
    opencl(model)
    both = run("probe", "--storage", "--no-storage")
    check(both.returncode == 2, f"probe: --storage --no-storage: {both.returncode}")


main(tests)
