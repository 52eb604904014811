"""Bad input, each with one clear line and the right exit code."""
import os
import struct
import subprocess

import gguf_files
from harness import A, T, check, fails, main, run, tiny_file, write


def test_errors():
    good = gguf_files.tiny()
    whole = good.bytes()
    f = lambda name, data: write(os.path.join(T, name), data)
    model = tiny_file()
    fails(3, ["info", os.path.join(T, "absent.gguf")], "absent.gguf")
    fails(3, ["info", T], "folder" if "folder" in run("info", T).stderr else "directory")
    fails(3, ["info", f("empty.gguf", b"")], "empty")
    fails(3, ["info", f("text.gguf", b"this is no model at all, it is a text of some length\n")], "text.gguf")
    fails(3, ["info", f("v1.gguf", b"GGUF" + struct.pack("<I", 1) + whole[8:])], "version 1")
    fails(3, ["info", f("big.gguf", b"GGUF" + struct.pack(">I", 3) + whole[8:])], "endian")
    for cut in list(range(5, len(good.header()), 37)) + [len(good.header()) + 40, len(whole) - 33]:
        fails(3, ["info", f("cut.gguf", whole[:cut])], "cut.gguf")
    offsets, at = [], 0
    for t in good.tensors:
        offsets.append(at)
        at += (len(t[3]) + 31) // 32 * 32
    fails(3, ["info", f("past.gguf", good.bytes(offsets=offsets[:-1] + [1 << 40]))], "past the end")
    fails(3, ["info", f("overlap.gguf", good.bytes(offsets=[0] * len(offsets)))], "overlap")
    fails(3, ["info", f("count.gguf", b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60) + whole[24:])], "count.gguf")
    twice = gguf_files.tiny()
    twice.tensors.append(list(twice.tensors[0]))
    fails(3, ["info", f("twice.gguf", twice.bytes())], "token_embd.weight")
    odd = gguf_files.tiny()
    odd.keys["general.architecture"] = "mamba9"
    fails(3, ["info", f("arch.gguf", odd.bytes())], "mamba9")
    kind = gguf_files.tiny()
    kind.tensors[1][2] = 77
    fails(3, ["info", f("type.gguf", kind.bytes())], "77")
    missing = gguf_files.tiny()
    missing.tensors = [t for t in missing.tensors if t[0] != "blk.0.ffn_up.weight"]
    fails(3, ["info", f("missing.gguf", missing.bytes())], "blk.0.ffn_up.weight")
    shape = gguf_files.tiny()
    shape.keys["llama.feed_forward_length"] = 96
    fails(3, ["info", f("shape.gguf", shape.bytes())], "shape")
    for key, bad in (("rope.dimension_count", 15), ("rope.dimension_count", 64), ("rope.dimension_count", 0),
                     ("rope.freq_base", -1.0), ("attention.head_count", 0),
                     ("attention.head_count", 1 << 30), ("attention.key_length", 0), ("block_count", 1 << 30),
                     ("embedding_length", 0), ("feed_forward_length", 0), ("context_length", 0)):
        hostile = gguf_files.tiny()
        hostile.keys["llama." + key] = bad
        fails(3, ["info", f("hostile.gguf", hostile.bytes())], key if key != "attention.head_count" else "head")
    words = gguf_files.tiny()
    words.keys["tokenizer.ggml.tokens"] += ["one", "two", "three"]
    words.keys["tokenizer.ggml.token_type"] += [1, 1, 1]
    fails(3, ["run", f("words.gguf", words.bytes()), "-p", "hi"], "embedding")
    fails(3, ["run", model, "-f", f("long.txt", b"x" * 300000), "--context", "64"], "context")
    mute = f("mute.gguf", gguf_files.tiny(tokenizer=False).bytes())
    fails(3, ["run", mute, "-p", "hi"], "tokenizer")
    fails(3, ["run", model, "-p", "x" * 400, "--context", "64"], "context")
    fails(3, ["run", model, "-f", f("latin1.txt", b"caf\xe9")], "UTF-8")
    fails(2, ["run", model, "-p", "hi", "--memory", "10Q"], "10Q")
    fails(2, ["run", model, "-p", "hi", "--threads", "0"], "--threads 0")
    fails(2, ["run", model, "-p", "hi", "--top-p", "1.5"], "--top-p")
    fails(2, ["run", model, "-p", "hi", "--isa", "mmx"], "mmx")
    fails(2, ["run", model, "-p", "hi", "--io", "carrier-pigeon"], "carrier-pigeon")
    fails(2, ["run", model, "-p", "hi", "--pins", "first"], "--pins first")
    fails(2, ["run", model, "-p", "hi", "--logit-bias", "nonsense"], "nonsense")
    fails(2, ["logits", model, "--tokens", "1,x", "-o", os.path.join(T, "x.npy")], "1,x")
    fails(3, ["logits", model, "--tokens", "1,9999", "-o", os.path.join(T, "x.npy")], "9999")
    check(not os.path.exists(os.path.join(T, "x.npy")), "a failed `ridge logits` left its file")
    fails(3, ["detokenize", model, "9999"], "9999")
    fails(2, ["models", "get", "gpt-9"], "gpt-9")
    refused = run("run", model, "-p", "hi", "--memory", "1M")
    check(refused.returncode == 4 and "needs" in refused.stderr and "--memory" in refused.stderr,
          f"--memory 1M: {refused.returncode}, {refused.stderr!r}")
    for flag in ("--memory", "--cpus", "--isa"):
        fails(2, ["run", model, "-p", "hi", flag, ""], "'" if flag != "--cpus" else "--cpus")
    fails(2, ["run", model, "-p", "hi", "--cpus", "4000"], "4000")
    fails(2, ["run", model, "-p", "hi", "--cpus", "0,0"], "twice")
    fails(2, ["logits", model, "--tokens", "1,,2", "-o", os.path.join(T, "x.npy")], "1,,2")
    fails(2, ["logits", model, "--tokens", "1,2", "-o", model], "lost")
    fails(2, ["pack", model, "-o", model], "lost")
    check(open(model, "rb").read() == whole, "the model was changed")
    fails(3, ["tokenize", model], "UTF-8", stdin="caf\udce9".encode("utf-8", "surrogateescape"), text=False)
    fails(3, ["run", model, "-p", "hi", "--system", b"\xff"], "UTF-8")
    fails(3, ["run", model, "-p", "hi", "--stop", b"\xff"], "UTF-8")
    escape = gguf_files.tiny()
    escape.keys["general.name"] = "evil\x1b[31m\x1b]0;title\x07\r"
    shown = run("info", f("escape.gguf", escape.bytes()))
    check(shown.returncode == 0 and "\x1b" not in shown.stdout and "\\x1b" in shown.stdout, f"escapes: {shown.stdout[:80]!r}")
    fails(3, ["info", os.path.join(T, "\x1b[31m")], "\\x1b[31m")
    if os.geteuid() != 0:
        os.chmod(model, 0)
        fails(3, ["info", model], "tiny.gguf")
        os.chmod(model, 0o644)
    reader, writer = os.pipe()
    os.close(reader)               # whoever listened has left
    closed = subprocess.run([A.ridge, "run", model, "-p", "hi", "-n", "200", "--ignore-eos", "--temp", "0"], stdout=writer,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    os.close(writer)
    check(closed.returncode == 5 and "standard output" in closed.stderr, f"closed stdout: {closed.returncode} {closed.stderr}")
    full = subprocess.run([A.ridge, "info", model], stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE, text=True)
    check(full.returncode == 5 and "standard output" in full.stderr, f"full stdout: {full.returncode} {full.stderr}")


main(test_errors)
