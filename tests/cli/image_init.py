"""`ridge image --init`, `--strength` and `--mask`: pictures from pictures."""
import os

from harness import T, check, fails, main, run, write
from picture_files import read_png, read_tensors, write_png, write_tensors

MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")
OUT, AGAIN = os.path.join(T, "out.png"), os.path.join(T, "again.png")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def away(path, other):
    """The mean difference of two pictures, of 255."""
    a, b = read_png(path), read_png(other)
    return sum(abs(p - q) for p, q in zip(a[2], b[2])) / len(a[2]) if a[:2] == b[:2] else 255


def test_init():
    plain = ["image", "--bundle", MINI, "-p", "red apple on a blue background"]
    large = os.path.join(T, "large.png")
    run(*plain, "--seed", "1", "--steps", "10", "-o", large)
    distances = []
    for strength in ("0.1", "0.4", "1"):
        r = run("image", "--bundle", MINI, "-p", "cat on a white background", "--seed", "2", "--steps", "10", "--cfg", "1",
                "--init", large, "--strength", strength, "-o", OUT)
        check(r.returncode == 0, f"--strength {strength}: {r.stderr}")
        distances.append(away(OUT, large))
    check(distances[0] < distances[1] < distances[2] and 2 * distances[0] < distances[2], f"strengths lead {distances} away")
    first = os.path.join(T, "first.png")
    r = run(*plain, "--seed", "1", "--size", "64x48", "--steps", "4", "-o", first)
    check(r.returncode == 0, f"image: {r.stderr}")
    way = ["image", "--bundle", MINI, "-p", "green pear on a white background", "--seed", "2", "--steps", "6",
           "--init", first, "-o"]
    r = run(*way, OUT)
    check(r.returncode == 0 and "4 steps" in r.stderr, f"of 6 steps 0.6 are 4: {r.stderr}")
    picture = read(OUT)
    least = run(*way, AGAIN, "--memory", "3M").stderr.split("give --memory ")[-1].split()[0]
    for extra in (["--strength", "0.6"], ["--threads", "1"], ["--isa", "scalar"], ["--memory", least]):
        r = run(*way, AGAIN, *extra)
        same = read_png(AGAIN)[2] == read_png(OUT)[2] if extra[0] == "--strength" else read(AGAIN) == picture
        check(r.returncode == 0 and same, f"--init {extra} gives other bytes: {r.stderr}")
    r = run("image", "--repeat", OUT, "-o", AGAIN)
    check(r.returncode == 0 and read(AGAIN) == picture, f"--repeat of --init gives other bytes: {r.stderr}")
    moved = write(os.path.join(T, "moved.png"), read(first))
    r = run("image", "--repeat", OUT, "--init", moved, "-o", AGAIN)
    check(r.returncode == 0 and read(AGAIN) == picture, f"--repeat with a moved --init: {r.stderr}")
    fails(2, ["image", "--repeat", first, "--init", moved, "-o", AGAIN], "without one")
    fails(2, ["image", "--repeat", OUT, "--strength", "1", "-o", AGAIN], "leave it out")
    fails(2, ["image", "--repeat", OUT, "-o", first], "is the input itself")
    r = run(*way, AGAIN, "--batch", "2", "--sampler", "er_sde", "--spectrum")
    check(r.returncode == 0, f"--init with a batch: {r.stderr}")


def test_sizes():
    odd = write_png(os.path.join(T, "odd.png"), 70, 50, lambda x, y: (3 * x, 5 * y, 255 if x > 35 else 0))
    way = ["image", "--bundle", MINI, "-p", "cat", "--seed", "1", "--steps", "2", "--strength", "0.1", "--init"]
    for extra, size in (([], (64, 48)), (["--size", "32x48"], (32, 48)), (["--size", "96x32"], (96, 32))):
        r = run(*way, odd, *extra, "-o", OUT)
        check(r.returncode == 0 and read_png(OUT)[:2] == size, f"{extra} is no {size}: {r.stderr}")
    mask = write_png(os.path.join(T, "black.png"), 70, 50)
    run(*way, odd, "--mask", mask, "-o", OUT)
    want = bytes(v for y in range(48) for x in range(64) for v in (3 * (x + 3), 5 * (y + 1), 255 if x + 3 > 35 else 0))
    check(read_png(OUT)[2] == want, "what nothing is redrawn of is not the middle of the picture")
    fails(3, [*way, write_png(os.path.join(T, "small.png"), 8, 40), "-o", OUT], "give --size")


