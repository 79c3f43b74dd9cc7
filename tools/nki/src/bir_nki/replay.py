"""Calls that look like an earlier call become the same instructions.

What an old-style call becomes takes thought: broadcasting, masks, dtypes, engines, new tiles. Nearly always all of it follows from what
the call looks like: its function, its plain arguments, and what each tensor is. So a call that was seen before is taken down as a
`Replay` while it runs, and those after it are read off that. Invariants:

- A look holds the function, names and values of plain arguments, and of each tensor its memory, dtypes, dimensions and mask, but not
  where it begins: operands that are an argument itself spell their own place. Where an instruction has another part of an argument, the
  replay is kept under the look and the tensors' places.
- What depends on more than that is never replayed, and says so by `Recorder.once`: PSUM zeroed or accumulated, registers, loops, DRAM.
- A replay is kept only if it spells the very lines of the call it was taken from.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import itemgetter
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import enums, psum
from .access import Unproved
from .dtypes import DType
from .errors import fail
from .index import IndexArray, Mask
from .storage import Storage
from .tensor import Tensor

if TYPE_CHECKING:
    from .record import Recorder, Site, Template

#: Plain arguments, known by type and value.
_PLAIN: set[type] = {int, bool, str, type(None), type, np.ufunc}
_PLAIN.update(kind for kind in vars(enums).values() if isinstance(kind, type) and issubclass(kind, enum.Enum))
#: Tensors that look alike have the same number.
_forms: dict[Any, int] = {}


class _State(enum.Enum):
    #: The look was met once: the next call is taken down.
    SEEN = 0
    #: There is a replay for each place of the tensors.
    BY_PLACE = 1
    NEVER = 2


def plain(kind: type) -> type:
    """Let arguments of a type count as plain: they hash, and equal ones mean the same."""
    _PLAIN.add(kind)
    return kind


class Taken:
    """What a call under way recorded."""

    __slots__ = ("allocs", "lines")

    def __init__(self) -> None:
        #: Storages, with the names asked for.
        self.allocs: list[tuple[Storage, str | None]] = []
        #: Instructions, with their tensors in order.
        self.lines: list[tuple[Template, list[tuple[Tensor, bool]]]] = []


class Replay:
    """Instructions with holes for the texts and names of arguments and for the names of new storages, in this order."""

    __slots__ = ("made", "lines", "named", "uses", "reads", "writes", "result", "fresh")

    def __init__(self) -> None:
        #: New storages: a model of each, the name asked for, and its first and last instruction.
        self.made: list[tuple[Storage, str | None, int, int]] = []
        self.lines: list[tuple[str, Callable[[list[str]], Any]]] = []
        #: Whether the names of arguments are among the holes.
        self.named = False
        #: Storages of arguments: the number of one of them, first and last instruction, whether written.
        self.uses: list[tuple[int, int, int, bool]] = []
        #: Arguments in PSUM that are read, and that are written.
        self.reads: list[int] = []
        self.writes: list[int] = []
        #: The number of the argument or new storage (behind all arguments) that is returned, and a model of the view.
        self.result: tuple[int, Tensor] | None = None
        self.fresh = False

    def play(self, r: Recorder, tensors: list[Tensor], site: Site) -> Tensor | None:
        """Record the instructions for other arguments."""
        module = r.module
        lines = module.lines
        holes = [tensor._text or tensor.text() for tensor in tensors]
        for number in self.reads:
            psum.touch(r, tensors[number], False)
        for number in self.writes:
            psum.touch(r, tensors[number], True)
        at = len(lines)
        for number, first, last, out in self.uses:
            storage = tensors[number].storage
            if out:
                if storage.frozen is not None and storage.written:
                    raise fail(storage.frozen)
                storage.written = True
            if storage.first < 0:
                storage.first = at + first
            storage.last = at + last
        if self.named:
            holes += ["%" + tensor.storage.name for tensor in tensors]
        if self.made:
            storages: list[Storage] = []
            for model, wanted, first, last in self.made:
                new = model.twin(module.unique(wanted or site.name or "t"), site)
                if first >= 0:
                    new.first, new.last = at + first, at + last
                    new.written = True
                elif new.space == "psum":
                    new.psum = psum.State(len(r.loops))
                storages.append(new)
                holes.append("%" + new.name)
            module.storages += storages
        indent, place = r.indent, site.text
        for text, pick in self.lines:
            lines.append(f"{indent}{text % pick(holes)}{place}")
        r.calls += len(self.lines)
        if self.result is None:
            return None
        number, model_view = self.result
        if number < len(tensors):
            out_view = tensors[number]
        else:
            out_view = model_view.of(storages[number - len(tensors)])
        if self.fresh:
            r.fresh = (len(lines), out_view)
        return out_view


def run(r: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType) -> Any:
    """Call one of this package's functions for the kernel's call that `frame` is in."""
    if r.here is not None:
        return function(*args, **kwargs)  # a part of another call
    r.here = site = r.sites.get((id(frame.f_code), frame.f_lasti)) or r.site(frame)
    try:
        tensors: list[Tensor] = []
        key = _look(function, args, kwargs, tensors)
        if key is None:
            return function(*args, **kwargs)
        known = r.replays.get(key)
        if known is _State.BY_PLACE:
            key = _placed(key, tensors)
            known = r.replays.get(key)
        if type(known) is Replay:
            return known.play(r, tensors, site)
        if known is _State.SEEN:
            return _taken(r, key, function, args, kwargs, tensors)
        if known is None:
            r.replays[key] = _State.SEEN
        return function(*args, **kwargs)
    finally:
        r.here = None
        r.taken = None


def _look(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Any:
    """What a call looks like, its tensors added to the list; None where that would not be all there is to it."""
    look: list[Any] = [function]
    add = look.append
    shared = False
    values = args
    if kwargs:
        look += kwargs
        values = (*args, *kwargs.values())
    for value in values:
        kind = type(value)
        if kind is Tensor:
            form = value._form or _form(value)
            if form < 0:
                return None
            add(form)
            for other in tensors:
                if other.storage is value.storage:
                    shared = True
            tensors.append(value)
        elif kind is float:
            # the zeros are equal, but do not read alike
            add(kind)
            add(value or repr(value))
        elif kind in _PLAIN:
            add(kind)
            add(value)
        elif kind is DType:
            add(value.bir)
        elif kind is tuple or kind is list:
            for one in value:
                if type(one) is not int:
                    return None
            add(kind)
            add(tuple(value))
        elif kind is Mask:
            for condition in value.conditions:
                if type(condition) is IndexArray and type(condition.const) is int:
                    add((condition.const, condition.coefficients, condition.extents))
                else:
                    return None
            add(kind)
        else:
            return None
    if shared:
        # which of them are one, and how far parts of one storage are from each other
        for at, tensor in enumerate(tensors):
            for before in range(at):
                other = tensors[before]
                if other is tensor:
                    add(before)
                elif other.storage is tensor.storage:
                    offset, p0 = tensor.offset - other.offset, tensor.p0 - other.p0
                    if type(offset) is not int or type(p0) is not int:
                        return None
                    add((before, offset, p0))
    return tuple(look)


def _form(tensor: Tensor) -> int:
    """The number of what a tensor looks like; -1 where that is not all that matters."""
    storage = tensor.storage
    known = (storage.code if tensor.dtype is storage.dtype else (storage.code, tensor.dtype.bir), tensor.dims, tensor.pdim, tensor.valid)
    form = _forms.get(known)
    if form is None:
        form = _forms[known] = len(_forms) + 1
    if tensor.dynamic is not None or type(tensor.valid) is Unproved:
        form = -1
    tensor._form = form
    return form


def _placed(key: Any, tensors: list[Tensor]) -> Any:
    """A look with the places of the tensors."""
    return (key, *[(str(t.offset), str(t.p0), t.storage.shape) for t in tensors])


def _taken(r: Recorder, key: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Any:
    """Call the function and take down what it records."""
    r.taken = taken = Taken()
    at, storages, fresh, matmul = len(r.module.lines), len(r.module.storages), r.fresh, r.last_matmul
    out = function(*args, **kwargs)
    replay = None
    if r.taken is taken and matmul is r.last_matmul and len(r.module.storages) == storages + len(taken.allocs):
        replay = _made(taken, tensors, out)
    if replay is None or not _spells(replay, r, taken, tensors, at):
        r.replays[key] = _State.NEVER
        return out
    replay.fresh = r.fresh is not None and r.fresh is not fresh and r.fresh[1] is out
    if replay.named and not _is_placed(key):
        r.replays[key] = _State.BY_PLACE
        key = _placed(key, tensors)
    r.replays[key] = replay
    return out


def _is_placed(key: Any) -> bool:
    return type(key[0]) is tuple


def _made(taken: Taken, tensors: list[Tensor], out: Any) -> Replay | None:
    """The replay of what was taken down; None where something in it has another source than the call's look."""
    replay = Replay()
    count = len(tensors)
    arguments = {id(t): at for at, t in reversed(list(enumerate(tensors)))}
    owners = {id(t.storage): at for at, t in reversed(list(enumerate(tensors)))}
    new = {id(storage): at for at, (storage, _) in enumerate(taken.allocs)}
    spans: dict[int, tuple[int, int, bool]] = {}  # by argument, or new storage behind all arguments
    replay.named = any(id(view) not in arguments and id(view.storage) in owners for _, views in taken.lines for view, _ in views)
    names = count if not replay.named else 2 * count
    for line, (template, views) in enumerate(taken.lines):
        pieces = template.text.split("%s")
        if len(pieces) != len(views) + 1 or template.accumulates or not template.reusable:
            return None
        text = pieces[0]
        holes = []
        for (view, written), piece in zip(views, pieces[1:]):
            storage = view.storage
            suffix = view.text()[len(storage.name) + 1 :].replace("%", "%%")
            if id(storage) not in owners and id(storage) not in new:
                return None
            owner = owners[id(storage)] if id(storage) in owners else count + new[id(storage)]
            if storage.psum is not None and (len(taken.lines) > 1 or id(view) not in arguments):
                return None
            if id(view) in arguments:
                number = arguments[id(view)]
                holes.append(number)
                if storage.psum is not None:
                    (replay.writes if written else replay.reads).append(number)
                suffix = ""
            else:
                # the names of new storages are behind those of arguments, if they are there
                holes.append(count + owner if owner < count else names + owner - count)
            first, _, before = spans.get(owner, (line, line, False))
            spans[owner] = (first, line, before or written)
            text += f"%s{suffix}{piece}"
        replay.lines.append((text, itemgetter(*holes) if holes else _nothing))
    for at, (storage, wanted) in enumerate(taken.allocs):
        first, last, written = spans.get(count + at, (-1, -1, False))
        if storage.space == "dram" or storage.is_special or (first >= 0 and not written):
            return None
        replay.made.append((storage, wanted, first, last))
    replay.uses = [(at, *span) for at, span in spans.items() if at < count]
    if type(out) is Tensor:
        if id(out) in arguments:
            replay.result = (arguments[id(out)], out.of(out.storage))
        elif id(out.storage) in new and out.dynamic is None:
            if not out._form:
                _form(out)
            replay.result = (count + new[id(out.storage)], out.of(out.storage))
        else:
            return None
    elif out is not None:
        return None
    return replay


def _nothing(_: list[str]) -> tuple[()]:
    return ()


def _spells(replay: Replay, r: Recorder, taken: Taken, tensors: list[Tensor], at: int) -> bool:
    """Whether the replay, given the call it was taken from, spells its lines."""
    holes = [t.text() for t in tensors]
    if replay.named:
        holes += ["%" + t.storage.name for t in tensors]
    holes += ["%" + storage.name for storage, _ in taken.allocs]
    place = r.here.text if r.here is not None else ""
    return [f"{r.indent}{text % pick(holes)}{place}" for text, pick in replay.lines] == r.module.lines[at:]
