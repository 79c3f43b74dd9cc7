"""Tracing a kernel, and what is done with the result: verify, optimise, simulate."""

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from . import assign, capacity, compute, language, programs, record
from .dtypes import DType, as_dtype
from .errors import KernelError, Rejected, ToolError, fail, is_ours
from .record import Module, Recorder
from .table import table, tool
from .storage import Storage
from .tensor import Tensor

_LOC = re.compile(r'loc\("((?:[^"\\]|\\.)*)":(\d+):(\d+)\)\s*\{?\s*$')

_PARTIAL = "write all of it, or trace with `partial_outputs` (`--partial-outputs`): the rest is zero then"
_UNWRITTEN = re.compile(r"output `%(\w+)` .* never written")


@dataclasses.dataclass(frozen=True)
class Spec:
    """Shape and element type of an argument that has no data."""

    shape: tuple[int, ...]
    dtype: DType

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", as_dtype(self.dtype))

    def __str__(self) -> str:
        return f"{self.dtype.bir}[{','.join(map(str, self.shape))}]"

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Data made up for it: normal numbers, or whole ones from 0 to 7."""
        if self.dtype.is_float:
            return rng.standard_normal(self.shape).astype(self.dtype.dtype)
        if self.dtype.kind == "x":
            raise ToolError(f"data of {self} cannot be made up: give --inputs")
        return rng.integers(0, 8, self.shape).astype(self.dtype.dtype)


class Trace:
    """A traced (or optimised) kernel: `.bir` text, its arguments, and where its results are."""

    def __init__(
        self, name: str, text: str, inputs: dict[str, Any], outputs: list[Tensor], storages: dict[str, Storage], files: dict[str, str],
        instructions: int, single: bool, written: list[str],
        cuts: dict[str, tuple[str, int]],
    ) -> None:  # fmt: skip
        self.name = name
        #: The program as text.
        self.text = text
        #: Arrays (or specs) by location name.
        self.inputs = inputs
        self._outputs = outputs
        self._storages = storages
        self._files = files
        #: How many instructions the kernel recorded.
        self.instructions = instructions
        self._single = single
        self._written = written
        self._cuts = cuts

    @property
    def output_names(self) -> list[str]:
        """Location names of the results, in the order the kernel returned them."""
        return [t.storage.name for t in self._outputs]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the text; the file appears whole or not at all."""
        write_text(path, self.text)

    def write_inputs(self, path: str | os.PathLike[str]) -> None:
        """Write the arguments as an `.npz` that `bir-sim --inputs` reads."""
        missing = [name for name, value in self.inputs.items() if isinstance(value, Spec)]
        if missing:
            raise ToolError(f"there is no data for {', '.join(missing)}")
        rows = {name: s.declared for name, s in self._storages.items() if s.index_row is not None}
        save_arrays(path, {name: array.reshape(rows.get(name, array.shape)) for name, array in self.inputs.items()})

    def verified(self) -> Trace:
        """The same, after `bir-opt` has verified it and printed it in its own way. Raises `Rejected`."""
        return self._through(["--verify-each=full"])

    def compiled(self, pipeline: str = "-O1", validate: str | None = None) -> Trace:
        """After passes: `-O1` to `-O3`, or a pipeline string such as `unroll, dce`.

        `validate` says when they are checked, as `bir-opt --validate` does: with the arguments of the trace, or with random ones
        where it was made of specs.
        """
        flags = [pipeline] if pipeline.startswith("-O") else [f"--pass-pipeline={pipeline}"] if pipeline else []
        if validate is None:
            return self._through(flags)
        flags.append(f"--validate={validate}")
        if any(isinstance(value, Spec) for value in self.inputs.values()):
            return self._through(flags)
        with tempfile.TemporaryDirectory(prefix="bir-nki-") as folder:
            self.write_inputs(pathlib.Path(folder, "in.npz"))
            return self._through([*flags, f"--inputs={folder}/in.npz"])

    def _through(self, flags: list[str]) -> Trace:
        run = subprocess.run(
            [tool("bir-opt"), "-", "--diagnostics=json", *flags], input=self.text.encode(), capture_output=True, env={**os.environ, "NO_COLOR": "1"}
        )
        if run.returncode:
            raise self._rejected(run.stderr.decode(errors="replace"))
        out = Trace(self.name, run.stdout.decode(), self.inputs, self._outputs, self._storages, self._files, self.instructions, self._single, self._written, self._cuts)
        return out

    def _rejected(self, stderr: str) -> Exception:
        lines = self.text.splitlines()
        found: list[KernelError] = []
        for line in stderr.splitlines():
            try:
                finding = json.loads(line)
            except ValueError:
                continue
            if finding.get("severity") != "error":
                continue
            file, number = self._place(lines, finding.get("line", 0))
            help = finding.get("help")
            unwritten = _UNWRITTEN.search(finding["message"])
            if unwritten:
                help = _PARTIAL
                if unwritten[1] in self._cuts:
                    file, number = self._cuts[unwritten[1]]
                    help = f"what is stored here holds nothing where a mask was false; {help}"
            found.append(KernelError(finding["message"], file, number, help))
        if not found:
            return ToolError(f"bir-opt failed:\n{stderr.strip()}")
        if all(error.file is None for error in found):
            # the command line, not the kernel
            return ToolError("; ".join(f"{error.message}{f' ({error.help})' if error.help else ''}" for error in found))
        return Rejected(found)

    def _place(self, lines: list[str], at: int) -> tuple[str | None, int]:
        """The Python line a line of the text came from."""
        if 1 <= at <= len(lines):
            match = _LOC.search(lines[at - 1])
            if match:
                return self._files.get(match[1], match[1]), int(match[2])
        return None, 0

    def simulate(self, *, target_flags: tuple[str, ...] = (), in_place: bool = False) -> Any:
        """Run it on `bir-sim`; the kernel's results as numpy arrays, shaped as the kernel returned them.

        With `in_place`, arguments that the kernel writes are written too, where they are arrays that can be.
        """
        with tempfile.TemporaryDirectory(prefix="bir-nki-") as folder:
            program = pathlib.Path(folder, f"{self.name}.bir")
            program.write_text(self.text)
            self.write_inputs(pathlib.Path(folder, "in.npz"))
            outputs = pathlib.Path(folder, "out.npz")
            run = subprocess.run(
                [tool("bir-sim"), str(program), "--inputs", f"{folder}/in.npz", "--outputs", str(outputs), *target_flags],
                capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"},
            )  # fmt: skip
            if run.returncode:
                raise self._failed(run.stderr)
            with np.load(outputs) as file:
                arrays = {name: file[name].view(self._storages[name].dtype.dtype) for name in file.files}
        if in_place:
            for name in self._written:
                array = self.inputs[name]
                if isinstance(array, np.ndarray) and array.flags.writeable and name in arrays:
                    array[...] = arrays[name].reshape(array.shape)
        results = [_seen(t, arrays[t.storage.name]) for t in self._outputs]
        return results[0] if self._single else tuple(results)

    def _failed(self, stderr: str) -> Exception:
        match = re.search(r"\[[^\]\s]*\.bir:(\d+):\d+\]", stderr)
        message = next((line.strip(" ×x") for line in stderr.splitlines() if "×" in line or line.strip().startswith("x ")), stderr.strip())
        if match:
            file, number = self._place(self.text.splitlines(), int(match[1]))
            if file:
                return Rejected([KernelError(message, file, number, _PARTIAL if message.endswith("which is an output") else None)])
        return ToolError(f"bir-sim failed: {stderr.strip()}")


