"""`ridge image --lora`: as if the weights had been changed, in any budget, under the names of all tools."""
import array
import math
import os
import random
import struct

from harness import T, check, fails, main, run
from picture_files import read_tensors, write_tensors

MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")
MODEL = os.path.join(MINI, "anima-mini.safetensors")
OUT, AGAIN = os.path.join(T, "out.png"), os.path.join(T, "again.png")
RANK, ALPHA = 3, 1.5
MODULES = ("blocks.0.self_attn.q_proj", "blocks.1.self_attn.output_proj", "blocks.1.cross_attn.k_proj",
           "blocks.0.mlp.layer1", "blocks.2.mlp.layer2", "blocks.1.adaln_modulation_mlp.2", "final_layer.linear",
           "llm_adapter.blocks.0.self_attn.v_proj")


def floats(values):
    return array.array("f", values).tobytes()


def from_bf16(data):
    out = bytearray(2 * len(data))
    out[2::4], out[3::4] = data[0::2], data[1::2]
    return array.array("f", bytes(out))


def pairs(tensors):
    """Module to (down [RANK, cols], up [rows, RANK])."""
    rng, out = random.Random(5), {}
    for m in MODULES:
        rows, cols = tensors[f"net.{m}.weight"][1]
        out[m] = ([rng.gauss(0, cols ** -0.5) for _ in range(RANK * cols)],
                  [rng.gauss(0, 0.3) for _ in range(rows * RANK)])
    return out


def kohya(module):
    return "lora_unet_" + module.replace(".", "_")


def lora_file(name, tensors, changed, naming, up=".lora_up.weight", down=".lora_down.weight", alpha=True):
    out = {}
    for m, (a, b) in changed.items():
        rows, cols = tensors[f"net.{m}.weight"][1]
        out[naming(m) + down] = ("F32", [RANK, cols], floats(a))
        out[naming(m) + up] = ("F32", [rows, RANK], floats(b))
        if alpha:
            out[naming(m) + ".alpha"] = ("F32", [], floats([ALPHA]))
    return write_tensors(os.path.join(T, name), out)


def merged(tensors, changed, scale):
    out = {}
    for name, (_, shape, data) in tensors.items():
        w = from_bf16(data)
        if name[4:-7] in changed:
            a, b = changed[name[4:-7]]
            rows, cols = shape
            for r in range(rows):
                for k in range(RANK):
                    f = scale * b[r * RANK + k]
                    for c in range(cols):
                        w[r * cols + c] += f * a[k * cols + c]
        out[name] = ("F32", shape, w.tobytes())
    return write_tensors(os.path.join(T, "merged.safetensors"), out)


def inputs():
    rng = random.Random(1)
    tensors = {f"cond.{which}_ids": ("I32", [4], struct.pack("<4i", 5, 9, 20, 1)) for which in ("qwen", "t5")}
    tensors["latents"] = ("F32", [16, 4, 6], floats(rng.gauss(0, 1) for _ in range(16 * 24)))
    return write_tensors(os.path.join(T, "in.safetensors"), tensors)


def last_step(model, *extra):
    dump = os.path.join(T, "dump.safetensors")
    r = run("image", "--model", model, "--text-encoder", f"{MINI}/qwen3-mini.safetensors", "--inputs", inputs(), "--dump",
            dump, "--steps", "3", "--cfg", "1", *extra)
    check(r.returncode == 0, f"stages with {extra}: {r.stderr}")
    return array.array("f", read_tensors(dump)["step.2"][2])


def distance(got, want):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want)) / sum(b * b for b in want))


def test_same_as_merged():
    tensors = read_tensors(MODEL)
    check(all(t[0] == "BF16" for t in tensors.values()), "the demo's weights are BF16")
    changed = pairs(tensors)
    lora = lora_file("a.safetensors", tensors, changed, kohya)
    got, plain = last_step(MODEL, "--lora", lora + ":0.8"), last_step(MODEL)
    want = last_step(merged(tensors, changed, 0.8 * ALPHA / RANK))
    check(distance(got, want) < 1e-5, f"--lora is {distance(got, want)} from merged weights")
    check(distance(plain, want) > 1e-2, f"the LoRA changes next to nothing: {distance(plain, want)}")
    # The same matrices as other tools name them; 0.8 · 1.5 / 3 = 0.4.
    peft = lora_file("b.safetensors", tensors, changed, lambda m: "diffusion_model." + m, ".lora_B.weight",
                     ".lora_A.weight", False)
    check(last_step(MODEL, "--lora", peft + ":0.4") == last_step(MODEL, "--lora", lora + ":0.8"),
          "lora_A and lora_B give other numbers than lora_down and lora_up")
    check(last_step(MODEL, "--lora", lora + ":0.3", "--lora", lora + ":0.5") != plain, "two of them do nothing")
    check(last_step(MODEL, "--lora", lora) == last_step(MODEL, "--lora", lora + ":1"), "without a strength it is 1")
    return tensors, changed, lora


