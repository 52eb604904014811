"""`ridge image --preview`: looks at the picture on its way, and what Ctrl-C leaves."""
import os
import signal
import struct
import subprocess
import time

from harness import A, T, check, fails, main, run
from picture_files import write_tensors

MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def interrupted(way, look, out):
    """Ctrl-C after the first preview: exit code 130, the preview stays, no picture."""
    words = [A.ridge, *way, "--steps", "1000", "--preview", look, "--preview-every", "1", "-o", out]
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not os.path.exists(look) and p.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    p.send_signal(signal.SIGINT)
    _, said = p.communicate(timeout=300)
    check(p.returncode == 130 and "Ctrl-C" in said, f"Ctrl-C: {p.returncode} {said}")
    check(os.path.exists(look) and not os.path.exists(out), "Ctrl-C leaves no preview, or a picture")
    check(run("compare", look, look).returncode == 0, "the preview that Ctrl-C leaves is no picture")


def stopped(words, after, left):
    """Ctrl-C after so many seconds: exit code 130, and the file `left` is not there."""
    p = subprocess.Popen([A.ridge, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    time.sleep(after)
    p.send_signal(signal.SIGINT)
    _, said = p.communicate(timeout=300)
    check(p.returncode == 130 and "Ctrl-C" in said, f"Ctrl-C in {words[-4:]}: {p.returncode} {said}")
    check("preview" not in said and not os.path.exists(left), f"Ctrl-C in {words[-4:]} leaves something: {said}")


def test_stops(way, out):
    none = os.path.join(T, "none.png")
    stopped([*way, "--steps", "1000", "--preview", none, "--preview-every", "1000", "-o", out], 0.5, none)
    ids = {f"cond.{which}_ids": ("I32", [4], struct.pack("<4i", 5, 9, 20, 1)) for which in ("qwen", "t5")}
    latents = ("F32", [16, 4, 6], struct.pack("<384f", *(i % 7 / 3 - 1 for i in range(384))))
    inputs = write_tensors(os.path.join(T, "in.safetensors"), {**ids, "latents": latents})
    dump = os.path.join(T, "dump.safetensors")
    stopped(["image", "--bundle", MINI, "--inputs", inputs, "--dump", dump, "--cfg", "1", "--steps", "1000"], 0.5, dump)


def test_least(way, out, look):
    """The budget that a refusal names is enough, and one MiB less is not."""
    words = [*way, "--steps", "1", "--preview", look, "-o", out]
    least = int(run(*words, "--memory", "3M").stderr.split("give --memory ")[-1].split("M")[0])
    r = run(*words, "--memory", f"{least}M")
    check(r.returncode == 0, f"--memory {least}M, as named: {r.stderr}")
    fails(4, [*words, "--memory", f"{least - 2}M"], "does not fit")


def test_preview():
    out, look = os.path.join(T, "out.png"), os.path.join(T, "look.png")
    way = ["image", "--bundle", MINI, "-p", "red apple on a blue background", "--size", "48x32", "--seed", "1"]
    run(*way, "--steps", "4", "-o", out)
    picture = read(out)
    looks = []
    for every in ("1", "2", "3"):
        r = run(*way, "--steps", "4", "--preview", look, "--preview-every", every, "-o", out)
        check(r.returncode == 0 and read(out) == picture, f"--preview changes the picture: {r.stderr}")
        looks.append(read(look))
    check(looks[0] == looks[1] != looks[2], "of 4 steps the last preview is that of step 4, 4 and 3")
    r = run("compare", out, look)
    check(r.returncode == 0, f"a preview has another size than the picture: {r.stderr}")
    os.remove(look)
    r = run(*way, "--steps", "4", "--preview", look, "-o", out)
    check(r.returncode == 0 and not os.path.exists(look), f"a preview before the fifth step: {r.stderr}")
    r = run(*way, "--steps", "1", "--batch", "2", "--preview", look, "--preview-every", "1", "--spectrum", "-o", out)
    check(all(os.path.exists(look.replace(".png", f"-{i}.png")) for i in (1, 2)), f"previews of a batch: {r.stderr}")
    os.remove(out)
    interrupted(way, look, out)
    test_stops(way, out)
    test_least(way, out, look)
    fails(2, [*way, "--preview", out, "-o", out], "-o writes there as well")
    fails(2, [*way, "--preview", look, "--preview-every", "0", "-o", out], "1 or more")
    fails(2, [*way, "--preview", os.path.join(T, ".", "out.png"), "-o", out], "-o writes there as well")
    fails(2, [*way, "--preview", out, "--capture", out, "-o", look], "--preview writes there as well")
    fails(2, [*way, "--preview-every", "2", "-o", out], "--preview FILE")
    part = os.path.join(T, "vae.png")
    with open(part, "wb") as f:
        f.write(read(os.path.join(MINI, "vae-mini.safetensors")))
    fails(2, [*way, "--preview", part, "--vae", part, "-o", out], "--preview")


main(test_preview)
