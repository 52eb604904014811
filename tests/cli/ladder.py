"""`ridge ladder`."""
import json
import os
import signal
import subprocess
import time

from harness import A, T, check, demo_model, fails, main, run, tiny_file, write


def test_ladder():
    model = tiny_file(layers=3)
    few = ["ladder", model, "--stop-available", "1M", "--hold", "0", "--pools", "none"]
    r = run(*few)
    check(r.returncode == 0 and "all 7 contexts are loaded" in r.stdout and "one walk over all blocks" in r.stdout, f"ladder: {r.stdout} {r.stderr}")
    check(all(len(line) <= 110 for line in r.stdout.splitlines()), f"ladder: long lines in {r.stdout}")
    j = json.loads(run(*few, "--json").stdout)
    check([x["contexts"] for x in j["rows"]] == [1, 2, 3, 4, 5, 6, 7] and j["end"] == "all_loaded" and len(j["contexts"]) == j["blocks"] == 7, f"ladder: {j['rows']}")
    check(sum(c["weight_bytes"] for c in j["contexts"]) == j["weight_bytes"] == j["rows"][-1]["weight_bytes"], "ladder: weights")
    check([k["kind"] for k in j["trend"]["kinds"]] == ["attn", "ffn", "head"], f"ladder: kinds {j['trend']['kinds']}")
    check(j["release"]["mappings_left"] <= 1 and j["release"]["pss_left"] < 1 << 20, f"ladder leaves {j['release']}")
    check("hold" not in j and "pools" not in j, "ladder: what was not asked for")
    steps = json.loads(run(*few, "--json", "--step", "3", "--contexts", "5", "--tokens", "4").stdout)
    check([x["contexts"] for x in steps["rows"]] == [3, 5] and steps["end"] == "enough" and steps["tokens"] == 4, f"ladder --step 3: {steps['rows']}")
    pools = run("ladder", model, "--stop-available", "1M", "--hold", "0.2s", "--pools", "2,4,99", "--json")
    p = json.loads(pools.stdout)
    check([(x["contexts"], x.get("loaded")) for x in p["pools"]] == [(2, 2), (4, 4)] and "left out" in pools.stderr, f"ladder --pools: {p.get('pools')} {pools.stderr}")
    check(p["hold"]["seconds"] >= 0.15, f"ladder --hold: {p['hold']}")
    # A budget for no context, for some, for all. What libraries weigh depends on who else maps them at that moment, so the
    # smallest budget that loads one is looked for rather than computed.
    ends, budget = [], j["baseline"]["pss"] + j["baseline"]["page_tables"]
    while "all_loaded" not in ends and len(ends) < 64:
        r = run(*few, "--json", "--memory", budget)
        ends.append(json.loads(r.stdout)["end"] if r.returncode == 0 else f"exit {r.returncode}")
        budget += 256 << 10
    check(ends[-1] == "all_loaded" and set(ends) <= {"exit 4", "gate", "all_loaded"}, f"ladder --memory: {ends}")
    for flags, part in ((["--stop-available", "4000T"], "--stop-available"), (["--memory", "1"], "--memory")):
        fails(4, ["ladder", model, "--hold", "0", "--pools", "none", *(["--stop-available", "1M"] if "--memory" in flags else []), *flags], part)
    for flags in (["--step", "0"], ["--step", "-1"], ["--contexts", "0"], ["--pools", "0"], ["--pools", "4,0"], ["--pools", "x"], ["--hold", "-1"],
                  ["--hold", "1d"], ["--tokens", "0"], ["--threads", "0"], ["--tokens", "99999999999"]):
        fails(2, ["ladder", model, *flags], flags[0])
    for size in ("0", "-1", "1e30", "10Q", ""):
        fails(2, ["ladder", model, "--stop-available", size], size)
        fails(2, ["ladder", model, "--stop-swap", size], size)
    fails(2, ["ladder", model, "--isa", "mmx"], "mmx")
    fails(2, ["ladder", model, "--io", "pigeon"], "pigeon")
    fails(3, ["ladder", os.path.join(T, "absent.gguf")], "absent.gguf")
    fails(3, ["ladder", write(os.path.join(T, "cut.gguf"), open(model, "rb").read()[:-4000])], "cut.gguf")

    def interrupt(words, after):
        going = subprocess.Popen([A.ridge, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        while int([line for line in open(f"/proc/{going.pid}/status") if line.startswith("SigCgt")][0].split()[1], 16) >> (signal.SIGINT - 1) & 1 == 0:
            time.sleep(0.01)
        time.sleep(after)
        going.send_signal(signal.SIGINT)
        out, said = going.communicate(timeout=120)
        return going.returncode, out, said

    code, out, said = interrupt(["ladder", model, "--stop-available", "1M", "--hold", "600s", "--pools", "2", "--json"], 1.5)
    j = json.loads(out)
    check(code == 0 and j["end"] == "interrupted" and "Ctrl-C" in said and len(j["rows"]) == 7, f"Ctrl-C while held: {code} {said}")
    check(j["hold"]["seconds"] < 300 and j["release"]["mappings_left"] <= 1 and "pools" not in j, f"Ctrl-C while held: {j['hold']} {j['release']}")
    smol = demo_model("SmolLM2-135M-Instruct.Q4_1.gguf")
    j = json.loads(run("ladder", smol, "--stop-available", "1M", "--hold", "0", "--pools", "none", "--json").stdout)
    check(j["blocks"] == 61 and j["end"] == "all_loaded", f"ladder smollm2: {j['blocks']} {j['end']} {j['why']}")
    check(0.9 < j["trend"]["ratio_to_weights"] < 1.2, f"ladder smollm2: memory is {j['trend']['ratio_to_weights']} times the weights")
    few = json.loads(run("ladder", smol, "--stop-available", "1M", "--hold", "0", "--pools", "none", "--json", "--contexts", "20").stdout)
    # The head, of another size than the others, is foreseen by its weights.
    whole, seen = j["rows"][-1]["added_pss"], few["trend"]["by_kind"]["value"]
    check(abs(seen / whole - 1) < 0.2, f"ladder smollm2: foresees {seen} from 20 contexts, all take {whole}")


main(test_ladder)
