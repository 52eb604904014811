"""--trace of run, bench and sim, and the page that ridge report makes of it."""
import json
import os
import resource
import signal
import subprocess

from harness import A, Skip, T, check, fails, main, run, tiny_file, write


def check_trace(path):
    """The file is what Perfetto wants: slices of a lane in order and apart, every lane named. Returns it."""
    file = json.load(open(path))
    names, last = {}, {}
    for e in file["traceEvents"]:
        check(e["pid"] == 1 and e["name"], f"{path}: {e} has no process or name")
        if e["ph"] == "M":
            if e["name"] == "thread_name":
                names[e["tid"]] = e["args"]["name"]
            continue
        check(e["ph"] in "XiC" and e["ts"] >= 0, f"{path}: {e}")
        if e["ph"] == "X":
            check(e["tid"] in names, f"{path}: no name for the lane of {e}")
            check(e["ts"] >= last.get(e["tid"], 0) - 1e-6, f"{path}: {e} begins within the one before it")
            last[e["tid"]] = e["ts"] + e["dur"]
    check(len(set(names.values())) == len(names), f"{path}: two lanes have one name: {names}")
    return file


def engine_traces():
    model = tiny_file(layers=3)
    trace, page = os.path.join(T, "t.json"), os.path.join(T, "t.html")
    words = ["run", model, "--raw", "-p", "hello hello hello", "-n", "6", "--temp", "0", "--ignore-eos", "-c", "64", "-t", "2"]
    plain = run(*words)
    traced = run(*words, "--trace", trace)
    check(traced.returncode == 0 and traced.stdout == plain.stdout, f"--trace changes the answer: {traced.stderr}")
    file = check_trace(trace)
    events, about = file["traceEvents"], file["ridge"]
    passes = [e for e in events if e.get("cat") == "pass"]
    check([e["name"] for e in passes] == ["prefill"] + 5 * ["decode"], f"passes are {[e['name'] for e in passes]}")
    computed = {about["blocks"][e["args"]["block"]][0] for e in events if e.get("cat") == "compute" and "block" in e.get("args", {})}
    check(computed == {b[0] for b in about["blocks"]}, f"computed {computed}")
    check(all(b[3] == 1 for b in about["blocks"]) and not any(e.get("cat") == "read" for e in events), "not resident")
    check(any(e["name"] == "attention" for e in events) and any(e["name"] == "memory" for e in events), "no attention, no memory")
    check(dict(about["account"])["trace"] > 0 and "trace" in run(*words, "--trace", trace, "--explain").stderr,
          "the buffers of a trace are not in the account")
    r = run("report", trace)
    check(r.returncode == 0 and "<h2>Timeline" in open(page).read(), f"ridge report: {r.stderr}")
    check(run("report", trace, "-o", "-", "--pass", "0-1").stdout.startswith("<!DOCTYPE html>"), "report to standard output")
    fails(2, ["report", trace, "--pass", "9"], "0 to 5")
    fails(2, ["report", trace, "--pass", "3-1"], "3-1")
    fails(2, ["report", trace, "-o", trace], "is the trace itself")
    fails(3, ["report", os.path.join(T, "absent.json")], "absent.json")
    fails(3, ["report", model], "JSON")
    fails(3, ["report", write(os.path.join(T, "other.json"), b'{"traceEvents": []}')], "no trace of ridge")
    fails(3, ["report", write(os.path.join(T, "half.json"), open(trace, "rb").read()[:-9])], "half.json")
    fails(2, [*words, "--trace", model], "--trace")
    fails(5, [*words, "--trace", os.path.join(T, "no", "t.json")], "folder")
    bench = os.path.join(T, "bench.json")
    r = run("bench", model, "-p", "8", "-n", "4", "-r", "2", "-t", "1", "--trace", bench, "--json")
    check(r.returncode == 0 and json.loads(r.stdout)["results"], f"bench --trace: {r.stderr}")
    check(sum(e.get("cat") == "pass" for e in check_trace(bench)["traceEvents"]) > 10, "a bench has passes")
    fails(2, ["bench", model, "-t", "1,2", "--trace", bench], "one engine")
    left = [n for n in os.listdir(T) if "partial" in n or n.startswith(".ridge")]
    check(not left, f"left behind: {left}")


def streamed_traces():
    """Under a budget: reads, waits and releases of streamed blocks, and of experts, and times that add up."""
    # Some 16 MB of weights each: more than the smallest budget leaves room for.
    for kind, more in (("blocks", {"ffn": 1024}), ("experts", {"ffn": 64, "experts": 16})):
        model = tiny_file(layers=4, dim=256, **more)
        trace = os.path.join(T, kind + ".json")
        words = ["bench", model, "-p", "16", "-n", "6", "-r", "2", "-t", "2", "-c", "128", "--json"]
        refused = run(*words, "--memory", "1M", "--trace", trace)
        check(refused.returncode == 4 and not os.path.exists(trace), f"{kind} in 1 MiB: {refused.returncode} {refused.stderr}")
        least = refused.stderr.split("give --memory ")[-1].split()[0]
        r = run(*words, "--memory", least, "--trace", trace)
        check(r.returncode == 0, f"{kind} in {least}: {r.returncode} {r.stderr}")
        if r.returncode != 0:
            continue
        file = check_trace(trace)
        events, blocks = file["traceEvents"], file["ridge"]["blocks"]
        for lane in ("read", "wait", "release", "compute"):
            about = {e["args"]["block"] for e in events if e.get("cat") == lane and "block" in e.get("args", {})}
            check(about, f"{kind}: no {lane} of a block")
            if lane in ("read", "release"):
                check(not any(blocks[b][3] for b in about), f"{kind}: a pinned block has a {lane}")
                check(kind != "experts" or any(blocks[b][4] for b in about), f"no expert has a {lane}")
        check(all(e["args"]["bytes"] == blocks[e["args"]["block"]][1] for e in events if e.get("cat") == "read"), f"{kind}: bytes of reads")
        for p in (e for e in events if e.get("cat") == "pass"):
            parts = sum(e["dur"] for e in events if e.get("cat") in ("compute", "wait") and e["ts"] >= p["ts"] - 1e-3
                        and e["ts"] + e["dur"] <= p["ts"] + p["dur"] + 1e-3)
            check(parts <= p["dur"] * 1.001 + 1, f"{kind}: computing and waiting take {parts} of {p['dur']} us")
        memory = [e["args"]["MiB"] for e in events if e["ph"] == "C" and e["name"] == "memory"]
        check(memory and max(memory) * 2**20 <= file["ridge"]["budget_bytes"], f"{kind}: memory is {memory[-3:]}")
        check(run("report", trace).returncode == 0, f"{kind}: ridge report")


