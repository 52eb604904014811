#!/usr/bin/env python3
"""Makes tests/data/vae_encoder.f32: the latent that the VAE of demo/anima-mini gives the picture of
vae_encoder_test.cpp, [16, height / 8, width / 8] in unit deviation, by an implementation of its own in float64: true
causal 3-D convolutions over one frame and two of zeros before it, no bands, no panels. Needs numpy.

    make_encoder_fixture.py demo/anima-mini/vae-mini.safetensors tests/data/vae_encoder.f32
"""
import json
import struct
import sys

import numpy as np

WIDTH, HEIGHT = 80, 48
MEAN = [-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
        0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921]
DEVIATION = [2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
             3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160]


def picture():
    """[3, HEIGHT, WIDTH] bytes: ramps, a checkerboard and a bright square, as the test makes them."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    red, green = 3 * x + y, 255 - (5 * y + x) % 256
    blue = np.where((x // 4 + y // 4) % 2 == 0, 40, 200)
    square = (x >= 20) & (x < 50) & (y >= 10) & (y < 30)
    return np.stack([np.where(square, 250, red % 256), np.where(square, 30, green), blue]).astype(np.float64)


def load(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        assert t["dtype"] == "BF16", name
        begin, end = t["data_offsets"]
        half = np.frombuffer(data[8 + length + begin:8 + length + end], np.uint16)
        tensors[name] = (half.astype(np.uint32) << 16).view(np.float32).reshape(t["shape"]).astype(np.float64)
    return tensors


W = load(sys.argv[1])


def causal(x, name):
    """x: [C, H, W], one frame. Two frames of zeros go before it, and zeros around it."""
    w, b = W[name + ".weight"], W[name + ".bias"]
    out_channels, _, taps, side, _ = w.shape
    pad = side // 2
    height, width = x.shape[1:]
    frames = np.zeros((x.shape[0], taps, height + 2 * pad, width + 2 * pad))
    frames[:, taps - 1, pad:pad + height, pad:pad + width] = x
    out = np.zeros((out_channels, height, width)) + b[:, None, None]
    for t in range(taps):
        for i in range(side):
            for j in range(side):
                out += np.einsum("oc,chw->ohw", w[:, :, t, i, j], frames[:, t, i:i + height, j:j + width])
    return out


def norm(x, name):
    length = np.maximum(np.sqrt((x * x).sum(axis=0, keepdims=True)), 1e-12)
    return x / length * np.sqrt(x.shape[0]) * W[name + ".gamma"].reshape(-1, 1, 1)


def silu(x):
    return x / (1 + np.exp(-x))


def residual(x, name):
    y = causal(silu(norm(x, name + ".residual.0")), name + ".residual.2")
    y = causal(silu(norm(y, name + ".residual.3")), name + ".residual.6")
    return y + (causal(x, name + ".shortcut") if name + ".shortcut.weight" in W else x)


def halve(x, name):
    """Zeros at the right and below, then 3 × 3 with a stride of 2."""
    w, b = W[name + ".resample.1.weight"], W[name + ".resample.1.bias"]
    height, width = x.shape[1] // 2, x.shape[2] // 2
    padded = np.pad(x, ((0, 0), (0, 1), (0, 1)))
    out = np.zeros((w.shape[0], height, width)) + b[:, None, None]
    for i in range(3):
        for j in range(3):
            out += np.einsum("oc,chw->ohw", w[:, :, i, j], padded[:, i:i + 2 * height:2, j:j + 2 * width:2])
    return out


def attention(x, name):
    channels, height, width = x.shape
    y = norm(x, name + ".norm").reshape(channels, -1)
    q, k, v = np.split(W[name + ".to_qkv.weight"][:, :, 0, 0] @ y + W[name + ".to_qkv.bias"][:, None], 3)
    scores = q.T @ k / np.sqrt(channels)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    mixed = v @ (weights / weights.sum(axis=1, keepdims=True)).T
    out = W[name + ".proj.weight"][:, :, 0, 0] @ mixed + W[name + ".proj.bias"][:, None]
    return x + out.reshape(x.shape)


def encode(x):
    x = causal(x, "encoder.conv1")
    i = 0
    while any(n.startswith(f"encoder.downsamples.{i}.") for n in W):
        name = f"encoder.downsamples.{i}"
        x = halve(x, name) if name + ".resample.1.weight" in W else residual(x, name)
        i += 1
    x = residual(x, "encoder.middle.0")
    x = residual(attention(x, "encoder.middle.1"), "encoder.middle.2")
    x = causal(silu(norm(x, "encoder.head.0")), "encoder.head.2")
    mean = causal(x, "conv1")[:16]
    return (mean - np.array(MEAN)[:, None, None]) / np.array(DEVIATION)[:, None, None]


if __name__ == "__main__":
    encode(picture() / 127.5 - 1).astype(np.float32).tofile(sys.argv[2])
