"""Assignments of old-style NKI: `nl.store`, `tensor[...] = value`, `tensor op= value`.

What computed a value that nobody keeps may write where it is assigned in the first place, instead of being copied there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dtypes, psum
from .blocks import Blocks
from .compute import (
    Scalar,
    between,
    binary,
    chosen,
    constant,
    dma,
    fit,
    full,
    held_parts,
    in_sbuf,
    is_column,
    is_empty,
    joint_bounds,
    load,
    memset,
    on_chip,
    reciprocal,
    tensor_scalar,
    tensor_tensor,
    with_bounds,
    with_mask,
)
from .errors import fail
from .record import BITWISE, Recorder, recorder
from .tensor import Tensor


def store(dst: Any, value: Any = None, mask: Any = None) -> None:
    """`nl.store`: a tile or number to DRAM."""
    if not isinstance(dst, Tensor):
        raise fail(f"`nl.store` writes a tensor, found `{dst!r}`")
    dst = with_mask(dst, mask)
    assign(dst, value)


def assign(dst: Tensor, value: Any, nobody_keeps: bool = False) -> None:
    """`dst[...] = value`. A value that nobody keeps may be made in `dst` in the first place."""
    r = recorder()
    if isinstance(value, Tensor):
        if value.storage is dst.storage and value.text() == dst.text():
            return  # `dst[...] += x` has written in place already
        if dst.storage.space == "dram" or value.storage.space == "dram":
            source = in_sbuf(value) if value.storage.space == "psum" else value
            dst = chosen(dst)
            if source.size != dst.size or source.valid is not None or dst.valid is not None:
                source = fit(source, dst.shape)
            d, s = held_parts(dst, source)
            if dst.valid is None and d.size < dst.size and dst.storage.cut is None:
                dst.storage.cut = (r.here or r.site()).where
            if not is_empty(d):
                dma(d, s)
            return
        if value.storage.space == "psum" and dst.storage.space == "psum" and value.dtype is dst.dtype and nobody_keeps and into(value, dst, False):
            return
        source = fit(value, dst.shape)
        d, s = held_parts(dst, source)
        r.once()  # which engine can write a part of a tile follows from where it begins
        if not is_empty(d):
            if (between(d) or between(s)) and "psum" not in (d.storage.space, s.storage.space):
                dma(d, s)
                return
            if nobody_keeps and r.fresh is not None and r.fresh[0] == len(r.module.lines) and r.fresh[1] is value and value is source and _redirect(r, value, d):
                return
            r.emit("tensor_copy", {"dst": d, "src": s})
        return
    if isinstance(value, Scalar):
        if dst.storage.space == "dram":
            tile = full(dst.shape, value, dst.dtype)
            assign(dst, tile)
            return
        dst = dst.effective()
        if is_empty(dst):
            return
        r.once()
        if between(dst):
            dma(dst, full(dst.shape, value, dst.dtype, pdim=dst.pdim))
        else:
            memset(dst, value)
        return
    if isinstance(value, np.ndarray):
        assign(dst, constant(value))
        return
    raise fail(f"`{value!r}` cannot be stored in a tensor")


def target(tile: Any, key: Any, value: Any) -> Tensor:
    """`tile[key]`, to be assigned to.

    A masked tile holds more from now on if all of it is written, or what the mask left out. A tile whose first value is masked holds
    that part.
    """
    if isinstance(tile, Blocks):
        tile, key = tile.chosen(key)
    part: Tensor = tile[key]
    if isinstance(value, Tensor) and value.valid is not None:
        if part.size == tile.size and part.shape == value.shape:
            return _filled(tile, part, value)
    elif part.valid is not None and tile.valid is not None and (part.size == tile.size or is_empty(part.effective())):
        tile.valid = None
        tile._form = 0
        return tile[key]  # type: ignore[no-any-return]
    return part


def _filled(tile: Tensor, part: Tensor, value: Tensor) -> Tensor:
    """All of a tile, to be assigned a masked value: what it holds afterwards is noted."""
    bounds = joint_bounds([value])
    if part.dims != tile.dims or part.pdim != tile.pdim:  # index arrays in another order than the tile's dimensions
        places = [[at for at in range(tile.ndim) if (at == tile.pdim, tile.dims[at]) == (axis == part.pdim, dim)] for axis, dim in enumerate(part.dims)]
        if part.ndim != tile.ndim or any(len(at) != 1 for at in places):
            tile.valid, tile._form = None, 0
            return Tensor(part.storage, part.dtype, part.offset, part.p0, part.dims, part.pdim)
        bounds = {places[axis + part.ndim][0] - tile.ndim: bound for axis, bound in bounds.items()}
    bare = Tensor(tile.storage, tile.dtype, tile.offset, tile.p0, tile.dims, tile.pdim)
    new = with_bounds(bare, bounds).valid
    if not tile.storage.written:
        held = new
    elif tile.valid is None:
        return part
    else:
        held = new if _covers(new, tile.valid) else tile.valid if _covers(tile.valid, new) else None
    tile.valid, tile._form = held, 0
    return Tensor(part.storage, part.dtype, part.offset, part.p0, part.dims, part.pdim)


def _covers(outer: Any, inner: Any) -> bool:
    """Whether bounds leave all that others leave."""
    if outer is None or inner is None:
        return outer is None
    for a, b in zip(outer, inner):
        low, end = a or (0, None)
        first, last = b or (0, None)
        if low > first or (end is not None and (last is None or last > end)):
            return False
    return True


def into(value: Tensor, dst: Tensor, accumulate: bool) -> bool:
    """Let the instruction of the tensor engine that just made `value` write `dst`, or add to it; False where it cannot."""
    r = recorder()
    if r.fresh is None or r.fresh[0] != len(r.module.lines) or r.fresh[1] is not value or r.last_matmul is None or r.last_matmul[0] is not value:
        return False
    if value.size != dst.size:
        return False
    _, op, values, attrs = r.last_matmul
    if accumulate and op != "matmult":
        return False
    target = with_bounds(dst, joint_bounds([value])).effective()
    r.module.lines.pop()
    for state in r.held_back:
        # of a tile that was made for the assignment: it is filled before this instruction
        state.at = min(state.at, len(r.module.lines))
    r.module.storages.remove(value.storage)
    r.calls -= 1
    if op == "matmult":
        attrs = {**attrs, "accumulate": psum.accumulation(r, target, (True if dst.storage.psum.zeroed else None) if accumulate else False)}
    r.emit(op, {**values, "dst": target}, attrs)
    return True


def _redirect(r: Recorder, value: Tensor, dst: Tensor) -> bool:
    """Let the instruction that just made `value` write `dst` instead; False where it cannot."""
    if value.dtype is not dst.dtype or value.storage.space != dst.storage.space or dst.storage.space == "psum":
        return False
    storage, storages = value.storage, r.module.storages
    # the tile of an array may have been made for the assignment
    at = -2 if storages[-1] is dst.storage else -1
    if len(storages) < -at or storages[at] is not storage or storage.first != storage.last or value.valid is not None:
        return False
    line = r.module.lines[-1]
    old = value.text() + " <-"
    before, found, after = line.partition(" " + old)
    if not found or f"%{storage.name}" in before + after or "," in before:
        return False
    # an instruction must not read, shifted, what it writes
    if f"%{dst.storage.name}[" in after or f"%{dst.storage.name} " in after or f"%{dst.storage.name}," in after:
        return False
    r.module.lines[-1] = f"{before} {dst.text()} <-{after}"
    del storages[at]
    r.module.taken.pop(storage.name, None)
    dst.storage.written = True
    at = len(r.module.lines) - 1
    if dst.storage.first < 0:
        dst.storage.first = at
    dst.storage.last = at
    return True


def update(op: str, dst: Tensor, value: Any, nobody_keeps: bool = False) -> Tensor:
    """`dst op= value`, in place. A product that nobody keeps may be added by the tensor engine itself."""
    if nobody_keeps and op == "add" and dst.storage.space == "psum" and isinstance(value, Tensor):
        if into(value, dst, True):
            return dst
    if dst.storage.space == "dram":
        tile = load(dst)
        assign(dst, binary(op, tile, value, dst.dtype))
        return dst
    if op == "divide":
        value = reciprocal(value, dtypes.float32) if isinstance(value, Tensor) else 1.0 / value
        op = "multiply"
    if isinstance(value, Tensor):
        value = on_chip(value)
        if is_column(value, dst) and op not in BITWISE:
            tensor_scalar(dst.effective(), dst.effective(), op, value)
            return dst
        value = fit(value, dst.shape)
        if value.storage.space == "psum" and dst.storage.space == "psum":
            value = in_sbuf(value)
        bounds = joint_bounds([dst, value])
        d = with_bounds(dst, bounds).effective()
        if not is_empty(d):
            tensor_tensor(d, d, with_bounds(value, bounds).effective(), op)
    else:
        d = dst.effective()
        tensor_scalar(d, d, op, value)
    return dst
