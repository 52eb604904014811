"""Caches that a map trains: --map, --task and --mask-absent of `ridge run` and `ridge perplexity`, `ridge sim --map`."""
import json
import os

from gguf_files import tiny
from harness import T, check, fails, main, run

SHAPE = {"layers": 2, "experts": 12, "dim": 128}
PROSE = "The quick brown fox jumps over the lazy dog, and then it sleeps until noon. "
CODE = "for (int i = 0; i < n; ++i) { sum += x[i] * y[i]; }  // 0x12fa\n"


def file_of(name, data):
    path = os.path.join(T, name)
    with open(path, "wb") as out:
        out.write(data if isinstance(data, bytes) else data.encode())
    return path


def make_map(model, name, *words):
    out = os.path.join(T, name)
    r = run("importance", model, "--task", "prose=" + file_of("prose.txt", PROSE * 8), "--task",
            "code=" + file_of("code.txt", CODE * 8), "--window", "64", "-o", out, *words)
    check(r.returncode == 0, r.stderr)
    return out


def small_budgets(model):
    """Budgets under which some of the experts are cached: the least that works, and a little."""
    r = run("plan", model, "--context", "256", "--json")
    check(r.returncode == 0, r.stderr)
    least = json.loads(r.stdout)["smallest_budget"]
    return [str(least + (3 << 20)), str(least + (6 << 20))]


def check_experts(model, other, made, budgets):
    words = ["--raw", "-n", "40", "--temp", "0", "--json", "--context", "256"]
    plain = json.loads(run("run", model, "-p", PROSE, *words).stdout)
    check(plain["stats"]["tasks"] is None and plain["stats"]["mask_absent"] == 1, plain["stats"])
    for more in ([], ["--task", "code"], ["--task", "auto"], ["--task", "predict"]):
        for memory in budgets:
            r = run("run", model, "-p", PROSE, *words, "--memory", memory, "--map", made, *more)
            check(r.returncode == 0, r.stderr)
            said = json.loads(r.stdout)
            check(said["tokens"] == plain["tokens"], f"{memory} {more}: other tokens")
            tasks = said["stats"]["tasks"]
            check(said["stats"]["placement"]["cached_blocks"] > 0, said["stats"]["placement"])
            check(tasks["pinned_blocks"] > 0 and tasks["switches"][0]["done"], tasks)
            check(said["stats"]["placement"]["cache_policy"] == "importance", said["stats"]["placement"])
            if more == ["--task", "code"]:
                check(tasks["task"] == "code" and tasks["changes"] == 0, tasks)
            if more == []:
                check(tasks["task"] is None, tasks)
    fails(3, ["run", other, "-p", "a", "--map", made], "another model")
    fails(2, ["run", model, "-p", "a", "--map", made, "--task", "poems"], "prose, code")
    fails(2, ["run", model, "-p", "a", "--task", "code"], "--map")
    fails(2, ["run", model, "-p", "a", "--map", made, "--expert-policy", "lru"], "--expert-policy")
    fails(3, ["run", model, "-p", "a", "--map", model], "ridge importance")
    r = run("run", model, "-p", "a", "-n", "1", "--map", made, "--stats")
    check(r.returncode == 0 and "--map changes nothing" in r.stderr, r.stderr)


def check_masking(model, memory):
    text = file_of("judge.txt", PROSE * 4)
    words = ["perplexity", model, text, "--window", "64", "--windows", "2", "--memory", memory, "--json"]
    figures = {}
    for g in ("1", "0.5", "0"):
        r = run(*words, "--mask-absent", g)
        check(r.returncode == 0, r.stderr)
        figures[g] = json.loads(r.stdout)
        check(("lossy" in r.stderr) == (g != "1"), r.stderr)
    plain = json.loads(run(*words).stdout)
    check(figures["1"]["nll"] == plain["nll"], "a factor of 1 changes nothing")
    check(figures["0"]["bytes_read"] < figures["0.5"]["bytes_read"] <= figures["1"]["bytes_read"], figures)
    check(figures["0"]["nll"] != figures["1"]["nll"], "masking changed nothing")
    r = run("run", model, "-p", PROSE, "--raw", "-n", "8", "--memory", memory, "--mask-absent", "0.5", "--stats")
    check("lossy" in r.stderr and "outside of the arithmetic contract" in r.stderr.replace("\n" + 25 * " ", " "), r.stderr)
    for g in ("1.5", "-1", "nan"):
        fails(2, ["run", model, "-p", "a", "--mask-absent=" + g], "--mask-absent")
    fails(2, [*words, "--kl", "--mask-absent", "0.5"], "--kl")


