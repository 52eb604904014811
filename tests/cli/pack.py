"""`ridge pack`: equal logits, and damaged and stale packs."""
import os
import subprocess

from harness import A, T, check, fails, main, read_logits, run, tiny_file, write


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
    fails(2, ["pack", "--check", pack, "-o", a], "-o")
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


main(test_pack)
