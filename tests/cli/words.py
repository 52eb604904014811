"""What commands say: numbers with their nouns, what was written and why it ended, contended rates, kernels in use."""
import json
import os
import re

import gguf_files
from harness import T, check, fails, main, run, tiny_file, write

CONTENDED = """format = 1
name = "a busy board"
measured_at = "2026-01-01"
contended = true
contention = "others used 40 % of a CPU"
storage_path = ""
reads = [ { footprint_bytes = 1073741824, threads = 1, huge_pages = true, gb_per_s = 10.0, low = 9.0, high = 11.0, runs = 5 } ]
storage = [ { request_bytes = 1048576, depth = 16, direct = true, gb_per_s = 1.0, low = 1.0, high = 1.0, runs = 5 } ]
"""

# "1 tokens": the noun of one thing has no s. Ends of longer numbers and decimals ("0.1 tokens") are others.
WRONG = re.compile(r"(?<![\d.,])1 (tokens|windows|positions|layers|blocks|threads|passes|tensors|heads|rows|slots|CPUs|facts|notes|visits|contexts)\b")


def plurals():
    model = tiny_file()
    text = write(os.path.join(T, "text.txt"), b"the theme of this text is that it goes on " * 10)
    state, visits = os.path.join(T, "one.state"), os.path.join(T, "one.json")
    for words in (["run", model, "--raw", "-p", "a", "-n", "1", "--temp", "0", "--ignore-eos", "--stats", "--explain", "-v", "-t", "1"],
                  ["run", model, "--raw", "-p", "a", "-n", "2", "--temp", "0", "--ignore-eos", "-t", "1"],
                  ["run", model, "--raw", "-p", "a", "-n", "0", "--save-state", state],
                  ["run", model, "--raw", "-p", "a", "-n", "1", "-q", "--record", visits],
                  ["run", model, "--raw", "-p", "a", "-n", "2", "--context", "1"],
                  ["run", model, "-p", "a", "--memory", "1M", "--context", "1"],
                  ["perplexity", model, text, "--window", "4", "--windows", "1", "--kl"],
                  ["perplexity", model, text, "--window", "100000"],
                  ["info", model, "--tensors"], ["doctor", model, "--context", "1"],
                  ["plan", model, "-t", "1", "--context", "1", "--explain"],
                  ["bench", model, "-p", "1", "-n", "1", "-t", "1", "-r", "1", "--profile"],
                  ["ladder", model, "--stop-available", "1M", "--hold", "0", "--pools", "1", "--contexts", "1", "-t", "1"],
                  ["sim", model, "-t", "1"], ["sim", visits, "--memory", "1M"],
                  ["logits", model, "--tokens", "1", "-o", os.path.join(T, "one.npy")]):
        r = run(*words)
        said = r.stdout + r.stderr
        check(r.returncode in (0, 3, 4), f"{words}: {r.returncode} {r.stderr}")
        check(not WRONG.search(said), f"{words} says {WRONG.search(said) and said[max(0, WRONG.search(said).start() - 20):][:60]!r}")


def written():
    model = tiny_file()
    npy, state = os.path.join(T, "x.npy"), os.path.join(T, "x.state")
    r = run("logits", model, "--tokens", "1,2,3", "-o", npy)
    check(r.stdout == "" and "x.npy is written: 3 rows × 259" in r.stderr, f"logits: {r.stderr!r}")
    check(run("logits", model, "--tokens", "1,2,3", "-o", npy, "-q").stderr == "", "logits -q says something")
    r = run("run", model, "--raw", "-p", "abc", "-n", "0", "--save-state", state)
    count = json.loads(run("run", model, "--raw", "-p", "abc", "-n", "0", "--json").stdout)["prompt_tokens"]
    check(f"x.state is written: {count} tokens, " in r.stderr and "iB" in r.stderr, f"--save-state: {r.stderr!r}")


def endings():
    model = tiny_file()
    words = ["run", model, "--raw", "-p", "the", "--temp", "0", "--ignore-eos", "--stats"]
    r = run(*words, "-n", "5")
    check("ended" in r.stderr and "by -n 5" in r.stderr and "ended" not in r.stdout, f"-n 5: {r.stderr!r}")
    text = r.stdout.rstrip("\n")
    stop = run(*words, "-n", "50", "--stop", text[1:3])
    check("by --stop" in stop.stderr, f"--stop: {stop.stderr!r}")
    check("ended by -n 5" in run(*words[:-1], "-n", "5").stderr and "ended" not in run(*words[:-1], "-n", "0").stderr, "the summary")
    check("by the context" in run(*words, "--context", "16").stderr, "a full context")