def _seen(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """The part and shape of an output that the kernel returned."""
    # numpy strides bits of any dtype, but not ml_dtypes' own
    flat = np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")
    size = flat.itemsize
    view = np.lib.stride_tricks.as_strided(
        flat[tensor.offset :], shape=tensor.shape, strides=tuple(step * size for step, _ in tensor.dims), writeable=False
    )
    return np.array(view).view(array.dtype)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file under another name beside it, then rename it."""
    target = pathlib.Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def save_arrays(path: str | os.PathLike[str], arrays: dict[str, np.ndarray]) -> None:
    """An `.npz`; what numpy cannot name (bf16, fp8) is stored as bits of its width."""
    stored = {}
    for name, array in arrays.items():
        plain = array.dtype.kind in "biuf" and array.dtype.type.__module__ == "numpy"
        stored[name] = array if plain else array.view(f"u{array.dtype.itemsize}")
    with open(path, "wb") as file:
        np.savez(file, **stored)  # type: ignore[arg-type]


# ---- arguments ----


class _Arguments:
    """Kernel arguments become inputs of the module."""

    def __init__(self, recorder: Recorder, module: Module) -> None:
        self.recorder = recorder
        self.module = module
        self.data: dict[str, Any] = {}
        self.storages: list[Storage] = []

    def convert(self, name: str, value: Any) -> Any:
        if isinstance(value, Spec):
            return self._input(name, value.shape, value.dtype, value)
        if hasattr(value, "detach") and hasattr(value, "numpy"):
            value = value.detach().cpu().numpy()
        if isinstance(value, np.ndarray):
            try:
                kind = as_dtype(value.dtype)
            except KernelError as error:
                error.message = f"argument `{name}`: {error.message}"
                error.help = f"convert it, e.g. `{name}.astype(np.float32)`"
                raise
            return self._input(name, value.shape, kind, value)
        if isinstance(value, (list, tuple)) and any(isinstance(v, (np.ndarray, Spec)) for v in value):
            return type(value)(self.convert(f"{name}_{at}", v) for at, v in enumerate(value))
        if isinstance(value, dict):
            return {key: self.convert(f"{name}_{key}", v) for key, v in value.items()}
        return value

    def _input(self, name: str, shape: tuple[int, ...], kind: DType, data: Any) -> Tensor:
        shape = tuple(int(n) for n in shape) or (1,)
        storage = Storage(self.module.unique(name), "dram", shape, kind)
        if 0 in shape:
            raise fail(f"argument `{name}` of shape {list(shape)} has no elements")
        storage.kind = "input"
        if self.module.core is not None:
            storage.attrs = {"space": "shared"}  # both cores are given the same arrays
        self.storages.append(storage)
        self.module.storages.append(storage)
        self.data[storage.name] = data.reshape(shape) if isinstance(data, np.ndarray) else Spec(shape, kind)
        return compute.whole(storage)


def unwrapped(kernel: Any) -> Callable[..., Any]:
    """The Python function of a kernel, whatever decorators wrap it."""
    seen = 0
    while hasattr(kernel, "__wrapped__") and seen < 100:
        kernel = kernel.__wrapped__
        seen += 1
    if not callable(kernel):
        raise KernelError(f"`{kernel!r}` is no kernel")
    return kernel  # type: ignore[no-any-return]


def _place(function: Callable[..., Any]) -> tuple[str | None, int]:
    """Where a kernel is defined: a function, a partial one, or an object that is called."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(getattr(type(function), "__call__", None), "__code__", None)
    return (None, 0) if code is None else (code.co_filename, code.co_firstlineno)


def _grid(grid: Any) -> tuple[int, ...]:
    if grid is None:
        return ()
    # `kernel[0]` is a way to say one program
    return tuple(max(1, int(n)) for n in (grid if isinstance(grid, (tuple, list)) else (grid,)))


def trace(
    kernel: Any, *args: Any, target: str = "trn2", grid: Any = None, verify: bool = True, partial_outputs: bool = False, **kwargs: Any
) -> Trace:  # fmt: skip
    """Run a kernel's Python and record its instructions.

    Arguments are numpy arrays (or `Spec`s, for shapes without data) and plain values, as the kernel takes them. A grid of 2 makes a program
    of two modules, one per core, unless the kernel is of the old style; other grids run their programs one after the other. With
    `partial_outputs` a kernel need not write all of its results: the rest is zero. Raises `KernelError` at the kernel's own line.
    """
    grid = _grid(grid) or _grid(getattr(kernel, "grid", None))
    function = unwrapped(kernel)
    old_style = bool(getattr(kernel, "one_core", False))
    two_cores = grid == (2,) and target != "trn1" and not old_style
    # A trace makes many small objects and hardly any cycles.
    collecting = gc.isenabled()
    gc.disable()
    try:
        try:
            recorder, results, arguments = _recorded(function, args, kwargs, target, grid, two_cores, old_style)
        except programs.Meet:
            recorder, results, arguments = _recorded(function, args, kwargs, target, grid, two_cores, old_style, in_turns=True)
    finally:
        if collecting:
            gc.enable()
    outputs = _outputs(recorder, results, arguments, _place(function))
    if partial_outputs:
        for s in (s for module in recorder.modules for s in module.storages if s.kind == "output"):
            s.kind = "inout"
            arguments.data[s.name] = np.zeros(s.shape, s.dtype.dtype)
    for module in recorder.modules:
        capacity.check(recorder, module)
    text = "".join(_text(recorder, module) for module in recorder.modules)
    storages = {s.name: s for module in recorder.modules for s in module.storages}
    single = not isinstance(results[0], (tuple, list)) and len(outputs) == 1
    written = [s.name for s in arguments.storages if s.kind == "inout"]
    cuts = {s.name: s.cut for module in recorder.modules for s in module.storages if s.cut is not None}
    out = Trace(recorder.name, text, arguments.data, outputs, storages, recorder.files, recorder.calls, single, written, cuts)
    return out.verified() if verify else out


def _recorded(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], target: str, grid: tuple[int, ...], two_cores: bool,
    old_style: bool, in_turns: bool = False,
) -> tuple[Recorder, list[Any], _Arguments]:  # fmt: skip
    """Run the programs of a grid, one after the other or in turns."""
    recorder = Recorder(getattr(function, "__name__", "kernel"), target)
    recorder.grid = grid
    places = [_position(number, grid) for number in range(max(1, math.prod(grid)))]
    results: list[Any] = []

    def begin(number: int) -> tuple[_Arguments, inspect.BoundArguments]:
        """A module, with the kernel's arguments in it."""
        recorder.module = Module(f"{recorder.name}{number}" if two_cores else recorder.name, number if two_cores else None)
        recorder.modules.append(recorder.module)
        arguments = _Arguments(recorder, recorder.module)
        return arguments, _bind(function, args, kwargs, arguments)

    record.push(recorder)
    try:
        arguments, bound = begin(0)
        if in_turns:
            results = programs.Programs(recorder, [(place, functools.partial(_call, recorder, function, bound, old_style)) for place in places]).run()
        else:
            for number, place in enumerate(places):
                if number and two_cores:
                    arguments, bound = begin(number)
                recorder.shared_next = 0
                recorder.program = place
                results.append(_call(recorder, function, bound, old_style))
    finally:
        record.pop()
    return recorder, results, arguments


