"""The example program of examples/."""
import subprocess

from harness import A, check, main, tiny_file


def test_example():
    model = tiny_file()
    r = subprocess.run([A.example, model, "2000", "the"], capture_output=True, text=True, errors="replace")
    check(r.returncode == 0, f"the example: {r.returncode} {r.stderr}")
    r = subprocess.run([A.example, model, "1", "the"], capture_output=True, text=True)
    check(r.returncode == 4, f"the example in 1 MiB: {r.returncode} {r.stderr}")


main(test_example)