def contended():
    folder = os.path.join(T, "cache")
    os.makedirs(os.path.join(folder, "ridge"), exist_ok=True)
    profile = write(os.path.join(folder, "ridge", "machine.toml"), CONTENDED.encode())
    model, env = tiny_file(), {"XDG_CACHE_HOME": folder}
    words = ["run", model, "-p", "the", "-n", "4", "--temp", "0", "--ignore-eos", "-t", "1"]
    check("contended" in run(*words, env=env).stderr, "the summary hides a contended profile")
    stats = run(*words, "--stats", env=env).stderr
    check("of a contended bound" in stats and "contended roof" in stats and "others used 40 % of a CPU" in stats, f"--stats: {stats}")
    check(json.loads(run(*words, "--json", env=env).stdout)["stats"]["bound_contended"] is True, "--json")
    plan = run("plan", model, "-t", "1", env=env)
    check("(contended)" in plan.stdout and plan.stdout.count("others used 40 % of a CPU") >= 1, f"plan: {plan.stdout}")
    rates = json.loads(run("plan", model, "--json", env=env).stdout)["rates"]
    check(rates["contended"] and rates["contention"] == "others used 40 % of a CPU", f"plan --json: {rates}")
    write(profile, CONTENDED.replace("contended = true", "contended = false").encode())
    for more in ([], ["--stats"]):
        check("contended" not in run(*words, *more, env=env).stderr, "a profile that is not contended")


def kernels_in_use():
    model = tiny_file()
    words = ["run", model, "-p", "the", "-n", "1", "--temp", "0", "--explain"]
    said = run(*words).stderr
    names = re.findall(r"^  (\w+)(?: \w+)?: ", said.split("kernels\n")[1].split("reading\n")[0], re.M)
    check({"rms_norm", "swiglu", "attention", "store_key_f32", "rope_norm"} <= set(names), f"--explain: {names}")
    check(not {"geglu", "rope_neox", "softcap", "store_key_f16", "store_key_q8_0", "transpose", "soften"} & set(names), f"--explain: {names}")
    typed = run(*words, "--kv-type", "q8_0").stderr
    check("store_key_q8_0" in typed and "store_key_f32" not in typed, f"--explain --kv-type q8_0: {typed}")
    for text in (said, run(*words, "--stats").stderr):
        check("unregistered buffers" not in text or "buffers are not registered (" in text, f"unregistered, and no reason: {text}")


def shown_prompt():
    plain = tiny_file()
    r = run("run", plain, "-p", "the cat", "-n", "0", "--show-prompt")
    check(r.returncode == 0 and r.stdout == "\n" and "the cat" in r.stderr and "the model reads" in r.stderr, f"--show-prompt: {r.stderr!r}")
    chat = gguf_files.tiny()
    chat.keys["tokenizer.chat_template"] = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[answer]"
    chat = write(os.path.join(T, "chat.gguf"), chat.bytes())
    r = run("run", chat, "-p", "hi", "-n", "0", "--show-prompt")
    check("[user]hi[answer]" in r.stderr and "[user]" not in r.stdout, f"--show-prompt with a template: {r.stderr!r}")
    check("[user]" not in run("run", chat, "-p", "hi", "-n", "0").stderr, "the prompt is shown unasked")


def helps():
    for command in ("run", "info", "tokenize", "detokenize", "logits", "perplexity", "importance", "bench", "kernels", "probe", "plan", "sim", "ladder", "doctor",
                    "pack", "models"):
        text = run(command, "--help").stdout
        check("Exit codes:" in text and "-q" in text and "-v" in text and "Excludes:" not in text, f"ridge {command} --help: {text[-300:]}")
        check(run(command, "-V").stdout == run("--version").stdout == run("-V").stdout, f"ridge {command} -V")
    check("Exit codes:" in run("--help").stdout, "ridge --help")
    fails(2, ["tokenize", tiny_file(), "a", "--no-special", "--parse-special"], "exclude one another")


def records():
    """Notes of verified packs do not pile up."""
    model, folder = tiny_file(), os.path.join(T, "cache2")
    os.makedirs(os.path.join(folder, "ridge"), exist_ok=True)
    for i in range(80):
        path = write(os.path.join(folder, "ridge", f"verified-{i:016x}"), b"old")
        os.utime(path, (i + 1, i + 1))
    kept = write(os.path.join(folder, "ridge", "machine.toml.old"), b"not ours to remove")
    pack = os.path.join(T, "tiny.ridge")
    check(run("pack", model, "-o", pack).returncode == 0, "ridge pack")
    r = run("run", pack, "-p", "a", "-n", "1", env={"XDG_CACHE_HOME": folder})
    left = [n for n in os.listdir(os.path.join(folder, "ridge")) if n.startswith("verified-")]
    check(r.returncode == 0 and len(left) == 64 and os.path.exists(kept), f"{len(left)} records are left: {r.stderr}")
    check("verified-" + f"{79:016x}" in left and "verified-" + f"{0:016x}" not in left, "the oldest go first")
    new = [n for n in left if open(os.path.join(folder, "ridge", n)).read() != "old"]
    check(len(new) == 1, f"the pack's own record: {new}")


def bench_fields():
    model = tiny_file()
    words = ["bench", model, "-p", "4", "-n", "2", "-t", "1", "-r", "1", "-q"]
    j = json.loads(run(*words, "--json", "--label", "mine").stdout)
    check(j["machine"]["label"] == "mine" and all(x["path"] == model and x["weight_bytes"] > 1000 for x in j["results"]), f"bench --json: {j}")
    row = json.loads(run(*words, "--jsonl", "--label", "mine").stdout.splitlines()[0])
    check(row["label"] == "mine" and row["path"] == model and row["weight_bytes"] == j["results"][0]["weight_bytes"], f"bench --jsonl: {row}")


def test_words():
    for part in (plurals, written, endings, contended, kernels_in_use, shown_prompt, helps, records, bench_fields):
        part()


main(test_words)
