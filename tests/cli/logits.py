"""`ridge logits`: the same bytes for every way to compute them, and no half file."""
import os
import subprocess

from harness import A, T, check, main, read_logits, run, tiny_file


def test_logits():
    model = tiny_file(layers=3)
    base, outputs = os.path.join(T, "a.npy"), {}
    ways = [[], ["--threads", "1"], ["--isa", "scalar"], ["--io", "threads"], ["--io", "buffered"], ["--context", "200"]]
    for way in ways:
        r = run("logits", model, "--tokens", "1,2,3,200,7", "-o", base, *way)
        check(r.returncode == 0 and r.stdout == "", f"logits {way}: {r.returncode} {r.stderr}")
        outputs[" ".join(way)] = read_logits(base)
    check(len(set(outputs.values())) == 1, f"logits differ between {list(outputs)}")
    check(len(outputs[""]) == 128 + 5 * 259 * 4, f"the array has {len(outputs[''])} bytes")
    full = subprocess.run(["bash", "-c", f"ulimit -f 1; '{A.ridge}' logits '{model}' --tokens 1,2,3 -o '{base}'"],
                          capture_output=True, text=True)
    check(full.returncode == 5, f"logits to a full disk: {full.returncode} {full.stderr}")
    check(not [n for n in os.listdir(T) if "partial" in n], "a half file was left")


main(test_logits)
