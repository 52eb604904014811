"""`ridge kernels`."""
import json

from harness import check, fails, main, run


def test_kernels():
    r = run("kernels", "--quick")
    check(r.returncode == 0 and "Q4_K" in r.stdout and all(len(line) <= 80 for line in r.stdout.splitlines()), f"kernels: {r.stdout}")
    j = json.loads(run("kernels", "--quick", "--json").stdout)
    chosen = [(k["op"], k["type"]) for k in j["kernels"] if k["chosen"]]
    everything = {(k["op"], k["type"]) for k in j["kernels"]}
    check(len(chosen) == len(set(chosen)) and set(chosen) == everything, "one kernel is chosen for every operation and type")
    speeds = [k for k in j["kernels"] if "decode_gb_per_s" in k]
    check(len(speeds) == len({k["type"] for k in j["kernels"] if k["op"] == "matmul_float"}), f"kernels measures {len(speeds)}")
    check(all(k["decode_gb_per_s"] > 0 and k["prefill_gop_per_s"] > 0 for k in speeds), "kernels: a speed is 0")
    scalar = json.loads(run("kernels", "--quick", "--json", "--isa", "scalar").stdout)
    check(all(k["isa"] == "scalar" for k in scalar["kernels"] if k["chosen"]), "kernels --isa scalar")
    fails(2, ["kernels", "--isa", "mmx"], "mmx")


main(test_kernels)
