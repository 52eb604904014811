"""`ridge plan`: what it says, its JSON and its SVG."""
import json
import os
import xml.dom.minidom

from harness import T, check, fails, main, run, tiny_file


def test_plan():
    tiny = tiny_file()
    folder = os.path.join(T, "plan")
    os.makedirs(folder, exist_ok=True)
    env = {"XDG_CACHE_HOME": folder}  # no profile of this machine
    r = run("plan", tiny, "--context", "64", env=env)
    check(r.returncode == 0, f"ridge plan: {r.stderr}")
    for part in ("decode, a token", "bound T*", "smallest budget", "useful budget", "resident", "tok/s"):
        check(part in r.stdout, f"ridge plan does not say {part!r}: {r.stdout}")
    ascii_chart = run("plan", tiny, "--context", "64", env=dict(env, LC_ALL="C")).stdout
    check("#" in ascii_chart and "\u2588" not in ascii_chart, "ridge plan draws in ASCII where the locale is C")
    full = json.loads(run("plan", tiny, "--context", "64", "--json", "--explain", env=env).stdout)
    smallest, resident = full["smallest_budget"], full["resident_budget"]
    check(smallest <= full["useful_budget"] <= resident, f"useful budget: {full['useful_budget']}")
    check(sum(i["bytes"] for i in full["account"]) == full["account_bytes"], "the account's sum")
    speeds = [p["tokens_per_s"] for p in full["curve"]]
    check(speeds == sorted(speeds) and len(speeds) > 2, f"the curve falls: {speeds}")
    check(all(b["pinned"] for b in full["blocks"]) and full["resident"], "everything is pinned without a limit")
    bound = full["decode"]["bound"]
    check(bound["seconds"] == max(bound["storage_s"], bound["memory_s"], bound["compute_s"]), "the bound's parts")
    # Another machine, and a budget in between.
    profile = os.path.join(folder, "board.toml")
    with open(profile, "w") as f:
        f.write('format = 1\nname = "a board"\nmeasured_at = ""\ncontended = false\ncontention = ""\n'
                'storage_path = ""\nint8_gops_per_core = 10\nfloat_gops_per_core = 5\nreads = [{ footprint_bytes = 1048576, threads = 4, '
                'huge_pages = false, gb_per_s = 8, low = 8, high = 8, runs = 1 }]\nstorage = [{ request_bytes = '
                '1048576, depth = 8, direct = true, gb_per_s = 0.25, low = 0.2, high = 0.3, runs = 1 }]\n')
    svg = os.path.join(folder, "curve.svg")
    board = json.loads(run("plan", tiny, "--context", "64", "--machine", profile, "--json", "--svg", svg, env=env).stdout)
    check(board["machine"] == "a board" and board["threads"] == 4, f"the profile's machine: {board['machine']}")
    check(board["rates"]["storage_bytes_per_s"] == 250e6 and board["budget_bytes"] is None, f"{board['rates']}")
    with open(svg) as f:
        picture = f.read()
    check(picture.startswith("<svg") and "prefers-color-scheme" in picture and "<script" not in picture, picture[:100])
    xml.dom.minidom.parseString(picture)
    fails(4, ["plan", tiny, "--context", "64", "--memory", "1M"], "does not fit", env=env)
    fails(3, ["plan", tiny, "--machine", os.path.join(folder, "none.toml")], "none.toml", env=env)
    fails(2, ["plan", tiny, "--svg", tiny], "is the input itself", env=env)


main(test_plan)
