"""`ridge quantize`: one type, a mix under a size or a divergence, the check that refuses, and what it will not take."""
import json
import os
import resource
import signal
import struct
import subprocess
import time

import gguf_files
from harness import A, T, check, fails, main, read_logits, run


def text(name="text.txt", repeat=40):
    path = os.path.join(T, name)
    with open(path, "w") as out:
        for i in range(repeat):
            out.write(f"Line {i * 7919 % 1000}: the quick brown fox jumps over {i} lazy dogs. ")
    return path


def model_file(name, **shape):
    """F32, columns that are multiples of 256."""
    path = os.path.join(T, name)
    if not os.path.exists(path):
        with open(path, "wb") as out:
            out.write(gguf_files.tiny(**{"dim": 256, "ffn": 512, "layers": 2, **shape}).bytes())
    return path


def info(path):
    r = run("info", path, "--json", "--tensors")
    check(r.returncode == 0, r.stderr)
    return json.loads(r.stdout)


def leftovers(name):
    return [f for f in os.listdir(T) if f.startswith(name)]


WORDS = ["--window", "32", "--windows", "4"]


def check_one_type():
    model, out = model_file("m.gguf"), os.path.join(T, "one.gguf")
    for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"):
        r = run("quantize", model, "-o", out, "--type", kind, "--json")
        check(r.returncode == 0, f"{kind}: {r.stderr}")
        said = json.loads(r.stdout)
        check({m["to"] for m in said["matrices"]} == {kind} and said["bytes"] == os.path.getsize(out), said)
        r = run("run", out, "-p", "Hello", "--raw", "-n", "4", "--temp", "0", "--json")
        check(r.returncode == 0 and len(json.loads(r.stdout)["tokens"]) > 0, f"{kind}: {r.stderr}")
    first = open(out, "rb").read()
    check(run("quantize", model, "-o", out, "--type", "Q6_K", "--threads", "1").returncode == 0, "one thread")
    check(open(out, "rb").read() == first, "one thread writes other bytes")
    pack = os.path.join(T, "one.ridge")
    check(run("pack", out, "-o", pack).returncode == 0, "it cannot be packed")
    # Everything before the tensors is the original's, but for the two keys that say how it is quantised.
    keys = gguf_files.string("general.file_type") + struct.pack("<II", 4, 18)
    keys += gguf_files.string("general.quantization_version") + struct.pack("<II", 4, 2)
    old = open(model, "rb").read()
    begin, end = 24, old.index(gguf_files.string("token_embd.weight"))
    check(first[24:24 + end - begin + len(keys)] == old[begin:end] + keys, "metadata changed")


def check_columns():
    """Rows of 96 columns: no type of 256 fits, and it is said."""
    model, out = model_file("narrow.gguf", dim=96, ffn=256), os.path.join(T, "narrow-out.gguf")
    r = run("quantize", model, "-o", out, "--type", "Q4_K", "--json", "--explain")
    check(r.returncode == 0 and "another type" in r.stderr and "no multiple of 256" in r.stderr, r.stderr)
    kinds = {m["name"]: m["to"] for m in json.loads(r.stdout)["matrices"]}
    check("attn_q.weight becomes Q4_0 instead of F32, not Q4_K: its 96 columns are no multiple of 256" in r.stderr, r.stderr)
    check("ffn_down.weight becomes Q4_K instead of F32\n" in r.stderr, r.stderr)
    check(kinds["blk.0.ffn_down.weight"] == "Q4_K" and kinds["blk.0.attn_q.weight"] == "Q4_0", kinds)
    again = os.path.join(T, "narrow-again.gguf")
    r = run("quantize", out, "-o", again, "--type", "Q8_0", "--json")
    check(r.returncode == 0 and all(m["from"] == m["to"] for m in json.loads(r.stdout)["matrices"]), "it grew")
    r = run("quantize", model, "-o", again, "--type", "Q8_0", "--explain")
    check(r.returncode == 0 and "instead of F32\n" in r.stderr and "multiple" not in r.stderr, r.stderr)