def _position(number: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    out = []
    for extent in reversed(grid):
        number, place = divmod(number, extent)
        out.append(place)
    return tuple(reversed(out))


def _bind(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], arguments: _Arguments) -> inspect.BoundArguments:
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise KernelError(f"`{getattr(function, '__name__', 'kernel')}{signature}`: {error}", *_place(function)) from None
    try:
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(arguments.convert(f"{name}_{at}", v) for at, v in enumerate(value))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: arguments.convert(key, v) for key, v in value.items()}
            else:
                bound.arguments[name] = arguments.convert(name, value)
    except KernelError as error:
        if error.file is None:
            error.file, error.line = _place(function)
        raise
    return bound


def _call(recorder: Recorder, function: Callable[..., Any], bound: inspect.BoundArguments, old_style: bool = False) -> Any:
    """Run one program."""
    recorder.loops.clear()
    try:
        result = function(*bound.args, **bound.kwargs)
    except KernelError as error:
        error.called_from = _caller(function, error)
        raise
    except ToolError:
        raise
    except RecursionError:
        raise KernelError("the kernel calls itself too deeply", *_place(function)) from None
    except (Exception, SystemExit) as error:
        failed = KernelError(f"{type(error).__name__}: {error}", *innermost(error))
        failed.called_from = _caller(function, error)
        raise failed from error
    if recorder.fault is not None:
        raise recorder.fault
    if recorder.whiles:
        raise KernelError("a loop on a register cannot be left by `break` or `return`", *(recorder.whiles[-1][1] or (None, 0)))
    if old_style:
        return type(result)(_delivered(recorder, v) for v in result) if isinstance(result, (tuple, list)) else _delivered(recorder, result)
    return result


