"""`ridge importance`: maps of a model with ReLU and of one with experts; packs whose neurons rest give the same text."""
import json
import os
import struct

from gguf_files import tiny
from harness import T, check, fails, main, read_logits, run


def texts():
    a, b = os.path.join(T, "a.txt"), os.path.join(T, "b.txt")
    with open(a, "w") as out:
        out.write("The quick brown fox jumps over the lazy dog. " * 8)
    with open(b, "w") as out:
        out.write("for (int i = 0; i < n; ++i) { sum += x[i]; }\n" * 8)
    return a, b


def model_file(name, **shape):
    path = os.path.join(T, name)
    with open(path, "wb") as out:
        out.write(tiny(**shape).bytes())
    return path


def check_relu():
    a, b = texts()
    model = model_file("relu.gguf", arch="reglu-llama", layers=2)
    out, svg, sums = (os.path.join(T, name) for name in ("map.json", "map.svg", "sums.gguf"))
    words = ["--window", "32", "--windows", "4", "--neurons", "16"]
    r = run("importance", model, "--task", "prose=" + a, "--task", "code=" + b, "-o", out, "--svg", svg, "--imatrix", sums,
            "--leave-out", "4", "--json", *words)
    check(r.returncode == 0, r.stderr)
    said = json.loads(r.stdout)
    check([t["name"] for t in said["tasks"]] == ["prose", "code"] and said["tasks"][0]["tokens"] == 128, said)
    check(len(said["leave_out"]["sample"]) == 4 and -1 <= said["leave_out"]["rank_correlation"] <= 1, said)
    made = json.load(open(out))
    neurons = [x for x in made["blocks"] if x["kind"] == "neurons"]
    check(len(neurons) == 8 and all(0 <= t <= 1 for x in neurons for t in x["touch"]), neurons)
    check(all(x["sensitivity"] > 0 for x in made["blocks"]), made["blocks"])
    check([len(f) for f in made["fired"]] == [64, 64] and max(made["fired"][0]) <= 256, "counts")
    check("prefers-color-scheme: dark" in open(svg).read(), "the heat map is for light grounds alone")
    again = os.path.join(T, "again.json")
    r = run("importance", model, "--task", "prose=" + a, "--task", "code=" + b, "--from-imatrix", sums, "-o", again, *words)
    check(r.returncode == 0, r.stderr)
    for x, y in zip(made["blocks"], json.load(open(again))["blocks"]):
        check(abs(x["sensitivity"] - y["sensitivity"]) <= 1e-5 * x["sensitivity"], f"{x} {y}")


def check_experts():
    a, _ = texts()
    model = model_file("experts.gguf", arch="llama", experts=4)
    out = os.path.join(T, "experts.json")
    r = run("importance", model, "--data", a, "-o", out, "--window", "32", "--windows", "2")
    check(r.returncode == 0, r.stderr)
    experts = [x for x in json.load(open(out))["blocks"] if x["kind"] == "expert"]
    check(len(experts) == 4 and abs(sum(x["touch"][0] for x in experts) - 2) < 1e-9, experts)


def check_packs():
    for arch in ("reglu-llama", "llama"):
        model = model_file(arch + ".gguf", arch=arch, layers=2)
        pack = os.path.join(T, arch + ".ridge")
        words = ["-p", "Hello", "--raw", "-n", "8", "--temp", "0", "--json"]
        want = json.loads(run("run", model, *words).stdout)["tokens"]
        if arch == "llama":
            fails(2, ["pack", model, "-o", pack, "--neurons", "16"], "neurons rest")
            continue
        fails(2, ["pack", model, "-o", pack, "--neurons", "24"], "multiples of 16")
        r = run("pack", model, "-o", pack, "--neurons", "16")
        check(r.returncode == 0 and "bundles of 16" in r.stderr, r.stderr)
        check(run("pack", "--check", pack).returncode == 0, "checksums")
        check("neuron bundles" in run("info", pack).stdout, "info")
        for more in ([], ["--all-neurons"], ["--expert-policy", "importance"]):
            r = run("run", pack, *words, *more)
            check(r.returncode == 0 and json.loads(r.stdout)["tokens"] == want, f"{more}: {r.stderr}")
            touched = json.loads(r.stdout)["stats"]["neurons_touched"]
            check(touched == 1 if more == ["--all-neurons"] else 0 < touched <= 1, touched)
        fails(3, ["importance", pack, "--data", texts()[0], "--window", "32"], "pack")
        fails(2, ["run", pack, "--expert-policy", "oracle", "-p", "a"], "oracle")


