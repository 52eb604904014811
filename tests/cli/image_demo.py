"""demo/anima-mini: pictures of its own size, accepted by the committed checker; random models in tight budgets."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys

from harness import A, T, check, fails, main, run

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
DEMO = os.path.join(ROOT, "demo/anima-mini")
SCRIPTS = os.path.join(ROOT, "scripts")
sys.dont_write_bytecode = True
sys.path.insert(0, SCRIPTS)
import check_anima_mini  # noqa: E402


def read(path):
    with open(path, "rb") as f:
        return f.read()


def size_of(path):
    return struct.unpack(">II", read(path)[16:24])


def test_defaults():
    out = os.path.join(T, "cat.png")
    way = ["image", "-p", "cat", "--cfg", "1", "--steps", "1", "--seed", "1", "-o", out]
    r = run(*way, "--bundle", DEMO)
    check(r.returncode == 0 and size_of(out) == (128, 128), f"the demo's own size: {r.returncode} {r.stderr}")
    r = run(*way, "--bundle", DEMO, "--size", "32x16")
    check(r.returncode == 0 and size_of(out) == (32, 16), f"--size beside a bundle: {r.returncode} {r.stderr}")
    os.remove(out)
    for text, part in (("{}", "defaults.json"), ('{"size": 128}', "defaults.json"),
                       ('{"size": "a"}', "such as 512x512"),
                       ("[" * 70000, "64 KiB"), ("[" * 60000, "defaults.json")):
        bundle = os.path.join(T, "bundle")
        shutil.copytree(DEMO, bundle, ignore=shutil.ignore_patterns("train", "golden*"), dirs_exist_ok=True)
        with open(os.path.join(bundle, "defaults.json"), "w", encoding="utf-8") as f:
            f.write(text)
        fails(2 if part.startswith("such") else 3, [*way, "--bundle", bundle], part)
    check(not os.path.exists(out), "a picture was left behind a failure")


def test_checker():
    """Two pictures are what was asked for; each is refused as the other, and on another background."""
    script, keep = os.path.join(SCRIPTS, "check_anima_mini.py"), os.path.join(T, "kept")
    words = [sys.executable, "-B", script, "--ridge", A.ridge, "--count", "2", "--keep", keep, "--json"]
    r = subprocess.run(words, capture_output=True, text=True)
    check(r.returncode == 0, f"the checker: {r.returncode} {r.stderr}")
    figures = json.loads(r.stdout)
    check(figures["accepted_percent"] == 100 and figures["control_percent"] == 0, f"accepted: {figures}")
    objects = check_anima_mini.Objects(DEMO)
    for done, file in zip(figures["pictures"], sorted(os.listdir(keep))):
        name, colour = re.fullmatch("(.*) on a (.*) background", done["prompt"]).groups()
        small = check_anima_mini.shrunk(check_anima_mini.read_png(os.path.join(keep, file)))
        shape, right = objects.pixels(name), check_anima_mini.BACKGROUNDS[colour]
        wrong = {c for c, b in check_anima_mini.BACKGROUNDS.items() if not check_anima_mini.judge(small, shape, b)[1]}
        check(wrong == {colour}, f"{done['prompt']}: accepted on {wrong}")
        said = check_anima_mini.judge([right] * len(small), shape, right)[1]
        check("colour" in said and "shape" in said, f"an empty picture of {done['prompt']} is judged {said}")


def test_random():
    script, folder = os.path.join(SCRIPTS, "make_random_anima.py"), os.path.join(T, "random")
    pictures = {}
    for kind in ("bf16", "f16", "f32"):
        make = [sys.executable, script, folder, "--scale", "16", "--type", kind]
        made = subprocess.run(make, capture_output=True, text=True)
        check(made.returncode == 0, f"{script} --type {kind}: {made.stderr}")
        out = os.path.join(T, f"{kind}.png")
        way = ["image", "--bundle", folder, "-p", "apple", "--size", "32x32", "--steps", "1", "--seed", "1", "-o", out]
        r = run(*way)
        check(r.returncode == 0 and size_of(out) == (32, 32), f"{kind}: {r.returncode} {r.stderr}")
        pictures[kind] = read(out)
        least = run(*way, "--memory", "3M").stderr.split("give --memory ")[-1].split()[0]
        r = run(*way, "--memory", least)
        check(r.returncode == 0 and read(out) == pictures[kind], f"{kind} in {least}: {r.returncode} {r.stderr}")
    check(len(set(pictures.values())) == 3, "types give the same picture")
    names = sorted(os.listdir(folder))
    check(names == ["anima-random.safetensors", "qwen3-random.safetensors", "spiece.model", "tokenizer.json",
                    "vae-random.safetensors"], f"a bundle of {names}")
    before = {n: read(os.path.join(folder, n)) for n in names}
    subprocess.run(make, capture_output=True)
    check(all(read(os.path.join(folder, n)) == before[n] for n in names), "the same arguments give other bytes")


def test_all():
    test_defaults()
    test_checker()
    test_random()


main(test_all)
