"""mutilate.py BIR_OPT FILE: the file cut at many places and with many bytes changed; every run must end in exit status 0 or 1.

The places are the same in every run: 200 cuts and 200 changes spread evenly over the file.
"""

import subprocess
import sys

COUNT = 200
bir_opt, path = sys.argv[1:]
with open(path, "rb") as file:
    text = file.read()


def variants():
    for i in range(COUNT):
        at = len(text) * i // COUNT
        yield f"cut at byte {at}", text[:at]
        # A multiple of an odd number reaches all byte values, among them quotes, brackets, NUL and what is no UTF-8.
        yield f"byte {at} changed", text[:at] + bytes([(text[at] + 37 * i + 1) % 256]) + text[at + 1 :]


bad = 0
for name, variant in variants():
    for form in ([], ["--print-op-generic"]):
        done = subprocess.run([bir_opt, *form, "-"], input=variant, capture_output=True, timeout=60)
        problem = None
        if done.returncode not in (0, 1):
            problem = f"exit status {done.returncode}"
        elif done.returncode == 1 and done.stdout:
            problem = "it failed and wrote output"
        elif done.returncode == 1 and b"error" not in done.stderr:
            problem = "it failed without an error"
        if problem:
            bad += 1
            print(f"{name}: {problem}\n{done.stderr.decode(errors='replace')[-600:]}")
sys.exit(1 if bad else 0)
