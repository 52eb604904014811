#!/usr/bin/env python3
"""Draws pictures with demo/anima-mini and judges each against the training picture of its prompt.

usage: check_anima_mini.py --ridge build/release/bin/ridge [--count 64] [--keep FOLDER] [--json]

A picture is accepted if, averaged to 32 x 32 pixels,
  background  the mean colour around the object is within 16 of 255 of the background's (root mean square of r, g, b),
  colour      the object's mean colour is within 32 of the training picture's, and its pixels are within 56 of theirs,
  shape       the pixels that stand out from the background overlap those of the training picture by 70 % (both / any).
As a control each picture is judged against the next prompt's object on its own background too: few should pass.
Exit code 0: at least 90 % are accepted. Python's standard library is all it needs.
"""
import argparse
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../demo/anima-mini")
BACKGROUNDS = {
    "white": (255, 255, 255), "red": (214, 64, 60), "green": (72, 160, 84), "blue": (66, 108, 205),
    "yellow": (240, 208, 80), "purple": (140, 84, 180), "black": (24, 24, 28), "gray": (150, 150, 150)}
SMALL, PER_ROW = 32, 16  # of demo/anima-mini/objects.png
STANDS_OUT = 40  # root mean square over the three colours
LEAST_SHAPE = 20  # pixels that stand out: below, object and background have one colour and there is no shape to judge


def read_png(path):
    """Width, height, channels and lines of an 8-bit PNG without interlacing."""
    with open(path, "rb") as f:
        data = f.read()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    channels = {2: 3, 6: 4}.get(colour)
    if depth != 8 or channels is None or interlaced:
        raise SystemExit(f"check_anima_mini.py: {path}: no 8-bit RGB or RGBA")
    raw, step, lines = zlib.decompress(packed), width * channels, []
    above = bytes(step)
    for y in range(height):
        begin = y * (step + 1)
        line = bytearray(raw[begin + 1:begin + 1 + step])
        unfilter(raw[begin], line, above, channels)
        lines.append(line)
        above = line
    return width, height, channels, lines


def unfilter(kind, line, above, channels):
    for i in range(len(line) if kind else 0):
        left = line[i - channels] if i >= channels else 0
        up = above[i]
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            corner = above[i - channels] if i >= channels else 0
            far = left + up - corner
            guess = min((abs(far - left), 0, left), (abs(far - up), 1, up), (abs(far - corner), 2, corner))[2]
        line[i] = (line[i] + guess) & 255


def shrunk(picture):
    """SMALL x SMALL pixels as (r, g, b): means of squares."""
    width, height, channels, lines = picture
    side = width // SMALL
    if width != height or width % SMALL:
        raise SystemExit(f"check_anima_mini.py: a picture of {width} x {height}, expected 128 x 128")
    out = []
    for y in range(SMALL):
        rows = lines[y * side:(y + 1) * side]
        for x in range(SMALL):
            at = range(x * side * channels, (x + 1) * side * channels, channels)
            out.append(tuple(sum(row[i + c] for row in rows for i in at) / side ** 2 for c in range(3)))
    return out


class Objects:
    def __init__(self, folder):
        with open(os.path.join(folder, "objects.txt"), encoding="utf-8") as f:
            self.names = f.read().splitlines()
        _, _, channels, self.lines = read_png(os.path.join(folder, "objects.png"))
        if channels != 4:
            raise SystemExit("check_anima_mini.py: objects.png has no alpha")

    def pixels(self, name):
        """SMALL x SMALL of (r, g, b, alpha from 0 to 1)."""
        index = self.names.index(name)
        top, left = index // PER_ROW * SMALL, index % PER_ROW * SMALL * 4
        out = []
        for line in self.lines[top:top + SMALL]:
            for x in range(left, left + SMALL * 4, 4):
                out.append((line[x], line[x + 1], line[x + 2], line[x + 3] / 255))
        return out


def distance(a, b):
    """Root mean square over the colours."""
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / 3)


def mean(pixels):
    return tuple(sum(p[c] for p in pixels) / len(pixels) for c in range(3))


def root_mean_square(pairs):
    return math.sqrt(sum(distance(a, b) ** 2 for a, b in pairs) / len(pairs))


