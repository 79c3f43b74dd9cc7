"""pipelines.py BIR_OPT BIR_SIM KERNELS OUT: every kernel gives the same bits after every pipeline as before."""

import pathlib
import subprocess
import sys

bir_opt, bir_sim, kernels, out = sys.argv[1:]
PIPELINES = [
    ["--print-op-generic"],
    ["--canonicalize-names"],
    ["--unroll"],
    ["--unroll=factor=3"],
    ["--unroll=innermost"],
    ["--unroll", "--canonicalize-names"],
]


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


reference = pathlib.Path(kernels) / "reference.py"
for kernel in sorted(pathlib.Path(kernels).glob("*.bir")):
    name = kernel.stem
    run([sys.executable, str(reference), "write", name, "--seed", "0", "--out", out])
    inputs = ["--inputs", f"{out}/{name}.inputs.npz"]
    outputs = f"{out}/{name}.outputs.npz"
    run([bir_sim, str(kernel), *inputs, "--outputs", outputs])
    for pipeline in PIPELINES:
        text = run([bir_opt, str(kernel), *pipeline])
        run([bir_sim, "-", *inputs, "--expect-all", outputs], text)
