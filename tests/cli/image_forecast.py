"""`ridge image --spectrum`: how many steps are computed, the same bytes everywhere, recipes, refusals."""
import json
import os

from harness import T, check, fails, main, run

MINI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/anima-mini")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def reference(way, out, again):
    """The picture is the forecast one, the figures those of `ridge compare` with the exact one."""
    exact = os.path.join(T, "exact.png")
    small = [*way, "--steps", "8"]
    run(*small, "-o", exact)
    run(*small, "--spectrum", "-o", out)
    r = run(*small, "--spectrum", "--reference", "--json", "-o", again)
    check(r.returncode == 0 and read(again) == read(out), f"--reference changes the picture: {r.stderr}")
    got = json.loads(r.stdout)
    want = json.loads(run("compare", exact, out, "--json").stdout)
    check(got["reference"]["pictures"] == [{"seed": 1, "quality": want}], f"--reference: {got} instead of {want}")
    check(got["steps_computed"] == [s == "X" for s in "XXXX.X.X"], f"steps: {got['steps_computed']}")
    errors = [s["latent_errors"][0] for s in got["reference"]["steps"]]
    check(errors[:4] == [0, 0, 0, 0] and all(0 < e < 1 for e in errors[4:]), f"errors of the latents: {errors}")
    check([s["computed"] for s in got["reference"]["steps"]] == got["steps_computed"], "steps of the reference differ")
    r = run("image", "--repeat", out, "--reference", "-o", again)
    check(r.returncode == 0 and "predicted  " in r.stdout and "PSNR" in r.stdout, f"--reference: {r.stdout} {r.stderr}")


def test_forecast():
    out, again = os.path.join(T, "out.png"), os.path.join(T, "again.png")
    way = ["image", "--bundle", MINI, "-p", "red apple on a blue background", "--size", "48x32", "--seed", "1"]
    r = run(*way, "--steps", "28", "-o", out)
    check(r.returncode == 0 and "predicted" not in r.stderr, f"without --spectrum: {r.stderr}")
    plain = read(out)
    seen = {plain}
    for words, computed, predicted in ((["--spectrum"], 13, 15), (["--spectrum", "hidden"], 11, 17),
                                       (["--spectrum", "latent,blend=0,warmup=6,tail=3"], 15, 13),
                                       (["--spectrum", "hidden,penalise-constant=no,taylor=0.5"], 11, 17),
                                       (["--spectrum", "hidden", "--sampler", "er_sde"], 11, 17)):
        r = run(*way, "--steps", "28", *words, "-o", out)
        check(r.returncode == 0 and f"{computed} of 28 steps are computed, {predicted} predicted" in r.stderr,
              f"{words}: {r.returncode} {r.stderr}")
        picture = read(out)
        check(picture not in seen, f"{words} gives the bytes of another way")
        seen.add(picture)
        r = run("image", "--repeat", out, "-o", again, "--threads", "1", "--io", "buffered")
        check(r.returncode == 0 and read(again) == picture, f"--repeat after {words} gives other bytes: {r.stderr}")
        if words[-1] in ("--spectrum", "hidden"):
            r = run(*way, "--steps", "28", *words, "--isa", "avx2", "-o", again)
            check(r.returncode == 0 and read(again) == picture, f"{words} with avx2 gives other bytes: {r.stderr}")
    # On a smaller run also with scalar kernels, and several pictures at once.
    for form in ("latent,warmup=2", "hidden,warmup=2"):
        small = [*way, "--steps", "7", "--spectrum", form]
        run(*small, "-o", out)
        r = run(*small, "--isa", "scalar", "-o", again)
        check(r.returncode == 0 and read(again) == read(out), f"{form}, scalar: other bytes {r.stderr}")
        r = run(*small, "--batch", "2", "-o", again)
        check(r.returncode == 0 and read(again.replace(".png", "-1.png")) == read(out), f"{form}: other bytes in a batch")
    r = run(*way, "--steps", "4", "--spectrum", "-o", again)
    check(r.returncode == 0 and "no step to predict" in r.stderr, f"too few steps: {r.stderr}")

    reference(way, out, again)
    # The least that a refusal names is enough for both drawings of --reference.
    both = [*way, "--steps", "7", "--spectrum", "hidden,warmup=2", "--batch", "4", "--reference", "-o", again]
    least = run(*both, "--memory", "1M").stderr.split("give --memory ")[-1].split()[0]
    r = run(*both, "--memory", least)
    check(r.returncode == 0, f"--reference in {least}, which it named: {r.stderr}")
    run(*way, "--steps", "1", "-o", again)
    os.remove(again)
    fails(2, [*way, "--reference", "-o", again], "give --spectrum")
    fails(2, [*way, "--spectrum", "hiden", "-o", again], "'hiden' is no setting")
    fails(2, [*way, "--spectrum", "latent,blend=2", "-o", again], "between 0 and 1")
    fails(2, [*way, "--spectrum", "blend=x", "-o", again], "give a number")
    fails(2, [*way, "--spectrum", "blind=1", "-o", again], "penalise-constant")
    fails(2, ["image", "--repeat", out, "--spectrum", "-o", again], "leave it out")
    check(not os.path.exists(again), "a picture was left behind a failure")


main(test_forecast)
