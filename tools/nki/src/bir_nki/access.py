"""Access patterns: their text, slices, and the shapes they can take without moving data."""

from __future__ import annotations

from typing import Any

from .errors import fail
from .index import Affine, Mask, Run

Dims = tuple[tuple[int, int], ...]


def access(tensor: Any, free: list[tuple[int, int]], exact: bool = False) -> str:
    """The operand's text with these dimensions beside the partitions; `exact` spells them out even if they are the whole tile."""
    s = tensor.storage
    name = s.name
    same = tensor.dtype is s.dtype
    recast = "" if same else f" as {tensor.dtype.bir}"
    offset = tensor.offset
    if s.space == "dram":
        if same and not exact and type(offset) is int and offset == 0 and tensor.size == s.row and _is_whole(free, s.row):
            return f"%{name}"
        pairs = ", ".join([f"{step} x {count}" for step, count in free]) or "1 x 1"
        return f"%{name}{recast}[off {offset}, {pairs}]"
    parts = tensor.partitions
    p0 = tensor.p0
    if same and not exact and type(offset) is int and offset == 0 and parts == s.parts and _is_whole(free, s.row):
        return f"%{name}"
    window = f"{p0}:{p0 + parts}" if type(p0) is int else f"{p0} +: {parts}"
    pairs = ", ".join([f"{step} x {count}" for step, count in free]) or "1 x 1"
    return f"%{name}{recast}[p {window}, off {offset}, {pairs}]"


def _is_whole(free: list[tuple[int, int]], row: int) -> bool:
    want = row
    for step, count in free:
        if step * count != want:
            return False
        want = step
    return want == 1


def dram_dims(dims: Dims) -> list[tuple[int, int]]:
    """Dimensions of a DRAM access: as the view has them, merged only where there are too many."""
    out = [(step, count) for step, count in dims if count != 1]
    if len(out) > 4:
        merged: list[tuple[int, int]] = []
        for step, count in out:
            if merged and merged[-1][0] == step * count:
                merged[-1] = (step, merged[-1][1] * count)
            else:
                merged.append((step, count))
        return merged
    return out


def bounds_of_slice(k: slice, count: int, axis: int) -> tuple[Any, int, int]:
    """Start, length and step of a slice; its ends may be affine, their distance may not."""
    start = 0 if k.start is None else k.start
    stop = count if k.stop is None else k.stop
    stride = 1 if k.step is None else k.step
    if type(start) is int and type(stop) is int and type(stride) is int:
        if stride < 1:
            raise fail(f"a slice must step forward, found a step of {stride}", "use `.ap` for a reversed view")
        if start < 0:
            start += count
        if stop < 0:
            stop += count
        if stop > count:
            raise fail(f"slice `{k.start}:{k.stop}` of dimension {axis} ends outside its {count} elements")
        return start, (stop - start + stride - 1) // stride if stop > start else 0, stride
    length = stop - start
    if isinstance(length, Affine):
        raise fail("the length of a slice must not change from one iteration to the next")
    if isinstance(length, int):
        return (int(start) if not isinstance(start, Affine) else start), -(-length // int(stride)), int(stride)
    start, length = _integer(start), _integer(stop) - _integer(start)
    return start, -(-length // int(stride)), int(stride)


def _integer(value: Any) -> Any:
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise fail(f"`{value!r}` is no index") from None


def single_position(k: Any) -> tuple[Any, int, int]:
    """A single position that is no plain int: numpy integers, loop indices, registers."""
    if isinstance(k, Affine) or getattr(k, "is_register", False):
        return k, -1, 1
    if hasattr(k, "storage"):
        return k, -1, 1  # a 1x1 tile: an offset known at run time
    if isinstance(k, Mask):
        raise fail("a mask is no index", "give it as `mask=`")
    return _integer(k), -1, 1


def shifted(bound: Any, start: Any, length: int) -> Any:
    if bound is None or not isinstance(start, int):
        return bound
    lo, hi = bound
    return max(0, lo - start), (None if hi is None else max(0, min(hi - start, length)))


def outside(tensor: Any, k: Any, axis: int, count: int) -> Exception:
    shown = f"{k.start}:{k.stop}" if isinstance(k, slice) else f"{k.start} +: {k.size}" if isinstance(k, Run) else k
    return fail(f"index `{shown}` of dimension {axis} is outside `{tensor.storage.name}`, which has {count} elements there")


def split(dims: Dims, wanted: tuple[int, ...], tensor: Any) -> Dims:
    """`dims` in another shape of as many elements."""
    # merge what lies one behind the other, then cut
    merged: list[tuple[int, int]] = []
    for step, count in dims:
        if count == 1:
            continue
        if merged and merged[-1][0] == step * count:
            merged[-1] = (step, merged[-1][1] * count)
        else:
            merged.append((step, count))
    out: list[tuple[int, int]] = []
    stack = list(reversed(merged))
    for n in wanted:
        if n == 1:
            out.append((0, 1))
            continue
        if not stack:
            raise fail(f"cannot reshape {list(tensor.shape)} so")
        step, count = stack.pop()
        if count % n:
            raise fail(
                f"cannot reshape {list(tensor.shape)} so: its elements do not lie one behind the other", "copy it to a new tile first"
            )
        out.append((step * (count // n), n))
        if count != n:
            stack.append((step, count // n))
    if stack:
        raise fail(f"cannot reshape {list(tensor.shape)} so: its elements do not lie one behind the other")
    return tuple(out)
