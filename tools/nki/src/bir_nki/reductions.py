"""Reductions and matrix products of old-style NKI, lowered to documented instructions."""

from __future__ import annotations

from typing import Any

from . import dtypes, psum
from .access import access, merged
from .assign import update
from .compute import (
    binary,
    copy,
    in_sbuf,
    is_empty,
    joint_bounds,
    new_tile,
    on_chip,
    reciprocal,
    unary,
    with_bounds,
    with_mask,
)
from .dtypes import as_dtype
from .errors import axis_at, fail
from .index import Mask
from .record import recorder
from .tensor import Tensor


def axes_of(tensor: Tensor, axis: Any) -> tuple[int, ...]:
    """Normalised reduction axes; None is all of them."""
    if axis is None:
        return tuple(range(tensor.ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    out = sorted({axis_at(a, tensor.ndim) for a in given})
    return tuple(out)


def reduce(op: str, x: Tensor, axis: Any, dtype: Any = None, mask: Any = None, keepdims: bool = False, negate: bool = False) -> Tensor:
    """A new tile: elements along `axis` combined. Over partitions it takes the pool engine.

    A mask may be slanted: where the elements that it leaves along `axis` depend on the position beside, runs of positions are reduced that agree.
    """
    x = on_chip(x)
    slanted = mask if type(mask) is Mask and mask.slanted() else None
    if slanted is None:
        x = with_mask(x, mask)
    axes = axes_of(x, axis)
    free = tuple(a for a in axes if a != x.pdim)
    kind = as_dtype(dtype) if dtype is not None else x.dtype if x.dtype is not dtypes.bool_ else dtypes.int32
    out = x
    if free or x.pdim not in axes:
        shape = tuple(1 if a in free else n for a, n in enumerate(x.shape))
        out = new_tile(shape, dtypes.float32 if x.pdim in axes and kind.is_float else kind, pdim=max(0, x.pdim))
        source = x.effective() if slanted is None else x
        kept = {a: x.valid[a] for a in range(x.ndim) if x.valid is not None and a not in free and x.valid[a] is not None}
        if kept:
            out = with_bounds(out, {a - x.ndim: b for a, b in kept.items()})
        if slanted is None:
            tensor_reduce(op, out.effective(), source, free, negate)
        else:
            beside = [a - x.ndim for a in range(x.ndim) if a not in free and a != x.pdim]
            for run, rectangle in slanted.rectangles(x.shape, beside):
                part = with_bounds(with_bounds(x, run), rectangle).effective()
                if not is_empty(part):
                    tensor_reduce(op, with_bounds(out, {**run, **{a: b for a, b in rectangle.items() if a in beside}}).effective(), part, free, negate)
    if x.pdim in axes:
        # partitions are the pool engine's
        if op not in ("add", "max", "average", "bitwise_or", "bitwise_and"):
            raise fail(f"`{op}` over partitions is not supported", "transpose the tile first")
        column = in_sbuf(out)
        final: Tensor = new_tile(tuple(1 if a in axes else n for a, n in enumerate(x.shape)), kind, pdim=x.pdim)
        recorder().emit("tensor_partition_reduce", {"dst": final, "src": column.effective()}, {"op": op})
        out = final
    if not keepdims:
        pdim = -1
        dims: list[tuple[int, int]] = []
        for a, dim in enumerate(out.dims):
            if a in axes:
                continue
            if a == out.pdim:
                pdim = len(dims)
            dims.append(dim)
        valid = None if out.valid is None else tuple(v for a, v in enumerate(out.valid) if a not in axes)
        out = Tensor(out.storage, out.dtype, out.offset, out.p0, tuple(dims), pdim, valid)
    return recorder().made(out)


def tensor_reduce(op: str, dst: Tensor, src: Tensor, axes: tuple[int, ...], negate: bool = False) -> None:
    """The instruction; free `axes` of any position become the last dimensions of the access."""
    r = recorder()
    kept = merged(d for a, d in enumerate(src.dims) if a != src.pdim and a not in axes)
    gone = merged(d for a, d in enumerate(src.dims) if a != src.pdim and a in axes) or ((1, 1),)
    view = Tensor(src.storage, src.dtype, src.offset, src.p0, src.dims, src.pdim)
    view._text = access(view, kept + gone, exact=True)
    r.emit("tensor_reduce", {"dst": dst, "src": view}, {"op": op, "axes": tuple(range(len(kept) + 1, len(kept) + len(gone) + 1)), "negate": negate})


def mean(x: Tensor, axis: Any, dtype: Any = None, mask: Any = None, keepdims: bool = False) -> Any:
    total = reduce("add", x, axis, dtypes.float32, mask, keepdims)
    count = 1
    effective = with_mask(x, mask).effective()
    for a in axes_of(x, axis):
        count *= effective.shape[a]
    return binary("multiply", total, 1.0 / count, dtype or x.dtype)


def var(x: Tensor, axis: Any, dtype: Any = None, mask: Any = None, keepdims: bool = False) -> Any:
    centred = binary("subtract", x, mean(x, axis, dtypes.float32, mask, True), dtypes.float32)
    return mean(binary("multiply", centred, centred), axis, dtype or x.dtype, mask, keepdims)


def softmax(x: Tensor, axis: Any, dtype: Any = None, mask: Any = None) -> Any:
    """exp(x - max) over its sum, the sum taken on the way."""
    x = with_mask(on_chip(x), mask)
    low = reduce("max", x, axis, dtypes.float32, keepdims=True, negate=True)
    rest = tuple(a for a in range(x.ndim) if a not in axes_of(x, axis) and a != x.pdim)
    if rest:
        e = unary("exp", binary("add", x, low, dtypes.float32), dtypes.float32)
        total = reduce("add", e, axis, keepdims=True)
    else:
        e = with_bounds(new_tile(x.shape, dtypes.float32), joint_bounds([x]))
        total = new_tile((x.partitions, 1), dtypes.float32)
        src, dst = x.effective(), e.effective()
        rows = slice(0, src.partitions)
        recorder().emit(
            "activation", {"dst": dst, "src": src, "bias": low[rows], "reduce_res": total[rows]}, {"func": "exp", "reduce": "add", "reduce_cmd": "reset"}
        )
        total = with_bounds(total, {-2: (0, src.partitions)} if src.partitions != x.partitions else {})
    inverse = reciprocal(total, dtypes.float32)
    return binary("multiply", e, inverse, dtype or x.dtype)


class _Totals:
    """What one call of `nl.loop_reduce` has gathered."""

    __slots__ = ("last", "at", "tiles")

    def __init__(self) -> None:
        self.last: tuple[int, ...] = ()
        self.at = 0
        self.tiles: list[Tensor] = []


def loop_reduce(x: Tensor, op: str, indices: Any, dtype: Any = None, mask: Any = None) -> Tensor:
    """`x` of all iterations of the loops with these indices combined, complete after the last of them.

    Loops are unrolled, so a loop that begins again is known by none of its indices having grown. Where the indices are as before, a loop
    inside goes on that is not reduced: each of its iterations has a total of its own.
    """
    r = recorder()
    r.once()
    x = with_mask(on_chip(x), mask)
    now = []
    for index in indices if isinstance(indices, (tuple, list)) else (indices,):
        if type(index) is not int:
            raise fail("`nl.loop_reduce` runs over loops that are unrolled", "loop over `nl.affine_range`, or accumulate in a tile")
        now.append(index)
    totals = r.loop_totals.setdefault((r.here or r.site(), r.program), _Totals())
    grown = any(a > b for a, b in zip(now, totals.last))
    if totals.tiles and tuple(now) == totals.last:
        totals.at += 1
    else:
        totals.at = 0
        if not grown:
            totals.tiles = []
    totals.last = tuple(now)
    if totals.at < len(totals.tiles):
        return update(op, totals.tiles[totals.at], x)
    total = copy(x, dtype)
    totals.tiles.append(total)
    return total


# ---- matrices ----


def pe_transpose(x: Tensor) -> Tensor:
    """A new PSUM tile with partitions and elements exchanged."""
    x = in_sbuf(x)
    free = x.size // x.partitions
    if free > 128:
        raise fail(f"a transpose on the tensor engine takes at most 128 x 128, found {x.partitions} x {free}")
    if x.dtype.itemsize == 1:
        # it passes wider elements only; bf16 holds these exactly
        return copy(pe_transpose(copy(x, dtypes.bfloat16)), x.dtype)
    out = turned(new_tile((free, x.partitions), x.dtype, "psum"), x)
    source = x.effective()
    recorder().emit("transpose", {"dst": out.effective(), "src": source})
    recorder().last_matmul = (out, "transpose", {"src": source}, {})
    return recorder().made(out)


def turned(out: Tensor, x: Tensor) -> Tensor:
    """A tile for a transpose of `x`: it holds values where `x` does."""
    return with_bounds(out, {-1 if axis == -x.ndim else -2: bound for axis, bound in joint_bounds([x]).items()})


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, mask: Any = None) -> Tensor:
    """`x @ y` into a new PSUM tile."""
    x, y = in_sbuf(with_mask(x, mask)), in_sbuf(with_mask(y, mask))
    stationary = x if transpose_x else in_sbuf(pe_transpose(x))
    return product(stationary, y)


def product(stationary: Tensor, moving: Tensor, attrs: dict[str, Any] | None = None) -> Tensor:
    """A new PSUM tile: `stationary.T @ moving`."""
    r = recorder()
    if stationary.partitions != moving.partitions:
        raise fail(f"a product sums over as many rows as there are columns: {stationary.partitions} and {moving.partitions} partitions")
    bounds = joint_bounds([stationary]), joint_bounds([moving])
    s, m = stationary.effective(), moving.effective()
    if is_empty(s) or is_empty(m):
        out = new_tile((stationary.size // stationary.partitions, moving.size // moving.partitions), dtypes.float32, "psum")
        return r.made(with_bounds(out, {-1: (0, 0)}))
    if s.partitions != m.partitions:
        k = min(s.partitions, m.partitions)
        s, m = s[0:k], m[0:k]
    # a transpose passes elements through as they are
    kind = stationary.dtype if (attrs or {}).get("is_transpose") else dtypes.float32
    pairs = 2 if (attrs or {}).get("double_row") else 1  # rows of two at a time
    rows, columns = stationary.size // max(1, pairs * stationary.partitions), moving.size // max(1, pairs * moving.partitions)
    out = new_tile((rows, columns), kind, "psum", name=recorder().assigned_name() or "product")
    valid: dict[int, tuple[int, int | None]] = {}
    if -1 in bounds[0]:
        valid[-2] = bounds[0][-1]
    if -1 in bounds[1]:
        valid[-1] = bounds[1][-1]
    out = with_bounds(out, valid)
    dst = out.effective()
    values = {"dst": dst, "stationary": s, "moving": m}
    given = dict(attrs or {})
    given["accumulate"] = psum.accumulation(r, dst, False)
    r.emit("matmult", values, given)
    r.last_matmul = (out, "matmult", values, given)
    return r.made(out)