def test_mask():
    first, mask = os.path.join(T, "first.png"), os.path.join(T, "mask.png")
    write_png(mask, 64, 48, lambda x, y: (255, 255, 255) if x >= 24 else (0, 0, 0))
    way = ["image", "--bundle", MINI, "-p", "green pear on a white background", "--seed", "2", "--steps", "4",
           "--strength", "1", "--init", first]
    plain, way = way, [*way, "--mask", mask]
    for sampler in ("euler", "dpmpp_2m", "er_sde"):
        r = run(*way, "--sampler", sampler, "-o", OUT)
        check(r.returncode == 0, f"--mask: {r.stderr}")
        was, now = read_png(first)[2], read_png(OUT)[2]
        kept = all(was[3 * 64 * y:3 * (64 * y + 24)] == now[3 * 64 * y:3 * (64 * y + 24)] for y in range(48))
        check(kept and was != now, f"--mask with {sampler}: what is black has changed, or nothing has")
    r = run("image", "--repeat", OUT, "-o", AGAIN, "--threads", "1")
    check(r.returncode == 0 and read(AGAIN) == read(OUT), f"--repeat of --mask gives other bytes: {r.stderr}")
    white = write_png(os.path.join(T, "white.png"), 64, 48, lambda x, y: (255, 255, 255))
    run(*plain, "--mask", white, "-o", OUT)
    run(*plain, "-o", AGAIN)
    check(read_png(OUT)[2] == read_png(AGAIN)[2], "a mask that is white all over is not like none")
    other = write_png(os.path.join(T, "other.png"), 48, 48)
    os.remove(AGAIN)
    fails(3, [*plain, "--mask", other, "-o", AGAIN], "a mask has the size of its picture")
    fails(2, [*way, "-o", mask], "is the input itself")
    check(not os.path.exists(AGAIN), "a picture was left behind a failure")


def test_refusals():
    first = os.path.join(T, "first.png")
    way = ["image", "--bundle", MINI, "-p", "cat", "--seed", "1", "--steps", "1", "-o", AGAIN]
    fails(2, [*way, "--mask", first], "--init")
    fails(2, [*way, "--strength", "0.5"], "--init")
    for strength in ("0", "-1", "1.5", "nan"):
        fails(2, [*way, "--init", first, "--strength", strength], "--strength")
    for size in ("0x0", "16x0", "65536x65536", "100x100"):  # before the picture is brought to that size
        fails(2, [*way, "--init", first, "--size", size], "multiple of 16")
    fails(3, [*way, "--init", os.path.join(T, "none.png")], "none.png")
    fails(3, [*way, "--init", T], T)
    fails(3, [*way, "--init", os.path.join(MINI, "golden.safetensors")], "no PNG")
    fails(2, ["image", "--bundle", MINI, "--inputs", first, "--dump", AGAIN, "--init", first], "leave it out")
    wide = write_png(os.path.join(T, "wide.png"), 5000, 2000)
    fails(3, [*way, "--init", wide], "give --size")
    least = run(*way, "--init", first, "--size", "48x32", "--memory", "3M").stderr.split("give --memory ")[-1].split()[0]
    fails(3, [*way, "--init", wide, "--size", "48x32", "--memory", least], "make it smaller")
    vae = {n: t for n, t in read_tensors(os.path.join(MINI, "vae-mini.safetensors")).items() if "encoder." not in n}
    half = write_tensors(os.path.join(T, "vae.safetensors"), vae)
    fails(3, [*way, "--init", first, "--vae", half], "has no encoder")
    r = run(*way, "--size", "32x32", "--vae", half)
    check(r.returncode == 0, f"a VAE without an encoder draws nothing: {r.stderr}")


def test_all():
    test_init()
    test_sizes()
    test_mask()
    test_refusals()


main(test_all)