def check_mix():
    model, words, out = model_file("m.gguf"), text(), os.path.join(T, "mix.gguf")
    r = run("quantize", model, "-o", out, "--bits", "4", "--data", words, "--json", "--explain", *WORDS)
    check(r.returncode == 0, r.stderr)
    said = json.loads(r.stdout)
    check(3 < said["bits_per_weight"] <= 4 and said["check"]["kl"] > 0 and len(said["groups"]) > 7, said)
    check(said["predicted"]["kl"] >= said["predicted"]["bound"], said["predicted"])
    check(len([line for line in r.stderr.splitlines() if "output's energy" in line]) > 0, r.stderr)
    size = os.path.getsize(out)
    r = run("quantize", model, "-o", out, "--size", str(size), "--data", words, "--json", *WORDS)
    check(r.returncode == 0 and os.path.getsize(out) <= size, r.stderr)
    check(json.loads(r.stdout)["matrices"] == said["matrices"], "the same size gives another mix")
    fails(4, ["quantize", model, "-o", out, "--size", "1K", "--data", words, *WORDS], "smallest file")
    fails(4, ["quantize", model, "-o", out, "--bits", "1", "--data", words, *WORDS], "at least")
    table = run("quantize", model, "-o", out, "--bits", "4", "--data", words, *WORDS).stdout
    check("measured: KL" in table and "perplexity" in table, table)
    check(run("run", out, "-p", "Hello", "--raw", "-n", "2").returncode == 0, "the mix does not run")


def check_divergence():
    model, words, out = model_file("m.gguf"), text(), os.path.join(T, "kl.gguf")
    bytes_of = []
    for limit in (1e-4, 1e-2):
        r = run("quantize", model, "-o", out, "--max-kl", str(limit), "--data", words, "--json", *WORDS)
        check(r.returncode == 0, r.stderr)
        said = json.loads(r.stdout)
        check(said["check"]["kl"] <= limit, said["check"])
        bytes_of.append(said["bytes"])
    check(bytes_of[1] <= bytes_of[0], bytes_of)


def check_refused():
    model, words = model_file("m.gguf"), text()
    out = os.path.join(T, "refused.gguf")
    with open(out, "w") as old:
        old.write("old")
    # A random model can become better at a text by chance: a limit of 0 % is tried with several types.
    codes = [run("quantize", model, "-o", out, "--type", kind, "--check", words, "--max-loss", "0%", *WORDS)
             for kind in ("Q2_K", "Q3_K", "Q4_0")]
    refused = [r for r in codes if r.returncode == 6]
    check(len(refused) > 0, [r.returncode for r in codes])
    for r in refused:
        check("--max-loss 0" in r.stderr and "perplexity rises" in r.stderr and r.stdout == "", r.stderr)
    if len(refused) == len(codes):
        check(open(out).read() == "old", "a refusal replaced the file")
    check(all(f == "refused.gguf" for f in leftovers("refused")), leftovers("refused"))


def check_sums_and_maps():
    model, words, out = model_file("m.gguf"), text(), os.path.join(T, "sums-out.gguf")
    sums, made = os.path.join(T, "sums.gguf"), os.path.join(T, "map.json")
    r = run("importance", model, "--data", words, "--imatrix", sums, "-o", made, "--window", "32", "--windows", "4")
    check(r.returncode == 0, r.stderr)
    r = run("quantize", model, "-o", out, "--bits", "3", "--imatrix", sums, "--json")
    check(r.returncode == 0 and "count alike" in r.stderr and "check" not in json.loads(r.stdout), r.stderr)
    r = run("quantize", model, "-o", out, "--bits", "3", "--map", made, "--check", words, "--json", *WORDS)
    check(r.returncode == 0 and json.loads(r.stdout)["check"]["kl"] > 0, r.stderr)
    other = model_file("other.gguf", ffn=256)
    fails(3, ["quantize", other, "-o", out, "--bits", "3", "--imatrix", sums], "another model")
    fails(3, ["quantize", other, "-o", out, "--bits", "3", "--map", made], "another model")
    fails(3, ["quantize", model, "-o", out, "--bits", "3", "--map", words], "ridge importance")


def check_no_numbers():
    model = gguf_files.tiny(dim=256, ffn=256)
    bad = [t for t in model.tensors if t[0] == "blk.0.ffn_up.weight"][0]
    bad[3] = bad[3][:4 * 256 * 5 + 12] + struct.pack("<f", float("nan")) + bad[3][4 * 256 * 5 + 16:]
    path = os.path.join(T, "nan.gguf")
    with open(path, "wb") as out:
        out.write(model.bytes())
    fails(3, ["quantize", path, "-o", os.path.join(T, "nan-out.gguf"), "--type", "Q4_K"],
          "'blk.0.ffn_up.weight', row 5, column 3 is nan")
    check(leftovers("nan-out") == [], leftovers("nan-out"))


