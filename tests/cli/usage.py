"""Odd command lines: numbers that are none, names that are empty, help in every form, outputs that cannot be written."""
import os
import subprocess

import gguf_files
from harness import A, T, check, fails, main, run, tiny_file, write


def numbers(model):
    hi = ["run", model, "-p", "hi"]
    for flag, word in (("-n", "1.5"), ("-n", "x"), ("-n", ""), ("-n", "0x10"), ("--context", "1e3"), ("--seed", "x"), ("--top-k", "4.0"),
                       ("--threads", "two")):
        fails(2, [*hi, flag, word], f"'{word}' is no whole number")
    # Larger than the type behind the option: refused, not taken for the largest there is.
    for flag in ("-n", "--context", "--threads", "--seed", "--top-k", "--penalty-window", "--draft-ngram"):
        fails(2, [*hi, flag, "99999999999999999999"], "no usable number")
    for flag in ("--threads", "--top-k"):
        fails(2, [*hi, flag, "99999999999"], "no usable number")
    fails(2, [*hi, "--temp", "warm"], "'warm' is no usable number")
    fails(2, [*hi, "--temp", ""], "--temp: '' is no usable number")
    fails(2, ["image", "--bundle", "x", "-p", "pear", "--init", "x.png", "--strength", ""], "--strength: '' is no usable")
    fails(2, [*hi, "-n", "-5"], "-n -5")
    fails(2, [*hi, "--seed", "-1"], "no usable number")
    fails(2, [*hi, "--context", "0"], "--context 0")
    fails(2, [*hi, "--context", "-3"], "--context -3")
    fails(2, [*hi, "--threads", "100000"], "give 1 to 256")
    # Decimal, whatever it begins with.
    ten = run(*hi, "-n", "010", "--seed", "1", "--ignore-eos", "--json")
    check(ten.returncode == 0 and ten.stdout.count("\n") and '"stop_reason": "length"' in ten.stdout, f"-n 010: {ten.stderr}")
    check(run(*hi, "-n", "10", "--seed", "+1", "--ignore-eos").stdout == run(*hi, "-n", "010", "--seed", "01", "--ignore-eos").stdout,
          "-n 010 is not ten")
    text = write(os.path.join(T, "text.txt"), b"the theme " * 300)
    for flag, word in (("--windows", "0"), ("--windows", "-1"), ("--window", "-4"), ("--window", "3")):
        fails(2, ["perplexity", model, text, flag, word], f"{flag} {word}")
    for command in (["pack", model, "-o", os.path.join(T, "x.ridge")], ["probe"]):
        for word in ("0", "-1", "99999"):
            fails(2, [*command, "-t", word], f"--threads {word}")
    for cpus in ("1-", "x", "3-1", "-1", ""):
        fails(2, [*hi, "--cpus", cpus], "--cpus")
    first = min(os.sched_getaffinity(0))
    check(run(*hi, "-n", "2", "--cpus", f"{first}-{first}").returncode == 0, "--cpus takes no range")


def names(model):
    hi = ["run", model, "-p", "hi"]
    for words in (["info", ""], ["run", "", "-p", "hi"], ["pack", ""], ["bench", ""], ["plan", ""], ["sim", ""], ["roofline", ""]):
        fails(2, words, "empty")
    for words in (["info", "-"], ["run", "-", "-p", "hi"], ["bench", "-"], ["logits", "-", "--tokens", "1", "-o", "x"]):
        fails(2, words, "standard input")
    for flag in ("-f", "--save-state", "--load-state", "--record", "--draft-model"):
        fails(2, [*hi, flag, ""], "empty")
    fails(2, ["perplexity", model, ""], "empty")
    for flag in ("-o", "--file", "--folder"):
        fails(2, ["probe", flag, ""], "empty")


