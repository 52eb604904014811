"""Runs the program as people do and checks what they see: exit codes, one line per error, equal output everywhere.

usage: cli_test.py GROUP --ridge PROGRAM --example PROGRAM --shared FOLDER
"""
import argparse
import csv
import io
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

sys.path.insert(0, os.path.dirname(__file__))
import gguf_files  # noqa: E402

failures = []


class Skip(Exception):
    pass


def check(condition, what):
    if not condition:
        failures.append(what)


def run(*words, stdin=None, env=None, text=True, **more):
    full = dict(os.environ, **(env or {}))
    # A random model writes bytes that are no text.
    words = [w if isinstance(w, bytes) else str(w) for w in words]
    return subprocess.run([A.ridge, *words], input=stdin, capture_output=True, text=text,
                          errors="replace" if text else None, env=full, timeout=600,
                          **({"stdin": subprocess.DEVNULL} if stdin is None else {}), **more)


def fails(code, words, part, stdin=None, **more):
    """The command ends with this code and says one line that holds `part`."""
    r = run(*words, stdin=stdin, **more)
    if isinstance(r.stderr, bytes):
        r.stdout, r.stderr = r.stdout.decode(), r.stderr.decode()
    said = [line for line in r.stderr.splitlines() if line.strip()]
    check(r.returncode == code, f"{words}: exit {r.returncode}, expected {code}: {r.stderr[-300:]}")
    check(part in r.stderr, f"{words}: says {r.stderr.strip()!r}, expected {part!r}")
    check(r.returncode == 4 or len(said) == 1, f"{words}: says {len(said)} lines: {r.stderr!r}")
    check(r.stdout == "" or r.returncode == 5, f"{words}: wrote to stdout: {r.stdout[:100]!r}")


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def tiny_file(**options):
    return write(os.path.join(T, "tiny.gguf"), gguf_files.tiny(**options).bytes())