def check_sim(model, made):
    traces = {}
    for name, text in (("prose", PROSE), ("code", CODE)):
        traces[name] = os.path.join(T, name + ".json")
        r = run("run", model, "-p", text[:20], "--raw", "--temp", "0", "-n", "120", "--context", "256", "--ignore-eos", "--record",
                traces[name])
        check(r.returncode == 0, r.stderr)
    words = ["sim", traces["prose"], "--task", "prose", "--mix", "code=" + traces["code"], "--map", made, "--memory", "256K"]
    r = run(*words, "--turn", "20", "--json")
    check(r.returncode == 0, r.stderr)
    said = json.loads(r.stdout)
    check([o["order"] for o in said["orders"]] == ["in_turn", "at_random"], said)
    for order in said["orders"]:
        rows = {row["name"]: row for row in order["rows"]}
        check(list(rows) == ["lru", "untrained", "mean", "detected", "foretold", "labels"], rows)
        check(len({row["size"] for row in rows.values()}) == 1 and rows["lru"]["size"] > 0, rows)
        check(rows["labels"]["right_passes"] == rows["labels"]["passes"] and rows["mean"]["changes"] == 0, rows)
        for row in rows.values():
            check(row["read_size"] == row["size"] - row["hit_size"] + row["pin_size"], row)
    check("pins of the turn's task" in run(*words).stdout, "table")
    fails(2, [*words, "--turn", "100000"], "fewer")
    fails(2, ["sim", traces["prose"], "--memory", "1M", "--task", "prose"], "--map")
    fails(2, ["sim", traces["prose"], "--memory", "1M", "--map", made], "--task")
    fails(2, [*words, "--mix", "poems=" + traces["code"]], "prose, code")
    fails(2, [*words, "--mix", "code"], "TASK=TRACE")


def check_bundles():
    model = file_of("relu.gguf", tiny(arch="reglu-llama", layers=2, ffn=256).bytes())
    other = file_of("relu-other.gguf", tiny(arch="reglu-llama", layers=2, ffn=128).bytes())
    made = make_map(model, "relu.json", "--neurons", "16")
    plain, ordered = os.path.join(T, "plain.ridge"), os.path.join(T, "ordered.ridge")
    check(run("pack", model, "-o", plain, "--neurons", "16").returncode == 0, "pack")
    check(run("pack", model, "-o", ordered, "--neurons", "32", "--map", made).returncode == 0, "pack --map")
    words = ["-p", PROSE, "--raw", "-n", "20", "--temp", "0", "--json"]
    for pack in (plain, ordered):
        want = json.loads(run("run", pack, *words).stdout)["tokens"]
        for memory in small_budgets(pack):
            r = run("run", pack, *words, "--memory", memory, "--map", made, "--task", "auto")
            check(r.returncode == 0 and json.loads(r.stdout)["tokens"] == want, f"{pack} {memory}: {r.stderr}")
    check(run("pack", other, "-o", plain, "--neurons", "16").returncode == 0, "pack")
    fails(3, ["run", plain, "-p", "a", "--map", made], "another model")
    fails(2, ["run", model, "-p", "a", "--map", made], "ridge pack")
    old = json.load(open(made))
    del old["source"]
    fails(3, ["run", ordered, "-p", "a", "--map", file_of("old.json", json.dumps(old))], "make it anew")


def test_cache():
    model = file_of("experts.gguf", tiny(ffn=256, **SHAPE).bytes())
    other = file_of("other.gguf", tiny(ffn=128, **SHAPE).bytes())
    made = make_map(model, "map.json")
    budgets = small_budgets(model)
    check_experts(model, other, made, budgets)
    check_masking(model, budgets[0])
    check_sim(model, made)
    check_bundles()


main(test_cache)
