"""`ridge sim --machine` of a machine of tiers: models, shapes, traces, and profiles that cannot be."""
import json
import os

from harness import T, check, fails, main, run, tiny_file, write

PROFILES = os.path.join(os.path.dirname(__file__), "..", "..", "profiles")
U85 = os.path.join(PROFILES, "ethos-u85.toml")
TWELVE = ("ethos-u55 ethos-u65 ethos-u85 rk3588-npu hexagon-v75 mediatek-apu ane-m4 edge-tpu stm32n6 xdna-strix "
          "a100-l2 host-zen5").split()
PARTS = ("macs", "registers", "local_sram", "shared_sram", "dram", "row_activations", "leakage")


def changed(old, new, name="changed.toml"):
    text = open(U85).read()
    check(old in text, f"{old} is not in the profile")
    return write(os.path.join(T, name), text.replace(old, new).encode())


def simulated(*words):
    r = run("sim", *words, "--json")
    check(r.returncode == 0 and r.stderr == "", f"{words}: {r.returncode} {r.stderr}")
    return json.loads(r.stdout)


def test_model(model):
    text = run("sim", model, "--machine", U85)
    check(text.returncode == 0 and text.stderr == "", f"text: {text.returncode} {text.stderr}")
    for part in ("none", "pin-worth", "binds", "row activations", "leakage", "KV cache: local SRAM"):
        check(part in text.stdout, f"the text lacks {part}: {text.stdout}")
    check(max(map(len, text.stdout.splitlines())) <= 120, "lines of the text are too long")
    check(run("sim", model, "--machine", U85).stdout == text.stdout, "not the same twice")
    small = changed("'dma_staging_bytes', value = 131072", "'dma_staging_bytes', value = 400000")
    sim = simulated(model, "--machine", small)
    none, pins = sim["rows"]
    for row in sim["rows"]:
        total = sum(row["energy_j"][p] for p in PARTS)
        check(abs(total - row["energy_j"]["total"]) < 1e-9 * total, f"parts of energy: {row['energy_j']}")
        check(row["pass_s"] >= row["bound_s"] * 0.999, f"faster than its bound: {row}")
    check(none["hit_bytes"] == 0 and none["dram_bytes"] >= sim["weights_bytes"], f"nothing kept: {none}")
    check(0 < pins["hit_ratio"] <= sim["pinned_at_most"] + 1e-9 < 1, f"pins: {pins['hit_ratio']} {sim['pinned_at_most']}")
    check(pins["hit_ratio"] > 0.9 * sim["pinned_at_most"], f"pins reach {pins['hit_ratio']} of {sim['pinned_at_most']}")
    check(pins["energy_j"]["dram"] < none["energy_j"]["dram"], "pins save no energy of DRAM")
    kept = sum(p["shared_sram"] for p in sim["placement"])
    check(0 < kept <= sim["sram_room_bytes"], f"kept: {kept}")
    check(sum(p["bytes"] for p in sim["placement"]) ==
          sum(p["shared_sram"] + p["local_sram"] + p["dram"] for p in sim["placement"]), "bytes are lost")
    check(all(f["source"] and f["status"] in ("published", "measured", "assumed") for f in sim["figures"]), "sources")
    more = simulated(model, "--machine", U85, "--context", "64")
    less = simulated(model, "--machine", U85, "--context", "8")
    check(more["kv_bytes"] > 4 * less["kv_bytes"] > 0, "keys do not grow with --context")
    every = simulated(model, "--machine", small, "--policy", "all", "--worth", "seconds")
    hits = {row["policy"]: row["hit_bytes"] for row in every["rows"]}
    check(len(hits) == 17 and hits["lru"] == 0 < hits["pin-worth"], f"hits: {hits}")
    faster = changed("'read_gb_per_s', value = 24,", "'read_gb_per_s', value = 240,", "fast.toml")
    slower = changed("'read_gb_per_s', value = 24,", "'read_gb_per_s', value = 2.4,", "slow.toml")
    by = [simulated(model, "--machine", p, "--policy", "none")["rows"][0] for p in (slower, faster)]
    check(by[0]["binds"] == "DRAM bandwidth" and by[0]["pass_s"] > 2 * by[1]["pass_s"], f"a slower DRAM: {by}")


