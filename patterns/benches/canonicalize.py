"""The greedy driver beside `mlir-opt -canonicalize` on the same algebra.

    cargo build --release
    python3 patterns/benches/canonicalize.py                 1,000,000 ops, 5 repetitions
    python3 patterns/benches/canonicalize.py --size 100000 --repetitions 9

The workload is `bir-gen identity`: a chain of scalar steps, three in five of which change nothing (`x + -0`, `x - 0`, `x * 1`). The
same chain for MLIR is `arith.addf`, `subf` and `mulf` on f32 with `arith.constant` operands, whose folders know the same laws; its
single result is returned, so that nothing is dead. Both tools run in turn in every repetition and report the time of the pass alone;
the table shows medians, and the median of the ratios.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "support"))

import tools  # noqa: E402

STEP = re.compile(r"tensor_scalar (\w+) (%\w+) <- (%\w+), (\S+)")
OPS = {"add": "addf", "subtract": "subf", "multiply": "mulf", "divide": "divf"}
PIPELINE = "--pass-pipeline=apply_patterns{set=identities,driver=greedy}"


def to_mlir(text):
    """The chain of steps as a function of one f32; how many steps it has."""
    steps = STEP.findall(text)
    constants = {number: f"%c{at}" for at, number in enumerate(dict.fromkeys(step[3] for step in steps))}
    lines = [f"func.func @main({steps[0][2]}: f32) -> f32 {{"]
    for number, name in constants.items():
        value = number if "." in number else f"{number}.0"
        lines.append(f"  {name} = arith.constant {value} : f32")
    names = {steps[0][2]: steps[0][2]}
    for at, (op, out, source, number) in enumerate(steps):
        lines.append(f"  %v{at} = arith.{OPS[op]} {names[source]}, {constants[number]} : f32")
        names[out] = f"%v{at}"
    lines += [f"  return %v{len(steps) - 1} : f32", "}"]
    return "\n".join(lines) + "\n", len(steps)


def seconds(command, pattern):
    """What a tool says a pass took."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(pattern, done.stderr + done.stdout, re.M)
    if not found:
        raise SystemExit(f"{command[0]} printed no time:\n{done.stderr[:2000]}")
    scale = {"ms": 1e-3, "us": 1e-6}.get(found.group(2) if found.lastindex > 1 else "s", 1.0)
    return float(found.group(1)) * scale


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000, help="instructions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target" / "release", help="folder of our binaries")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    mlir_opt = tools.mlir_opt()
    if mlir_opt is None:
        raise SystemExit("there is no mlir-opt here; the package is mlir-19-tools")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = pathlib.Path(folder, "chain.bir"), pathlib.Path(folder, "chain.mlir")
        command = [options.bin / "bir-gen", "identity", "--seed", str(options.seed), "--size", str(options.size)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        ours.write_text(text)
        mlir, steps = to_mlir(text)
        theirs.write_text(mlir)
        runs = []
        for _ in range(options.repetitions):
            bir = seconds(
                [options.bin / "bir-opt", ours, PIPELINE, "--no-output", "--no-verify", "--timing"],
                r"^\s*([\d.]+) (s|ms|us)\s.*apply_patterns",
            )
            peer = seconds(
                [mlir_opt, "-canonicalize", "-mlir-timing", "-mlir-disable-threading", "-verify-each=false", theirs, "-o", "/dev/null"],
                r"^\s*([\d.]+)\s.*Canonicalizer",
            )
            runs.append((bir / steps * 1e6, peer / steps * 1e6))
    figures = {
        "steps": steps,
        "bir-opt us/op": statistics.median(run[0] for run in runs),
        "mlir-opt us/op": statistics.median(run[1] for run in runs),
        "mlir-opt / bir-opt": statistics.median(run[1] / run[0] for run in runs),
    }
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:20} {figure:12.3f}" if isinstance(figure, float) else f"{name:20} {figure:12}")


if __name__ == "__main__":
    main()
