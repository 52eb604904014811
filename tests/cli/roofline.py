"""ridge roofline: measured and computed points, sweeps, the page, the paper's figures."""
import csv
import html.parser
import io
import json
import os
import xml.dom.minidom

from harness import A, T, check, fails, main, run, tiny_file

PROFILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiles")
OPERATORS = ["qkv", "attention", "output", "ffn", "head"]


def report(*words):
    r = run("roofline", *words, "--json")
    # Tiny models live in the first cache, where timers are coarse: a point above its roof is not what is tested here.
    check(r.returncode in (0, 70), f"{words}: exit {r.returncode}: {r.stderr}")
    return json.loads(r.stdout)


def measured(model):
    thin = ["--lengths", "8,24", "-n", "4", "-r", "2", "-t", "1"]
    whole = report(model, *thin)
    points = whole["points"]
    check({"machine", "points"} <= set(whole), "the report has no machine or points")
    check(whole["machine"]["cpus"] >= 1, "the machine has no CPUs")
    for scenario, prompt, answer in (("SISO", 8, 8), ("LISO", 24, 8), ("SILO", 8, 24), ("LILO", 24, 24)):
        for phase, depth in (("prefill", 0), ("decode", prompt + answer // 2)):
            mine = [p for p in points if p["scenario"] == scenario and p["phase"] == phase]
            check([p["operator"] for p in mine] == ["all", *OPERATORS, "other"],
                  f"{scenario} {phase} has {[p['operator'] for p in mine]}")
            every = mine[0]
            check(every["depth"] == depth and every["prompt"] == prompt and every["answer"] == answer,
                  f"{scenario} {phase} is at depth {every['depth']}, expected {depth}")
            check(every["oi"] > 0 and every["flops_per_s"] > 0 and every["eta"] > 0 and every["sentence"].startswith(phase),
                  f"{scenario} {phase}: {every}")
            for what in ("flops", "int_ops", "weight_bytes", "kv_bytes", "activation_bytes"):
                check(sum(p[what] for p in mine[1:]) == every[what], f"{scenario} {phase}: operators' {what} do not add up")
            # Times of the operators and of the rest are those of the phase.
            check(abs(sum(p["seconds"] for p in mine[1:]) / every["seconds"] - 1) < 0.5, f"{scenario} {phase}: times")
            check(abs(every["oi"] - (every["flops"] + every["int_ops"]) / (every["weight_bytes"] + every["kv_bytes"])) < 1e-6,
                  f"{scenario} {phase}: OI is not operations by bytes")
    # What two scenarios share is one measurement.
    alike = [p for p in points if p["phase"] == "prefill" and p["prompt"] == 24 and p["operator"] == "all"]
    check(len(alike) == 2 and alike[0]["seconds"] == alike[1]["seconds"], "LISO and LILO read the same prompt twice")
    rows = list(csv.DictReader(io.StringIO(run("roofline", model, *thin, "--csv").stdout)))
    check(len(rows) == len(points) and float(rows[0]["oi"]) > 0, f"--csv has {len(rows)} rows, expected {len(points)}")
    context = report(model, "--lengths", "8,200", "-n", "2", "-r", "1", "-t", "1", "--sweep", "context")
    check([p["prompt"] for p in context["points"] if p["operator"] == "all"] == [128, 128, 200, 200], "--sweep context")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.outside = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "rect", "line", "circle", "path"):
            self.open.append(tag)
        self.outside += [v for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag):
        if tag in ("rect", "line", "circle", "path"):
            return
        check(self.open and self.open[-1] == tag, f"the page closes {tag} within {self.open[-3:]}")
        if self.open:
            self.open.pop()


def pages(model):
    page, svg = os.path.join(T, "page.html"), os.path.join(T, "chart.svg")
    r = run("roofline", model, "--lengths", "8,24", "-n", "2", "-r", "1", "-t", "1", "-o", page, "--svg", svg)
    check(r.returncode in (0, 70), f"-o: exit {r.returncode}: {r.stderr}")
    text = open(page, encoding="utf-8").read()
    parser = Page()
    parser.feed(text)
    check(not parser.open and not parser.outside, f"the page leaves {parser.open} open, refers to {parser.outside}")
    check(text.count("<svg") == 4 and "prefers-color-scheme" in text and "ridge roofline" in text, "the page lacks a part")
    check(">unpacking" in text and "roof dots" in text, "the charts lack the format roof")
    xml.dom.minidom.parse(svg)


def computed():
    profiles = sorted(os.path.join(PROFILES, f) for f in os.listdir(PROFILES))
    machines = [p for p in profiles if "figures" in open(p, encoding="utf-8").read()]
    check(len(machines) >= 12, f"only {len(machines)} profiles have figures")
    whole = report("shape:qwen2.5-1.5b", "--machine", *machines, "--scenarios", "siso")
    phases = [p for p in whole["points"] if p["operator"] == "all"]
    check(len(phases) == 2 * len(machines), f"{len(phases)} phases on {len(machines)} machines")
    decode = {p["machine"]: p for p in phases if p["phase"] == "decode"}
    check(len({round(p["oi"], 9) for p in decode.values()}) == 1, "the same model has different intensities")
    check(all(not p["measured"] and not p["above_roof"] for p in whole["points"]), "computed points are above roofs")
    pi = next(p for name, p in decode.items() if "Raspberry" in name)
    # 3.1 GB of weights at 17.1 GB/s.
    check(5.3 < pi["tokens_per_s"] < 5.6 and pi["roof"] == "memory", f"decode on the Pi 5: {pi['tokens_per_s']}")
    shape = os.path.join(T, "shape.json")
    with open(shape, "w", encoding="utf-8") as f:
        json.dump({"name": "mine", "layers": 2, "width": 64, "ffn": 128, "vocabulary": 100, "heads": 4, "kv_heads": 2}, f)
    mine = report(shape, "--machine", machines[0], "--scenarios", "siso", "--lengths", "1,1")["points"]
    # One token: two layers of 64 x 64 (q), 2 x 32 x 64 (k, v), 64 x 64 (output), 3 x 64 x 128, and the head, in F16.
    weights = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128) + 112 * 64
    check(mine[0]["weight_bytes"] == 2 * weights + 2 * 64, f"the shape has {mine[0]['weight_bytes']} bytes, by hand {2 * weights + 128}")
    for sweep, names in (("depth", 9), ("type", 5), ("attention", 3)):
        swept = report(shape, "--machine", machines[0], "--scenarios", "siso", "--sweep", sweep)
        check(len(swept["models"]) == names, f"--sweep {sweep} has {len(swept['models'])} models")
        check((sweep == "depth") == bool(swept["notes"]), f"--sweep {sweep} notes {swept['notes']}")
    with open(shape, "w", encoding="utf-8") as f:
        f.write('{"layers": 2, "width": 64}')
    fails(3, ["roofline", shape, "--machine", machines[0]], "'ffn' is missing")
    fails(2, ["roofline", "shape:nobody", "--machine", machines[0]], "llama-3.2-1b")


