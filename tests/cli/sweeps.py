"""`ridge roofline --sweep depth|type|attention` measured: models made on the fly, run by the engine, and gone afterwards."""
import json
import os

from harness import T, check, fails, main, run, tiny_file

THIN = ["--lengths", "4,8", "--scenarios", "siso", "-n", "2", "-r", "1", "-t", "1"]
CACHE = os.path.join(T, "cache")
ENV = {"XDG_CACHE_HOME": CACHE}


def swept(*words):
    r = run("roofline", *words, *THIN, "--json", env=ENV)
    check(r.returncode in (0, 70), f"{words}: exit {r.returncode}: {r.stderr}")
    return json.loads(r.stdout)


def decode_of(whole):
    return [p for p in whole["points"] if p["phase"] == "decode" and p["operator"] == "all"]


def test_sweeps():
    model = tiny_file(layers=3, dim=64, ffn=128)
    depth = swept(model, "--sweep", "depth")
    points = decode_of(depth)
    check([p["model"] for p in points] == ["tiny of 1 layer", "tiny of 2 layers", "tiny of 3 layers"], f"depth: {points}")
    check(all(p["measured"] and p["tokens_per_s"] > 0 for p in points), f"depth: {points}")
    # Each layer more adds the same bytes and operations, and all three are the model itself.
    for what in ("weight_bytes", "kv_bytes", "int_ops", "flops"):
        one, two, three = (p[what] for p in points)
        check(three - two == two - one and two > one, f"depth: {what} of {one}, {two}, {three}")
    whole = decode_of(swept(model))[0]
    check(all(whole[x] == points[2][x] for x in ("weight_bytes", "int_ops", "flops")), "depth: all layers are not the model")
    check(any("ms for each layer" in n for n in depth["notes"]), f"depth: notes {depth['notes']}")
    check(all(m["path"] == model for m in depth["models"]), f"depth: paths {depth['models']}")

    types = decode_of(swept(model, "--sweep", "type"))
    check([p["model"] for p in types] == ["tiny in F16", "tiny in Q8_0", "tiny in Q4_0"], f"type: {types}")
    bytes_ = [p["weight_bytes"] for p in types]
    check(bytes_[0] > 1.7 * bytes_[1] > 1.7 * 1.5 * bytes_[2], f"type: bytes {bytes_}")
    check(types[0]["int_ops"] == 0 and types[1]["int_ops"] == types[2]["int_ops"] > 0, f"type: {types}")
    # The fourth roof is known for all three.
    check(all(p["format_roof_gb_per_s"] > 0 for p in types), f"type: no format roof: {types}")

    shape = os.path.join(T, "shape.json")
    with open(shape, "w", encoding="utf-8") as f:
        json.dump({"name": "mine", "layers": 2, "width": 64, "ffn": 512, "vocabulary": 96, "heads": 4, "type": "Q8_0"}, f)
    kinds = swept(shape, "--sweep", "attention")
    check([m["name"] for m in kinds["models"]] == ["mine as MHA", "mine as GQA", "mine as MLA"], f"attention: {kinds['models']}")
    check([m["architecture"] for m in kinds["models"]] == ["llama", "llama", "deepseek2"], f"attention: {kinds['models']}")
    mha, gqa, mla = decode_of(kinds)
    check(max(p["weight_bytes"] for p in (mha, gqa, mla)) < 1.1 * min(p["weight_bytes"] for p in (mha, gqa, mla)),
          "attention: sizes are not matched")
    # Four heads of 16 against one; a latent of four heads and half a head that turns, once for keys and values.
    check(mha["kv_bytes"] == 4 * gqa["kv_bytes"], f"attention: {mha['kv_bytes']} of MHA, {gqa['kv_bytes']} of GQA")

    # What is counted of the random model that runs is what is counted of the shape.
    machine = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiles", "raspberry-pi-5.toml")
    ran = [p for p in swept(shape)["points"] if p["phase"] == "prefill"]
    counted = [p for p in swept(shape, "--machine", machine)["points"] if p["phase"] == "prefill"]
    for a, b in zip(ran, counted):
        check(a["operator"] == b["operator"], f"{a['operator']} and {b['operator']}")
        check(a["operator"] in ("all", "other") or all(a[x] == b[x] for x in ("weight_bytes", "int_ops", "flops")),
              f"{a['operator']} runs {a['int_ops']}, counts {b['int_ops']}")
    check(os.listdir(os.path.join(CACHE, "ridge")) == [], f"left behind: {os.listdir(os.path.join(CACHE, 'ridge'))}")

    fails(2, ["roofline", "shape:pythia-160m", *THIN], "no architecture", env=ENV)
    with open(shape, "w", encoding="utf-8") as f:
        json.dump({"name": "mine", "layers": 2, "width": 256, "ffn": 256, "vocabulary": 96, "heads": 4, "type": "Q6_K"}, f)
    fails(2, ["roofline", shape, *THIN], "not Q6_K", env=ENV)
    pack = os.path.join(T, "tiny.ridge")
    check(run("pack", model, "-o", pack).returncode == 0, "pack")
    fails(3, ["roofline", pack, *THIN, "--sweep", "depth"], "is a pack", env=ENV)


main(test_sweeps)
