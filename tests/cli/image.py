"""`ridge image`: from texts to pictures and again, golden stages, the same bytes for all ways, refusals with a reason."""
import array
import json
import math
import os
import shutil
import struct
import zlib

from harness import A, T, Skip, check, fails, main, run, write

TINY = os.path.join(A.shared, "golden", "anima-tiny")
GOLDEN = os.path.join(TINY, "golden.safetensors")
PARTS = ["--model", f"{TINY}/anima-tiny.safetensors", "--text-encoder", f"{TINY}/qwen3-tiny.safetensors",
         "--vae", f"{TINY}/vae-tiny.safetensors"]


def tensors(path):
    """Name to floats, of the float32 tensors of a safetensors file."""
    with open(path, "rb") as f:
        data = f.read()
    length = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8:8 + length]).items():
        if name != "__metadata__" and t["dtype"] == "F32":
            begin, end = t["data_offsets"]
            out[name] = array.array("f", data[8 + length + begin:8 + length + end])
    return out


def distance(got, want):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want)) / sum(b * b for b in want))


def test_image():
    if not os.path.exists(GOLDEN):
        raise Skip("needs ../shared")
    dump = os.path.join(T, "out.safetensors")
    way = ["image", "--inputs", GOLDEN, "--dump", dump, "--steps", "8"]
    r = run(*way, *PARTS)
    check(r.returncode == 0 and r.stdout == "", f"image: {r.returncode} {r.stderr}")
    got, want = tensors(dump), tensors(GOLDEN)
    check(set(want) <= set(got), f"the dump lacks {set(want) - set(got)}")
    for name in want:
        if name == "sigmas":
            check(max(abs(a - b) for a, b in zip(got[name], want[name])) < 1e-7, "sigmas differ")
            continue
        check(len(got[name]) == len(want[name]), f"{name} has {len(got[name])} values, expected {len(want[name])}")
        check(distance(got[name], want[name]) <= 1e-5, f"{name}: {distance(got[name], want[name])}")

    with open(dump, "rb") as f:
        bytes_of_all = f.read()
    least = run(*way, *PARTS, "--memory", "3M").stderr.split("give --memory ")[-1].split()[0]
    # Scalar kernels take minutes where a fused multiply-add is a call: test_prompt() has them, on a smaller picture.
    for extra in (["--threads", "1"], ["--isa", "avx2"], ["--io", "threads"], ["--io", "buffered"], ["--memory", least]):
        r = run(*way, *PARTS, *extra)
        check(r.returncode == 0, f"image {extra}: {r.returncode} {r.stderr}")
        with open(dump, "rb") as f:
            check(f.read() == bytes_of_all, f"image {extra} gives other bytes")

    os.remove(dump)
    fails(4, [*way, *PARTS, "--memory", "3M"], "does not fit")
    fails(2, [*way], "--bundle")
    fails(3, [*way, "--bundle", T], "holds no")
    fails(3, [*way, "--model", PARTS[5], *PARTS[2:]], "no Anima")
    fails(3, [*way, *PARTS[:2], "--text-encoder", PARTS[5]], "no Qwen3")
    fails(3, [*way, *PARTS[:4], "--vae", PARTS[1]], "no VAE")
    fails(3, [*way, "--model", GOLDEN, *PARTS[2:]], "of type I32")
    fails(2, [*way[:5], *PARTS, "--steps", "0"], "--steps")
    fails(2, ["image", "--inputs", GOLDEN, "--dump", GOLDEN, *PARTS], "--dump")
    cut = os.path.join(T, "anima-cut.safetensors")
    with open(PARTS[1], "rb") as f, open(cut, "wb") as g:
        g.write(f.read()[:-1])
    fails(3, [*way, "--model", cut, *PARTS[2:]], "cut short")
    check(not os.path.exists(dump), "a dump was left behind a failure")

    # A folder with the parts, and a model without the prefix of its names.
    bundle = os.path.join(T, "bundle")
    os.makedirs(os.path.join(bundle, "text_encoders"))
    shutil.copy(PARTS[3], os.path.join(bundle, "text_encoders", "qwen_3.safetensors"))
    shutil.copy(PARTS[5], os.path.join(bundle, "qwen_image_vae.safetensors"))
    for prefix in ("", "model.diffusion_model.", "model.diffusion_model.net."):
        with open(PARTS[1], "rb") as f, open(os.path.join(bundle, "anima.safetensors"), "wb") as g:
            data = f.read()
            length = struct.unpack("<Q", data[:8])[0]
            header = data[8:8 + length].decode().replace('"net.', '"' + prefix).encode()
            g.write(struct.pack("<Q", len(header)) + header + data[8 + length:])
        r = run(*way, "--bundle", bundle)
        check(r.returncode == 0, f"image --bundle with {prefix!r}: {r.returncode} {r.stderr}")
        with open(dump, "rb") as f:
            check(f.read() == bytes_of_all, f"image --bundle with {prefix!r} gives other bytes")


MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def with_recipe(path, changes):
    """A copy of a picture whose recipe has other values."""
    data, at = read(path), 8
    out = data[:8]
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if body.startswith(b"ridge\0"):
            begin = body.index(b"{")
            body = body[:begin] + json.dumps({**json.loads(body[begin:]), **changes}).encode()
        out += struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body))
        at += 12 + length
    return write(os.path.join(T, "changed.png"), out)


def test_prompt():
    out, again = os.path.join(T, "apple.png"), os.path.join(T, "again.png")
    plain = ["image", "--bundle", MINI, "-p", "red apple on a blue background"]
    way = [*plain, "--size", "64x48", "--steps", "6"]
    r = run(*way, "--seed", "1", "-o", out)
    check(r.returncode == 0 and r.stdout == "" and "seed 1" in r.stderr, f"image -p: {r.returncode} {r.stderr}")
    picture = read(out)
    for extra in (["--threads", "1"], ["--threads", "2"], ["--isa", "scalar"], ["--memory", "64M"]):
        r = run(*way, "--seed", "1", "-o", again, *extra)
        check(r.returncode == 0 and read(again) == picture, f"image -p {extra} gives other bytes: {r.stderr}")
    r = run("image", "--repeat", out, "-o", again, "--threads", "1")
    check(r.returncode == 0 and read(again) == picture, f"--repeat gives other bytes: {r.stderr}")
    for extra in (["--seed", "2"], ["--seed", "1", "-n", "cat"], ["--seed", "1", "--cfg", "1"],
                  ["--seed", "1", "--shift", "1"]):
        r = run(*way, *extra, "-o", again)
        check(r.returncode == 0 and read(again) != picture, f"image -p {extra} gives the same bytes: {r.stderr}")
    for sampler in ("euler_a", "dpmpp_2m", "er_sde"):
        r = run(*way, "--seed", "1", "--sampler", sampler, "-o", out)
        check(r.returncode == 0 and read(out) != picture, f"--sampler {sampler}: {r.stderr}")
        r = run("image", "--repeat", out, "-o", again, "--bundle", MINI)
        check(r.returncode == 0 and read(again) == read(out), f"--repeat of {sampler} gives other bytes: {r.stderr}")
    r = run("image", "--bundle", MINI, "-p", "", "--size", "48x32", "--steps", "1", "--shift", "0.01", "-o", again)
    check(r.returncode == 0, f"an empty prompt: {r.stderr}")

    os.remove(again)
    fails(2, ["image", "--bundle", MINI], "-p PROMPT")
    fails(2, [*way], "-o is empty")
    fails(2, [*plain, "--size", "100x128", "-o", again], "multiple of 16")
    fails(2, [*plain, "--size", "big", "-o", again], "such as 512x512")
    fails(2, [*way, "--shift", "nan", "-o", again], "--shift")
    fails(2, [*way, "--sampler", "ddim", "-o", again], "euler_a")
    fails(2, ["image", "-p", "a", *PARTS, "-o", again], "tokenizer")
    fails(4, [*way, "-o", again, "--memory", "3M"], "does not fit")
    fails(2, ["image", "--repeat", out, "-o", again, "--steps", "6"], "leave it out")
    before = read(out)
    fails(2, ["image", "--repeat", out, "-o", again, "--preview", out], "is the input itself")
    check(read(out) == before, "a preview replaced the picture to repeat")
    for field, value in (("width", 0), ("steps", 0), ("shift", 0), ("cfg", 1e30)):
        fails(3, ["image", "--repeat", with_recipe(out, {field: value}), "-o", again], "its recipe cannot be drawn")
    fails(3, ["image", "--repeat", os.path.join(MINI, "golden.safetensors"), "-o", again], "PNG")
    check(not os.path.exists(again), "a picture was left behind a failure")


def test_all():
    test_prompt()
    test_image()


main(test_all)
