"""`ridge bench`: what it measures, its formats, its store and comparisons."""
import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import time

from harness import A, T, check, fails, main, run, tiny_file, write


def test_bench():
    model = tiny_file()
    once = ["bench", model, "-p", "8", "-n", "4", "-t", "1"]
    few = [*once, "-r", "2", "-q"]
    r = run("bench", model, "-p", "8,16", "-n", "0,4", "-d", "0,8", "-t", "1-2", "-r", "2", "--json", "--profile")
    check(r.returncode == 0, f"bench --json: {r.stderr}")
    j = json.loads(r.stdout)
    check(list(j) == ["machine", "results"], f"bench --json has {list(j)}")
    shape = [(x["test"], x["tokens"], x["depth"], x["threads"]) for x in j["results"]]
    check(shape == [(*test, d, t) for t in (1, 2) for d in (0, 8) for test in (("prefill", 8), ("prefill", 16), ("decode", 4))],
          f"bench measures {shape}")
    for x in j["results"]:
        low, high = x["ci95"]
        check(0 < low <= x["tokens_per_s"] <= high and len(x["samples"]) == 2, f"bench: interval {x}")
        check(x["gb_per_s"] > 0 and x["roof_share"] > 0 and x["peak_bytes"] > 1 << 20 and x["read_roof_gb_per_s"] > 0, f"bench: {x}")
        names = [s["stage"] for s in x["profile"]]
        check(names and names[-1] == "other" and abs(sum(s["share"] for s in x["profile"]) - 1) < 1e-6, f"bench --profile: {names}")
        check(x["test"] == "decode" or "sampling" not in names, "a prompt is not sampled from")
    seen = {s["stage"] for x in j["results"] for s in x["profile"]}
    check({"head", "ffn_gate ffn_up", "attn_q attn_k attn_v"} <= seen, f"bench --profile: {seen}")
    deep = {x["depth"]: x["gb_per_s"] / x["tokens_per_s"] for x in j["results"] if x["test"] == "decode" and x["threads"] == 1}
    # One layer, one key/value head of 16 + 16 numbers of two or four bytes: eight positions more.
    check(round((deep[8] - deep[0]) * 1e9) in (8 * 32 * 2, 8 * 32 * 4), f"bytes of a token by depth: {deep}")
    rows = list(csv.DictReader(io.StringIO(run(*few, "--csv").stdout)))
    check([x["test"] for x in rows] == ["prefill", "decode"] and float(rows[0]["tokens_per_s"]) > 0, f"bench --csv: {rows}")
    lines = [json.loads(line) for line in run(*few, "--jsonl").stdout.splitlines()]
    check([x["tokens"] for x in lines] == [8, 4] and lines[0]["model"] == "tiny", f"bench --jsonl: {lines}")
    memory = sqlite3.connect(":memory:")
    memory.executescript(run(*few, "--sql").stdout)
    check(memory.execute("SELECT count(*) FROM results JOIN runs ON runs.id = run").fetchone() == (2,), "bench --sql")
    table = run(*once)
    check("of roof" in table.stdout and all(len(line) <= 100 for line in table.stdout.splitlines()), f"bench: {table.stdout}")
    db = os.path.join(T, "runs.sqlite")
    for label in ("before", "after"):
        kept = run(*once, "-r", "4", "--db", db, "--label", label)
        check(kept.returncode == 0 and f"'{label}'" in kept.stderr, f"bench --db: {kept.stderr}")
    compared = run("bench", "--compare", "before", "2", "--db", db)
    check(compared.returncode == 0 and "decode 4" in compared.stdout and "p" in compared.stdout, f"--compare: {compared.stderr}")
    one = write(os.path.join(T, "one.json"), run(*few, "--json").stdout.encode())
    same = json.loads(run("bench", "--compare", one, one, "--json").stdout)
    check([(t["ratio"], t["verdict"]) for t in same["tests"]] == [(1.0, "too few runs")] * 2, f"--compare of files: {same}")
    fails(2, ["bench"], "MODEL")
    fails(2, ["bench", model, "-p", "4-1"], "--prompt '4-1'")
    fails(2, ["bench", model, "-d", "0-8*2"], "--depth")
    fails(2, ["bench", model, "-t", "0"], "--threads 0")
    fails(2, ["bench", model, "-r", "0"], "-r 0")
    fails(2, ["bench", model, "-p", "0", "-n", "0"], "nothing to measure")
    fails(2, ["bench", model, "-p", "64", "--context", "32"], "--context 32")
    fails(2, ["bench", model, "--json", "--csv"], "exclude")
    fails(2, ["bench", model, "--compare", "a", "b", "--db", db], "--compare")
    fails(2, ["bench", "--compare", "a", "b"], "--db")
    fails(3, ["bench", "--compare", "before", "later", "--db", db], "later")
    fails(3, ["bench", "--compare", one, model + ".json"], "tiny.gguf.json")
    fails(3, ["bench", model, "--db", one], "one.json")
    fails(5, ["bench", model, "--db", os.path.join(T, "no", "folder.sqlite")], "folder.sqlite")
    foreign = os.path.join(T, "foreign.sqlite")
    sqlite3.connect(foreign).execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, distance REAL)").connection.commit()
    fails(3, ["bench", model, "--db", foreign], "not those of ridge bench")
    fails(2, ["bench", model, "--db", ""], "--db")
    fails(2, ["bench", model, "--csv", "--profile"], "--profile")
    refused = run("bench", model, "--memory", "1M")
    check(refused.returncode == 4 and "needs" in refused.stderr, f"bench --memory 1M: {refused.stderr}")
    going = subprocess.Popen([A.ridge, "bench", model, "-p", "8", "-n", "64", "-d", "0-100", "-r", "50", "-t", "1", "--json"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    def ready():
        caught = [line for line in open(f"/proc/{going.pid}/status") if line.startswith("SigCgt")][0]
        return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1
    while not ready():
        time.sleep(0.01)
    time.sleep(1)
    going.send_signal(signal.SIGINT)
    out, said = going.communicate(timeout=120)
    check(going.returncode == 0 and "Ctrl-C" in said and "results" in json.loads(out), f"Ctrl-C: {going.returncode} {said}")


main(test_bench)