def judge(picture, shape, background):
    """picture: SMALL x SMALL pixels; shape: of Objects.pixels(). Figures, and what is wrong (empty: accepted)."""
    want = [tuple(c * p[3] + b * (1 - p[3]) for c, b in zip(p, background)) for p in shape]
    around = [p for p, s in zip(picture, shape) if s[3] < 0.02]
    inside = [(p, w) for p, w, s in zip(picture, want, shape) if s[3] > 0.9]
    stands = [distance(p, background) > STANDS_OUT for p in picture]
    should = [distance(w, background) > STANDS_OUT for w in want]
    either = sum(a or b for a, b in zip(stands, should))
    figures = {"background": distance(mean(around), background),
               "mean_colour": distance(mean([p for p, _ in inside]), mean([w for _, w in inside])),
               "pixels": root_mean_square(inside)}
    if sum(should) >= LEAST_SHAPE:
        figures["overlap"] = sum(a and b for a, b in zip(stands, should)) / either
    wrong = [word for word, bad in (("background", figures["background"] > 16),
                                    ("colour", figures["mean_colour"] > 32 or figures["pixels"] > 56),
                                    ("shape", figures.get("overlap", 1) < 0.7)) if bad]
    return figures, wrong


def prompts(names, count):
    """`count` pairs of object and background, spread over all of both: 31 has no factor of the 148 objects."""
    colours = list(BACKGROUNDS)
    return [(names[i * 31 % len(names)], colours[(i + i // len(colours)) % len(colours)]) for i in range(count)]


def draw(a, prompt, seed, path):
    r = subprocess.run([a.ridge, "image", "--bundle", a.bundle, "-p", prompt, "--size", "128x128", "--steps",
                        str(a.steps), "--seed", str(seed), "-o", path], capture_output=True, text=True)
    if r.returncode != 0:
        raise SystemExit(f"check_anima_mini.py: ridge ends with {r.returncode}: {r.stderr.strip()}")


def check_all(a, folder):
    objects = Objects(a.bundle)
    asked = prompts(objects.names, a.count)
    results = []
    for i, (name, colour) in enumerate(asked):
        prompt = f"{name} on a {colour} background"
        path = os.path.join(folder, f"{i:02}-{re.sub('[^a-z]+', '-', prompt)}.png")
        draw(a, prompt, i, path)
        picture = shrunk(read_png(path))
        figures, wrong = judge(picture, objects.pixels(name), BACKGROUNDS[colour])
        other = asked[(i + 1) % len(asked)][0]
        control = not judge(picture, objects.pixels(other), BACKGROUNDS[colour])[1]
        results.append({"prompt": prompt, "seed": i, "accepted": not wrong, "wrong": wrong, "control": control,
                        **figures})
        words = ", ".join(f"{k} {v:.2f}" if v < 1 else f"{k} {v:.0f}" for k, v in figures.items())
        verdict = "wrong " + " and ".join(wrong) if wrong else "accepted"
        print(f"{prompt}, seed {i}: {verdict} ({words})", file=sys.stderr)
    return results


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ridge", required=True)
    p.add_argument("--bundle", default=FOLDER)
    p.add_argument("--count", type=int, default=64, help="pictures (%(default)s)")
    p.add_argument("--steps", type=int, default=20, help="of each (%(default)s)")
    p.add_argument("--least", type=float, default=90, help="per cent that must be accepted (%(default)s)")
    p.add_argument("--keep", help="folder for the pictures")
    p.add_argument("--json", action="store_true", help="every figure, to stdout")
    a = p.parse_args()
    if a.count < 1:
        raise SystemExit("check_anima_mini.py: --count is at least 1")
    with tempfile.TemporaryDirectory() as temporary:
        if a.keep:
            os.makedirs(a.keep, exist_ok=True)
        results = check_all(a, a.keep or temporary)
    accepted, control = (100 * sum(r[k] for r in results) / len(results) for k in ("accepted", "control"))
    if a.json:
        print(json.dumps({"accepted_percent": accepted, "control_percent": control, "pictures": results}, indent=1))
    else:
        print(f"accepted {accepted:.1f} % of {len(results)} pictures; of wrong objects {control:.1f} %")
    sys.exit(0 if accepted >= a.least else 1)


if __name__ == "__main__":
    main()