def paper():
    text = run("roofline", "--paper-compat")
    check(text.returncode == 0 and "verdict" in text.stdout, "--paper-compat prints no verdicts")
    whole = json.loads(run("roofline", "--paper-compat", "--json").stdout)
    check(len(whole["insights"]) == 6 and len(whole["machines"]) == 5, "--paper-compat --json is not whole")
    point = next(p for p in whole["points"] if (p["machine"], p["model"], p["type"], p["scenario"]) ==
                 ("M1 Pro", "qwen2.5-1.5b", "F16", "LISO"))
    check(round(point["compat"]["oi"]) == 18 and round(point["physical"]["decode_oi"], 1) == 1.0, f"{point}")


def compat(model):
    """--paper-compat of models: the paper's column beside the physical one, measured and computed."""
    swept = report(model, "--sweep", "type", "--scenarios", "siso", "--lengths", "8,16", "-n", "4", "-r", "1", "-t", "1",
                   "--paper-compat")
    rows = swept["paper_compat"]
    check(len(rows) == 3 and {r["scenario"] for r in rows} == {"SISO"}, f"--sweep type --paper-compat: {rows}")
    for r, name in zip(rows, ("F16", "Q8_0", "Q4_0")):
        phases = {p["phase"]: p for p in swept["points"] if p["operator"] == "all" and p["model"] == r["model"]}
        check(name in r["model"], f"{r['model']} is not in {name}")
        check(abs(r["physical"]["decode_oi"] / phases["decode"]["oi"] - 1) < 1e-9, f"physical OI of {name}")
        # Performance by intensity is the peak memory, whatever was measured: the paper's flaw.
        c = r["compat"]
        check(abs(c["flops_per_s"] / c["oi"] / c["peak_bytes"] - 1) < 1e-9, f"compat of {name}: {c}")
    machine = os.path.join(PROFILES, "m1-pro.toml")
    deep = report("shape:plm-1.8b", "--machine", machine, "--sweep", "attention", "--scenarios", "liso", "--paper-compat")
    check(len(deep["paper_compat"]) == 3, f"--sweep attention --paper-compat has {len(deep['paper_compat'])} rows")
    text = run("roofline", "shape:qwen2.5-1.5b", "--machine", machine, "--scenarios", "siso,lilo", "--paper-compat").stdout
    check("by RooflineBench's formulas" in text and text.count("LILO") >= 2, f"--paper-compat prints no table: {text[-500:]}")
    fails(2, ["roofline", model, "--paper-compat", "--csv"], "--json")