def floats(npy):
    begin = 10 + struct.unpack("<H", npy[8:10])[0]
    return struct.unpack(f"<{(len(npy) - begin) // 4}f", npy[begin:])


def check_order():
    """Neurons in the order of a map: nearly the same logits, the same text, and what the pack says of itself."""
    a, _ = texts()
    model = model_file("sorted.gguf", arch="reglu-llama", layers=2)
    made, pack, plain = (os.path.join(T, n) for n in ("order.json", "sorted.ridge", "unsorted.ridge"))
    check(run("importance", model, "--data", a, "--window", "32", "--neurons", "16", "-o", made).returncode == 0, "map")
    r = run("pack", model, "-o", pack, "--neurons", "16", "--map", made)
    check(r.returncode == 0 and "order of touch" in r.stderr and "% of the bundles" in r.stderr, r.stderr)
    first = open(pack, "rb").read()
    check(run("pack", model, "-o", pack, "--neurons", "16", "--map", made).returncode == 0 and open(pack, "rb").read() == first,
          "not the same twice")
    check(run("pack", "--check", pack).returncode == 0, "checksums")
    check(run("pack", model, "-o", plain, "--neurons", "16").returncode == 0, "plain")
    info = json.loads(run("info", pack, "--json", "--tensors").stdout)
    orders = info["neuron_orders"]
    check([o["layer"] for o in orders] == [0, 1] and all(sorted(o["units"]) == list(range(64 // o["unit"])) for o in orders), orders)
    check("neuron_orders" not in json.loads(run("info", plain, "--json", "--tensors").stdout), "an order of none")
    fired = json.load(open(made))["fired"]
    for o in orders:
        by_place = [fired[o["layer"]][u] for u in o["units"]] if o["unit"] == 1 else []
        check(by_place == sorted(by_place, reverse=True), by_place)
    words = ["--tokens", "1,2,3,40"]
    logits = []
    for name, more in ((plain, []), (pack, []), (pack, ["--isa", "scalar", "--threads", "1"])):
        out = os.path.join(T, "logits.npy")
        check(run("logits", name, "-o", out, *words, *more).returncode == 0, "logits")
        logits.append(floats(read_logits(out)))
    check(logits[1] == logits[2], "a permuted pack gives other bytes in another mode")
    largest = max(abs(v) for v in logits[0])
    check(max(abs(x - y) for x, y in zip(logits[0], logits[1])) <= 1e-5 * largest, "the permuted model is another one")
    other = model_file("sorted-other.gguf", arch="reglu-llama", layers=2, dim=64)
    fails(3, ["pack", other, "-o", pack, "--neurons", "16", "--map", made], "another model")
    fails(3, ["pack", model, "-o", pack, "--neurons", "16", "--map", model], "ridge importance")
    fails(2, ["pack", model, "-o", pack, "--neurons", "0", "--map", made], "--neurons 0")
    fails(2, ["pack", model, "-o", made, "--neurons", "16", "--map", made], "-o")
    fails(2, ["pack", model_file("smooth.gguf", arch="llama"), "-o", pack, "--map", made], "neurons rest")
    check(open(pack, "rb").read() == first, "a refusal changed the pack")


def check_refusals():
    a, _ = texts()
    model = model_file("refused.gguf", arch="reglu-llama")
    fails(2, ["importance", model], "no text")
    fails(2, ["importance", model, "--task", "nameless"], "NAME=FILE")
    fails(2, ["importance", model, "--task", "x=" + a, "--task", "x=" + a], "two tasks")
    fails(2, ["importance", model, "--data", a, "--window", "1"], "--window")
    fails(2, ["importance", model, "--data", a, "-o", model], "-o")
    fails(3, ["importance", model, "--data", a, "--window", "100000", "-c", "200"], "fewer than one window")
    fails(3, ["importance", model, "--data", a, "--window", "32", "--from-imatrix", model], "importance matrix")
    other = model_file("other.gguf", arch="reglu-llama", ffn=128)
    sums = os.path.join(T, "other-sums.gguf")
    check(run("importance", other, "--data", a, "--window", "32", "--imatrix", sums).returncode == 0, "sums")
    fails(3, ["importance", model, "--data", a, "--window", "32", "--from-imatrix", sums], "another model")


def test_importance():
    check_relu()
    check_experts()
    check_packs()
    check_order()
    check_refusals()


main(test_importance)