def check_hostile():
    model, words, out = model_file("m.gguf"), text(), os.path.join(T, "h.gguf")
    fails(2, ["quantize", model, "-o", out], "one of --type")
    fails(2, ["quantize", model, "-o", out, "--type", "Q4_K", "--bits", "4"], "one of --type")
    for kind in ("IQ2_S", "F16", "q4", ""):
        fails(2, ["quantize", model, "-o", out, "--type", kind], "give one of")
    for bits in ("0", "-1", "nan", "33"):
        fails(2, ["quantize", model, "-o", out, "--bits", bits], "--bits")
    for limit in ("0", "-1", "inf", "nan"):
        fails(2, ["quantize", model, "-o", out, "--max-kl", limit, "--data", words], "--max-kl")
    for share in ("x", "-1", "nan", "%", ""):
        fails(2, ["quantize", model, "-o", out, "--type", "Q4_K", "--check", words, f"--max-loss={share}"], "--max-loss")
    fails(2, ["quantize", model, "-o", out, "--size", "many"], "many")
    fails(2, ["quantize", model, "-o", out, "--max-kl", "1"], "needs a text")
    fails(2, ["quantize", model, "-o", out, "--bits", "4", "--data", words, "--imatrix", words], "one of --data")
    fails(2, ["quantize", model, "-o", model, "--type", "Q4_K"], "-o")
    fails(2, ["quantize", model, "-o", words, "--type", "Q4_K", "--check", words], "-o")
    fails(2, ["quantize", model, "-o", out, "--type", "Q4_K", "--threads", "0"], "--threads")
    fails(2, ["quantize", model, "-o", out, "--type", "Q4_K", "--window", "1"], "--window")
    fails(3, ["quantize", model, "-o", out, "--bits", "4", "--data", text("short.txt", 1)], "fewer than")
    fails(3, ["quantize", words, "-o", out, "--type", "Q4_K"], "not a GGUF file")
    pack = os.path.join(T, "h.ridge")
    check(run("pack", model, "-o", pack).returncode == 0, "pack")
    fails(3, ["quantize", pack, "-o", out, "--type", "Q4_K"], "is a pack")
    fails(5, ["quantize", model, "-o", os.path.join(T, "none", "x.gguf"), "--type", "Q4_K"], "folder")
    check(leftovers("h.gguf") == [], leftovers("h.gguf"))


def check_split():
    """Parts of a model: refused by whichever part is named, with what to do."""
    whole, parts = gguf_files.tiny(dim=256, ffn=256), []
    for n in range(2):
        part = gguf_files.Gguf()
        part.keys = {**(whole.keys if n == 0 else {}), "split.no": n, "split.count": 2, "split.tensors.count": len(whole.tensors)}
        part.tensors = whole.tensors[n::2]
        parts.append(os.path.join(T, f"parts-0000{n + 1}-of-00002.gguf"))
        with open(parts[-1], "wb") as out:
            out.write(part.bytes())
    check(len(info(parts[0])["tensors"]) == len(whole.tensors), "the parts are no model")
    out = os.path.join(T, "joined.gguf")
    for part in parts:
        for wish in (["--type", "Q4_K"], ["--bits", "4", "--data", text(), *WORDS]):
            fails(3, ["quantize", part, "-o", out, *wish], "is one of 2 parts of a model: join them")
    check(leftovers("joined") == [], leftovers("joined"))


def check_stacks(model, out, wish):
    r = run("quantize", model, "-o", out, *wish, "--json", *WORDS)
    check(r.returncode == 0, f"{model} {wish}: {r.returncode} {r.stderr}")
    if r.returncode != 0:
        return None
    said = json.loads(r.stdout)
    before, after = ({t["name"]: t["type"] for t in info(path)["tensors"]} for path in (model, out))
    stacks = {m["name"]: m["to"] for m in said["matrices"] if "_exps." in m["name"]}
    check(len(stacks) >= 3 and stacks.items() <= after.items() and any(before[n] != after[n] for n in stacks), f"{model} {wish}: {stacks}")
    routers = [n for n in before if "ffn_gate_inp" in n]
    check(routers and all(before[n] == after[n] for n in routers), f"{model} {wish}: a router changed")
    return said


