"""`ridge image --batch`: each picture of several is the one that its seed gives alone, and says so."""
import os

from harness import T, check, fails, main, run

MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def test_batch():
    out, alone = os.path.join(T, "out.v1.png"), os.path.join(T, "alone.png")
    way = ["image", "--bundle", MINI, "-p", "red apple on a blue background", "--size", "48x32", "--steps", "3"]
    for sampler in ("euler", "er_sde"):
        r = run(*way, "--sampler", sampler, "--seed", "7", "--batch", "3", "-o", out)
        check(r.returncode == 0 and r.stdout == "" and "seeds 7 to 9" in r.stderr, f"--batch: {r.returncode} {r.stderr}")
        check(not os.path.exists(out), "--batch 3 writes a picture without a number")
        pictures = [read(os.path.join(T, f"out.v1-{i}.png")) for i in (1, 2, 3)]
        check(len(set(pictures)) == 3, "pictures of several seeds are equal")
        for i, picture in enumerate(pictures):
            r = run(*way, "--sampler", sampler, "--seed", 7 + i, "-o", alone, "--threads", "1")
            check(r.returncode == 0 and read(alone) == picture, f"picture {i + 1} of {sampler} is not its single run")
        r = run("image", "--repeat", os.path.join(T, "out.v1-3.png"), "-o", alone)
        check(r.returncode == 0 and read(alone) == pictures[2], f"--repeat of a picture of a batch: {r.stderr}")
    r = run(*way, "--seed", "7", "--batch", "1", "-o", out)
    check(r.returncode == 0 and os.path.exists(out), f"--batch 1: {r.stderr}")

    fails(2, [*way, "--batch", "0", "-o", out], "--batch 0")
    fails(2, [*way, "--batch", "1001", "-o", out], "--batch 1001")
    fails(2, [*way, "--batch", "2", "-o", "-"], "standard output")
    fails(2, ["image", "--repeat", out, "--batch", "2", "-o", alone], "leave it out")
    fails(4, [*way, "--batch", "1000", "-o", out, "--memory", "64M"], "does not fit")
    # The second name would be a part of the model: nothing is written.
    part = os.path.join(T, "vae-2.png")
    with open(part, "wb") as f:
        f.write(read(os.path.join(MINI, "vae-mini.safetensors")))
    fails(2, [*way, "--vae", part, "--batch", "2", "-o", os.path.join(T, "vae.png")], "-o")
    check(not os.path.exists(os.path.join(T, "vae-1.png")), "a picture was left behind a refusal")
    check(read(part) == read(os.path.join(MINI, "vae-mini.safetensors")), "a part of the model was written over")


main(test_batch)
