"""Small GGUF files for the tests of the program, written by hand: no library, so that every defect can be made."""
import struct

U32, I32, F32, STRING, ARRAY = 4, 5, 6, 8, 9


def string(text):
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def value(v):
    if isinstance(v, str):
        return struct.pack("<I", STRING) + string(v)
    if isinstance(v, float):
        return struct.pack("<If", F32, v)
    if isinstance(v, list):
        if v and isinstance(v[0], str):
            return struct.pack("<IIQ", ARRAY, STRING, len(v)) + b"".join(string(s) for s in v)
        return struct.pack("<IIQ", ARRAY, I32, len(v)) + b"".join(struct.pack("<i", i) for i in v)
    return struct.pack("<II", U32, v)


class Gguf:
    """Keys and F32 tensors; `write` lays them out, with the defects that a test asks for."""

    def __init__(self):
        self.keys = {}
        self.tensors = []          # name, dims, type, bytes

    def tensor(self, name, dims, scale=0.02, kind=0):
        count = 1
        for d in dims:
            count *= d
        # A fixed pseudo-random sequence: the same file every time.
        state, values = 12345 + len(self.tensors), []
        for _ in range(count):
            state = (1103515245 * state + 12345) & 0x7FFFFFFF
            values.append((state / 0x7FFFFFFF - 0.5) * 2 * scale if scale else 1.0)
        self.tensors.append([name, dims, kind, struct.pack(f"<{count}f", *values)])

    def header(self, version=3, offsets=None):
        infos, at = b"", 0
        for i, (name, dims, kind, data) in enumerate(self.tensors):
            offset = offsets[i] if offsets else at
            infos += string(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
            infos += struct.pack("<IQ", kind, offset)
            at += (len(data) + 31) // 32 * 32
        keys = b"".join(string(k) + value(v) for k, v in self.keys.items())
        return b"GGUF" + struct.pack("<IQQ", version, len(self.tensors), len(self.keys)) + keys + infos

    def bytes(self, version=3, offsets=None):
        out = self.header(version, offsets)
        out += b"\0" * (-len(out) % 32)
        for _, _, _, data in self.tensors:
            out += data + b"\0" * (-len(data) % 32)
        return out


def tiny(tokenizer=True, layers=1, dim=32, ffn=64, arch="llama", experts=0):
    """A llama that runs: byte-level vocabulary of 259 tokens, random weights. Of experts, two are used."""
    g = Gguf()
    g.keys = {"general.architecture": arch, "general.name": "tiny", f"{arch}.block_count": layers,
              f"{arch}.context_length": 256, f"{arch}.embedding_length": dim, f"{arch}.feed_forward_length": ffn,
              f"{arch}.attention.head_count": 2, f"{arch}.attention.head_count_kv": 1,
              f"{arch}.attention.layer_norm_rms_epsilon": 1e-5}
    if experts:
        g.keys.update({f"{arch}.expert_count": experts, f"{arch}.expert_used_count": 2})
    if tokenizer:
        plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
        other = iter(range(256, 512))
        tokens = [chr(b) if b in plain else chr(next(other)) for b in range(256)]
        g.keys.update({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
                       "tokenizer.ggml.tokens": tokens + ["th", "<s>", "</s>"],
                       "tokenizer.ggml.token_type": [1] * 257 + [3, 3], "tokenizer.ggml.merges": ["t h"],
                       "tokenizer.ggml.bos_token_id": 257, "tokenizer.ggml.eos_token_id": 258})
    g.tensor("token_embd.weight", [dim, 259], 0.5)
    for i in range(layers):
        b = f"blk.{i}."
        g.tensor(b + "attn_norm.weight", [dim], 0)
        g.tensor(b + "attn_q.weight", [dim, dim], 0.2)
        g.tensor(b + "attn_k.weight", [dim, dim // 2], 0.2)
        g.tensor(b + "attn_v.weight", [dim, dim // 2], 0.2)
        g.tensor(b + "attn_output.weight", [dim, dim], 0.2)
        g.tensor(b + "ffn_norm.weight", [dim], 0)
        if experts:
            g.tensor(b + "ffn_gate_inp.weight", [dim, experts], 0.2)
        part, each = ("_exps", [experts]) if experts else ("", [])
        g.tensor(b + f"ffn_gate{part}.weight", [dim, ffn] + each, 0.2)
        g.tensor(b + f"ffn_up{part}.weight", [dim, ffn] + each, 0.2)
        g.tensor(b + f"ffn_down{part}.weight", [ffn, dim] + each, 0.2)
    g.tensor("output_norm.weight", [dim], 0)
    return g
