"""`ridge roofline --db` and `--history`: what is kept, by several at once, and which files are refused."""
import csv
import io
import json
import os
import sqlite3
import subprocess

from harness import A, T, check, fails, main, run, tiny_file, write

THIN = ["--lengths", "4,8", "--scenarios", "siso", "-n", "2", "-r", "1", "-t", "1"]

PROFILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiles")


def keep(model, db, *more):
    r = run("roofline", model, *THIN, "--db", db, *more)
    # A point above its roof is kept as well.
    check(r.returncode in (0, 70) and "kept as run" in r.stderr, f"--db: exit {r.returncode}: {r.stderr}")
    return r


def history(db, *words):
    r = run("roofline", "--history", "--db", db, *words)
    check(r.returncode == 0, f"--history {words}: {r.stderr}")
    return r.stdout


def kept(model, db):
    for label in ("before", "after"):
        check(f"'{label}'" in keep(model, db, "--label", label).stderr, "--label is not said")
    points = json.loads(history(db, "--json"))["points"]
    check([(p["run"], p["label"], p["phase"]) for p in points] ==
          [(1, "before", "prefill"), (2, "after", "prefill"), (1, "before", "decode"), (2, "after", "decode")],
          f"--history --json: {points}")
    check(all(p["tokens_per_s"] > 0 and p["model"] == "tiny" and p["numerics"] == "default" and p["machine"] for p in points),
          f"--history: {points}")
    rows = list(csv.DictReader(io.StringIO(history(db, "--csv"))))
    check(len(rows) == 4 and float(rows[0]["eta"]) == points[0]["eta"], f"--history --csv: {rows}")
    table = history(db, "tiny")
    check("tiny, SISO: 4 tokens in, 4 out; prefill\n" in table and " 1.00" in table and all(len(x) <= 100 for x in table.splitlines()),
          f"--history: {table}")
    # Operators are there for whoever asks by SQL, and add up.
    with sqlite3.connect(db) as opened:
        for run_number in (1, 2):
            whole, parts = (opened.execute(
                f"SELECT sum(int_ops + flops) FROM roofline_points WHERE run = ? AND phase = 'decode' AND operator {sign} 'all'",
                (run_number,)).fetchone()[0] for sign in ("=", "!="))
            check(whole == parts > 0, f"operators of run {run_number}: {parts}, whole {whole}")
    fails(3, ["roofline", "--history", "--db", db, "nobody"], "it has 'tiny'")
    # ridge bench keeps its runs in the same file, numbered by themselves.
    bench = run("bench", model, "-p", "4", "-n", "2", "-t", "1", "-r", "2", "--db", db)
    check(bench.returncode == 0 and "kept as run 1" in bench.stderr, f"bench in the same file: {bench.stderr}")
    keep(model, db, "--kv-type", "q8_0", "--numerics", "default")
    check("q8_0 cache" in history(db), "--history hides another type of cache")


def at_once(model, db):
    going = [subprocess.Popen([A.ridge, "roofline", model, *THIN, "--db", db], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) for _ in range(4)]
    said = [(p.communicate(timeout=300)[1], p.returncode) for p in going]
    check(all(code in (0, 70) for _, code in said), f"four at once: {said}")
    numbers = sorted(int(text.split("kept as run ")[1].split()[0]) for text, _ in said)
    check(numbers == [1, 2, 3, 4], f"four at once are runs {numbers}")
    with sqlite3.connect(db) as opened:
        sizes = opened.execute("SELECT count(*) FROM roofline_points GROUP BY run").fetchall()
    check(len(sizes) == 4 and len(set(sizes)) == 1, f"four at once have {sizes} points")


def refused(model):
    damaged = write(os.path.join(T, "damaged.sqlite"), b"SQLite format 3\0" + b"\x55" * 2000)
    other, foreign, old = (os.path.join(T, f"{name}.sqlite") for name in ("other", "foreign", "old"))
    with sqlite3.connect(other) as opened:
        opened.execute("CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT)")
    with sqlite3.connect(foreign) as opened:
        opened.execute("CREATE TABLE roofline_runs (id INTEGER PRIMARY KEY, distance REAL)")
    bench = run("bench", model, "-p", "4", "-n", "0", "-t", "1", "-r", "1", "--db", old)
    check(bench.returncode == 0, f"bench --db: {bench.stderr}")
    before = open(other, "rb").read()
    for db, code, part in ((damaged, 3, "damaged.sqlite"), (other, 3, "another program"), (foreign, 3, "its tables are not"),
                           (write(os.path.join(T, "text.sqlite"), b"not a database at all"), 3, "text.sqlite"),
                           (os.path.join(T, "absent", "x.sqlite"), 5, "absent"), (T, 3, T), (os.devnull, 3, os.devnull),
                           (":memory:", 3, ":memory:")):
        fails(code, ["roofline", model, *THIN, "--db", db], part)
        fails(3, ["roofline", "--history", "--db", db], os.path.basename(db))
    check(open(other, "rb").read() == before, "another program's database was written to")
    fails(3, ["roofline", "--history", "--db", old], "holds no rooflines")
    fails(2, ["roofline", "--history"], "--db")


def kept_apart(model, db):
    """No result replaces another or an input, and what is left out of a command is not ignored in silence."""
    before = open(db, "rb").read()
    for flag in ("-o", "--svg"):
        fails(2, ["roofline", model, *THIN, "--db", db, flag, os.path.join(os.path.dirname(db), ".", os.path.basename(db))],
              "--db writes there as well")
    check(open(db, "rb").read() == before, "a database was replaced by a report")
    page = os.path.join(T, "page.html")
    fails(2, ["roofline", model, *THIN, "-o", page, "--svg", page], "-o writes there as well")
    profile = write(os.path.join(T, "m.toml"), open(os.path.join(PROFILES, "raspberry-pi-5.toml"), "rb").read())
    fails(2, ["roofline", "shape:smollm2-135m", "--machine", profile, "-o", profile], "is the input itself")
    fails(2, ["roofline", model, *THIN, "--label", "x"], "--db FILE")
    fails(2, ["roofline", "--history", "--db", db, "-o", page], "leave -o")
    check(not os.path.exists(page), "a page was written")


def test_history():
    model = tiny_file()
    kept(model, os.path.join(T, "kept.sqlite"))
    kept_apart(model, os.path.join(T, "kept.sqlite"))
    at_once(model, os.path.join(T, "four.sqlite"))
    refused(model)


main(test_history)
