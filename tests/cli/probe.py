"""The probe: what it writes, and measuring storage alone."""
import os
import re

from harness import T, check, main, run, tiny_file


def figures(path, name):
    """The lines of a list of a profile."""
    with open(path) as f:
        return re.findall(r"^\s*\{.*\}", re.search(rf"^{name} = \[(.*?)^\]", f.read(), re.S | re.M).group(1), re.M)


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
    both = run("probe", "--storage", "--no-storage")
    check(both.returncode == 2, f"probe: --storage --no-storage: {both.returncode}")


main(tests)
