"""unroll_kernels.py BIR_OPT FOLDER: unrolls every kernel in several ways, and checks each result and its determinism."""

import pathlib
import subprocess
import sys

bir_opt, folder = sys.argv[1:]


def run(*flags, text=None):
    done = subprocess.run([bir_opt, *flags], input=text, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"{' '.join(flags)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


for kernel in sorted(pathlib.Path(folder).glob("*.bir")):
    for options in ("factor=full", "factor=2", "factor=3", "factor=5", "innermost"):
        flag = f"--unroll={options}"
        once = run(str(kernel), flag, "--verify-each=full", "--verify-roundtrip", "--threads=1")
        again = run(str(kernel), flag, "--threads=4")
        if once != again:
            sys.exit(f"{kernel} {flag}: the number of threads changes the output")
        if run("-", text=once) != once:
            sys.exit(f"{kernel} {flag}: what is printed does not read back to itself")
