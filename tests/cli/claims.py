"""`ridge claims`: verdicts without and with students, what it keeps, what it refuses."""
import json
import os
import signal
import subprocess
import time

from harness import A, T, check, fails, main, run, write

U85 = os.path.join(os.path.dirname(__file__), "..", "..", "profiles", "ethos-u85.toml")


def without_students():
    page = os.path.join(T, "claims.html")
    r = run("claims", "--no-training", "--machine", U85, "--machine", "hexagon-v75", "--json", "-o", page)
    check(r.returncode == 0, f"claims: {r.returncode} {r.stderr}")
    said = json.loads(r.stdout)
    check(len(said["claims"]) == 8 and said["students"] == [], f"claims: {said['claims']}")
    by = {c["claim"]: c["verdict"] for c in said["claims"]}
    check(by["bytes from DRAM"] == "by other means" and by["loss of quality: 4 bit"] == "open", f"verdicts: {by}")
    for case in said["machines"]:
        m = case["methods"]
        spared = 1 - m["int8, pins"]["dram_bytes"] / m["int8"]["dram_bytes"]
        # Bursts are whole ones: what is not read ends some that were begun.
        check(0 <= spared <= 1.1 * case["pinned_at_most"] + 1e-3, f"pins spare more than C/W: {case}")
        check(0.5 < m["4 bit"]["dram_bytes"] / m["int8"]["dram_bytes"] < 0.6, f"4 bit: {case}")
    check({c["model"] for c in said["machines"]} >= {"llama-3-8b", "phi-3-mini", "smollm2-135m"}, "models")
    text = open(page, encoding="utf-8").read()
    check(text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>") and "<svg" in text, "the page")
    check("http:" not in text.replace("http://www.w3.org/", "") and "<script" not in text, "the page needs others")
    text = run("claims", "--no-training", "--machine", "ethos-u85").stdout
    check(max(map(len, text.splitlines())) <= 130, "lines of the text are too long")


def misuse():
    fails(2, ["claims", "--seeds", "1"], "--seeds 1")
    fails(2, ["claims", "--steps", "0"], "--steps 0")
    fails(2, ["claims", "--l1", "nan"], "--l1")
    fails(2, ["claims", "--no-training", "--folder", os.path.join(T, "x")], "--no-training")
    fails(3, ["claims", "--machine", "raspberry-pi-5"], "tiers")
    fails(3, ["claims", "--machine", os.path.join(T, "gone.toml")], "gone.toml")
    fails(3, ["claims", "--machine", write(os.path.join(T, "bad.toml"), b"]")], "bad.toml")
    fails(5, ["claims", "--no-training", "-o", os.path.join(T, "gone", "x.html")], "gone")
    check(not os.path.exists(os.path.join(T, "x")), "a refused command left its folder")


def with_students():
    folder = os.path.join(T, "students")
    words = ["claims", "--machine", U85, "--folder", folder, "--seeds", "2", "--steps", "2", "--teacher-steps", "2", "--validation-tokens", "256",
             "--json"]
    r = run(*words)
    check(r.returncode == 0, f"claims: {r.returncode} {r.stderr}")
    said = json.loads(r.stdout)
    if "missing" in said:  # this build has no trainer
        check("libtorch" in said["missing"] and said["students"] == [], f"without libtorch: {said['missing']}")
        return
    check(len(said["students"]) == 6 and len(said["bits"]) == 2 and len(said["policies"]) == 8, f"students: {said['students']}")
    check(all(c["verdict"] != "open" for c in said["claims"]), f"open: {said['claims']}")
    check(all("int8, resting" in c["methods"] for c in said["machines"]), "no resting neurons")
    made = sorted(os.listdir(folder))
    again = run(*words)
    check(again.returncode == 0 and json.loads(again.stdout) == said and "training" not in again.stderr, f"again: {again.stderr}")
    check(sorted(os.listdir(folder)) == made, "a second run leaves other files")
    write(os.path.join(folder, [f for f in made if f.startswith("ce-")][0], "report.json"), b"{}")
    fails(3, words, "report.json")
    stopped = subprocess.Popen([A.ridge, "claims", "--machine", U85, "--folder", os.path.join(T, "stopped")], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    stopped.send_signal(signal.SIGINT)
    out, err = stopped.communicate(timeout=300)
    check(stopped.returncode != 0 and out == "", f"Ctrl-C: {stopped.returncode} {out} {err}")


def test_claims():
    without_students()
    misuse()
    with_students()


main(test_claims)
