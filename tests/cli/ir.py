"""`ridge ir` writes program and placement and reads them back; `ridge pack --machine` aligns and says what lies where."""
import json
import os
import re

from gguf_files import tiny
from harness import T, check, fails, main, run, tiny_file, write

U85 = os.path.join(os.path.dirname(__file__), "..", "..", "profiles", "ethos-u85.toml")
XDNA = os.path.join(os.path.dirname(__file__), "..", "..", "profiles", "xdna-strix.toml")


def test_pack():
    model = write(os.path.join(T, "relu.gguf"), tiny(arch="reglu-llama", layers=2, dim=64, ffn=256).bytes())
    pack, out = os.path.join(T, "relu.ridge"), os.path.join(T, "map.txt")
    r = run("pack", model, "-o", pack, "--machine", U85, "--memory-map", out)
    check(r.returncode == 0 and r.stdout == "", f"pack --machine: {r.returncode} {r.stdout} {r.stderr}")
    text = open(out).read()
    check("multiples of 8,192" in text and "keys and values" in text and "token_embd.weight, a row for each token" in text, text)
    for tier in ("registers", "shared_sram", "dram"):
        check(re.search(rf"^{tier} ", text, re.M), f"{tier} is not in the map")
    served = [float(x) for x in re.findall(r"([\d.]+) %$", text, re.M)]
    check(len(served) == 2 and abs(sum(served) - 100) < 0.2, f"shares of reads: {served}")
    tensors = [(int(a, 16), int(b)) for a, b in re.findall(r"^dram +(0x[0-9a-f]+) +(\d+) +[\d.]+ +[\d.]+ %  blk", text, re.M)]
    check(tensors and all(a % 128 == 0 for a, _ in tensors), "blocks that begin at no burst")
    again = run("pack", model, "-o", pack, "--machine", U85, "--memory-map", "-")
    check(again.stdout == text and run("pack", model, "-o", pack, "--machine", U85).stdout == text.split("\n\ntier")[0] + "\n", "the map on stdout")
    check(run("pack", "--check", pack).returncode == 0, "checksums of an aligned pack")
    words = ["-p", "Hello", "--raw", "-n", "8", "--temp", "0", "--json"]
    want, got = (json.loads(run("run", m, *words).stdout)["tokens"] for m in (model, pack))
    check(want == got, f"an aligned pack gives another text: {want} {got}")
    dense = tiny_file(layers=2)
    r = run("pack", dense, "-o", os.path.join(T, "dense.ridge"), "--machine", XDNA)
    check(r.returncode == 0 and "local_sram" in r.stdout, f"a dense model: {r.stderr}")
    fails(2, ["pack", model, "-o", pack, "--memory-map", out], "--machine")
    fails(2, ["pack", model, "-o", pack, "--machine", U85, "--memory-map", pack], "--memory-map")
    fails(2, ["pack", model, "-o", pack, "--machine", U85.replace("ethos-u85", "raspberry-pi-5")], "no tiers")
    fails(3, ["pack", model, "-o", pack, "--machine", os.path.join(T, "none.toml")], "none.toml")
    return model, pack


def test_ir(model, pack):
    ir = os.path.join(T, "model.ir")
    check(run("ir", pack, "--machine", U85, "-o", ir).returncode == 0, "ir --machine")
    text = open(ir).read()
    check(run("ir", pack, "--machine", U85).stdout == text, "stdout and -o differ")
    blocks = re.findall(r"^block .*$", text, re.M)
    check(len(blocks) > 4 and all(re.search(r"\balign=\d+ moved=\d+ .*place=", b) for b in blocks), blocks[:2])
    bundles = [b for b in blocks if ".ffn." in b]
    check(bundles and all(int(re.search(r"align=(\d+)", b)[1]) % 8192 == 0 for b in bundles), "bundles are not aligned")
    r = run("ir", "--check", ir, pack)
    check(r.returncode == 0 and "the program is that of" in r.stdout, f"--check: {r.stderr}")
    for words in ([], ["--memory", "1G"]):  # a program with sanitizers takes more than 64M
        other = os.path.join(T, "other.ir")
        check(run("ir", model, *words, "-o", other).returncode == 0, f"ir {words}")
        check(run("ir", "--check", other, model).returncode == 0, f"--check after ir {words}")
    fails(3, ["ir", "--check", ir, model], "line 2: is of another model")
    for old, new, word in ((" op=ffn", " op=fnn", "line "), ("touch=1.000000", "touch=1.5", "line "),
                           ("ridge-ir 1", "ridge-ir 9", "line 1"), ("\nend ", "\nthe end ", "line ")):
        fails(3, ["ir", "--check", write(os.path.join(T, "bad.ir"), text.replace(old, new, 1).encode())], word)
    shifted = re.sub(r"(block name=\"blk\.0\.ffn/0\" .*)order=1 ", r"\g<1>order=7 ", text)
    fails(3, ["ir", "--check", write(os.path.join(T, "bad.ir"), shifted.encode()), pack], "in its order")
    fails(3, ["ir", "--check", write(os.path.join(T, "cut.ir"), text.encode()[:-20])], "cut short")
    fails(3, ["ir", "--check", model], "line 1")
    fails(2, ["ir"], "MODEL is missing")
    fails(2, ["ir", model, "--machine", U85, "--memory", "1G"], "two targets")
    fails(2, ["ir", "--check", ir, "-o", ir], "--check")
    fails(2, ["ir", model, "-o", model], "-o")
    fails(4, ["ir", model, "--memory", "1M"], "--memory")
    fails(2, ["ir", model, "--machine", U85.replace("ethos-u85", "raspberry-pi-5")], "no tiers")


def test():
    test_ir(*test_pack())


main(test)
