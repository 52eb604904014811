#!/usr/bin/env python3
"""Draws the six prompts of demo/anima-mini side by side: the picture of the README.

usage: draw_demo_pictures.py --ridge build/release/bin/ridge [-o docs/pictures/anima-mini.png]

Each is `ridge image --bundle demo/anima-mini -p PROMPT --seed 1`. Python's standard library is all it needs.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from check_anima_mini import FOLDER, read_png  # noqa: E402


def write_png(path, width, height, lines):
    """8-bit RGB; each line is stored as its difference from the one above."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    raw, above = b"", bytes(3 * width)
    for line in lines:
        raw += b"\x02" + bytes((a - b) & 255 for a, b in zip(line, above))
        above = line
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ridge", required=True)
    p.add_argument("-o", "--output", default=os.path.join(FOLDER, "../../docs/pictures/anima-mini.png"))
    a = p.parse_args()
    with open(os.path.join(FOLDER, "prompts.json"), encoding="utf-8") as f:
        prompts = json.load(f)
    pictures = []
    with tempfile.TemporaryDirectory() as folder:
        for i, prompt in enumerate(prompts):
            path = os.path.join(folder, f"{i}.png")
            subprocess.run([a.ridge, "image", "--bundle", FOLDER, "-p", prompt, "--seed", "1", "-o", path], check=True)
            pictures.append(read_png(path))
    width, height = sum(p[0] for p in pictures), pictures[0][1]
    lines = [b"".join(bytes(p[3][y]) for p in pictures) for y in range(height)]
    os.makedirs(os.path.dirname(os.path.abspath(a.output)), exist_ok=True)
    write_png(a.output, width, height, lines)


if __name__ == "__main__":
    main()