def experts():
    """Bytes of a model with experts are those of the experts that the run chose, beside the expected ones."""
    model = os.path.join(A.shared, "golden", "tiny", "qwen3moe.gguf")
    if not os.path.exists(model):
        return
    points = report(model, "--scenarios", "siso", "--lengths", "12,12", "-n", "4", "-r", "1", "-t", "1")["points"]
    for phase in ("prefill", "decode"):
        every = next(p for p in points if p["phase"] == phase and p["operator"] == "all")
        mine = next(p for p in points if p["phase"] == phase and p["operator"] == "experts")
        check(mine["expected_weight_bytes"] > 0 and "chosen" in every["sentence"], f"{phase}: {every['sentence']}")
        saved = mine["expected_weight_bytes"] - mine["weight_bytes"]
        check(abs(every["expected_weight_bytes"] - every["weight_bytes"] - saved) < 1, f"{phase}: both save the same bytes")
    check(all("expected_weight_bytes" not in p for p in points if p["operator"] == "attention"), "attention has no experts")


def test_roofline():
    model = tiny_file(layers=2, dim=64, ffn=128)
    measured(model)
    compat(model)
    experts()
    pages(model)
    computed()
    paper()
    fails(2, ["roofline"], "MODEL")
    fails(2, ["roofline", model, "-n", "-1"], "give 0 or more")
    fails(2, ["roofline", model, "--lengths", "5"], "two numbers")
    fails(2, ["roofline", model, "--lengths", "0,5"], "no usable length")
    fails(2, ["roofline", model, "--scenarios", "sisi"], "sisi")
    fails(2, ["roofline", model, "--sweep", "sideways"], "sideways")
    fails(2, ["roofline", model, "--json", "--csv"], "exclude")
    fails(2, ["roofline", model, "--context", "8"], "no room")
    for flag in ("-o", "--svg"):
        whole = open(model, "rb").read()
        fails(2, ["roofline", model, "--lengths", "8,8", flag, model], "is the input itself")
        check(open(model, "rb").read() == whole, f"{flag} MODEL overwrites the model")
        fails(5, ["roofline", model, "--lengths", "8,8", flag, os.path.join(T, "absent", "page")], "absent")
    fails(2, ["roofline", model, "-r", "0", "--lengths", "8,8"], "-r 0")
    fails(3, ["roofline", os.path.join(T, "absent.gguf")], "absent.gguf")


main(test_roofline)