def simulated_traces():
    model, trace = tiny_file(layers=3), os.path.join(T, "sim.json")
    profile = os.path.join(os.path.dirname(__file__), "..", "..", "profiles", "rk3588-anima.toml")
    sums = {}
    for more in ([], ["--lock", "init"], ["--memory", "250M"], ["--merge", "3"]):
        r = run("sim", profile, "--spectrum", *more, "--trace", trace)
        check(r.returncode == 0 and "gate" in r.stdout and "report" in r.stderr, f"sim --trace {more}: {r.returncode} {r.stderr}")
        file = check_trace(trace)
        lanes = {}
        for e in file["traceEvents"]:
            if e["ph"] == "X":
                lanes[e["cat"]] = lanes.get(e["cat"], 0) + e["dur"] / 1e6
        check({"compute", "read", "init", "release", "pass"} <= set(lanes), f"sim {more}: lanes {lanes}")
        check(abs(lanes["compute"] + lanes.get("wait", 0) - lanes["pass"]) < 1e-3, f"sim {more}: {lanes}")
        sums[" ".join(more)] = lanes["pass"]
        check(run("report", trace).returncode == 0, f"report of sim {more}")
    check(sums[""] < sums["--lock init"] < sums["--memory 250M"], f"a lock and less memory cost nothing: {sums}")
    fails(2, ["sim", profile, "--lock", "init"], "--trace")
    fails(2, ["sim", model, "--lock", "init", "--trace", trace], "--lock")
    fails(2, ["sim", profile, "--lock", "sometimes", "--trace", trace], "sometimes")
    visits = os.path.join(T, "visits.json")
    check(run("run", model, "-p", "a", "-n", "3", "--record", visits).returncode == 0, "run --record")
    fails(2, ["sim", visits, "--memory", "1M", "--trace", trace], "time")
    machine = os.path.join(T, "machine.toml")
    r = run("probe", "--quick", "--output", machine, "--folder", T)
    if r.returncode != 0:
        raise Skip(f"needs a machine that can be probed: {r.stderr}")
    for more in ([], ["--policy", "lru"], ["--policy", "pin-worth+stream"]):
        r = run("sim", model, "--machine", machine, "--passes", "4", *more, "--trace", trace)
        check(r.returncode == 0, f"sim model {more}: {r.returncode} {r.stderr}")
        passes = [e for e in check_trace(trace)["traceEvents"] if e.get("cat") == "pass"]
        check(len(passes) == 4 and all(e["args"]["tokens"] == 1 for e in passes), f"sim model {more}: {passes}")
    fails(2, ["sim", model, "--machine", machine, "--policy", "all", "--trace", trace], "one run")


def interrupted_traces():
    """Ctrl-C keeps what happened, SIGTERM and a full disk leave nothing that could be taken for a trace."""
    model, folder = tiny_file(layers=3), os.path.join(T, "stopped")
    os.mkdir(folder)
    trace = os.path.join(folder, "t.json")
    endless = [A.ridge, "run", model, "-p", "a", "-n", "100000", "--ignore-eos", "-c", "128000", "--trace", trace]
    for number in (signal.SIGINT, signal.SIGTERM):
        p = subprocess.Popen(endless, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(1)  # it generates
        p.send_signal(number)
        said = p.communicate(timeout=120)[1].decode()
        left = os.listdir(folder)
        if number == signal.SIGINT:
            check(p.returncode == 0 and left == ["t.json"], f"Ctrl-C: {p.returncode}, {left}: {said}")
            check(any(e.get("cat") == "pass" for e in check_trace(trace)["traceEvents"]), "a trace without passes after Ctrl-C")
            os.unlink(trace)
        else:
            check(p.returncode == -signal.SIGTERM and left == [], f"SIGTERM: {p.returncode}, {left}: {said}")

    def full_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    write(trace, b"what was there before")
    words = ["run", model, "-p", "a", "-n", "40", "--temp", "0", "--ignore-eos", "-c", "200"]
    r = run(*words, "--trace", trace, preexec_fn=full_disk, restore_signals=False)
    check(r.returncode == 5 and "large" in r.stderr and len(r.stderr.splitlines()) == 1, f"a full disk: {r.returncode} {r.stderr}")
    check(r.stdout == run(*words).stdout, "a full disk changes the answer")
    check(os.listdir(folder) == ["t.json"] and open(trace).read() == "what was there before", "a full disk leaves half a file")


def test_traces():
    engine_traces()
    interrupted_traces()
    simulated_traces()
    streamed_traces()


main(test_traces)
