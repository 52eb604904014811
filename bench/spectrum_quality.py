#!/usr/bin/env python3
"""What Spectrum's forecasts cost in quality, beside plain sampling with as many computed steps.

Draws prompts × seeds with every step computed, with forecasts (`ridge image --spectrum`) and with fewer steps, holds
each picture against the full run of the same prompt, seed and number of steps (`ridge compare`), and prints a Markdown
table: means over all pictures, and the time of all steps against the full run's. Ways are interleaved by prompt.

usage: bench/spectrum_quality.py --bundle FOLDER [--ridge PROGRAM] [--steps 20,28,50] [--seeds 4] [--size 128x128]
                                 [--sampler euler] [--prompts FILE] [--threads N] [--json FILE]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

PROMPTS = ["red apple on a blue background", "cat on a yellow background", "rocket on a black background",
           "lollipop on a red background"]
FORECASTS = {"latent": "latent", "latent, constant free": "latent,penalise-constant=no",
             "latent, Taylor only": "latent,blend=0", "hidden": "hidden",
             "hidden, constant free": "hidden,penalise-constant=no"}
FIGURES = ("psnr_db", "ssim", "brightness_shift")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--bundle", required=True, help="folder with the image model")
    p.add_argument("--ridge", default="build/release/bin/ridge")
    p.add_argument("--steps", default="20,28,50", help="lengths of the full run")
    p.add_argument("--seeds", type=int, default=4, help="pictures of each prompt, drawn as one batch")
    p.add_argument("--size", default="128x128")
    p.add_argument("--sampler", default="euler")
    p.add_argument("--prompts", help="a file with a prompt a line")
    p.add_argument("--threads", default="1")
    p.add_argument("--json", help="also write all figures there")
    return p.parse_args()


def draw(a, prompt, steps, name, folder, spectrum=None):
    """Draws a batch; the files, and what --json said."""
    out = os.path.join(folder, name + ".png")
    words = [a.ridge, "image", "--bundle", a.bundle, "-p", prompt, "--size", a.size, "--steps", str(steps), "--seed", "1",
             "--batch", str(a.seeds), "--sampler", a.sampler, "--threads", a.threads, "--json", "-q", "-o", out]
    if spectrum:
        words += ["--spectrum", spectrum]
    r = subprocess.run(words, capture_output=True, text=True)
    if r.returncode != 0:
        sys.exit(f"{' '.join(words)}: {r.stderr.strip()}")
    return json.loads(r.stdout)


def compare(a, reference, picture):
    r = subprocess.run([a.ridge, "compare", reference, picture, "--json"], capture_output=True, text=True)
    if r.returncode != 0:
        sys.exit(r.stderr.strip())
    return json.loads(r.stdout)


def ways_of(a, prompt, steps, folder):
    """Every way for one prompt: name → (computed steps, seconds, figures by picture)."""
    full = draw(a, prompt, steps, "full", folder)
    out = {"full": (steps, full["seconds"]["steps"], [])}

    def add(name, told):
        figures = [compare(a, x["file"], y["file"]) for x, y in zip(full["pictures"], told["pictures"])]
        out[name] = (sum(told["steps_computed"]), told["seconds"]["steps"], figures)

    for name, spectrum in FORECASTS.items():
        add(name, draw(a, prompt, steps, "forecast", folder, spectrum))
    for computed in sorted({out[name][0] for name in FORECASTS}):
        add(f"plain, {computed} steps", draw(a, prompt, computed, "plain", folder))
    return out


def summary(prompts):
    """Means over prompts of ways_of()."""
    rows = {}
    for name in prompts[0]:
        ways = [p[name] for p in prompts]
        figures = [f for w in ways for f in w[2]]
        row = {"computed": ways[0][0], "pictures": len(figures),
               "speed_up": statistics.median(p["full"][1] / p[name][1] for p in prompts)}
        for key in FIGURES:
            values = [f[key] for f in figures if f[key] is not None]
            row[key] = statistics.mean(values) if values else None
        row["psnr_all"] = [f["psnr_db"] for f in figures]
        row["brightness_abs"] = statistics.mean(abs(f["brightness_shift"]) for f in figures) if figures else None
        rows[name] = row
    return rows


def main():
    a = arguments()
    prompts = PROMPTS
    if a.prompts:
        with open(a.prompts) as f:
            prompts = [line.strip() for line in f if line.strip()]
    everything = {}
    print("| steps | way | computed | speed-up | PSNR | SSIM | brightness | brightness, absolute |")
    print("|---|---|---|---|---|---|---|---|")
    for steps in [int(s) for s in a.steps.split(",")]:
        with tempfile.TemporaryDirectory() as folder:
            rows = summary([ways_of(a, prompt, steps, folder) for prompt in prompts])
        everything[steps] = rows
        for name, r in rows.items():
            if name == "full":
                continue
            print(f"| {steps} | {name} | {r['computed']} | {r['speed_up']:.2f} | {r['psnr_db']:.2f} dB | {r['ssim']:.4f} | "
                  f"{100 * r['brightness_shift']:+.2f} % | {100 * r['brightness_abs']:.2f} % |", flush=True)
        for name in FORECASTS:
            plain = rows[f"plain, {rows[name]['computed']} steps"]
            pairs = [(x, y) for x, y in zip(rows[name]["psnr_all"], plain["psnr_all"]) if x is not None and y is not None]
            won = sum(x > y for x, y in pairs)
            print(f"{steps} steps, {name}: {rows[name]['psnr_db'] - plain['psnr_db']:+.2f} dB against plain sampling with "
                  f"{rows[name]['computed']} steps, better for {won} of {len(pairs)} pictures", file=sys.stderr)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(everything, f, indent=1)


if __name__ == "__main__":
    main()
