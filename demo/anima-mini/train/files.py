"""Safetensors for train.py: BF16 files with the names and shapes of the published ones.

    write("vae-mini.safetensors", vae_tensors(vae))
    model.load_state_dict(read("qwen3-mini.safetensors"))
"""
import json
import struct

import numpy as np
import torch

# Channels of the VAE's convolutions over time. One frame never meets them; files of this kind have them.
TIME_CONVS = {"encoder.downsamples.5": (32, 32), "encoder.downsamples.8": (64, 64),
              "decoder.upsamples.3": (128, 64), "decoder.upsamples.7": (128, 64)}


def write(path, tensors):
    header, at = {}, 0
    for name, t in sorted(tensors.items()):
        header[name] = {"dtype": "BF16", "shape": list(t.shape), "data_offsets": [at, at + 2 * t.numel()]}
        at += 2 * t.numel()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, t in sorted(tensors.items()):
            f.write(t.detach().float().bfloat16().contiguous().view(torch.int16).numpy().tobytes())


def read(path):
    """Name to tensor: BF16 as float32, F32, I32 as int64."""
    with open(path, "rb") as f:
        data = f.read()
    length = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        raw = data[8 + length + begin:8 + length + end]
        if t["dtype"] == "BF16":
            values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, {"F32": "<f4", "I32": "<i4"}[t["dtype"]])
        out[name] = torch.tensor(values.copy()).view(t["shape"])
        if t["dtype"] == "I32":
            out[name] = out[name].long()
    return out


def vae_tensors(vae):
    """2-D convolutions as 3-D ones: three taps in time, of which one frame meets the last."""
    out = {}
    for name, t in vae.state_dict().items():
        flat = ".resample." in name or ".to_qkv." in name or ".proj." in name or ".middle.1.norm." in name
        if name.endswith("weight") and not flat:
            taps = torch.zeros(*t.shape[:2], t.shape[-1], *t.shape[2:])
            taps[:, :, -1] = t
            t = taps
        elif name.endswith("gamma") and not flat:
            t = t[..., None]
        out[name] = t
    for name, (outputs, inputs) in TIME_CONVS.items():
        out[name + ".time_conv.weight"] = torch.zeros(outputs, inputs, 3, 1, 1)
        out[name + ".time_conv.bias"] = torch.zeros(outputs)
    return out


def vae_state(tensors):
    """The other way: what Vae.load_state_dict() takes."""
    out = {}
    for name, t in tensors.items():
        if ".time_conv." in name:
            continue
        if t.dim() == 5:
            t = t[:, :, -1]
        elif name.endswith("gamma") and t.dim() == 4:
            t = t[..., 0]
        out[name] = t
    return out
