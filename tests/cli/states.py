"""--save-state and --load-state."""
import json
import os
import subprocess

import gguf_files
from harness import A, T, check, fails, main, run, tiny_file, write


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


main(test_states)
