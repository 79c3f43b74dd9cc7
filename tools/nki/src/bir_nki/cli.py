"""`bir-nki`: from an NKI file to `.bir`, and to numbers."""

from __future__ import annotations

import argparse
import ast
import inspect
import pathlib
import re
import sys
from typing import Any

import numpy as np

from . import load, standin
from .dtypes import as_dtype
from .errors import KernelError, ToolError
from .trace import Spec, Trace, save_arrays, trace, unwrapped, write_text

_TENSOR = re.compile(r"(?P<dtype>[a-z][a-z0-9_]*)\[(?P<shape>[0-9, ]*)\]")


def argument(text: str) -> tuple[str, Any]:
    """`x=f32[128,512]`, `eps=1e-6`, `causal=true`, `axes=(0,1)`, `mode=fast`."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"`{text}` is not NAME=VALUE, e.g. x=f32[128,512] or eps=1e-6")
    match = _TENSOR.fullmatch(value)
    if match:
        try:
            kind = as_dtype(match["dtype"])
        except KernelError as error:
            raise argparse.ArgumentTypeError(error.message + (f"; {error.help}" if error.help else "")) from None
        return name, Spec(tuple(int(n) for n in match["shape"].split(",") if n.strip()), kind)
    if value in ("true", "false", "none"):
        return name, {"true": True, "false": False, "none": None}[value]
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        if "[" in value:
            raise argparse.ArgumentTypeError(f"`{value}` is no tensor such as f32[128,512]") from None
        return name, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bir-nki", description="Traces NKI kernels into .bir.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("trace", "write the kernel as .bir"),
        ("simulate", "trace the kernel, run it on bir-sim and print (or write) its results"),
    ):
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("kernel", metavar="FILE.py:KERNEL", help="or installed.module:KERNEL")
        command.add_argument("--arg", type=argument, action="append", default=[], metavar="NAME=VALUE", help="x=f32[128,512], eps=1e-6; may be repeated")
        command.add_argument("--inputs", type=pathlib.Path, metavar="FILE.npz", help="arrays by argument name, beside or instead of --arg")
        command.add_argument("--grid", default=None, metavar="N[,N]", help="programs; 2 is one per core of a pair")
        command.add_argument("--target", default="trn2", help="trn1, trn2 or trn3 [trn2]")
        command.add_argument("--pipeline", default=None, metavar="-O1|PASSES", help="passes to run on the traced kernel")
        command.add_argument("--stub", action="append", default=[], metavar="MODULE", help="a module the file imports that the kernel does not need")
        command.add_argument("--force", action="store_true", help="use the stand-in `nki` even where a Neuron SDK is installed")
        command.add_argument("-o", "--output", type=pathlib.Path, help=".bir to write [standard output]" if name == "trace" else ".npz to write results to")
        if name == "trace":
            command.add_argument("--no-verify", action="store_true", help="write it as recorded, without bir-opt")
        command.add_argument("--partial-outputs", action="store_true", help="results need not be written in full: the rest is zero")
        command.add_argument("--random", type=int, metavar="SEED", default=None, help="make up data for arguments that have none")
        if name == "trace":
            command.add_argument("--write-inputs", type=pathlib.Path, metavar="FILE.npz", help="write the arguments' data for bir-sim --inputs")
    return parser


def _values(args: argparse.Namespace, kernel: Any) -> dict[str, Any]:
    values: dict[str, Any] = dict(args.arg)
    if args.inputs is not None:
        try:
            with np.load(args.inputs) as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError) as error:
            raise ToolError(f"cannot read `{args.inputs}`: {error}") from None
        known = inspect.signature(unwrapped(kernel)).parameters
        for name, array in arrays.items():
            spec = values.get(name)
            if isinstance(spec, Spec):
                # numpy files cannot name bf16 and fp8: their bits come as whole numbers
                if array.dtype != spec.dtype.dtype and array.dtype.kind == "u" and array.dtype.itemsize == spec.dtype.itemsize:
                    array = array.view(spec.dtype.dtype)
                if array.shape != spec.shape:
                    raise ToolError(f"`{name}` in `{args.inputs}` has shape {list(array.shape)}, --arg says {spec}")
            if name in known:
                values[name] = array
    if args.random is not None:
        rng = np.random.default_rng(args.random)
        for name, value in values.items():
            if isinstance(value, Spec):
                values[name] = value.random(rng)
    return values


def _run(args: argparse.Namespace) -> None:
    if not standin.install(args.force):
        raise ToolError("a Neuron SDK is installed, and its `nki` cannot be traced: use --force for the stand-in")
    load.stub(args.stub)
    kernel = load.load_kernel(args.kernel)
    grid = tuple(int(n) for n in args.grid.split(",")) if args.grid else None
    verify = not getattr(args, "no_verify", False)
    traced: Trace = trace(kernel, target=args.target, grid=grid, verify=verify, partial_outputs=args.partial_outputs, **_values(args, kernel))
    if args.pipeline:
        traced = traced.compiled(args.pipeline)
    if args.command == "trace":
        if args.write_inputs:
            traced.write_inputs(args.write_inputs)
        if args.output and str(args.output) != "-":
            write_text(args.output, traced.text)
        else:
            sys.stdout.write(traced.text)
        return
    results = traced.simulate()
    results = results if isinstance(results, tuple) else (results,)
    named = dict(zip(traced.output_names, results))
    if args.output:
        save_arrays(args.output, named)
        return
    for name, array in named.items():
        print(f"{name}: {as_dtype(array.dtype).bir}{list(array.shape)}")
        print(array)


def main(argv: list[str] | None = None) -> int:
    """Exit codes: 0 success, 1 the kernel or a file is wrong and nothing was written, 2 the command line is wrong."""
    args = _parser().parse_args(argv)
    try:
        _run(args)
    except (KernelError, ToolError) as error:
        text = str(error)
        print(text if isinstance(error, KernelError) else f"error: {text}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
