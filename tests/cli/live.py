"""Memory pressure while a model runs: pins go and come back, the text stays, and the budget holds."""
import json
import os
import subprocess
import sys
import time

from harness import Skip, T, check, main, run, tiny_file, write

WORDS = ["-p", "the", "-n", "24", "--temp", "0", "--ignore-eos"]
SAYS = "memory pressure ("

# Pages of a file are charged to whoever reads them into the cache: they must leave it first. The pause lets the run take
# its base line of hits.
FILLER = """
import os, sys, time
while True:
    time.sleep(0.3)
    file = os.open(sys.argv[1], os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    while os.read(file, 1 << 20):
        pass
    os.close(file)
"""


class Cgroup:
    """A memory cgroup of a version 1 or 2 hierarchy with a limit; Skip where none can be made."""

    def __init__(self, limit):
        v1 = "/sys/fs/cgroup/memory"
        self.v2 = not os.path.isdir(v1)
        self.path = os.path.join("/sys/fs/cgroup" if self.v2 else v1, f"ridge-live-{os.getpid()}")
        try:
            os.mkdir(self.path)
            self.write("memory.max" if self.v2 else "memory.limit_in_bytes", limit)
        except OSError as error:
            self.remove()
            raise Skip(f"needs a memory cgroup of its own: {error}")

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as f:
            f.write(str(value))

    def read(self, name):
        with open(os.path.join(self.path, name)) as f:
            return f.read()

    def peak(self):
        return int(self.read("memory.peak" if self.v2 else "memory.max_usage_in_bytes"))

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w") as f:
            f.write(str(os.getpid()))

    def remove(self):
        # What ended a moment ago may still be in it.
        for _ in range(50):
            try:
                os.rmdir(self.path)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)


def json_run(model, *more):
    r = run("run", model, *WORDS, "--json", *more)
    check(r.returncode == 0, f"live: {more}: {r.stderr}")
    return (json.loads(r.stdout), r.stderr) if r.returncode == 0 else ({"text": "", "tokens": [], "stats": {}}, "")


def test_a_floor_that_is_never_reached_takes_all_pins(model):
    plain, said = json_run(model)
    check(plain["stats"]["live"] is None and SAYS not in said, f"live: a resident run without a floor: {plain['stats']['live']} {said}")
    always, said = json_run(model, "--floor", "64T")
    check(always["tokens"] == plain["tokens"], "live: the text differs when all pins are given back")
    live = always["stats"]["live"]
    check(live["releases"] >= 1 and live["released_blocks"] == live["blocks"] > 0, f"live: {live}")
    check(said.count("): released ") == live["releases"] and said.count(SAYS) <= live["releases"] + 1, f"live: each change is said once: {said}")
    check(always["stats"]["bytes_read"] > 0, "live: released pins are read")
    never, said = json_run(model, "--floor", "0")
    check(never["stats"]["live"] is None and never["tokens"] == plain["tokens"], f"live: --floor 0: {never['stats']}")
    calm, said = json_run(model, "--floor", "1")
    check(calm["stats"]["live"]["releases"] == 0 and SAYS not in said and calm["tokens"] == plain["tokens"], f"live: --floor 1: {said}")
    table = run("run", model, *WORDS, "--stats", "--explain", "--floor", "1")
    check("live budget" in table.stderr and "no memory pressure" in table.stderr and "reserved for them" in table.stderr,
          f"live: --stats and --explain: {table.stderr}")
    check(run("run", model, *WORDS, "--floor", "much").returncode == 2, "live: --floor much is a usage error")


def test_in_a_cgroup_that_others_fill(model):
    """Reading files beside the run fills the cgroup and hits its limit, which kills nobody."""
    limit = 64 * 2**20
    file = write(os.path.join(T, "filler"), os.urandom(2**20) * 72)
    words = ["-p", "the", "-n", "3000", "--temp", "0", "--ignore-eos", "--context", "4096", "--json"]
    want = json.loads(run("run", model, *words).stdout)
    group = Cgroup(limit)
    try:
        reader = subprocess.Popen([sys.executable, "-c", FILLER, file], preexec_fn=group.enter, stdin=subprocess.DEVNULL)
        try:
            got = run("run", model, *words, "--memory", "56M", "--floor", "512M", preexec_fn=group.enter)
        finally:
            reader.kill()
            reader.wait()
        check(got.returncode == 0, f"live: in a cgroup: {got.returncode} {got.stderr}")
        if got.returncode == 0:
            stats = json.loads(got.stdout)["stats"]
            check(json.loads(got.stdout)["tokens"] == want["tokens"], "live: the text differs in a cgroup that others fill")
            check(stats["live"]["releases"] >= 1 and SAYS in got.stderr, f"live: the limit was hit, and nothing given back: {stats} {got.stderr}")
            check(stats["peak_bytes"] <= stats["budget_bytes"], f"live: {stats}")
        check(group.peak() <= limit, f"live: {group.peak()} bytes were charged, {limit} is the limit")
    finally:
        group.remove()


def tests():
    model = tiny_file(layers=3)
    test_a_floor_that_is_never_reached_takes_all_pins(model)
    test_in_a_cgroup_that_others_fill(tiny_file(layers=5, dim=96, ffn=512))  # seconds of generating


main(tests)