def demo_model(file):
    folder = os.environ.get("RIDGE_MODELS_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "ridge")
    path = os.path.join(folder, file)
    if not os.path.exists(path):
        raise Skip(f"needs the demo models (scripts/test fetches them): {path}")
    return path


def test_help():
    r = run("--help")
    check(r.returncode == 0 and len(r.stdout.splitlines()) <= 40, f"ridge --help has {len(r.stdout.splitlines())} lines")
    for command in ("run", "info", "tokenize", "detokenize", "logits", "perplexity", "bench", "roofline", "kernels", "probe", "pack", "models",
                    "ladder", "doctor", "sim", "plan"):
        check(command in r.stdout, f"ridge --help does not list {command}")
        h = run(command, "--help")
        check(h.returncode == 0 and "Example" in h.stdout, f"ridge {command} --help has no examples")
        check(all(len(line) <= 80 for line in h.stdout.splitlines()), f"ridge {command} --help has long lines")
    v = run("--version")
    check(v.returncode == 0 and v.stdout.startswith("ridge ") and "kernels:" in v.stdout, f"--version says {v.stdout!r}")
    check(run("models").returncode == 0, "ridge models fails")
    for words in ((), ("help",)):
        r = run(*words)
        check(r.returncode == 0 and "Usage" in r.stdout, f"ridge {words}: {r.returncode} {r.stderr}")
    fails(2, ["frobnicate"], "frobnicate")


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


def test_tokens():
    model = tiny_file()
    r = run("tokenize", model, "the cat", "--no-special")
    check(r.stdout.split()[0] == "256", f"tokenize: {r.stdout!r}")
    ids = run("tokenize", model, stdin="the cat\n").stdout
    back = run("detokenize", model, "-", stdin=ids)
    check(back.stdout == "the cat\n\n", f"there and back: {back.stdout!r}")
    lines = run("tokenize", model, "--lines-json", "--no-special", stdin=json.dumps(["a", "", "th"]))
    check(json.loads(lines.stdout) == [[97], [], [256]], f"--lines-json: {lines.stdout!r} {lines.stderr!r}")
    special = run("tokenize", model, "<s>", "--parse-special")
    check(special.stdout.split() == ["257"], f"--parse-special: {special.stdout!r}")
    plain = run("tokenize", model, "<s>")
    check(plain.stdout.split() == [str(ord(c)) for c in "<s>"], f"plain: {plain.stdout!r}")
    as_json = json.loads(run("tokenize", model, "th", "--json").stdout)
    check(as_json == [{"id": 256, "text": "th"}], f"--json: {as_json}")
    fails(3, ["tokenize", model, "--lines-json"], "JSON", stdin="{}")
    golden = os.path.join(A.shared, "golden", "tokens.json")
    if not os.path.exists(golden):
        raise Skip("needs ../shared: " + golden)
    data = json.load(open(golden))
    for name in ("llama-bpe", "llama-spm", "qwen2", "gpt-2", "deepseek-llm", "phi-3"):
        vocab = os.path.join(A.shared, "vocab", name + ".gguf")
        for flag, key in (("--no-special", "plain"), ("--parse-special", "special")):
            got = run("tokenize", vocab, "--lines-json", flag, stdin=json.dumps(data["strings"]))
            check(got.returncode == 0 and json.loads(got.stdout) == data["vocabularies"][name][key],
                  f"tokens of {name}, {key}: {got.stderr[:200]}")


def read_logits(path):
    return open(path, "rb").read()


def test_logits():
    model = tiny_file(layers=3)
    base, outputs = os.path.join(T, "a.npy"), {}
    ways = [[], ["--threads", "1"], ["--isa", "scalar"], ["--io", "threads"], ["--io", "buffered"], ["--context", "200"]]
    for way in ways:
        r = run("logits", model, "--tokens", "1,2,3,200,7", "-o", base, *way)
        check(r.returncode == 0 and r.stdout == "", f"logits {way}: {r.returncode} {r.stderr}")
        outputs[" ".join(way)] = read_logits(base)
    check(len(set(outputs.values())) == 1, f"logits differ between {list(outputs)}")
    check(len(outputs[""]) == 128 + 5 * 259 * 4, f"the array has {len(outputs[''])} bytes")
    full = subprocess.run(["bash", "-c", f"ulimit -f 1; '{A.ridge}' logits '{model}' --tokens 1,2,3 -o '{base}'"],
                          capture_output=True, text=True)
    check(full.returncode == 5, f"logits to a full disk: {full.returncode} {full.stderr}")
    check(not [n for n in os.listdir(T) if "partial" in n], "a half file was left")


def test_run():
    model = tiny_file()
    a = run("run", model, "-p", "the", "-n", "20", "--seed", "7", "--ignore-eos")
    b = run("run", model, "-p", "the", "-n", "20", "--seed", "7", "--ignore-eos", "--threads", "1", "--isa", "scalar")
    check(a.returncode == 0 and a.stdout == b.stdout, f"the same seed: {a.stdout!r} and {b.stdout!r}")
    check("tokens at" in a.stderr and "peak" in a.stderr, f"no summary: {a.stderr!r}")
    check(run("run", model, "-p", "the", "-n", "5", "-q").stderr == "", "-q says something")
    file = write(os.path.join(T, "p.txt"), b"the")
    c = run("run", model, "-f", file, "-n", "20", "--seed", "7", "--ignore-eos")
    d = run("run", model, "-", "-n", "20", "--seed", "7", "--ignore-eos", stdin="the")
    check(c.stdout == a.stdout and d.stdout == a.stdout, "-p, -f and - differ")
    j = json.loads(run("run", model, "-p", "the", "-n", "20", "--seed", "7", "--ignore-eos", "--json").stdout)
    check(j["text"].replace("\ufffd", "") + "\n" == a.stdout.replace("\ufffd", "") and j["stop_reason"] == "length" and len(j["tokens"]) == 20, f"--json: {j}")
    e = run("run", model, "-p", "the", "-n", "3", "--temp", "0", "--explain", "--stats")
    check("plan for" in e.stderr and "share of the bound" in e.stderr, f"--explain --stats: {e.stderr[-300:]!r}")
    filled = run("run", model, "-p", "the", "--context", "16", "--ignore-eos", "--temp", "0")
    check(filled.returncode == 0 and "context" in filled.stderr, f"a full context: {filled.returncode} {filled.stderr!r}")
    smol = demo_model("SmolLM2-135M-Instruct.Q4_1.gguf")
    want = run("run", smol, "-p", "Count from one to five.", "--temp", "0", "-n", "24")
    check(want.returncode == 0 and len(want.stdout) > 10, f"smollm2: {want.stderr}")
    stop = run("run", smol, "-p", "Count from one to five.", "--temp", "0", "-n", "24", "--stop", want.stdout[4:9])
    check(stop.stdout == want.stdout[:4] + "\n", f"--stop: {stop.stdout!r}")
    copy = os.path.join(T, "shrinks.gguf")
    shutil.copyfile(smol, copy)
    going = subprocess.Popen([A.ridge, "run", copy, "-p", "Tell a long story.", "--temp", "0", "-n", "400", "--ignore-eos", "--memory",
                              "45M", "--context", "512"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    going.stdout.read(1)                       # the first letter of the answer
    os.truncate(copy, 50_000_000)
    _, said = going.communicate(timeout=300)
    check(going.returncode == 3 and len(said.splitlines()) == 1 and b"shrinks.gguf" in said,
          f"a file that shrinks: exit {going.returncode}, {said!r}")
    for budget in ("110M", "80M", "64M", "45M"):
        for io in ("uring", "threads", "buffered"):
            got = run("run", smol, "-p", "Count from one to five.", "--temp", "0", "-n", "24", "--memory", budget,
                      "--context", "512", "--io", io)
            check(got.returncode == 0 and got.stdout == want.stdout, f"--memory {budget} --io {io}: {got.stdout!r} {got.stderr}")


def test_memory():
    """In a memory cgroup of the budget nothing fails, and in a large one the peak stays below the budget."""
    tool = os.path.join(A.shared, "tools", "under_limit.sh")
    if not os.path.exists(tool):
        raise Skip("needs ../shared: " + tool)
    if os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK):
        raise Skip("needs root and a writable cgroup file system")
    trial = subprocess.run([tool, "64M", "true"], capture_output=True, text=True)
    if "peak_bytes" not in trial.stderr or trial.returncode != 0:
        raise Skip("needs a memory cgroup that can be made here")

    def limited(limit, *words):
        r = subprocess.run([tool, limit, A.ridge, *words], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
        last = r.stderr.strip().splitlines()[-1].split()
        return r, int(last[1]), int(last[3])

    for file, budgets in (("SmolLM2-135M-Instruct.Q4_1.gguf", (40, 64, 90)), ("gemma-3-270m-Q4_K_M.gguf", (80, 96, 160, 250))):
        model = demo_model(file)
        words = ["run", model, "-p", "The capital of France is", "--temp", "0", "-n", "8", "--context", "512"]
        want = run(*words).stdout
        for m in budgets:
            r, _, failed = limited(f"{m}M", *words, "--memory", f"{m}M")
            check(r.returncode == 0 and failed == 0 and r.stdout == want, f"{file} in {m}M: exit {r.returncode}, failcnt {failed}, {r.stderr}")
            r, peak, failed = limited(f"{8 * m}M", *words, "--memory", f"{m}M")
            check(r.returncode == 0 and peak <= m << 20, f"{file} with --memory {m}M: peak {peak}")


def test_kl():
    """Two engines share a budget: the one that the refusal names is enough."""
    model = tiny_file(layers=2)
    text = write(os.path.join(T, "text.txt"), b"the theme of this text is that it goes on and on " * 40)
    words = ["perplexity", model, text, "--window", "64", "--windows", "1", "--kl", "--json"]
    fails(4, [*words, "--memory", "1M"], "--kl runs two engines")
    least = run(*words, "--memory", "1M").stderr.split("give --memory ")[-1].split()[0]
    r = run(*words, "--memory", least)
    check(r.returncode == 0 and json.loads(r.stdout)["kl"]["positions"] == 64, f"--kl in {least}: {r.returncode} {r.stderr}")
    check(r.stdout == run(*words).stdout, "--kl gives the same figures within a budget")


def test_plan():
    tiny = tiny_file()
    folder = os.path.join(T, "plan")
    os.makedirs(folder, exist_ok=True)
    env = {"XDG_CACHE_HOME": folder}  # no profile of this machine
    r = run("plan", tiny, "--context", "64", env=env)
    check(r.returncode == 0, f"ridge plan: {r.stderr}")
    for part in ("decode, a token", "bound T*", "smallest budget", "useful budget", "resident", "tok/s"):
        check(part in r.stdout, f"ridge plan does not say {part!r}: {r.stdout}")
    ascii_chart = run("plan", tiny, "--context", "64", env=dict(env, LC_ALL="C")).stdout
    check("#" in ascii_chart and "\u2588" not in ascii_chart, "ridge plan draws in ASCII where the locale is C")
    full = json.loads(run("plan", tiny, "--context", "64", "--json", "--explain", env=env).stdout)
    smallest, resident = full["smallest_budget"], full["resident_budget"]
    check(smallest <= full["useful_budget"] <= resident, f"useful budget: {full['useful_budget']}")
    check(sum(i["bytes"] for i in full["account"]) == full["account_bytes"], "the account's sum")
    speeds = [p["tokens_per_s"] for p in full["curve"]]
    check(speeds == sorted(speeds) and len(speeds) > 2, f"the curve falls: {speeds}")
    check(all(b["pinned"] for b in full["blocks"]) and full["resident"], "everything is pinned without a limit")
    bound = full["decode"]["bound"]
    check(bound["seconds"] == max(bound["storage_s"], bound["memory_s"], bound["compute_s"]), "the bound's parts")
    # Another machine, and a budget in between.
    profile = os.path.join(folder, "board.toml")
    with open(profile, "w") as f:
        f.write('format = 1\nname = "a board"\nmeasured_at = ""\ncontended = false\ncontention = ""\n'
                'storage_path = ""\nint8_gops_per_core = 10\nfloat_gops_per_core = 5\nreads = [{ footprint_bytes = 1048576, threads = 4, '
                'huge_pages = false, gb_per_s = 8, low = 8, high = 8, runs = 1 }]\nstorage = [{ request_bytes = '
                '1048576, depth = 8, direct = true, gb_per_s = 0.25, low = 0.2, high = 0.3, runs = 1 }]\n')
    svg = os.path.join(folder, "curve.svg")
    board = json.loads(run("plan", tiny, "--context", "64", "--machine", profile, "--json", "--svg", svg, env=env).stdout)
    check(board["machine"] == "a board" and board["threads"] == 4, f"the profile's machine: {board['machine']}")
    check(board["rates"]["storage_bytes_per_s"] == 250e6 and board["budget_bytes"] is None, f"{board['rates']}")
    with open(svg) as f:
        picture = f.read()
    check(picture.startswith("<svg") and "prefers-color-scheme" in picture and "<script" not in picture, picture[:100])
    xml.dom.minidom.parseString(picture)
    fails(4, ["plan", tiny, "--context", "64", "--memory", "1M"], "does not fit", env=env)
    fails(3, ["plan", tiny, "--machine", os.path.join(folder, "none.toml")], "none.toml", env=env)
    fails(2, ["plan", tiny, "--svg", tiny], "is the model itself", env=env)


def test_pack():
    model = tiny_file(layers=2)
    pack = os.path.join(T, "tiny.ridge")
    check(run("pack", model).returncode == 0 and os.path.exists(pack), "ridge pack")
    cache = {"XDG_CACHE_HOME": os.path.join(T, "cache")}
    a, b = os.path.join(T, "a.npy"), os.path.join(T, "b.npy")
    run("logits", model, "--tokens", "1,2,3", "-o", a)
    r = run("logits", pack, "--tokens", "1,2,3", "-o", b, env=cache)
    check(r.returncode == 0 and read_logits(a) == read_logits(b), f"a pack gives other logits: {r.stderr}")
    check(run("pack", "--check", pack).returncode == 0, "pack --check")
    fails(3, ["pack", pack], "pack already")
    data = bytearray(open(pack, "rb").read())
    data[(len(data) - 1) // 4096 * 4096] ^= 1      # the first byte of the last tensor
    broken = write(os.path.join(T, "broken.ridge"), bytes(data))
    fails(3, ["run", broken, "-p", "hi"], "checksum", env=cache)
    fails(3, ["pack", "--check", broken], "checksum")
    fails(3, ["run", write(os.path.join(T, "short.ridge"), bytes(data[:-5000])), "-p", "hi"], "short.ridge", env=cache)
    os.utime(model, (1, 1))
    fails(3, ["run", pack, "-p", "hi"], "stale", env=cache)
    os.remove(pack)
    full = subprocess.run(["bash", "-c", f"ulimit -f 8; '{A.ridge}' pack '{model}'"], capture_output=True, text=True)
    check(full.returncode == 5 and not os.path.exists(pack), f"pack to a full disk: {full.returncode} {full.stderr}")
    check(not [n for n in os.listdir(T) if "partial" in n], "a half pack was left")


def test_bench():
    model = tiny_file()
    once = ["bench", model, "-p", "8", "-n", "4", "-t", "1"]
    few = [*once, "-r", "2", "-q"]
    r = run("bench", model, "-p", "8,16", "-n", "0,4", "-d", "0,8", "-t", "1-2", "-r", "2", "--json", "--profile")
    check(r.returncode == 0, f"bench --json: {r.stderr}")
    j = json.loads(r.stdout)
    check(list(j) == ["machine", "results"], f"bench --json has {list(j)}")
    shape = [(x["test"], x["tokens"], x["depth"], x["threads"]) for x in j["results"]]
    check(shape == [(*test, d, t) for t in (1, 2) for d in (0, 8) for test in (("prefill", 8), ("prefill", 16), ("decode", 4))],
          f"bench measures {shape}")
    for x in j["results"]:
        low, high = x["ci95"]
        check(0 < low <= x["tokens_per_s"] <= high and len(x["samples"]) == 2, f"bench: interval {x}")
        check(x["gb_per_s"] > 0 and x["roof_share"] > 0 and x["peak_bytes"] > 1 << 20 and x["read_roof_gb_per_s"] > 0, f"bench: {x}")
        names = [s["stage"] for s in x["profile"]]
        check(names and names[-1] == "other" and abs(sum(s["share"] for s in x["profile"]) - 1) < 1e-6, f"bench --profile: {names}")
        check(x["test"] == "decode" or "sampling" not in names, "a prompt is not sampled from")
    seen = {s["stage"] for x in j["results"] for s in x["profile"]}
    check({"head", "ffn_gate ffn_up", "attn_q attn_k attn_v"} <= seen, f"bench --profile: {seen}")
    deep = {x["depth"]: x["gb_per_s"] / x["tokens_per_s"] for x in j["results"] if x["test"] == "decode" and x["threads"] == 1}
    # One layer, one key/value head of 16 + 16 numbers of two or four bytes: eight positions more.
    check(round((deep[8] - deep[0]) * 1e9) in (8 * 32 * 2, 8 * 32 * 4), f"bytes of a token by depth: {deep}")
    rows = list(csv.DictReader(io.StringIO(run(*few, "--csv").stdout)))
    check([x["test"] for x in rows] == ["prefill", "decode"] and float(rows[0]["tokens_per_s"]) > 0, f"bench --csv: {rows}")
    lines = [json.loads(line) for line in run(*few, "--jsonl").stdout.splitlines()]
    check([x["tokens"] for x in lines] == [8, 4] and lines[0]["model"] == "tiny", f"bench --jsonl: {lines}")
    memory = sqlite3.connect(":memory:")
    memory.executescript(run(*few, "--sql").stdout)
    check(memory.execute("SELECT count(*) FROM results JOIN runs ON runs.id = run").fetchone() == (2,), "bench --sql")
    table = run(*once)
    check("of roof" in table.stdout and all(len(line) <= 100 for line in table.stdout.splitlines()), f"bench: {table.stdout}")
    db = os.path.join(T, "runs.sqlite")
    for label in ("before", "after"):
        kept = run(*once, "-r", "4", "--db", db, "--label", label)
        check(kept.returncode == 0 and f"'{label}'" in kept.stderr, f"bench --db: {kept.stderr}")
    compared = run("bench", "--compare", "before", "2", "--db", db)
    check(compared.returncode == 0 and "decode 4" in compared.stdout and "p" in compared.stdout, f"--compare: {compared.stderr}")
    one = write(os.path.join(T, "one.json"), run(*few, "--json").stdout.encode())
    same = json.loads(run("bench", "--compare", one, one, "--json").stdout)
    check([(t["ratio"], t["verdict"]) for t in same["tests"]] == [(1.0, "too few runs")] * 2, f"--compare of files: {same}")
    fails(2, ["bench"], "MODEL")
    fails(2, ["bench", model, "-p", "4-1"], "--prompt '4-1'")
    fails(2, ["bench", model, "-d", "0-8*2"], "--depth")
    fails(2, ["bench", model, "-t", "0"], "--threads 0")
    fails(2, ["bench", model, "-r", "0"], "repetitions")
    fails(2, ["bench", model, "-p", "0", "-n", "0"], "nothing to measure")
    fails(2, ["bench", model, "-p", "64", "--context", "32"], "--context 32")
    fails(2, ["bench", model, "--json", "--csv"], "exclude")
    fails(2, ["bench", model, "--compare", "a", "b", "--db", db], "--compare")
    fails(2, ["bench", "--compare", "a", "b"], "--db")
    fails(3, ["bench", "--compare", "before", "later", "--db", db], "later")
    fails(3, ["bench", "--compare", one, model + ".json"], "tiny.gguf.json")
    fails(3, ["bench", model, "--db", one], "one.json")
    fails(5, ["bench", model, "--db", os.path.join(T, "no", "folder.sqlite")], "folder.sqlite")
    foreign = os.path.join(T, "foreign.sqlite")
    sqlite3.connect(foreign).execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, distance REAL)").connection.commit()
    fails(3, ["bench", model, "--db", foreign], "not those of ridge bench")
    fails(2, ["bench", model, "--db", ""], "--db")
    fails(2, ["bench", model, "--csv", "--profile"], "--profile")
    refused = run("bench", model, "--memory", "1M")
    check(refused.returncode == 4 and "needs" in refused.stderr, f"bench --memory 1M: {refused.stderr}")
    going = subprocess.Popen([A.ridge, "bench", model, "-p", "8", "-n", "64", "-d", "0-100", "-r", "50", "-t", "1", "--json"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    def ready():
        caught = [line for line in open(f"/proc/{going.pid}/status") if line.startswith("SigCgt")][0]
        return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1
    while not ready():
        time.sleep(0.01)
    time.sleep(1)
    going.send_signal(signal.SIGINT)
    out, said = going.communicate(timeout=120)
    check(going.returncode == 0 and "Ctrl-C" in said and "results" in json.loads(out), f"Ctrl-C: {going.returncode} {said}")


def test_kernels():
    r = run("kernels", "--quick")
    check(r.returncode == 0 and "Q4_K" in r.stdout and all(len(line) <= 80 for line in r.stdout.splitlines()), f"kernels: {r.stdout}")
    j = json.loads(run("kernels", "--quick", "--json").stdout)
    chosen = [(k["op"], k["type"]) for k in j["kernels"] if k["chosen"]]
    everything = {(k["op"], k["type"]) for k in j["kernels"]}
    check(len(chosen) == len(set(chosen)) and set(chosen) == everything, "one kernel is chosen for every operation and type")
    speeds = [k for k in j["kernels"] if "decode_gb_per_s" in k]
    check(len(speeds) == len({k["type"] for k in j["kernels"] if k["op"] == "matmul_float"}), f"kernels measures {len(speeds)}")
    check(all(k["decode_gb_per_s"] > 0 and k["prefill_gop_per_s"] > 0 for k in speeds), "kernels: a speed is 0")
    scalar = json.loads(run("kernels", "--quick", "--json", "--isa", "scalar").stdout)
    check(all(k["isa"] == "scalar" for k in scalar["kernels"] if k["chosen"]), "kernels --isa scalar")
    fails(2, ["kernels", "--isa", "mmx"], "mmx")


def test_states():
    model = tiny_file(layers=2)
    other = write(os.path.join(T, "other.gguf"), gguf_files.tiny(layers=2, ffn=96).bytes())
    state, long = os.path.join(T, "s.state"), "the theme of this text is that it goes on and on, and then "
    words = ["-n", "12", "--temp", "0", "--ignore-eos", "--context", "200", "--json"]

    def answer(prompt, *more):
        r = run("run", model, "--raw", "-p", prompt, *words, *more)
        check(r.returncode == 0, f"run {more}: {r.returncode} {r.stderr}")
        return json.loads(r.stdout) if r.returncode == 0 else {}

    # A sanitizer needs hundreds of MiB for itself, more or less, so the budget is what this build asks for and a sixth.
    refused = run("run", model, "-p", "hi", "--save-state", state, "--context", "200", "--memory", "1M")
    least = str(int(refused.stderr.split("give --memory ")[-1].split("M")[0]) * 7 // 6) + "M"
    for flags in ([], ["--kv-type", "bf16"], ["--kv-type", "q8_0"], ["--kv-type", "f32"], ["--memory", least], ["--numerics", "exact"]):
        saved = run("run", model, "--raw", "-p", long, "-n", "0", "--save-state", state, "--context", "200", *flags)
        check(saved.returncode == 0 and saved.stdout == "\n", f"--save-state {flags}: {saved.returncode} {saved.stderr}")
        for prompt in (long + "ends", long[:20] + "changes", "nothing alike", long):
            want, got = answer(prompt, *flags), answer(prompt, "--load-state", state, *flags)
            check(want.get("tokens") == got.get("tokens"), f"{flags} {prompt!r}: {want.get('text')!r}, with a state {got.get('text')!r}")
            shared = len(os.path.commonprefix([prompt, long])) if prompt != long else len(long)
            check((got.get("reused_tokens", 0) > 0.5 * shared) == (shared > 0), f"{prompt!r}: {got.get('reused_tokens')} tokens reused")
    both = run("run", model, "--raw", "-p", long + "ends", *words, "--numerics", "exact", "--load-state", state, "--save-state", state)
    check(both.returncode == 0, f"loading and saving one file: {both.stderr}")
    fails(3, ["run", model, "-p", "hi", "--load-state", state], "--numerics exact")
    fails(3, ["run", model, "-p", "hi", "--load-state", state, "--numerics", "exact", "--context", "16"], "--context")
    fails(3, ["run", other, "-p", "hi", "--load-state", state, "--numerics", "exact"], "another model")
    fails(3, ["run", model, "-p", "hi", "--load-state", model], "no saved state")
    fails(3, ["run", model, "-p", "hi", "--load-state", os.path.join(T, "absent.state")], "absent.state")
    fails(3, ["info", state], "saved state")
    data = bytearray(open(state, "rb").read())
    cut = write(os.path.join(T, "cut.state"), bytes(data[:-100]))
    fails(3, ["run", model, "-p", "hi", "--load-state", cut, "--numerics", "exact"], "damaged")
    data[-40] ^= 4
    flipped = write(os.path.join(T, "flipped.state"), bytes(data))
    fails(3, ["run", model, "-p", "hi", "--load-state", flipped, "--numerics", "exact"], "damaged")
    fails(2, ["run", model, "-p", "hi", "--save-state", model], "lost")
    fails(5, ["run", model, "-p", "hi", "-n", "0", "--save-state", os.path.join(T, "no", "folder.state")], "folder.state")
    # Before the model is even looked at: minutes may pass until a state is written.
    fails(5, ["run", "absent.gguf", "-p", "hi", "--save-state", os.path.join(T, "no", "folder.state")], "folder.state")
    fails(3, ["run", "absent.gguf", "-p", "hi", "--load-state", os.path.join(T, "absent.state")], "absent.state")
    link = os.path.join(T, "link.state")
    os.symlink(os.path.basename(state), link)
    linked = run("run", model, "--raw", "-p", long, "-n", "0", "--save-state", link)
    check(linked.returncode == 0 and os.path.islink(link), f"a link stays one: {linked.returncode} {linked.stderr}")
    full = subprocess.run(["bash", "-c", f"ulimit -f 1; '{A.ridge}' run '{model}' --raw -p '{long}' -n 0 -q --save-state '{T}/full.state'"],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    check(full.returncode == 5 and not os.path.exists(os.path.join(T, "full.state")), f"a full disk: {full.returncode} {full.stderr}")
    check(not [n for n in os.listdir(T) if "partial" in n], "a half state was left")
    fails(2, ["run", model, "-p", "hi", "--kv-type", "q3"], "q3")
    fails(2, ["run", model, "-p", "hi", "--kv-type", "q8_0", "--numerics", "exact"], "contradicts")
    sizes = {t: json.loads(run("info", model, "--json", "--kv-type", t).stdout)["kv_bytes_per_token"] for t in ("f16", "bf16", "q8_0", "f32")}
    check(sizes == {"f16": 128, "bf16": 128, "q8_0": 136, "f32": 256}, f"bytes per token: {sizes}")
    check(json.loads(run("info", model, "--json").stdout)["kv_type"] == "f32", "all weights F32, but not the cache")


MACHINE = """format = 1
name = "a made-up board"
measured_at = ""
contended = false
contention = ""
storage_path = ""
reads = [ { footprint_bytes = 1073741824, threads = 1, huge_pages = true, gb_per_s = 10.0, low = 9.0, high = 11.0, runs = 5 } ]
storage = [
  { request_bytes = 65536, depth = 1, direct = true, gb_per_s = 0.4, low = 0.4, high = 0.4, runs = 5 },
  { request_bytes = 1048576, depth = 1, direct = true, gb_per_s = 0.8, low = 0.8, high = 0.8, runs = 5 },
  { request_bytes = 65536, depth = 16, direct = true, gb_per_s = 0.7, low = 0.7, high = 0.7, runs = 5 },
  { request_bytes = 1048576, depth = 16, direct = true, gb_per_s = 1.0, low = 1.0, high = 1.0, runs = 5 },
]
"""


def test_sim():
    profile = os.path.join(os.path.dirname(__file__), "..", "..", "profiles", "rk3588-anima.toml")
    table = run("sim", profile, "--steps", "28", "--spectrum")
    check(table.returncode == 0 and table.stderr == "", f"sim of the profile: {table.returncode} {table.stderr}")
    for figure in ("1,092", "412.2", "380.5", "1713.78", "1333.28", "published"):
        check(figure in table.stdout, f"the table lacks {figure}")
    study = json.loads(run("sim", profile, "--spectrum", "--json").stdout)
    rows = {r["what"]: r for r in study["document"]}
    check(rows["calls of an image"]["computed"] == rows["calls of an image"]["published"] == 1092, f"calls: {rows}")
    merged = json.loads(run("sim", profile, "--spectrum", "--merge", "3", "--json").stdout)
    check(merged["simulated_contexts"] == 28 and merged["document"] == study["document"], "--merge 3 changes the document's table")
    ten = json.loads(run("sim", profile, "--computed", "10", "--json").stdout)
    check({r["what"]: r["computed"] for r in ten["document"]}["calls of an image"] == 840, "10 computed steps make no 840 calls")
    fails(2, ["sim", profile, "--computed", "29"], "--computed 29")
    plan = run("plan", profile, "--spectrum")
    check(plan.returncode == 0 and "1713.8" in plan.stdout, f"plan of a device: {plan.returncode} {plan.stderr}")
    fails(2, ["plan", profile, "--explain"], "are for models")
    fails(2, ["sim", profile, "--merge", "0"], "--merge 0")
    fails(2, ["sim", profile, "--policy", "lru"], "--policy")
    fails(3, ["sim", "no-such.toml"], "no-such.toml")

    machine = write(os.path.join(T, "machine.toml"), MACHINE.encode())
    model = tiny_file(layers=4, dim=64, ffn=256)
    words = ["sim", model, "--machine", machine, "--threads", "1", "--json"]
    resident = json.loads(run(*words).stdout)
    check(resident["machine"] == "a made-up board" and resident["rows"][0]["hit_ratio"] == 1, f"resident: {resident}")
    everything = json.loads(run(*words, "--policy", "all").stdout)
    check(len(everything["rows"]) == 19, f"{len(everything['rows'])} rows")
    check(run(*words, "--policy", "all").stdout == json.dumps(everything, indent=2) + "\n" or
          json.loads(run(*words, "--policy", "all").stdout) == everything, "not the same twice")
    fails(2, ["sim", model, "--machine", machine, "--policy", "mru"], "s3-fifo")
    fails(2, ["sim", model, "--machine", machine, "--passes", "1"], "--passes 1")
    fails(2, ["sim", model, "--steps", "3"], "devices of contexts")
    fails(3, ["sim", model, "--machine", os.path.join(T, "none.toml")], "none.toml")

    # What a run visited, replayed.
    visits = os.path.join(T, "visits.json")
    r = run("run", model, "--raw", "-p", "the", "--temp", "0", "--ignore-eos", "-n", "6", "-q", "--record", visits)
    check(r.returncode == 0, f"--record: {r.returncode} {r.stderr}")
    plain = run("run", model, "--raw", "-p", "the", "--temp", "0", "--ignore-eos", "-n", "6", "-q")
    check(r.stdout == plain.stdout, "recording changes the answer")
    recorded = json.loads(open(visits).read())
    check(len(recorded["passes"]) == 6 and len({tuple(p) for p in recorded["passes"][1:]}) == 1, f"passes: {recorded['passes']}")
    total = sum(recorded["blocks"][b]["memory_bytes"] for b in set(recorded["passes"][1]))
    replayed = json.loads(run("sim", visits, "--memory", str(total), "--policy", "all", "--json").stdout)
    hits = {row["policy"]: row["hits"] for row in replayed["rows"]}
    check(len(hits) == 14 and hits["none"] == 0 and hits["lru"] == hits["belady"] == hits["pin-strided"] > 0, f"hits: {hits}")
    less = json.loads(run("sim", visits, "--memory", str(total * 3 // 4), "--json").stdout)
    hits = {row["policy"]: row["hits"] for row in less["rows"]}
    check(hits["lru"] == 0 < hits["pin-worth"], f"hits with less: {hits}")
    exported = os.path.join(T, "visits.oracleGeneral")
    check(run("sim", visits, "--export", exported).returncode == 0, "--export")
    check(os.path.getsize(exported) == 24 * replayed["visits"], "24 bytes a visit")
    again = json.loads(run("sim", exported, "--memory", str(total * 3 // 4), "--json").stdout)
    check([row["hits"] for row in again["rows"]] == [row["hits"] for row in less["rows"]], "oracleGeneral hits otherwise")
    fails(2, ["sim", visits], "--memory")
    fails(3, ["sim", write(os.path.join(T, "x.json"), b"{}"), "--memory", "1M"], "x.json")
    fails(2, ["run", model, "--raw", "-p", "x", "-n", "1", "-q", "--record", model], "--record")
def test_drafts():
    """Guesses change no byte: greedy or sampled, whatever ends the text, under a budget, with states."""
    model, state = tiny_file(layers=2), os.path.join(T, "d.state")
    text = "the theme of the theme of the theme"
    foreign = gguf_files.tiny()
    foreign.keys["tokenizer.ggml.tokens"][40] = "other"
    small = write(os.path.join(T, "small.gguf"), gguf_files.tiny(layers=1, ffn=96).bytes())
    foreign = write(os.path.join(T, "foreign.gguf"), foreign.bytes())
    long = gguf_files.tiny()
    long.keys["tokenizer.ggml.tokens"] += [f"more{i}" for i in range(600)]
    long.keys["tokenizer.ggml.token_type"] += [1] * 600
    long.tensors = [t for t in long.tensors if t[0] != "token_embd.weight"]
    long.tensor("token_embd.weight", [32, 859], 0.5)
    long = write(os.path.join(T, "long.gguf"), long.bytes())
    bare = write(os.path.join(T, "bare.gguf"), gguf_files.tiny(tokenizer=False).bytes())
    ways = (["--draft-ngram", "3"], ["--draft-ngram", "1", "--draft-tokens", "64"], ["--draft-model", model],
            ["--draft-model", small, "--draft-tokens", "3"])
    words = ["run", model, "--raw", "-p", text, "--ignore-eos", "--context", "200"]

    def answer(*more):
        r = run(*words, *more, "--json")
        check(r.returncode == 0, f"run {more}: {r.returncode} {r.stderr}")
        return json.loads(r.stdout) if r.returncode == 0 else {"stats": {}}

    for sampling in (["--temp", "0"], ["--seed", "5"], ["--seed", "6", "--temp", "2", "--top-k", "0", "--repeat-penalty", "1.3"]):
        want = answer("-n", "60", *sampling)
        for way in ways:
            got = answer("-n", "60", *sampling, *way)
            check(got.get("tokens") == want.get("tokens") and got.get("text") == want.get("text"),
                  f"{sampling} {way}: {got.get('text')!r}, without {want.get('text')!r}")
            s = got["stats"]
            check(s["decode_passes"] + s["accepted_tokens"] == s["decode_tokens"] == 59 and s["accepted_tokens"] <= s["drafted_tokens"],
                  f"{way}: {s}")
            if way[1] == model:                    # it agrees with itself
                check(s["accepted_tokens"] == s["drafted_tokens"] > 0, f"the model drafts for itself: {s}")
    want = answer("--seed", "5")
    for way in ways:                               # to the end of the context
        got = answer("--seed", "5", *way)
        check(got["stop_reason"] == want["stop_reason"] == "context" and got["tokens"] == want["tokens"], f"a full context, {way}")
    stop = want["text"][20:23]
    want = answer("--seed", "5", "--stop", stop)
    for way in ways:
        got = answer("--seed", "5", "--stop", stop, *way)
        check((got["text"], got["stop_reason"]) == (want["text"], want["stop_reason"]), f"--stop {stop!r}, {way}: {got['text']!r}")
    run(*words, "-n", "0", "--save-state", state)
    got = answer("-n", "40", "--seed", "5", "--load-state", state, *ways[0])
    check(got["tokens"] == answer("-n", "40", "--seed", "5")["tokens"] and got["reused_tokens"] > 0, f"with a state: {got}")
    told = run(*words, "-n", "60", "--temp", "0", "--stats", *ways[0])
    check("tokens per pass" in told.stderr and "checked" in told.stderr, f"--stats: {told.stderr!r}")

    refused = run(*words, "--memory", "1M", *ways[3])
    check(refused.returncode == 4 and "draft model: pinned weights" in refused.stderr and "checking 3 drafts" in refused.stderr,
          f"--memory 1M: {refused.returncode} {refused.stderr}")
    least = refused.stderr.split("give --memory ")[-1].split()[0]
    want, got = answer("-n", "30", "--seed", "9"), answer("-n", "30", "--seed", "9", "--memory", least, *ways[3])
    check(got.get("tokens") == want["tokens"], f"--memory {least}: {got}")

    fails(2, [*words, "--draft-ngram", "0"], "--draft-ngram 0")
    fails(2, [*words, "--draft-ngram", "-3"], "--draft-ngram")
    fails(2, [*words, "--draft-ngram", "99999999999"], "1 to 32")
    fails(2, [*words, "--draft-ngram", "x"], "--draft-ngram")
    fails(2, [*words, "--draft-ngram", "3", "--draft-tokens", "0"], "--draft-tokens 0")
    fails(2, [*words, "--draft-ngram", "3", "--draft-tokens", "65"], "1 to 64")
    fails(2, [*words, "--draft-tokens", "4"], "--draft-ngram or --draft-model")
    fails(2, [*words, "--draft-ngram", "3", "--draft-model", small], "one of them")
    fails(3, [*words, "--draft-model", foreign], "token 40")
    fails(3, [*words, "--draft-model", long], "859 tokens")
    fails(3, [*words, "--draft-model", bare], "bare.gguf")
    fails(3, [*words, "--draft-model", os.path.join(T, "absent.gguf")], "absent.gguf")


def test_ladder():
    model = tiny_file(layers=3)
    few = ["ladder", model, "--stop-available", "1M", "--hold", "0", "--pools", "none"]
    r = run(*few)
    check(r.returncode == 0 and "all 7 contexts are loaded" in r.stdout and "one walk over all blocks" in r.stdout, f"ladder: {r.stdout} {r.stderr}")
    check(all(len(line) <= 110 for line in r.stdout.splitlines()), f"ladder: long lines in {r.stdout}")
    j = json.loads(run(*few, "--json").stdout)
    check([x["contexts"] for x in j["rows"]] == [1, 2, 3, 4, 5, 6, 7] and j["end"] == "all_loaded" and len(j["contexts"]) == j["blocks"] == 7, f"ladder: {j['rows']}")
    check(sum(c["weight_bytes"] for c in j["contexts"]) == j["weight_bytes"] == j["rows"][-1]["weight_bytes"], "ladder: weights")
    check([k["kind"] for k in j["trend"]["kinds"]] == ["attn", "ffn", "head"], f"ladder: kinds {j['trend']['kinds']}")
    check(j["release"]["mappings_left"] <= 1 and j["release"]["pss_left"] < 1 << 20, f"ladder leaves {j['release']}")
    check("hold" not in j and "pools" not in j, "ladder: what was not asked for")
    steps = json.loads(run(*few, "--json", "--step", "3", "--contexts", "5", "--tokens", "4").stdout)
    check([x["contexts"] for x in steps["rows"]] == [3, 5] and steps["end"] == "enough" and steps["tokens"] == 4, f"ladder --step 3: {steps['rows']}")
    pools = run("ladder", model, "--stop-available", "1M", "--hold", "0.2s", "--pools", "2,4,99", "--json")
    p = json.loads(pools.stdout)
    check([(x["contexts"], x.get("loaded")) for x in p["pools"]] == [(2, 2), (4, 4)] and "left out" in pools.stderr, f"ladder --pools: {p.get('pools')} {pools.stderr}")
    check(p["hold"]["seconds"] >= 0.15, f"ladder --hold: {p['hold']}")
    # A context of a page and a budget for some of them.
    at = json.loads(run(*few, "--json").stdout)["baseline"]
    budget = json.loads(run(*few, "--json", "--memory", str(at["pss"] + at["page_tables"] + (512 << 10))).stdout)
    check(budget["end"] in ("gate", "all_loaded"), f"ladder --memory: {budget['end']}")
    for flags, part in ((["--stop-available", "4000T"], "--stop-available"), (["--memory", "1"], "--memory")):
        fails(4, ["ladder", model, "--hold", "0", "--pools", "none", *(["--stop-available", "1M"] if "--memory" in flags else []), *flags], part)
    for flags in (["--step", "0"], ["--step", "-1"], ["--contexts", "0"], ["--pools", "0"], ["--pools", "4,0"], ["--pools", "x"], ["--hold", "-1"],
                  ["--hold", "1d"], ["--tokens", "0"], ["--threads", "0"], ["--tokens", "99999999999"]):
        fails(2, ["ladder", model, *flags], flags[0])
    for size in ("0", "-1", "1e30", "10Q", ""):
        fails(2, ["ladder", model, "--stop-available", size], size)
        fails(2, ["ladder", model, "--stop-swap", size], size)
    fails(2, ["ladder", model, "--isa", "mmx"], "mmx")
    fails(2, ["ladder", model, "--io", "pigeon"], "pigeon")
    fails(3, ["ladder", os.path.join(T, "absent.gguf")], "absent.gguf")
    fails(3, ["ladder", write(os.path.join(T, "cut.gguf"), open(model, "rb").read()[:-4000])], "cut.gguf")

    def interrupt(words, after):
        going = subprocess.Popen([A.ridge, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        while int([line for line in open(f"/proc/{going.pid}/status") if line.startswith("SigCgt")][0].split()[1], 16) >> (signal.SIGINT - 1) & 1 == 0:
            time.sleep(0.01)
        time.sleep(after)
        going.send_signal(signal.SIGINT)
        out, said = going.communicate(timeout=120)
        return going.returncode, out, said

    code, out, said = interrupt(["ladder", model, "--stop-available", "1M", "--hold", "600s", "--pools", "2", "--json"], 1.5)
    j = json.loads(out)
    check(code == 0 and j["end"] == "interrupted" and "Ctrl-C" in said and len(j["rows"]) == 7, f"Ctrl-C while held: {code} {said}")
    check(j["hold"]["seconds"] < 300 and j["release"]["mappings_left"] <= 1 and "pools" not in j, f"Ctrl-C while held: {j['hold']} {j['release']}")
    smol = demo_model("SmolLM2-135M-Instruct.Q4_1.gguf")
    j = json.loads(run("ladder", smol, "--stop-available", "1M", "--hold", "0", "--pools", "none", "--json").stdout)
    check(j["blocks"] == 61 and j["end"] == "all_loaded", f"ladder smollm2: {j['blocks']} {j['end']} {j['why']}")
    check(0.9 < j["trend"]["ratio_to_weights"] < 1.2, f"ladder smollm2: memory is {j['trend']['ratio_to_weights']} times the weights")
    few = json.loads(run("ladder", smol, "--stop-available", "1M", "--hold", "0", "--pools", "none", "--json", "--contexts", "20").stdout)
    # The head, of another size than the others, is foreseen by its weights.
    whole, seen = j["rows"][-1]["added_pss"], few["trend"]["by_kind"]["value"]
    check(abs(seen / whole - 1) < 0.2, f"ladder smollm2: foresees {seen} from 20 contexts, all take {whole}")


def test_doctor():
    model = tiny_file()
    r = run("doctor", model)
    check(r.returncode == 0 and r.stderr == "", f"doctor: {r.returncode} {r.stderr}")
    check(all(len(line.encode()) <= 90 for line in r.stdout.splitlines()), f"doctor: long lines in {r.stdout}")
    j = json.loads(run("doctor", model, "--json").stdout)
    check(j["runs"] and j["exit_code"] == 0, f"doctor: {j}")
    topics = [f["topic"] for f in j["findings"]]
    for topic in ("memory", "cgroup", "locked memory", "huge pages", "CPU", "CPUs", "O_DIRECT", "io_uring", "storage", "system", "choice", "budget", "context", "plan"):
        check(topic in topics, f"doctor says nothing of {topic}: {topics}")
    check(all(f["verdict"] in ("ok", "note", "problem") and f["fact"] and (f["verdict"] == "ok") == ("advice" not in f) for f in j["findings"]), f"doctor: {j['findings']}")
    before = sorted(os.listdir(T))
    here = run("doctor", "--json", cwd=T)
    check(here.returncode == 0 and sorted(os.listdir(T)) == before, f"doctor without a model: {here.returncode} {here.stderr} {os.listdir(T)}")
    check("this folder" in here.stdout or "O_DIRECT is refused" in here.stdout, f"doctor without a model: {here.stdout}")
    gone = run("doctor", "--json", cwd="/proc")          # a folder that nobody can write
    check(gone.returncode == 0 and "cannot be written" in gone.stdout, f"doctor in /proc: {gone.returncode} {gone.stdout[:200]}")
    small = run("doctor", model, "--memory", "1M", "--json")
    check(small.returncode == 4 and not json.loads(small.stdout)["runs"] and "does not fit" in small.stderr, f"doctor --memory 1M: {small.returncode} {small.stderr}")
    absent = run("doctor", os.path.join(T, "absent.gguf"), "--json")
    check(absent.returncode == 3 and json.loads(absent.stdout)["exit_code"] == 3, f"doctor of no file: {absent.returncode}")
    cut = run("doctor", write(os.path.join(T, "cut.gguf"), open(model, "rb").read()[:-4000]))
    check(cut.returncode == 3 and "problem" in cut.stdout and "cut.gguf" in cut.stderr, f"doctor of half a file: {cut.returncode}")
    mute = run("doctor", write(os.path.join(T, "mute.gguf"), gguf_files.tiny(tokenizer=False).bytes()))
    check(mute.returncode == 3 and "tokenizer" in mute.stderr, f"doctor of a model without tokenizer: {mute.returncode} {mute.stderr}")
    fails(2, ["doctor", "--memory", "1G"], "MODEL")
    fails(2, ["doctor", model, "--memory", "10Q"], "10Q")
    fails(2, ["doctor", model, "--context", "0"], "--context")
    # Where the address space is limited, it says so and still works.
    limited = subprocess.run(["bash", "-c", f"ulimit -v 8000000; '{A.ridge}' doctor --json"], capture_output=True, text=True, cwd=T)
    if "AddressSanitizer" not in limited.stderr and "ThreadSanitizer" not in limited.stderr:
        check(limited.returncode == 0 and "RLIMIT_AS" in limited.stdout, f"doctor under ulimit -v: {limited.returncode} {limited.stderr}")


def without_io_uring():
    """In the child: io_uring_setup, _enter and _register answer EPERM, as under the profiles of container engines."""
    import ctypes

    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction))]

    load, at_least, above, ret = 0x20, 0x35, 0x25, 0x06
    filter = (Instruction * 5)(Instruction(load, 0, 0, 0), Instruction(at_least, 0, 2, 425), Instruction(above, 1, 0, 427),
                               Instruction(ret, 0, 0, 0x00050000 | 1), Instruction(ret, 0, 0, 0x7FFF0000))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(Program(5, filter)), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no seccomp filter")


def test_cases():
    """What users of other engines filed, on this system itself (docs/cases.md)."""
    model = tiny_file(layers=3)
    words = ["-p", "the", "-n", "8", "--temp", "0", "--ignore-eos"]
    want = run("run", model, *words)
    check(want.returncode == 0, f"cases: {want.stderr}")
    locked = subprocess.run(["bash", "-c", f"ulimit -l 0; '{A.ridge}' run '{model}' {' '.join(words)}"], capture_output=True, text=True,
                            errors="replace", stdin=subprocess.DEVNULL)
    check(locked.returncode == 0 and locked.stdout == want.stdout, f"no locked memory: {locked.returncode} {locked.stderr}")
    if os.access("/dev/shm", os.W_OK):
        # A file system in memory: kernels before 6.6 refuse O_DIRECT there with EINVAL.
        folder = tempfile.mkdtemp(prefix="ridge-cli-", dir="/dev/shm")
        try:
            there = run("run", shutil.copy(model, folder), *words)
        finally:
            shutil.rmtree(folder)
        check(there.returncode == 0 and there.stdout == want.stdout, f"from tmpfs: {there.returncode} {there.stderr}")
    try:
        forbidden = run("run", model, *words, preexec_fn=without_io_uring)
        doctor = json.loads(run("doctor", model, "--json", preexec_fn=without_io_uring).stdout)
    except subprocess.SubprocessError:
        raise Skip("needs seccomp filters")
    check(forbidden.returncode == 0 and forbidden.stdout == want.stdout, f"io_uring forbidden: {forbidden.returncode} {forbidden.stderr}")
    if "io_uring" in run("doctor", model).stdout and "O_DIRECT is refused" not in forbidden.stderr and "not part of this build" not in forbidden.stderr:
        check("io_uring is not permitted here" in forbidden.stderr, f"io_uring forbidden, and nothing said: {forbidden.stderr!r}")
        ring = [f for f in doctor["findings"] if f["topic"] == "io_uring"][0]
        check(ring["verdict"] == "note" and "refused" in ring["fact"], f"doctor without io_uring: {ring}")


def test_example():
    model = tiny_file()
    r = subprocess.run([A.example, model, "2000", "the"], capture_output=True, text=True, errors="replace")
    check(r.returncode == 0, f"the example: {r.returncode} {r.stderr}")
    r = subprocess.run([A.example, model, "1", "the"], capture_output=True, text=True)
    check(r.returncode == 4, f"the example in 1 MiB: {r.returncode} {r.stderr}")


parser = argparse.ArgumentParser()
parser.add_argument("group")
parser.add_argument("--ridge", required=True)
parser.add_argument("--example")
parser.add_argument("--shared", default="")
A = parser.parse_args()
T = tempfile.mkdtemp(prefix="ridge-cli-")
skipped = None
try:
    globals()["test_" + A.group]()
except Skip as reason:
    skipped = str(reason)
finally:
    shutil.rmtree(T, ignore_errors=True)
for failure in failures:
    print("FAILED", failure)
if failures:
    sys.exit(1)
if skipped:
    print(skipped)
    sys.exit(77)
