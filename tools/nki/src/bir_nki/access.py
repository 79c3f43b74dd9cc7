"""Access patterns: their text, slices, and the shapes they can take without moving data."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from .errors import fail
from .index import Affine, Mask

Dims = tuple[tuple[int, int], ...]


def access(tensor: Any, free: Dims, exact: bool = False) -> str:
    """The operand's text with these dimensions beside the partitions; `exact` spells them out even if they are the whole tile."""
    s = tensor.storage
    offset = tensor.offset
    same = tensor.dtype is s.dtype
    pairs, whole = _spelt(free, s.row)
    recast = "" if same else f" as {tensor.dtype.bir}"
    whole = whole and same and not exact and type(offset) is int and offset == 0
    if s.space == "dram":
        return f"%{s.name}" if whole else f"%{s.name}{recast}[off {offset}, {pairs}]"
    parts = tensor.dims[tensor.pdim][1] if tensor.pdim >= 0 else 1
    if whole and parts == s.parts:
        return f"%{s.name}"
    p0 = tensor.p0
    window = f"{p0}:{p0 + parts}" if type(p0) is int else f"{p0} +: {parts}"
    return f"%{s.name}{recast}[p {window}, off {offset}, {pairs}]"


# Kernels look at few shapes, again and again.


@functools.lru_cache(maxsize=1 << 12)
def _spelt(free: Dims, row: int) -> tuple[str, bool]:
    """Steps and counts as text, and whether they are `row` elements one behind the other."""
    want = row
    whole = True
    for step, count in free:
        whole = whole and step * count == want
        want = step
    return ", ".join([f"{step} x {count}" for step, count in free]) or "1 x 1", whole and want == 1


def merged(dims: Iterable[tuple[int, int]]) -> Dims:
    """Dimensions of more than one element, merged where they lie one behind the other."""
    out: list[tuple[int, int]] = []
    for step, count in dims:
        if count == 1:
            continue
        if out and out[-1][0] == step * count:
            out[-1] = (step, out[-1][1] * count)
        else:
            out.append((step, count))
    return tuple(out)


@functools.lru_cache(maxsize=1 << 12)
def free_dims(dims: Dims, pdim: int) -> Dims:
    """The dimensions beside the one on partitions, merged."""
    return merged(dim for axis, dim in enumerate(dims) if axis != pdim)


@functools.lru_cache(maxsize=1 << 12)
def dram_dims(dims: Dims) -> Dims:
    """Dimensions of a DRAM access: as the view has them, merged only where there are too many."""
    out = tuple(dim for dim in dims if dim[1] != 1)
    return merged(out) if len(out) > 4 else out


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


class Reach:
    """How far an index array moves along a dimension: positions `const + sum(step * axis)` of `count`."""

    __slots__ = ("dimension", "const", "steps", "count", "shown")

    def __init__(self, dimension: int, const: int, steps: tuple[tuple[int, int], ...], count: int, shown: str | None = None) -> None:
        self.dimension = dimension
        self.const = const
        #: Axes of the view and what one step along each moves.
        self.steps = steps
        self.count = count
        #: The index as it was written, if it is no index array.
        self.shown = shown

    def span(self, dims: Dims, valid: tuple[Any, ...]) -> tuple[int, int] | None:
        """First and last position over what the bounds leave of the view; None where that is nothing."""
        low = high = self.const
        for axis, step in self.steps:
            lo, hi = valid[axis] or (0, None)
            last = (dims[axis][1] if hi is None else min(hi, dims[axis][1])) - 1
            if last < lo:
                return None
            low += min(step * lo, step * last)
            high += max(step * lo, step * last)
        return low, high


class Unproved(tuple[Any, ...]):
    """Bounds of a view whose index arrays run out of the tensor: a mask must keep them inside, or the view is of no use."""

    reaches: list[Reach]

    @classmethod
    def of(cls, valid: Iterable[Any], reaches: list[Reach]) -> Unproved:
        out = cls(valid)
        out.reaches = reaches
        return out

    def prove(self, tensor: Any) -> None:
        """Raise where the index arrays leave the tensor within these bounds."""
        for reach in self.reaches:
            span = reach.span(tensor.dims, self)
            if span is not None and (span[0] < 0 or span[1] >= reach.count):
                where = f"`{tensor.storage.name}`, which has {reach.count} elements there"
                if reach.shown is None:
                    text = f"index arrays run from {span[0]} to {span[1]} along dimension {reach.dimension} of {where}"
                else:
                    text = f"index `{reach.shown}` of dimension {reach.dimension} is outside {where}"
                raise fail(text, "give what must be left out as `mask=`")


def within(bound: Any, position: int) -> bool:
    """Whether a position lies in bounds."""
    return bound is None or (bound[0] <= position and (bound[1] is None or position < bound[1]))


def seen_through(bound: Any, index: Any, extents: tuple[int, ...], valid: list[Any]) -> None:
    """Narrow `valid`, the bounds of the axes of index arrays, to where `index` stays within the bounds of the dimension it indexes."""
    rank = len(extents)
    coefficients, _ = index.widened(rank)
    moving = [at for at in range(rank) if coefficients[at] and extents[at] > 1]
    if type(index.const) is not int:
        return
    if not moving:
        if not within(bound, index.const):
            valid[-1] = (0, 0)
        return
    at = moving[0]
    step = coefficients[at]
    if len(moving) > 1 or step < 0:
        raise fail("a tile that is masked along a dimension can be indexed there by one forward axis only")
    lo, hi = valid[at] or (0, None)
    lo = max(lo, -((index.const - bound[0]) // step))
    if bound[1] is not None:
        end = max(0, -((index.const - bound[1]) // step))
        hi = end if hi is None else min(hi, end)
    valid[at] = (lo, hi)


def outside(tensor: Any, k: Any, axis: int, count: int) -> Exception:
    shown = f"{k.start}:{k.stop}" if isinstance(k, slice) else k
    return fail(f"index `{shown}` of dimension {axis} is outside `{tensor.storage.name}`, which has {count} elements there")


def split(dims: Dims, wanted: tuple[int, ...], tensor: Any) -> Dims:
    """`dims` in another shape of as many elements."""
    # merge what lies one behind the other, then cut
    out: list[tuple[int, int]] = []
    stack = list(reversed(merged(dims)))
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
