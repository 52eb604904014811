"""`ridge image` with the diffusion model and its text encoder as GGUF files, named and typed as conversions are: matrices
in BF16 or quantised, vectors and small matrices in F32, the encoder under llama.cpp's names."""
import array
import json
import os
import shutil
import struct

from gguf_files import Gguf
from harness import T, check, fails, main, run
from picture_files import read_tensors, write_tensors

MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")
OUT, AGAIN = os.path.join(T, "out.png"), os.path.join(T, "again.png")
CACHE = {"XDG_CACHE_HOME": os.path.join(T, "cache")}
F32, Q8_0, BF16 = 0, 8, 30
SMALL = 1024  # elements; what has no more stays F32
QWEN = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
        "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def as_f32(data):
    out = bytearray(2 * len(data))
    out[2::4], out[3::4] = data[0::2], data[1::2]
    return bytes(out)


def as_q8_0(data):
    values, out = array.array("f", as_f32(data)), b""
    for i in range(0, len(values), 32):
        block = values[i:i + 32]
        scale = struct.unpack("<e", struct.pack("<e", max(map(abs, block)) / 127))[0] or 1
        out += struct.pack("<e", scale) + struct.pack("<32b", *(max(-127, min(127, round(v / scale))) for v in block))
    return out


def convert(tensors, keys, name_of, quantised=()):
    g = Gguf()
    g.keys = keys
    for name, (dtype, shape, data) in tensors.items():
        check(dtype == "BF16", f"{name} is {dtype}")
        kind = F32 if len(shape) == 1 or len(data) <= 2 * SMALL else Q8_0 if name in quantised else BF16
        packed = {F32: as_f32, Q8_0: as_q8_0, BF16: bytes}[kind](data)
        g.tensors.append([name_of(name), shape[::-1], kind, packed])
    return g


def save(g, name):
    with open(os.path.join(T, name), "wb") as f:
        f.write(g.bytes())
    return os.path.join(T, name)


def qwen_name(name):
    words = name.removeprefix("model.").removesuffix(".weight").split(".", 2)
    if words[0] != "layers":
        return {"embed_tokens": "token_embd", "norm": "output_norm"}[words[0]] + ".weight"
    return f"blk.{words[1]}.{QWEN[words[2]]}.weight"


def qwen_keys(tensors):
    shapes = {qwen_name(n): t[1] for n, t in tensors.items()}
    head = shapes["blk.0.attn_q_norm.weight"][0]
    layers = sum(n.endswith("attn_q.weight") for n in shapes)
    return {"general.architecture": "qwen3", "qwen3.block_count": layers, "qwen3.context_length": 32768,
            "qwen3.embedding_length": shapes["token_embd.weight"][1],
            "qwen3.feed_forward_length": shapes["blk.0.ffn_up.weight"][0],
            "qwen3.attention.head_count": shapes["blk.0.attn_q.weight"][0] // head,
            "qwen3.attention.head_count_kv": shapes["blk.0.attn_k.weight"][0] // head,
            "qwen3.attention.key_length": head, "qwen3.attention.value_length": head,
            "qwen3.attention.layer_norm_rms_epsilon": 1e-6, "qwen3.rope.freq_base": 1e6}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def foreign(source, gguf):
    """Image models where others are expected, as GGUF and as packs: one line that says so."""
    pack = os.path.join(T, "foreign.ridge")
    check(run("pack", source, "-o", pack).returncode == 0, "pack")
    for model in (pack, gguf):
        for words in (["info"], ["plan"], ["bench"], ["run", "-p", "hi"], ["logits", "--tokens", "1", "-o", AGAIN]):
            fails(3, [words[0], model, *words[1:]], "is an image model")
    fails(3, ["run", source, "-p", "hi"], "ridge image")
    draw = ["image", "--bundle", MINI, "-p", "a", "--size", "32x32", "--steps", "1", "-o", AGAIN]
    for flag in ("--vae", "--lora"):
        fails(3, [*draw, flag, pack], "a pack, where")
    fails(3, [*draw, "--text-encoder", pack], "image model")


def in_parts(way, tensors, expected):
    """An index and its files, alone and packed; no output replaces any of them."""
    folder = os.path.join(T, "parts")
    shutil.copytree(MINI, folder, ignore=shutil.ignore_patterns("anima-mini*", "train"))
    names = list(tensors)
    half = len(names) // 2
    parts = [os.path.join(folder, f"anima-0000{i}-of-00002.safetensors") for i in (1, 2)]
    for part, some in zip(parts, (names[:half], names[half:])):
        write_tensors(part, {n: tensors[n] for n in some})
    index = os.path.join(folder, "anima.safetensors.index.json")
    with open(index, "w", encoding="utf-8") as f:
        json.dump({"weight_map": {n: os.path.basename(parts[i >= half]) for i, n in enumerate(names)}}, f)
    before = [read(f) for f in (index, *parts)]
    for file in (index, parts[1]):
        fails(2, [*way[:-1], "-o", file, "--model", index], "input itself")
        fails(2, ["pack", index, "-o", file], "input itself")
    check([read(f) for f in (index, *parts)] == before, "an input was replaced")
    for more in ([], [index]):
        check(not more or run("pack", *more).returncode == 0, "pack an index")
        r = run(*way[:2], folder, *way[3:], AGAIN, env=CACHE)
        data = read(AGAIN)
        check(r.returncode == 0 and data[data.index(b"IDAT"):] == expected, f"in parts, {more}: {r.stderr}")
        check((b"anima.ridge" in data) == bool(more), f"in parts, {more}: another file is used")


