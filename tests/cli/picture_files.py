"""PNG pictures and safetensors files, written and read with the standard library alone, for tests of `ridge image`."""
import json
import os
import struct
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import check_anima_mini  # noqa: E402


def write_png(path, width, height, pixel=None):
    """RGB; pixel(x, y) gives three bytes; without it all is black."""
    rows = bytes((3 * width + 1) * height)
    if pixel:
        rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)),
              (b"IEND", b"")]
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        for kind, body in chunks:
            f.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
    return path


def read_png(path):
    """(width, height, bytes) of an RGB picture of 8 bits."""
    width, height, channels, lines = check_anima_mini.read_png(path)
    if channels != 3:
        raise SystemExit(f"{path}: {channels} channels, not RGB")
    return width, height, b"".join(lines)


def read_tensors(path):
    """Name to (type, shape, bytes)."""
    with open(path, "rb") as f:
        data = f.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + length + t["data_offsets"][0]:8 + length + t["data_offsets"][1]])
            for name, t in header.items()}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))
    return path