def logits(model):
    path = os.path.join(T, "logits.npy")
    check(run("logits", model, "--tokens", "1,2,3,5,8,13,21,34", "-o", path).returncode == 0, f"logits of {model}")
    raw = read_logits(path)
    return [v for v, in struct.iter_unpack("<f", raw[10 + struct.unpack("<H", raw[8:10])[0]:])]


def check_experts():
    """Stacks of experts get a type each, routers none; what is learnt of them has a row for every expert."""
    words, sums, made = text(), os.path.join(T, "experts-sums.gguf"), os.path.join(T, "experts-map.json")
    model, out = model_file("experts.gguf", experts=4), os.path.join(T, "experts-out.gguf")
    r = run("importance", model, "--data", words, "--imatrix", sums, "-o", made, *WORDS)
    check(r.returncode == 0, r.stderr)
    for wish in (["--type", "Q6_K", "--check", words], ["--bits", "7", "--data", words], ["--max-kl", "0.01", "--data", words],
                 ["--bits", "7", "--imatrix", sums, "--check", words], ["--bits", "7", "--map", made, "--check", words]):
        said = check_stacks(model, out, wish)
        check(said and 0 < said["check"]["kl"] < 1, f"{wish}: {said and said['check']}")
    r = run("run", out, "-p", "Hello", "--raw", "-n", "4", "--temp", "0", "--ignore-eos", "--json")
    check(r.returncode == 0 and len(json.loads(r.stdout)["tokens"]) == 4, r.stderr)
    # Other architectures, without a tokenizer.
    for model in (os.path.join(A.shared, "golden", "tiny", f"{name}.gguf") for name in ("olmoe", "qwen3moe", "gpt-oss")):
        if os.path.exists(model) and check_stacks(model, out, ["--type", "Q8_0"]):
            before, after = logits(model), logits(out)
            off = max(abs(a - b) for a, b in zip(before, after))
            check(len(before) == len(after) and 0 < off < 0.1 * max(map(abs, before)), f"{model}: logits are off by {off}")  # another expert: by 1


def check_interrupt():
    """Ctrl-C at ten moments, from the first on: exit code 130 and one line, the file that was there, nothing beside it."""
    model, out, words = model_file("m.gguf"), os.path.join(T, "stop.gguf"), text("long.txt", 200)
    command = [A.ridge, "quantize", model, "-o", out, "--max-kl", "0.001", "--data", words, "--window", "128"]
    begin = time.monotonic()
    check(subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0, "a run that nobody stops")
    seconds = time.monotonic() - begin

    def ready(process):
        caught = [line for line in open(f"/proc/{process.pid}/status") if line.startswith("SigCgt")][0]
        return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1

    stopped = 0
    for tenth in range(10):
        with open(out, "w") as old:
            old.write("old")
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while p.poll() is None and not ready(p):
            time.sleep(0.001)
        time.sleep(seconds * tenth / 10)
        p.send_signal(signal.SIGINT)
        shown, said = p.communicate(timeout=300)
        check(p.returncode in (0, 130), f"Ctrl-C after {tenth} tenths: {p.returncode} {said}")  # 0: it was at its end already
        if p.returncode == 130:
            stopped += 1
            check(said.splitlines() == ["ridge: stopped by Ctrl-C: nothing was written"] and shown == "", f"Ctrl-C: {said!r} {shown!r}")
            check(open(out).read() == "old", "Ctrl-C: another file")
        else:
            check(info(out)["tensors"] != [], "Ctrl-C: half a file")
        check(leftovers("stop") == ["stop.gguf"], leftovers("stop"))
    check(stopped >= 5, f"Ctrl-C stopped {stopped} of 10 runs of {seconds:.2f} s")


def check_no_room():
    out = os.path.join(T, "room.gguf")

    def little():
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

    for words in (["--type", "Q4_K"], ["--bits", "4", "--data", text(), *WORDS]):
        r = subprocess.run([A.ridge, "quantize", model_file("m.gguf"), "-o", out, *words], capture_output=True, text=True,
                           preexec_fn=little)
        check(r.returncode == 5 and len(r.stderr.strip().splitlines()) == 1, f"{r.returncode} {r.stderr}")
        check(leftovers("room.gguf") == [], leftovers("room.gguf"))


def test_quantize():
    for part in (check_one_type, check_columns, check_mix, check_divergence, check_refused, check_sums_and_maps, check_no_numbers,
                 check_hostile, check_split, check_experts, check_interrupt, check_no_room):
        part()


main(test_quantize)
