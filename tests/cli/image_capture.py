"""`ridge image --capture`: which tensors are written, that they are what the matrices are given, and that a run which
fails leaves nothing."""
import array
import json
import math
import os
import struct

from harness import T, check, fails, main, run

MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def tensors(path):
    """Name to (shape, floats)."""
    data = read(path)
    length = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8:8 + length]).items():
        begin, end = t["data_offsets"]
        check(t["dtype"] == "F32", f"{name} is of type {t['dtype']}")
        out[name] = (t["shape"], array.array("f", data[8 + length + begin:8 + length + end]))
    return out


def test_capture():
    out, folder = os.path.join(T, "out.png"), os.path.join(T, "calibration")
    way = ["image", "--bundle", MINI, "-p", "red apple on a blue background", "--size", "48x32", "--steps", "3",
           "--seed", "1", "-o", out]
    run(*way)
    picture = read(out)
    os.remove(out)
    # 3 × 2 patches; all rows of them, and then three of six.
    r = run(*way, "--capture", folder, "--capture-rows", "0")
    check(r.returncode == 0 and read(out) == picture, f"--capture changes the picture: {r.stderr}")
    check(sorted(os.listdir(folder)) == ["step-000.safetensors", "step-002.safetensors"], f"{os.listdir(folder)}")
    check("2 files of" in r.stderr, f"--capture says {r.stderr!r}")
    first, last = (tensors(os.path.join(folder, f"step-00{i}.safetensors")) for i in (0, 2))
    blocks = {int(n.split(".")[1]) for n in first if n != "sigma"}
    check(blocks == set(range(len(blocks))) and len(blocks) >= 2, f"blocks {blocks}")
    want = {"sigma"} | {f"blocks.{b}.mlp.layer{m}.{c}.0" for b in blocks for m in (1, 2) for c in ("cond", "uncond")}
    check(set(first) == want and set(last) == want, f"tensors {set(first) ^ want}")
    check(first["sigma"][1][0] == 1.0 and 0 < last["sigma"][1][0] < 1, "sigmas of the files")
    for name, (shape, values) in first.items():
        if name == "sigma":
            continue
        check(shape[0] == 6 and len(values) == shape[0] * shape[1], f"{name} has the shape {shape}")
        check(all(map(math.isfinite, values)) and any(values), f"{name} holds {values[:4]}")
        if "layer2" in name:  # after GELU: never below its least value
            check(min(values) >= -0.17001, f"{name} goes down to {min(values)}, below every value of GELU")
        check(values != last[name][1], f"{name} is the same in both steps")
    check(first["blocks.0.mlp.layer1.cond.0"][1] != first["blocks.0.mlp.layer1.uncond.0"][1], "branches are equal")

    some = os.path.join(T, "some")
    r = run(*way, "--capture", some, "--capture-steps", "2", "--capture-rows", "3", "--threads", "1")
    check(r.returncode == 0 and os.listdir(some) == ["step-002.safetensors"], f"--capture-steps: {r.stderr}")
    for name, (shape, values) in tensors(os.path.join(some, "step-002.safetensors")).items():
        if name != "sigma":
            all_rows = last[name][1]
            check(shape[0] == 3, f"{name} has {shape[0]} rows")
            rows = [all_rows[r * shape[1]:(r + 1) * shape[1]] for r in (0, 2, 4)]
            check(values == rows[0] + rows[1] + rows[2], f"{name}: rows that are not those of the whole tensor")
    r = run(*way, "--cfg", "1", "--batch", "2", "--capture", os.path.join(T, "two"), "--capture-steps", "0")
    names = set(tensors(os.path.join(T, "two", "step-000.safetensors")))
    check("blocks.1.mlp.layer2.cond.1" in names and not any("uncond" in n for n in names), f"a batch: {names}")

    new = os.path.join(T, "new")
    fails(2, [*way, "--capture", folder], "holds files")
    fails(2, [*way, "--capture", new, "--spectrum"], "leave one")
    fails(2, [*way, "--capture", new, "--capture-steps", "3"], "no step 3")
    fails(2, [*way, "--capture-rows", "3"], "--capture FOLDER")
    fails(5, [*way, "--capture", os.path.join(new, "deep")], "cannot be made")
    fails(5, [*way, "--capture", os.path.join(MINI, "README.md")], "folder")
    fails(4, [*way, "--capture", new, "--memory", "3M"], "does not fit")
    check(not os.path.exists(new), "a folder was left behind a failure")


main(test_capture)
