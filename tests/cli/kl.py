"""`ridge perplexity --kl`."""
import json
import os

from harness import T, check, fails, main, run, tiny_file, write


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


main(test_kl)
