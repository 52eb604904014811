"""A budget that Ridge names is one that works when it is typed."""
import json
import os
import re

import gguf_files
from harness import T, check, main, run, write


def works(model, budget, what, *more):
    r = run("run", model, "-p", "the", "-n", "2", "--temp", "0", "--ignore-eos", "--memory", budget, *more)
    check(r.returncode == 0, f"{what} names {budget}, and a run in it ends with {r.returncode}: {r.stderr}")


def test_budgets():
    text = write(os.path.join(T, "text.txt"), b"the theme of this text is that it goes on and on " * 40)
    for layers, dim, ffn in ((1, 32, 64), (3, 64, 256), (5, 96, 512)):
        model = write(os.path.join(T, f"m{layers}.gguf"), gguf_files.tiny(layers=layers, dim=dim, ffn=ffn).bytes())
        table = run("info", model).stdout.split("KV cache\n")[-1]
        rows = [line.split() for line in table.splitlines()]
        needs = json.loads(run("info", model, "--json").stdout)["needs"]
        check(rows and len(rows) == len(needs), f"info: {table!r}")
        for row, need in zip(rows, needs):
            context, smallest, resident = row[0], row[1], row[2]
            # Two runs: their heaps differ by some pages, and what is rounded up to MiB may then differ by one.
            apart = abs((int(smallest[:-1]) << 20) - need["smallest_budget"]) if re.fullmatch(r"\d+M", smallest) else None
            check(apart in (0, 1 << 20), f"info: {row} {need}")
            works(model, smallest, "ridge info", "--context", context)
            works(model, str(need["smallest_budget"]), "ridge info --json", "--context", context)
            explained = run("run", model, "-p", "the", "-n", "1", "--context", context, "--memory", resident, "--explain").stderr
            check("resident: all" in explained, f"ridge info: all in memory from {resident} on, but {explained}")
        context = str(needs[0]["context"])
        plan = run("plan", model, "--context", context).stdout
        works(model, plan.split("smallest budget ")[1].split(";")[0], "ridge plan", "--context", context)
        works(model, str(json.loads(run("plan", model, "--context", context, "--json").stdout)["smallest_budget"]), "ridge plan --json",
              "--context", context)
        refused = run("run", model, "-p", "the", "--memory", "1M", "--context", context).stderr
        works(model, refused.split("give --memory ")[-1].split()[0], "the refusal", "--context", context)
        told = run("doctor", model, "--memory", "1M", "--context", context).stderr
        works(model, told.split("give --memory ")[-1].split()[0], "ridge doctor", "--context", context)
        kl = ["perplexity", model, text, "--window", "64", "--windows", "1", "--kl"]
        least = run(*kl, "--memory", "1M").stderr.split("give --memory ")[-1].split()[0]
        r = run(*kl, "--memory", least)
        check(r.returncode == 0, f"perplexity --kl names {least}: {r.stderr}")


main(test_budgets)
