"""`ridge compare`: pictures against pictures."""
import json
import os
import struct
import zlib

from harness import T, check, fails, main, run, write


def png(path, width, height, pixel, colours=2, channels=3):
    """pixel(x, y) gives the bytes of a pixel."""
    raw = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    return write(path, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) +
                 chunk(b"IEND", b""))


def test_compare():
    base = png(os.path.join(T, "a.png"), 32, 24, lambda x, y: (x * 8, y * 10, x + y))
    lighter = png(os.path.join(T, "b.png"), 32, 24, lambda x, y: (min(x * 8 + 1, 255), y * 10 + 1, x + y + 1))
    clear = png(os.path.join(T, "c.png"), 32, 24, lambda x, y: (x * 8, y * 10, x + y, 255), colours=6)
    small = png(os.path.join(T, "d.png"), 8, 8, lambda x, y: (0, 0, 0))
    r = run("compare", base, lighter)
    check(r.returncode == 0 and "PSNR" in r.stdout and "48.1" in r.stdout, f"compare: {r.stdout!r} {r.stderr!r}")
    check(all(len(line) <= 100 for line in r.stdout.splitlines()), f"compare: long lines: {r.stdout}")
    q = json.loads(run("compare", base, lighter, "--json").stdout)
    check(q["largest_difference"] == 1 and q["within_one_share"] == 1, f"compare --json: {q}")
    check(abs(q["brightness_shift"] - 1 / 255) < 1e-4 and abs(q["psnr_db"] - 48.13) < 0.01, f"compare --json: {q}")
    same = run("compare", base, clear, "--json")
    check(json.loads(same.stdout)["psnr_db"] is None and "white" in same.stderr, f"equal: {same.stdout!r} {same.stderr!r}")
    fails(3, ["compare", base, small], "one size")
    fails(3, ["compare", small, small], "window")
    fails(3, ["compare", base, os.path.join(T, "none.png")], "none.png")
    data = open(base, "rb").read()
    cut = write(os.path.join(T, "cut.png"), data[:len(data) // 2])
    fails(3, ["compare", cut, base], "cut short")
    fails(3, ["compare", write(os.path.join(T, "x.png"), b"GIF89a"), base], "no PNG")
    fails(2, ["compare", base], "PICTURE")


main(test_compare)
