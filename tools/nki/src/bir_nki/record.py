"""The recorder: what a kernel's calls become.

One `Recorder` per trace, one `Module` per core. `emit` checks an instruction against the op table and appends its text; allocations are
kept apart, since a function declares its locations first. Speed matters here: a kernel may emit 100,000 instructions, so what an operand
or a call site looks like is worked out once and kept.
"""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

from . import names, psum, replay
from .dtypes import DType
from .errors import OURS, KernelError, fail, is_ours, kernel_frame, nearest
from .index import Affine, IndexArray, Moved
from .table import Op, Role, Table, table
from .storage import Storage
from .tensor import Tensor

_WORD = re.compile(r"[^A-Za-z0-9_]")
BITWISE = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"})


class Register:
    """A register of a sequencer. It has no value while tracing; sums and products become instructions."""

    __slots__ = ("name",)
    is_register = True

    def __init__(self, name: str) -> None:
        self.name = name

    def _alu(self, op: str, other: Any, reverse: bool = False) -> Register:
        lhs, rhs = (other, self) if reverse else (self, other)
        return recorder().register("register_alu", {"lhs": lhs, "rhs": rhs}, {"op": op}, self.name.rstrip("0123456789_") or "r")

    def __add__(self, other: Any) -> Any:
        return Moved(self, other) if type(other) is IndexArray else self._alu("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Register:
        return self._alu("subtract", other)

    def __rsub__(self, other: Any) -> Register:
        return self._alu("subtract", other, True)

    def __mul__(self, other: Any) -> Register:
        return self._alu("multiply", other)

    __rmul__ = __mul__

    def _no_value(self, *_: Any) -> Any:
        raise fail("a register has no value while the kernel is traced", "use `nl.while_loop` or `nl.dynamic_range` for control by registers")

    def __bool__(self) -> bool:
        """`while register:` is a loop of the IR: true when it is entered, false when its body has been traced once."""
        frame = kernel_frame(sys._getframe(1))
        if frame is None or not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("while "):
            return bool(self._no_value())
        return recorder().python_while(self, (id(frame), frame.f_lineno))

    __int__ = __index__ = __float__ = _no_value
    __lt__ = __le__ = __gt__ = __ge__ = _no_value


class Site:
    """A call in a kernel: its place as ` loc(…)` and as file and line, and the variable its result goes to."""

    __slots__ = ("text", "where", "name")

    def __init__(self, text: str, where: tuple[str, int] | None, name: str | None) -> None:
        self.text = text
        self.where = where
        self.name = name


class Template:
    """The text of an instruction with `%s` for each tensor."""

    __slots__ = ("op", "text", "roles", "reusable", "accumulates")

    def __init__(self, op_name: str) -> None:
        self.op = op_name
        self.text = ""
        #: Roles of the tensors in order, and whether they are written.
        self.roles: list[tuple[str, bool]] = []
        self.reusable = True
        self.accumulates = op_name in ("matmult", "matmult_mx")


class Module:
    """The instructions and locations of one core."""

    def __init__(self, name: str, core: int | None) -> None:
        self.name = name
        self.core = core
        self.storages: list[Storage] = []
        self.lines: list[str] = []
        self.taken: dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        """`wanted`, or it with a number."""
        name = wanted
        count = self.taken.get(name)
        if count is None:
            name = _WORD.sub("_", wanted) or "t"
            if name[0].isdigit():
                name = "_" + name
            count = self.taken.get(name)
            if count is None:
                self.taken[name] = 0
                return name
        while True:
            count += 1
            other = f"{name}_{count}"
            if other not in self.taken:
                self.taken[name] = count
                self.taken[other] = 0
                return other


class Recorder:
    """A trace under way."""

    def __init__(self, name: str, target: str) -> None:
        self.table: Table = table()
        if target not in self.table.targets:
            raise KernelError(f"`{target}` is no target, expected one of {', '.join(self.table.targets)}", help=nearest(target, self.table.targets))
        self.target = target
        self.limits = self.table.targets[target]
        self.name = _WORD.sub("_", name)
        self.modules: list[Module] = []
        self.module: Module = Module(self.name, None)
        self.grid: tuple[int, ...] = ()
        self.program: tuple[int, ...] = ()
        self.loops: list[str] = []
        self.indent = "    "
        #: What shared DRAM the programs of a grid allocated, in order: all get the same.
        self.shared: list[Storage] = []
        self.shared_next = 0
        self.files: dict[str, str] = {}
        self.constants: dict[Any, Tensor] = {}
        self.sites: dict[tuple[int, int], Site] = {}
        self._templates: dict[Any, Template] = {}
        self._engines: dict[tuple[str, str], str] = {}
        #: What was last recorded made this tile, and nothing used it since: (line number, tile).
        self.fresh: tuple[int, Tensor] | None = None
        #: The last matmul that made a tile: the tile, and what was emitted.
        self.last_matmul: Any = None
        self.calls = 0
        #: `while` statements that are open: where each is, for us and for people.
        self.whiles: list[tuple[tuple[int, int], tuple[str, int] | None]] = []
        #: A mistake that could not be raised where it was made.
        self.fault: KernelError | None = None
        #: Zero fills of PSUM tiles that were not emitted; see psum.py.
        self.held_back: list[psum.State] = []
        #: Nothing is recorded: a call whose mask is false.
        self.muted = False
        #: The kernel's call under way, where one of our functions knows it already.
        self.here: Site | None = None
        #: Calls by what they look like, and what the one under way records; see replay.py.
        self.replays: dict[Any, Any] = {}
        self.taken: replay.Taken | None = None
        #: The programs of a grid, where they run in turns; see programs.py.
        self.programs: Any = None
        #: What `nl.loop_reduce` has gathered, by call and program.
        self.loop_totals: dict[Any, Any] = {}

    # ---- places ----

    def site(self, frame: FrameType | None = None) -> Site:
        """The kernel's call that is being executed, found from a frame on, or from the caller's caller."""
        if frame is None:
            frame = sys._getframe(2)
        while True:
            code = frame.f_code
            ours = OURS.get(id(code))
            if ours is None:
                ours = is_ours(code)
            if not ours:
                break
            back = frame.f_back
            if back is None:
                return Site("", None, None)
            frame = back
        key = (id(code), frame.f_lasti)
        site = self.sites.get(key)
        if site is None:
            path = code.co_filename
            label = os.path.basename(path)
            if self.files.setdefault(label, path) != path:
                label = path
                self.files[label] = path
            text = f' loc("{label}":{frame.f_lineno}:{names.column(frame)})'
            site = self.sites[key] = Site(text, (path, frame.f_lineno), names.assigned(frame))
        return site

    def assigned_name(self) -> str | None:
        """The variable the kernel assigns the result of its call to."""
        return (self.here or self.site()).name

    def once(self) -> None:
        """What is recorded now follows from more than what the call under way looks like."""
        self.taken = None

    # ---- locations ----

    def alloc(self, space: str, shape: tuple[int, ...], dtype: DType, name: str | None = None) -> Storage:
        """A location, named after the variable it is assigned to."""
        if min(shape) < 1:
            raise fail(f"a tensor of shape {list(shape)} has no elements")
        if space != "dram":
            if shape[0] > 128:
                raise fail(
                    f"a tile of shape {list(shape)} takes {shape[0]} partitions of `{space}`, which has 128",
                    "the first dimension lies on partitions: split it into tiles of 128",
                )
            size = dtype.itemsize
            for extent in shape[1:]:
                size *= extent
            limit = self.limits[f"{space}_bytes"]
            if size > limit:
                raise fail(
                    f"a tile of shape {list(shape)} of {dtype} takes {size} bytes of each partition of `{space}`, which has {limit} on {self.target}"
                )
        site = self.here or self.site()
        storage = Storage(self.module.unique(name or site.name or "t"), space, shape, dtype)
        storage.loc = site.text
        storage.where = site.where
        if space == "psum":
            storage.psum = psum.State(len(self.loops))
        self.module.storages.append(storage)
        if self.taken is not None:
            self.taken.allocs.append((storage, name))
        return storage

    # ---- instructions ----

    def emit(self, op_name: str, values: dict[str, Any], attrs: dict[str, Any] | None = None) -> None:
        """Append an instruction: values by role, attributes (words included) by name; None stands for absent.

        Instructions of one shape (the same op, attributes, numbers, spaces and dtypes) are checked once and share a template.
        """
        if self.muted:
            return
        sign: list[Any] = [op_name]
        add = sign.append
        for value in values.values():
            if type(value) is Tensor:
                storage = value.storage
                add(storage.code if value.dtype is storage.dtype else f"{storage.space} {value.dtype.bir}")
            elif value is None or type(value) is float and value:
                add(value)
            else:
                # 1 and 1.0 are equal, and so are the zeros, but they do not read alike
                add(repr(value))
        if attrs:
            sign += attrs
            sign += attrs.values()
        try:
            key = tuple(sign)
            template = self._templates.get(key)
        except TypeError:  # a list among them
            template = key = None
        if template is None:
            template = self._template(op_name, values, attrs or {})
            if key is not None and template.reusable:
                self._templates[key] = template
        self._append(template, values)

    def _append(self, template: Template, values: dict[str, Any]) -> None:
        """Append an instruction that was checked."""
        roles = template.roles
        site = self.here or self.site()
        lines = self.module.lines
        at = len(lines)
        texts = []
        written: list[Tensor] = []
        for name, out in roles:
            value = values[name]
            storage = value.storage
            if storage.first < 0:
                storage.first = at
            storage.last = at
            if out:
                if storage.frozen is not None and storage.written:
                    raise fail(storage.frozen)
                storage.written = True
            if value.dynamic is not None:
                raise fail(
                    f"operand `{name}` of `{template.op}` cannot have an offset known at run time only",
                    "DMA copies and `nisa.tensor_copy` can",
                )
            if storage.psum is not None and not template.accumulates:
                if out:
                    written.append(value)
                else:
                    psum.touch(self, value, False)
                    at = storage.last = len(lines)
            texts.append(value._text or value.text())
        if "" in texts:
            return  # masked off as a whole
        # an instruction reads before it writes
        for value in written:
            psum.touch(self, value, True)
        if self.taken is not None:
            self.taken.lines.append((template, [(values[name], out) for name, out in roles]))
        self.calls += 1
        lines.append(f"{self.indent}{template.text % tuple(texts)}{site.text}")

    def _template(self, op_name: str, values: dict[str, Any], attrs: dict[str, Any]) -> Template:
        """Check an instruction and work out its text, but for its tensors."""
        op = self.table.ops[op_name]
        template = Template(op_name)
        head = op_name
        for word in op.words:
            value = attrs.get(word)
            if value is not None:
                head += f" {value}"
        for roles, mark in ((op.outs, " "), (op.ins, " <- ")):
            texts = []
            for role in roles:
                value = values.get(role.name)
                if value is None:
                    if not role.optional:
                        raise fail(f"`{op_name}` needs operand `{role.name}`")
                    continue
                if role.variadic:
                    # each under a name of its own
                    template.reusable = False
                    for number, one in enumerate(value):
                        texts.append(self._operand(op, role, one, attrs, values, template))
                        name = f"{role.name}[{number}]"
                        template.roles[-1] = (name, role.out)
                        values[name] = one
                else:
                    texts.append(self._operand(op, role, value, attrs, values, template))
            if texts:
                head += mark + ", ".join(texts)
        if attrs:
            head += self._attributes(op, attrs, values).replace("%", "%%")
        template.text = head
        return template

    def _operand(self, op: Op, role: Role, value: Any, attrs: dict[str, Any], values: dict[str, Any], template: Template) -> str:
        prefix = role.prefix
        for word in role.words:
            given = attrs.get(word)
            # `reduce reset` says that rows are added up
            if given is not None and (word != role.keyword or given != op.attrs[word]["default"]):
                prefix += f"{given} "
        kind = type(value)
        if kind is Tensor:
            self._check(op, role, value)
            template.roles.append((role.name, role.out))
            return prefix + "%s"
        if kind is Register:
            template.reusable = False
            if not role.kind.startswith("reg"):
                raise fail(f"operand `{role.name}` of `{op.name}` cannot be a register")
            return f"{prefix}%%{value.name}"
        if kind is Affine and role.kind.startswith("reg"):
            template.reusable = False
            if value.const == 0 and len(value.terms) == 1 and value.terms[0][1] == 1:
                return f"{prefix}%{value.terms[0][0]}"
            return f"{prefix}%%{self.affine_register(value).name}"
        if role.literal is None:
            raise fail(f"operand `{role.name}` of `{op.name}` must be a tensor, found `{value!r}`")
        return prefix + self._number(op, role, value, attrs, values)

    def _check(self, op: Op, role: Role, value: Tensor) -> None:
        space = value.storage.space
        if space not in role.spaces:
            shown = " or ".join(f"`{s}`" for s in sorted(role.spaces))
            raise fail(
                f"operand `{role.name}` of `{op.name}` must be {f'in {shown}' if shown else 'no tensor'}, found `{value.storage.name}` in `{space}`",
                "move it with `nisa.dma_copy` first" if space == "dram" else "copy it with `nisa.tensor_copy` first" if space == "psum" else None,
            )
        if value.dtype.bir not in role.dtypes:
            raise fail(
                f"operand `{role.name}` of `{op.name}` must be of {', '.join(sorted(role.dtypes))}, found `{value.storage.name}` of {value.dtype.bir}"
            )

    def _number(self, op: Op, role: Role, value: Any, attrs: dict[str, Any], values: dict[str, Any]) -> str:
        if type(value) is float and role.literal == "f32":
            return number(value)
        if isinstance(value, (bool, np.bool_)):
            value = int(value)
        if not isinstance(value, (int, float)):
            try:
                value = value.item()  # numpy's scalars
            except AttributeError:
                raise fail(f"operand `{role.name}` of `{op.name}` must be a number or a tensor, found `{value!r}`") from None
        if role.literal == "int":
            if int(value) != value:
                raise fail(f"operand `{role.name}` of `{op.name}` must be a whole number, found {value}")
            return str(int(value))
        whole = False
        if role.literal == "dst":
            dst = values["dst"]
            whole = dst.dtype.kind in "iubx"
            if whole and int(value) != value:
                raise fail(f"operand `{role.name}` of `{op.name}` must be a whole number for a tile of {dst.dtype}, found {value}")
        elif role.literal == "alu":
            whole = attrs.get("op0") in BITWISE or attrs.get("op1") in BITWISE
        return number(int(value) if whole else float(value))

    def _attributes(self, op: Op, given: dict[str, Any], values: dict[str, Any]) -> str:
        parts = []
        words = op.words
        for name, value in given.items():
            if name in words or value is None or value is False:
                continue
            if name == "engine":
                text = self._engines.get((op.name, value))
                if text is None:
                    text = self._engines[(op.name, value)] = self._engine(op, value)
                if text:
                    parts.append(text)
                continue
            spec = op.attrs.get(name)
            if spec is None:
                raise fail(f"`{op.name}` has no attribute `{name}`", nearest(name, op.attrs))
            if any(name in role.words and values.get(role.name) is not None for role in op.roles):
                continue  # it stands before its operand
            kind = spec["type"]["kind"]
            if kind == "flag" or value is True and kind == "accumulate":
                parts.append(name)
            elif kind == "enum":
                if value not in spec["type"]["words"]:
                    raise fail(f"attribute `{name}` of `{op.name}` cannot be `{value}`", nearest(str(value), spec["type"]["words"]))
                if value != spec["default"]:
                    parts.append(f'{name} = "{value}"')
            elif kind == "string":
                text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                parts.append(f'{name} = "{text}"')
            elif isinstance(value, float):
                parts.append(f"{name} = {number(value)}")
            elif isinstance(value, (tuple, list)):
                parts.append(f"{name} = {_listed(value)}")
            else:
                parts.append(f"{name} = {value}")
        return " {" + ", ".join(parts) + "}" if parts else ""

    def _engine(self, op: Op, value: str) -> str:
        engines = op.engines.get(self.target)
        if not engines or not engines["legal"]:
            raise fail(f"`{op.name}` is not there on `{self.target}`")
        if value not in engines["legal"]:
            raise fail(f"`{op.name}` runs on {' or '.join(engines['legal'])} on `{self.target}`, found `{value}`")
        return "" if value == engines["default"] else f"engine = {value}"

    # ---- registers and loops ----

    def register(self, op_name: str, values: dict[str, Any], attrs: dict[str, Any] | None = None, name: str = "r") -> Register:
        """An instruction that defines a register."""
        self.once()
        out = Register(self.module.unique(name))
        self.emit(op_name, values, attrs)
        lines = self.module.lines
        lines[-1] = f"{self.indent}%{out.name} = {lines[-1].lstrip()}"
        return out

    def affine_register(self, value: Affine) -> Register:
        """A register that holds an affine expression of loop indices."""
        total: Any = None
        for loop, factor in value.terms:
            index = Affine(0, ((loop, 1),))
            term: Any = index
            if factor != 1:
                term = self.register("register_alu", {"lhs": index, "rhs": factor}, {"op": "multiply"})
            total = term if total is None else self.register("register_alu", {"lhs": total, "rhs": term}, {"op": "add"})
        if value.const:
            total = self.register("register_alu", {"lhs": total, "rhs": value.const}, {"op": "add"})
        return total if isinstance(total, Register) else self.register("register_alu", {"lhs": total, "rhs": 0}, {"op": "add"})

    def loop(self, lower: Any, upper: Any, step: int, name: str) -> Iterator[Affine]:
        """A loop of the IR; yields its index once."""
        if not isinstance(step, int) or step < 1:
            raise fail(f"the step of a dynamic loop must be a positive whole number, found {step!r}")
        index = "%" + self.module.unique(name)
        shown = [f"%{b.name}" if isinstance(b, Register) else str(b) for b in (lower, upper)]
        if any(isinstance(b, Affine) for b in (lower, upper)):
            shown = [f"%{self.affine_register(b).name}" if isinstance(b, Affine) else s for b, s in zip((lower, upper), shown)]
        tail = f" step {step}" if step != 1 else ""
        self.module.lines.append(f"{self.indent}loop {index} = {shown[0]} to {shown[1]}{tail}{self.site().text} {{")
        self.loops.append(index)
        self.indent += "  "
        where = self.site().where or (None, 0)
        try:
            yield Affine(0, ((index, 1),))
        except GeneratorExit:
            # Python ignores what is raised while it closes a generator
            self.fault = KernelError("a dynamic loop cannot be left by `break` or `return`", *where)
            raise
        self.close()

    def python_while(self, condition: Register, place: tuple[int, int]) -> bool:
        """Enter or close the loop of a `while` statement; `place` tells which."""
        if self.whiles and self.whiles[-1][0] == place:
            self.whiles.pop()
            self.close()
            return False
        where = self.site().where
        self.module.lines.append(f"{self.indent}while %{condition.name}{self.site().text} {{")
        self.whiles.append((place, where))
        self.loops.append(f"%{condition.name}")
        self.indent += "  "
        return True

    def close(self) -> None:
        """The end of the innermost loop of the IR."""
        self.loops.pop()
        self.indent = self.indent[:-2]
        self.module.lines.append(f"{self.indent}}}")

    def while_loop(self, condition: Register, body: Callable[[Register], Any]) -> None:
        self.module.lines.append(f"{self.indent}while %{condition.name}{self.site().text} {{")
        self.loops.append(f"%{condition.name}")
        self.indent += "  "
        after = body(condition)
        if isinstance(after, Register) and after is not condition:
            self.emit("register_move", {"dst": condition, "value": after})
        self.close()

    # ---- old-style values ----

    def references(self, tile: Any) -> int:
        """How often the recorder itself refers to a value, beside what the kernel does."""
        count = int(self.fresh is not None and self.fresh[1] is tile)
        if self.last_matmul is not None:
            count += int(self.last_matmul[0] is tile) + sum(1 for value in self.last_matmul[2].values() if value is tile)
        return count

    def made(self, tile: Tensor) -> Tensor:
        """Note that the last instruction made `tile`, so that `psum += tile` may write elsewhere instead."""
        self.fresh = (len(self.module.lines), tile)
        return tile


def number(value: Any) -> str:
    """A number as `.bir` text spells it."""
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    text = repr(value)
    return text if "." in text or "e" in text else text + ".0"


def _listed(value: Any) -> str:
    return "[" + ", ".join(_listed(v) if isinstance(v, (tuple, list)) else str(v) for v in value) + "]"


_current: list[Recorder] = []



def recorder() -> Recorder:
    """The trace under way."""
    if not _current:
        raise fail("this is recorded only while a kernel is traced", "call the kernel through `nki.jit`, `bir_nki.trace` or `bir-nki trace`")
    return _current[-1]


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function kernels call: the place of the call is looked up once, and what it becomes is thought of once for all that look alike."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _current:
            return function(*args, **kwargs)
        return replay.run(_current[-1], function, args, kwargs, sys._getframe(1))

    return call


def is_tracing() -> bool:
    """Whether a kernel is being traced."""
    return bool(_current)


def current() -> Recorder | None:
    """The trace under way, if there is one."""
    return _current[-1] if _current else None


def push(new: Recorder) -> None:
    """Make `new` the trace under way."""
    _current.append(new)


def pop() -> None:
    """End the trace under way."""
    _current.pop()