def test_gguf():
    way = ["image", "--bundle", MINI, "-p", "red apple on a blue background", "--size", "64x48", "--steps", "4", "--seed",
           "1", "-o"]
    run(*way, OUT)
    dit, qwen = (read_tensors(os.path.join(MINI, n)) for n in ("anima-mini.safetensors", "qwen3-mini.safetensors"))
    anima_keys = {"general.architecture": "cosmos", "general.quantization_version": 2, "general.file_type": 32}
    plain = save(convert(dit, anima_keys, lambda n: n.removeprefix("net.")), "anima.gguf")
    encoder = save(convert(qwen, qwen_keys(qwen), qwen_name), "qwen3.gguf")

    def pixels(path):  # the recipes differ: they name the files
        data = read(path)
        return data[data.index(b"IDAT"):]

    for extra in (["--model", plain], ["--text-encoder", encoder], ["--model", plain, "--text-encoder", encoder]):
        r = run(*way, AGAIN, *extra)
        check(r.returncode == 0 and pixels(AGAIN) == pixels(OUT), f"{extra} gives another picture: {r.stderr}")
    for name in ("model.diffusion_model.", ""):
        g = convert(dit, anima_keys, lambda n, p=name: p + n)
        r = run(*way, AGAIN, "--model", save(g, "prefixed.gguf"))
        check(r.returncode == 0 and pixels(AGAIN) == pixels(OUT), f"a prefix {name + 'net.'!r}: {r.stderr}")
    some = [n for n in dit if n.endswith(("mlp.layer1.weight", "self_attn.v_proj.weight")) and ".blocks.0." in n]
    mixed = save(convert(dit, anima_keys, lambda n: n.removeprefix("net."), some), "anima-q8.gguf")
    r = run(*way, OUT, "--model", mixed)
    check(r.returncode == 0 and len(some) == 3, f"quantised matrices: {some} {r.stderr}")
    r = run("compare", OUT, AGAIN, "--json")
    check(r.returncode == 0 and '"psnr' in r.stdout, f"compare: {r.stderr}")
    for extra in (["--threads", "1"], ["--isa", "avx2"], ["--io", "buffered"]):
        r = run(*way, AGAIN, "--model", mixed, *extra)
        check(r.returncode == 0 and read(AGAIN) == read(OUT), f"quantised, {extra}, gives other bytes: {r.stderr}")
    # Packs of safetensors and of GGUF, resident and streamed; beside its source a bundle takes the pack.
    folder = os.path.join(T, "mini")
    shutil.copytree(MINI, folder)
    source = os.path.join(folder, "anima-mini.safetensors")
    pack = source.replace(".safetensors", ".ridge")
    for model, packed in ((source, pack), (mixed, os.path.join(T, "anima-q8.ridge"))):
        r = run("pack", model)
        check(r.returncode == 0 and os.path.exists(packed), f"pack {model}: {r.stderr}")
        run(*way, OUT, "--model", model)
        for extra in ([], ["--memory", "40M"], ["--memory", "40M", "--isa", "avx2", "--threads", "1"]):
            r = run(*way, AGAIN, "--model", packed, *extra, env=CACHE)
            check(r.returncode == 0 and pixels(AGAIN) == pixels(OUT), f"a pack, {extra}, gives another picture: {r.stderr}")
    run("pack", encoder)
    r = run(*way, AGAIN, "--text-encoder", encoder.replace(".gguf", ".ridge"), env=CACHE)
    run(*way, OUT)
    check(r.returncode == 0 and pixels(AGAIN) == pixels(OUT), f"a pack of the encoder: {r.stderr}")
    way[2] = folder
    r = run(*way, AGAIN, env=CACHE)
    check(r.returncode == 0 and b"anima-mini.ridge" in read(AGAIN), f"a bundle passes its pack over: {r.stderr}")
    check(pixels(AGAIN) == pixels(OUT), "a bundle's pack gives another picture")
    os.utime(source, (1, 1))
    fails(3, [*way, AGAIN], "stale", env=CACHE)
    os.remove(pack)
    fails(3, ["pack", os.path.join(folder, "vae-mini.safetensors")], "no diffusion transformer")
    for flag in (["--neurons", "16"], ["--machine", "ethos-u85"]):
        fails(2, ["pack", plain, *flag], flag[0])
    # A block in the middle that is missing is no smaller model.
    holed = {n: t for n, t in dit.items() if ".blocks.1." not in n or "llm_adapter" in n}
    fails(3, [*way, AGAIN, "--model", save(convert(holed, anima_keys, lambda n: n.removeprefix("net.")), "holed.gguf")],
          "blocks.1.")
    fails(3, [*way, AGAIN, "--vae", plain], "a GGUF file")
    fails(3, [*way, AGAIN, "--model", encoder], "no Anima")
    fails(3, [*way, AGAIN, "--text-encoder", plain], "image model")
    foreign(source, plain)
    in_parts(way, dit, pixels(OUT))


main(test_gguf)
