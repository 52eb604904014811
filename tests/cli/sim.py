"""`ridge sim`: device profiles, models, and replayed visits."""
import json
import os

from harness import T, check, fails, main, run, tiny_file, write

MACHINE = """format = 1
name = "a made-up board"
measured_at = ""
contended = false
contention = ""
storage_path = ""
reads = [ { footprint_bytes = 1073741824, threads = 1, huge_pages = true, gb_per_s = 10.0, low = 9.0, high = 11.0, runs = 5 } ]
storage = [
  { request_bytes = 65536, depth = 1, direct = true, gb_per_s = 0.4, low = 0.4, high = 0.4, runs = 5 },
  { request_bytes = 1048576, depth = 1, direct = true, gb_per_s = 0.8, low = 0.8, high = 0.8, runs = 5 },
  { request_bytes = 65536, depth = 16, direct = true, gb_per_s = 0.7, low = 0.7, high = 0.7, runs = 5 },
  { request_bytes = 1048576, depth = 16, direct = true, gb_per_s = 1.0, low = 1.0, high = 1.0, runs = 5 },
]
"""


def test_sim():
    profile = os.path.join(os.path.dirname(__file__), "..", "..", "profiles", "rk3588-anima.toml")
    table = run("sim", profile, "--steps", "28", "--spectrum")
    check(table.returncode == 0 and table.stderr == "", f"sim of the profile: {table.returncode} {table.stderr}")
    for figure in ("1,092", "412.2", "380.5", "1713.78", "1333.28", "published"):
        check(figure in table.stdout, f"the table lacks {figure}")
    study = json.loads(run("sim", profile, "--spectrum", "--json").stdout)
    rows = {r["what"]: r for r in study["document"]}
    check(rows["calls of an image"]["computed"] == rows["calls of an image"]["published"] == 1092, f"calls: {rows}")
    merged = json.loads(run("sim", profile, "--spectrum", "--merge", "3", "--json").stdout)
    check(merged["simulated_contexts"] == 28 and merged["document"] == study["document"], "--merge 3 changes the document's table")
    ten = json.loads(run("sim", profile, "--computed", "10", "--json").stdout)
    check({r["what"]: r["computed"] for r in ten["document"]}["calls of an image"] == 840, "10 computed steps make no 840 calls")
    fails(2, ["sim", profile, "--computed", "29"], "--computed 29")
    plan = run("plan", profile, "--spectrum")
    check(plan.returncode == 0 and "1713.8" in plan.stdout, f"plan of a device: {plan.returncode} {plan.stderr}")
    fails(2, ["plan", profile, "--explain"], "are for models")
    fails(2, ["sim", profile, "--merge", "0"], "--merge 0")
    fails(2, ["sim", profile, "--policy", "lru"], "--policy")
    fails(3, ["sim", "no-such.toml"], "no-such.toml")

    machine = write(os.path.join(T, "machine.toml"), MACHINE.encode())
    model = tiny_file(layers=4, dim=64, ffn=256)
    words = ["sim", model, "--machine", machine, "--threads", "1", "--json"]
    resident = json.loads(run(*words).stdout)
    check(resident["machine"] == "a made-up board" and resident["rows"][0]["hit_ratio"] == 1, f"resident: {resident}")
    everything = json.loads(run(*words, "--policy", "all").stdout)
    check(len(everything["rows"]) == 22, f"{len(everything['rows'])} rows")
    check(run(*words, "--policy", "all").stdout == json.dumps(everything, indent=2) + "\n" or
          json.loads(run(*words, "--policy", "all").stdout) == everything, "not the same twice")
    fails(2, ["sim", model, "--machine", machine, "--policy", "mru"], "s3-fifo")
    fails(2, ["sim", model, "--machine", machine, "--passes", "1"], "--passes 1")
    fails(2, ["sim", model, "--steps", "3"], "devices of contexts")
    fails(3, ["sim", model, "--machine", os.path.join(T, "none.toml")], "none.toml")

    # What a run visited, replayed.
    visits = os.path.join(T, "visits.json")
    r = run("run", model, "--raw", "-p", "the", "--temp", "0", "--ignore-eos", "-n", "6", "-q", "--record", visits)
    check(r.returncode == 0, f"--record: {r.returncode} {r.stderr}")
    plain = run("run", model, "--raw", "-p", "the", "--temp", "0", "--ignore-eos", "-n", "6", "-q")
    check(r.stdout == plain.stdout, "recording changes the answer")
    recorded = json.loads(open(visits).read())
    check(len(recorded["passes"]) == 6 and len({tuple(p) for p in recorded["passes"][1:]}) == 1, f"passes: {recorded['passes']}")
    total = sum(recorded["blocks"][b]["memory_bytes"] for b in set(recorded["passes"][1]))
    replayed = json.loads(run("sim", visits, "--memory", str(total), "--policy", "all", "--json").stdout)
    hits = {row["policy"]: row["hits"] for row in replayed["rows"]}
    check(len(hits) == 17 and hits["none"] == 0 and hits["lru"] == hits["belady"] == hits["pin-strided"] > 0, f"hits: {hits}")
    less = json.loads(run("sim", visits, "--memory", str(total * 3 // 4), "--json").stdout)
    hits = {row["policy"]: row["hits"] for row in less["rows"]}
    check(hits["lru"] == 0 < hits["pin-worth"], f"hits with less: {hits}")
    check(all("gap_closed" not in row for row in less["rows"]), "pins reach Belady here: there is no gap")
    learned = run("sim", visits, "--memory", str(total * 3 // 4), "--policy", "importance", "--train", visits, "--json")
    check(learned.returncode == 0, f"--train: {learned.returncode} {learned.stderr}")
    learned = json.loads(learned.stdout)
    check(learned["train"] == visits and learned["rows"][0]["hits"] >= hits["pin-worth"], f"importance: {learned['rows']}")
    other = dict(recorded, blocks=[dict(b, memory_bytes=b["memory_bytes"] + 1) for b in recorded["blocks"]])
    other = write(os.path.join(T, "other.json"), json.dumps(other).encode())
    for bad in other, os.path.join(T, "absent.json"), T, model:
        fails(3, ["sim", visits, "--memory", "1M", "--train", bad], "other.json" if bad == other else "")
    fails(2, ["sim", model, "--train", visits], "--train")
    tiers = os.path.join(os.path.dirname(__file__), "..", "..", "profiles", "ethos-u85.toml")
    fails(2, ["sim", visits, "--machine", tiers, "--train", visits], "--train")
    gapped = {"format": "ridge-visits", "version": 1, "blocks": [{"name": str(i), "storage_bytes": 1, "memory_bytes": 1} for i in range(3)],
              "passes": [[0], [0], [1], [2], [1], [2], [2]]}
    gapped = write(os.path.join(T, "gapped.json"), json.dumps(gapped).encode())
    table = run("sim", gapped, "--memory", "1").stdout
    check("of gap" in table and "importance" in table, table)
    rows = {row["policy"]: row for row in json.loads(run("sim", gapped, "--memory", "1", "--json").stdout)["rows"]}
    best = max(row["hit_bytes"] for name, row in rows.items() if "gap_closed" not in row and name != "belady")
    gap = (rows["miss-cost"]["hit_bytes"] - best) / (rows["belady"]["hit_bytes"] - best) if rows["belady"]["hit_bytes"] > best else None
    check(rows["miss-cost"].get("gap_closed") == gap, f"gap: {rows}")
    exported = os.path.join(T, "visits.oracleGeneral")
    check(run("sim", visits, "--export", exported).returncode == 0, "--export")
    check(os.path.getsize(exported) == 24 * replayed["visits"], "24 bytes a visit")
    again = json.loads(run("sim", exported, "--memory", str(total * 3 // 4), "--json").stdout)
    check([row["hits"] for row in again["rows"]] == [row["hits"] for row in less["rows"]], "oracleGeneral hits otherwise")
    fails(2, ["sim", visits], "--memory")
    fails(3, ["sim", write(os.path.join(T, "x.json"), b"{}"), "--memory", "1M"], "x.json")
    fails(2, ["run", model, "--raw", "-p", "x", "-n", "1", "-q", "--record", model], "--record")


main(test_sim)
