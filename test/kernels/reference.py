"""Reference data of the kernels in this folder.

    reference.py write softmax --seed 0 --out DIR      DIR/softmax.inputs.npz and DIR/softmax.expected.npz
    reference.py compare softmax --seed 0 OUTPUTS.npz  compare a run's outputs with the reference
    reference.py signatures                            every <name>.py against the declarations of <name>.bir

Beside every kernel <name>.bir, <name>.py has `inputs(seed)` and `expected(inputs)`, dictionaries from location names to arrays,
and `TOLERANCE`, (relative, absolute) by output; (0, 0) means equal bits, NaN equal to NaN.

An `.npz` holds one array per location, in the location's shape. numpy cannot name the dtypes of `ml_dtypes` in a file, so those
arrays are stored as unsigned integers of the same width: their bits.
"""

import argparse
import importlib
import pathlib
import re
import sys

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent

# Spelling in .bir text -> numpy dtype.
DTYPES = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "bool": np.dtype(np.bool_),
    **{f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for sign in "iu" for bits in (8, 16, 32, 64)},
}

DECLARATION = re.compile(
    r"%(?P<name>\S+)\s*=\s*alloc\s+dram<(?P<shape>(?:\d+x)*)(?P<dtype>\w+)>.*kind\s*=\s*(?P<kind>input|output|inout)"
)


def kernels():
    """Names of all kernels, sorted."""
    return sorted(path.stem for path in HERE.glob("*.bir"))


def reference(kernel):
    """The module <kernel>.py."""
    sys.path.insert(0, str(HERE))
    return importlib.import_module(kernel)


def declarations(kernel):
    """name -> (kind, shape, dtype) of the kernel's inputs and outputs, from its text."""
    text = (HERE / f"{kernel}.bir").read_text()
    return {
        match["name"]: (match["kind"], tuple(int(n) for n in match["shape"].split("x")[:-1]), DTYPES[match["dtype"]])
        for match in DECLARATION.finditer(text)
    }


def is_named_by_numpy(dtype):
    return dtype.kind in "biuf" and dtype.name not in dir(ml_dtypes)


def save(path, arrays):
    """Write an `.npz`; see the module's doc for what happens to dtypes numpy has no name for."""
    stored = {
        name: array if is_named_by_numpy(array.dtype) else array.view(f"u{array.dtype.itemsize}")
        for name, array in arrays.items()
    }
    np.savez(path, **stored)


def load(path, dtypes):
    """Read what `save` wrote; `dtypes` gives each array's real dtype by name."""
    with np.load(path) as file:
        return {name: file[name].view(dtypes[name]) for name in file.files}


def mismatch(actual, wanted, tolerance):
    """What is wrong with `actual`, or None."""
    if actual.shape != wanted.shape:
        return f"shape is {actual.shape}, expected {wanted.shape}"
    a, w = actual.astype(np.float64), wanted.astype(np.float64)
    relative, absolute = tolerance
    if (relative, absolute) == (0, 0):
        bits = f"u{wanted.dtype.itemsize}"
        wrong = (actual.view(bits) != wanted.view(bits)) & ~(np.isnan(a) & np.isnan(w))
    else:
        wrong = ~np.isclose(a, w, rtol=relative, atol=absolute, equal_nan=True)
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} elements differ, the first at {list(first)}: {a[first]}, expected {w[first]}"


def write(args):
    module = reference(args.kernel)
    inputs = module.inputs(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    save(args.out / f"{args.kernel}.inputs.npz", inputs)
    save(args.out / f"{args.kernel}.expected.npz", module.expected(inputs))


def compare(args):
    module = reference(args.kernel)
    wanted = module.expected(module.inputs(args.seed))
    actual = load(args.outputs, {name: array.dtype for name, array in wanted.items()})
    problems = [f"output '{name}' is missing" for name in wanted if name not in actual]
    for name in wanted.keys() & actual.keys():
        problem = mismatch(actual[name], wanted[name], module.TOLERANCE[name])
        if problem:
            problems.append(f"output '{name}': {problem}")
    return sorted(problems)


def signatures(_args):
    problems = []
    for kernel in kernels():
        module = reference(kernel)
        declared = declarations(kernel)
        inputs = module.inputs(0)
        for kind, arrays in (("input", inputs), ("output", module.expected(inputs))):
            wanted = {name: rest for name, (k, *rest) in declared.items() if k in (kind, "inout")}
            found = {name: [array.shape, array.dtype] for name, array in arrays.items()}
            if wanted != found:
                problems.append(f"{kernel}: {kind}s declared {wanted}, the reference has {found}")
        if set(module.TOLERANCE) != {name for name, (kind, *_) in declared.items() if kind != "input"}:
            problems.append(f"{kernel}: TOLERANCE does not name exactly the outputs")
        print(f"{kernel}: {', '.join(declared)}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("write")
    command.add_argument("kernel", choices=kernels())
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    command.set_defaults(run=write)
    command = commands.add_parser("compare")
    command.add_argument("kernel", choices=kernels())
    command.add_argument("outputs", type=pathlib.Path)
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(run=compare)
    command = commands.add_parser("signatures")
    command.set_defaults(run=signatures)
    args = parser.parse_args()
    problems = args.run(args)
    for problem in problems or []:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