def _delivered(recorder: Recorder, value: Any) -> Any:
    """A tile that an old-style kernel returns, stored to DRAM; its own simulator shows tiles of any memory."""
    if not isinstance(value, Tensor) or not value.on_chip:
        return value
    storage = value.storage
    recorder.here = record.Site(storage.loc, storage.where, None)
    try:
        out = language.ndarray(value.shape, value.dtype, buffer=language.shared_hbm, name=f"{storage.name}_out")
        assign.store(out, value)
    finally:
        recorder.here = None
    return out


def _caller(function: Callable[..., Any], error: BaseException) -> tuple[str, int] | None:
    """The line of the kernel itself, if an error is of a function that it calls."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__) if not is_ours(frame.f_code)]
    own = next((at for at in frames if (at[0].co_filename, at[0].co_firstlineno) == _place(function)), None)
    return None if own is None or own[1] == frames[-1][1] or frames[-1][0] is own[0] else (own[0].co_filename, own[1])


def innermost(error: BaseException) -> tuple[str | None, int]:
    """File and line of the last frame of a traceback that is no frame of this package or of Python's library."""
    found: tuple[str | None, int] = (None, 0)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not is_ours(frame.f_code):
            found = (frame.f_code.co_filename, line)
    return found


def _outputs(recorder: Recorder, results: list[Any], arguments: _Arguments, place: tuple[str | None, int]) -> list[Tensor]:
    """Mark what the kernel returns, or without that what it wrote of its arguments."""
    written = {s.name for module in recorder.modules for s in module.storages if s.kind == "input" and s.written}
    for module in recorder.modules:
        for s in module.storages:
            if s.kind == "input" and s.name in written:
                s.kind = "inout"
    returned: list[Tensor] = []
    for value in results[0] if isinstance(results[0], (tuple, list)) else [results[0]]:
        if value is None:
            continue
        if not isinstance(value, Tensor):
            raise KernelError(f"a kernel returns tensors, found `{value!r}`", *place)
        if value.storage.space != "dram":
            where = value.storage.where or (None, 0)
            raise KernelError(f"a kernel returns tensors in DRAM, found `{value.storage.name}` in `{value.storage.space}`", where[0], where[1], "store it first")
        returned.append(value)
    if not returned:
        returned = [compute.whole(s) for s in arguments.storages if s.kind == "inout"]
    if not returned:
        raise KernelError("the kernel returns nothing and writes none of its arguments, so nothing of it can be seen", *place)
    names = {value.storage.name for value in returned}
    for module in recorder.modules:
        for s in module.storages:
            if s.name in names and s.kind in ("internal", "input"):
                s.kind = "output" if s.kind == "internal" else "inout"
    return returned


