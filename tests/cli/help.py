"""The help of every command, and --version."""

from harness import check, fails, main, run


def test_help():
    r = run("--help")
    check(r.returncode == 0 and len(r.stdout.splitlines()) <= 40, f"ridge --help has {len(r.stdout.splitlines())} lines")
    for command in ("run", "info", "tokenize", "detokenize", "logits", "perplexity", "importance", "bench", "roofline", "kernels", "probe", "pack", "quantize", "ir", "models",
                    "ladder", "doctor", "compare", "sim", "plan", "image", "report", "distill", "tune", "claims"):
        check(command in r.stdout, f"ridge --help does not list {command}")
        h = run(command, "--help")
        check(h.returncode == 0 and "Example" in h.stdout, f"ridge {command} --help has no examples")
        check(all(len(line) <= 80 for line in h.stdout.splitlines()), f"ridge {command} --help has long lines")
        check("6 refused" in h.stdout, f"ridge {command} --help lacks exit code 6")
    check("6 refused" in r.stdout, "ridge --help lacks exit code 6")
    v = run("--version")
    check(v.returncode == 0 and v.stdout.startswith("ridge ") and "kernels:" in v.stdout, f"--version says {v.stdout!r}")
    check(run("models").returncode == 0, "ridge models fails")
    for words in ((), ("help",)):
        r = run(*words)
        check(r.returncode == 0 and "Usage" in r.stdout, f"ridge {words}: {r.returncode} {r.stderr}")
    fails(2, ["frobnicate"], "frobnicate")


main(test_help)
