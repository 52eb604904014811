"""--trace of run, bench and sim, and the page that ridge report makes of it."""
import json
import os

from harness import T, check, fails, main, run, tiny_file, write


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


def test_trace():
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


main(test_trace)