def outputs(model):
    """Found out before anything is computed: nothing is printed, and nothing is left."""
    trace = os.path.join(T, "trace.json")
    check(run("run", model, "-p", "hi", "-n", "3", "--record", trace).returncode == 0, "--record")
    before = sorted(os.listdir(T))
    for words in (["run", model, "-p", "hi", "--save-state"], ["run", model, "-p", "hi", "--record"],
                  ["logits", model, "--tokens", "1", "-o"], ["pack", model, "-o"], ["probe", "-o"], ["plan", model, "--svg"],
                  ["roofline", model, "--svg"], ["roofline", model, "-o"], ["sim", trace, "--export"]):
        for path, code in (("", 2), ("-", 2), (T, 5), (os.path.join(T, "absent", "x"), 5), ("/dev/null", 5)):
            r = run(*words, path, cwd=T)
            said = [line for line in r.stderr.splitlines() if line.strip()]
            check(r.returncode == code and len(said) == 1 and r.stdout == "", f"{words} {path!r}: {r.returncode} {r.stdout[:50]!r} {said}")
    fails(2, ["sim", trace, "--export", trace], "lost")
    fails(2, ["probe", "--file", model, "-o", model], "lost")
    fails(3, ["probe", "--file", os.path.join(T, "absent")], "absent")
    fails(5, ["probe", "--folder", os.path.join(T, "absent")], "absent")
    check(sorted(os.listdir(T)) == before, f"left behind: {set(os.listdir(T)) - set(before)}")


def forms(model):
    plain = run("run", "--help").stdout
    check(run("help", "run").stdout == plain, "ridge help run is not ridge run --help")
    check(run("help", "models", "get").stdout == run("models", "get", "--help").stdout, "ridge help models get")
    fails(2, ["help", "frobnicate"], "'frobnicate' is no command")
    fails(2, ["--frobnicate"], "'--frobnicate' is no option")
    fails(2, ["-v"], "required")
    fails(2, ["run", model, "-p", "a", "-p", "b"], "--prompt is given more than once")
    fails(2, ["run", model, "-p", "a", "--frobnicate"], "--frobnicate")
    fails(2, ["info", model, "--context", "5"], "'--context' is not understood")
    fails(2, ["info", model, "more"], "'more' is not understood")
    fails(2, ["tokenize", model, "a", "--lines-json"], "standard input")
    fails(2, ["tokenize", model, "--json", "--lines-json"], "give one")
    check(run("tokenize", model, "-", stdin="the").stdout == run("tokenize", model, "the").stdout, "tokenize - reads no standard input")
    # What is quoted has one line, whatever it holds.
    fails(2, ["detokenize", model], "no list of numbers", stdin="1,2,\nx")
    fails(3, ["info", os.path.join(T, "two\nlines.gguf")], "no such file")
    empty = write(os.path.join(T, "empty.txt"), b"")
    words = ["run", model, "-p", "the", "-n", "9", "--temp", "0", "--ignore-eos"]
    check(run(*words, "-f", empty).stdout == run(*words).stdout, "an empty -f changes the prompt of -p")


def refused_threads(model):
    """Where the system refuses a thread, those that run are ended and one line says so."""
    limited = "ulimit -v 700000; exec \"$0\" \"$@\""
    if subprocess.run(["bash", "-c", limited, A.ridge, "--version"], capture_output=True).returncode != 0:
        return                                     # a sanitizer needs more address space than that
    r = subprocess.run(["bash", "-c", limited, A.ridge, "run", model, "-p", "hi", "-n", "2", "-q", "--threads", "256"], capture_output=True,
                       text=True, stdin=subprocess.DEVNULL)
    check(r.returncode in (4, 5) and "ridge:" in r.stderr, f"256 threads in little address space: {r.returncode} {r.stderr!r}")


def test_usage():
    model = tiny_file()
    numbers(model)
    names(model)
    outputs(model)
    forms(model)
    refused_threads(write(os.path.join(T, "other.gguf"), gguf_files.tiny(layers=2).bytes()))


main(test_usage)