# ---- text ----


@functools.lru_cache(maxsize=1 << 10)
def _declared(space: str, shape: tuple[int, ...], dtype: str) -> str:
    return f"{space}<{''.join(f'{n}x' for n in shape)}{dtype}>"


def _text(recorder: Recorder, module: Module) -> str:
    core = f", core = {module.core}" if module.core is not None else ""
    out = [f'bir.module @{module.name} {{target = "{recorder.target}"{core}}} {{', "  bir.func @main {"]
    order = {"input": 0, "inout": 0, "output": 1, "const": 2}
    for s in sorted(module.storages, key=lambda s: order.get(s.kind, 3)):
        if not s.is_special:
            if s.first >= 0:
                out.append(f"    %{s.name} = alloc {_declared(s.space, s.declared, s.dtype.bir)}{s.loc}")
            continue
        if s.first < 0 and s.kind in ("internal", "const") and "space" not in s.attrs:
            continue
        attrs = [f"kind = {s.kind}"] if s.kind != "internal" else []
        attrs += [f"{key} = {value}" for key, value in s.attrs.items()]
        if s.value is not None:
            attrs.append(f'value = dense<"0x{s.value.tobytes().hex().upper()}">')
        tail = f" {{{', '.join(attrs)}}}" if attrs else ""
        out.append(f"    %{s.name} = alloc {_declared(s.space, s.declared, s.dtype.bir)}{s.at}{tail}{s.loc}")
    out += module.lines
    out += ["  }", "}", ""]
    return "\n".join(out)


def simulate(kernel: Any, *args: Any, target: str = "trn2", grid: Any = None, **kwargs: Any) -> Any:
    """Trace, then run on `bir-sim`: the kernel's results as numpy arrays."""
    return trace(kernel, *args, target=target, grid=grid, **kwargs).simulate()


def compile(kernel: Any, *args: Any, pipeline: str = "-O1", target: str = "trn2", grid: Any = None, validate: str | None = None, **kwargs: Any) -> Trace:
    """Trace, then run passes."""
    return trace(kernel, *args, target=target, grid=grid, **kwargs).compiled(pipeline, validate)


__all__ = ["Spec", "Trace", "compile", "simulate", "table", "trace"]