def test_machines(model):
    for name in TWELVE:
        sim = simulated(model, "--machine", os.path.join(PROFILES, name + ".toml"), "--passes", "2")
        check(sim["rows"][-1]["pass_s"] > 0 and sim["rows"][-1]["energy_j"]["total"] > 0, f"{name}: {sim['rows']}")
    shape = simulated("shape:llama-3.2-1b:Q4_K", "--machine", U85, "--passes", "2")
    row = shape["rows"][0]
    # A dense gigabyte from DRAM at 24 GB/s.
    check(0.6e9 < shape["weights_bytes"] < 0.9e9 and 1 <= row["pass_s"] / (row["dram_bytes"] / 24e9) < 1.2, f"{row}")
    fails(2, ["sim", "shape:gpt-9", "--machine", U85], "llama-3.2-1b")
    fails(2, ["sim", "shape:llama-3.2-1b:Q9", "--machine", U85], "Q9")
    fails(4, ["sim", "shape:llama-3.2-1b", "--machine", os.path.join(PROFILES, "ethos-u65.toml")], "2.00 GiB")


def test_traces(model):
    visits = os.path.join(T, "visits.json")
    r = run("run", model, "--raw", "-p", "the", "--temp", "0", "--ignore-eos", "-n", "6", "-q", "--record", visits)
    check(r.returncode == 0, f"--record: {r.returncode} {r.stderr}")
    sim = simulated(visits, "--machine", U85)
    check(sim["passes"] == 6 and not sim["counted_operations"], f"trace: {sim['passes']}")
    text = run("sim", visits, "--machine", U85).stdout
    check("one multiply-add a byte" in text, f"the text hides what stands in for operations: {text}")
    exported = os.path.join(T, "visits.oracleGeneral")
    check(run("sim", visits, "--export", exported).returncode == 0, "--export")
    check(simulated(exported, "--machine", U85)["passes"] == 6, "oracleGeneral")
    recorded = json.loads(open(visits).read())
    recorded["passes"] = recorded["passes"][:1]
    one = write(os.path.join(T, "one.json"), json.dumps(recorded).encode())
    fails(3, ["sim", one, "--machine", U85], "two or more are needed")
    recorded["passes"] = []
    fails(3, ["sim", write(one, json.dumps(recorded).encode()), "--machine", U85], "two or more are needed")
    recorded["passes"] = [[], [0], []]
    fails(3, ["sim", write(one, json.dumps(recorded).encode()), "--machine", U85], "one.json: 1 pass: two or more")
    recorded["blocks"][0]["storage_bytes"] = 2**64 - 1
    recorded["passes"] = [[0], [0]]
    fails(4, ["sim", write(one, json.dumps(recorded).encode()), "--machine", U85], "more than the 4.00 GiB of DRAM")
    fails(3, ["sim", write(one, b"{}"), "--machine", U85], "one.json")
    fails(2, ["sim", visits, "--machine", U85, "--passes", "3"], "--passes")


def test_refusals(model):
    for old, new, part in (("'read_gb_per_s', value = 24,", "'read_gb_per_s', value = -24,", "read_gb_per_s"),
                           ("'burst_bytes', value = 128", "'burst_bytes', value = 0", "burst_bytes"),
                           ("'latency_ns', value = 500", "'latency_ns', value = nan", "value"),
                           ("'bytes', value = 524288", "'bytes', value = 1e11", "more than the 4.00 GiB"),
                           ("kind = 'dram'", "kind = 'disk'", "shared_sram")):
        fails(3, ["sim", model, "--machine", changed(old, new)], part)
    fails(3, ["sim", model, "--machine", write(os.path.join(T, "no.toml"), b"tiers = [")], "no.toml")
    fails(3, ["sim", model, "--machine", os.path.join(T, "none.toml")], "none.toml")
    fails(3, ["sim", os.path.join(T, "none.gguf"), "--machine", U85], "none.gguf")
    fails(3, ["sim", T, "--machine", U85], T)
    for words, part in ((["--memory", "1M"], "--memory"), (["--trace", os.path.join(T, "t.json")], "--trace"),
                        (["--threads", "2"], "--threads"), (["--policy", "stream"], "--policy"),
                        (["--policy", "mru"], "s3-fifo"), (["--worth", "money"], "energy or seconds"),
                        (["--context", "0"], "--context"), (["--context", "999999999"], "--context"),
                        (["--passes", "1"], "--passes"), (["--kv-type", "q9"], "q9")):
        fails(2, ["sim", model, "--machine", U85, *words], part)
    fails(2, ["sim", model, "--worth", "energy"], "--worth")
    fails(2, ["sim", os.path.join(PROFILES, "rk3588-anima.toml"), "--worth", "energy"], "--worth")


def test():
    model = tiny_file(layers=4, dim=64, ffn=256)
    test_model(model)
    test_machines(model)
    test_traces(model)
    test_refusals(model)


main(test)