def test_ways(lora):
    way = ["image", "--bundle", MINI, "-p", "red apple on a blue background", "--size", "48x32", "--steps", "3",
           "--seed", "1"]
    run(*way, "-o", OUT)
    with open(OUT, "rb") as f:
        plain = f.read()
    way += ["--lora", lora + ":0.8"]
    r = run(*way, "-o", OUT)
    check(r.returncode == 0, f"--lora: {r.stderr}")
    with open(OUT, "rb") as f:
        picture = f.read()
    check(picture != plain, "--lora does nothing")
    least = run(*way, "-o", AGAIN, "--memory", "3M").stderr.split("give --memory ")[-1].split()[0]
    for words in ([*way, "--threads", "1"], [*way, "--isa", "avx2"], [*way, "--memory", least], [*way, "--io", "buffered"],
                  [*way, "--lifecycle", "load-run-release"], ["image", "--repeat", OUT]):
        r = run(*words, "-o", AGAIN)
        with open(AGAIN, "rb") as f:
            check(r.returncode == 0 and f.read() == picture, f"{words[-3:]} with --lora gives other bytes: {r.stderr}")
    moved = os.path.join(T, "moved.safetensors")
    os.rename(lora, moved)
    fails(3, ["image", "--repeat", OUT, "-o", AGAIN], "no such file")
    r = run("image", "--repeat", OUT, "--lora", moved, "-o", AGAIN)
    with open(AGAIN, "rb") as f:
        check(r.returncode == 0 and f.read() == picture, f"a LoRA that has moved: {r.stderr}")
    fails(2, ["image", "--repeat", OUT, "--lora", moved + ":0.123", "-o", AGAIN], "drawn with a strength of")
    fails(2, ["image", "--repeat", OUT, "--lora", moved, "--lora", moved, "-o", AGAIN], "1 LoRA")
    os.rename(moved, lora)
    fails(2, [*way, "-o", lora], "is the input itself")


def test_refusals(tensors, changed, lora):
    way = ["image", "--bundle", MINI, "-p", "cat", "--size", "32x32", "--steps", "1", "-o", AGAIN, "--lora"]
    os.remove(AGAIN)
    fails(2, [*way, lora + ":strong"], "FILE:STRENGTH")
    fails(2, [*way, lora + ":nan"], "FILE:STRENGTH")
    fails(2, [*way, ":1"], "names no file")
    fails(3, [*way, os.path.join(T, "none.safetensors")], "none.safetensors")
    fails(3, [*way, T], T)
    good = read_tensors(lora)
    first = kohya(MODULES[0])
    rows, cols = tensors[f"net.{MODULES[0]}.weight"][1]

    def broken(part, add=None, drop=()):
        words = {n: t for n, t in {**good, **(add or {})}.items() if n not in drop}
        fails(3, [*way, write_tensors(os.path.join(T, "broken.safetensors"), words)], part)

    broken("another one", {"lora_unet_blocks_99_mlp_layer1.alpha": ("F32", [], floats([1]))})
    broken("no LoRA that Ridge knows", {first + ".lokr_w1": ("F32", [2, 2], floats([0] * 4))})
    broken("both matrices", drop=[first + ".lora_up.weight"])
    broken("expected [rank,", {first + ".lora_down.weight": ("F32", [RANK, cols + 1], floats([0] * RANK * (cols + 1)))})
    broken("expected [rank,", {first + ".lora_up.weight": ("F32", [rows, RANK + 1], floats([0] * rows * (RANK + 1)))})
    broken("the same matrix", {"diffusion_model." + MODULES[0] + ".alpha": ("F32", [], floats([1]))})
    broken("is no number", {first + ".alpha": ("F32", [], floats([math.inf]))})
    huge = write_tensors(os.path.join(T, "huge.safetensors"), {**good, first + ".alpha": ("F32", [], floats([3e38]))})
    fails(3, [*way, huge + ":100"], "is too large")
    nan = {first + ".lora_up.weight": ("F32", [rows, RANK], floats([math.nan] * rows * RANK))}
    broken("a LoRA are damaged", nan)
    broken("expected [rank,", {first + ".lora_down.weight": ("F32", [0, cols], b"")})
    broken("expected [rank,", {first + ".lora_down.weight": ("F32", [RANK * cols], floats([0] * RANK * cols))})
    broken("of type I8", {first + ".lora_up.weight": ("I8", [rows, RANK], bytes(rows * RANK))})
    text = {"lora_te_layers_0_mlp_up_proj.lora_down.weight": ("F32", [1, 1], floats([0]))}
    fails(3, [*way[:-1], "--threads", "1", "--lora", lora, "--lora",
              write_tensors(os.path.join(T, "broken.safetensors"), {"x": ("F32", [1], floats([0]))})], "no LoRA")
    r = run(*way, write_tensors(os.path.join(T, "text.safetensors"), {**good, **text}))
    check(r.returncode == 0 and "1 tensor for the text encoder" in r.stderr, f"what is for the text encoder: {r.stderr}")
    check(not os.path.exists(os.path.join(T, "none.safetensors")), "a file came from nowhere")


def test_all():
    tensors, changed, lora = test_same_as_merged()
    test_ways(lora)
    test_refusals(tensors, changed, lora)


main(test_all)
