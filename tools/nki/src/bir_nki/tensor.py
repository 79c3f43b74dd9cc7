"""Tensors: storages, and views of them.

A storage is a location of the IR. A view is an element offset and `(step, count)` per dimension; on chip one dimension, `pdim`, lies on
partitions (its step is 1, in partitions, and the view begins at partition `p0`), and the others step through each partition. The text of
a view's access is made once. Invariants:

- steps and offset count elements of the view's dtype, over the storage (DRAM) or over one partition of it (SBUF, PSUM);
- `valid`, where set, bounds each dimension: elements outside were masked off when the tile was made, and hold nothing.
"""

from __future__ import annotations

import math
from typing import Any

from . import dtypes
from .access import (
    Dims,
    Reach,
    Unproved,
    access,
    bounds_of_slice,
    dram_dims,
    free_dims,
    outside,
    seen_through,
    shifted,
    single_position,
    split,
    within,
)
from .dtypes import DType
from .errors import axis_at, fail
from .index import Affine, IndexArray, Mask, Moved, Run, broadcast_shapes
from .operators import Operators
from .storage import Storage


#: Dimensions of views by index arrays, which lies on partitions, and how far each array moves.
_fancy_dims: dict[Any, tuple[Dims, int, list[tuple[int, int]]]] = {}


def _span(k: Any) -> tuple[int, int]:
    """How far an index array goes below and above its constant."""
    if type(k) is not IndexArray:
        return 0, 0
    moves = [c * (n - 1) for c, n in zip(k.coefficients, k.extents)]
    return sum(m for m in moves if m < 0), sum(m for m in moves if m > 0)


def _is_run_time(k: Any) -> bool:
    """Whether an index has no value while tracing: a register, or a tile of one number."""
    return isinstance(k, Tensor) or getattr(k, "is_register", False)


class Tensor(Operators):
    """A view of a storage; what kernels call a tensor or tile."""

    __slots__ = ("storage", "dtype", "offset", "p0", "dims", "pdim", "valid", "dynamic", "_text", "_form")

    # numpy must leave `array * tile` to us
    __array_priority__ = 1000
    __array_ufunc__ = None

    def __init__(
        self, storage: Storage, dtype: DType, offset: Any, p0: Any, dims: Dims, pdim: int, valid: Any = None, dynamic: Any = None
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        self.offset = offset
        self.p0 = p0
        self.dims = dims
        self.pdim = pdim
        self.valid = valid
        #: A run-time part of the offset: (kind, register or index tile, elements per unit).
        self.dynamic = dynamic
        self._text: str | None = None
        #: What it looks like, as a number; 0 where nobody asked yet. See replay.py.
        self._form = 0

    def of(self, storage: Storage) -> Tensor:
        """The same view of another storage."""
        out = Tensor(storage, self.dtype, self.offset, self.p0, self.dims, self.pdim, self.valid)
        out._form = self._form
        return out

    # ---- what kernels ask ----

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple([count for _, count in self.dims])

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        out = 1
        for _, count in self.dims:
            out *= count
        return out

    @property
    def buffer(self) -> Any:
        from .language import buffer_of

        return buffer_of(self.storage)

    @property
    def strides(self) -> tuple[int, ...]:
        row = self.storage.row
        return tuple(row if axis == self.pdim else step for axis, (step, _) in enumerate(self.dims))

    @property
    def name(self) -> str:
        return self.storage.name

    @property
    def address(self) -> Any:
        return None

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def on_chip(self) -> bool:
        return self.storage.space != "dram"

    @property
    def partitions(self) -> int:
        return self.dims[self.pdim][1] if self.pdim >= 0 else 1

    @property
    def shape_2d(self) -> tuple[int, int]:
        """Partitions, and elements of each."""
        return self.partitions, self.size // max(1, self.partitions)

    def as_tile(self) -> Tensor:
        return self

    def __len__(self) -> int:
        return self.dims[0][1]

    def __repr__(self) -> str:
        return f"<{self.storage.space} {self.storage.name} {'x'.join(map(str, self.shape))} {self.dtype}>"

    def __bool__(self) -> bool:
        raise fail(f"`{self.storage.name}` has no value while the kernel is traced, so nothing can be decided by it")

    __hash__ = object.__hash__

    def __iter__(self) -> Any:
        for position in range(self.dims[0][1]):
            yield self[position]

    # ---- views ----

    def _view(self, offset: Any, p0: Any, dims: Dims, pdim: int, valid: Any = None) -> Tensor:
        if type(self.valid) is Unproved and type(valid) is not Unproved:
            self.valid.prove(self)
        return Tensor(self.storage, self.dtype, offset, p0, dims, pdim, valid, self.dynamic)

    def __getitem__(self, key: Any) -> Tensor:
        keys = key if type(key) is tuple else (key,)
        dims = self.dims
        if len(keys) != len(dims) or self.valid is not None:
            return self._general(keys)
        # slices, runs and positions that are plain numbers: nearly all there are
        offset, p0, pdim = self.offset, self.p0, self.pdim
        new_pdim = -1
        out: list[tuple[int, int]] = []
        axis = 0
        for k in keys:
            pair = dims[axis]
            if type(k) is slice:
                start, stop = k.start, k.stop
                if start is None:
                    start = 0
                if k.step is not None or type(start) is not int or start < 0:
                    return self._general(keys)
                count = pair[1]
                if stop is None:
                    stop = count
                elif type(stop) is not int or not start < stop <= count:
                    return self._general(keys)
                length = stop - start
            elif type(k) is Run and k.step == 1 and type(k.start) is int:
                start, length = k.start, k.size
                if start < 0 or length < 1 or start + length > pair[1]:
                    return self._general(keys)
            elif type(k) is int and 0 <= k < pair[1]:
                if axis == pdim:
                    p0 = p0 + k
                    new_pdim = len(out)
                    out.append((1, 1))
                else:
                    offset = offset + k * pair[0]
                axis += 1
                continue
            else:
                return self._general(keys)
            if axis == pdim:
                p0 = p0 + start
                new_pdim = len(out)
                out.append((1, length))
            else:
                if start:
                    offset = offset + start * pair[0]
                out.append((pair[0], length))
            axis += 1
        return Tensor(self.storage, self.dtype, offset, p0, tuple(out), new_pdim, None, self.dynamic)

    def _general(self, keys: tuple[Any, ...]) -> Tensor:
        """Indexing with all that is allowed."""
        dims = self.dims
        if len(keys) == 1 and type(keys[0]) is Mask:
            from . import compute

            return compute.with_mask(self, keys[0])  # type: ignore[no-any-return]
        if type(self.valid) is Unproved:
            if all(k is Ellipsis or (type(k) is slice and k == slice(None)) for k in keys):
                return self
            self.valid.prove(self)
        if len(keys) != len(dims) or any(k is Ellipsis for k in keys):
            if len(keys) == 2 and len(dims) == 1 and self.pdim == 0 and not any(k is None or k is Ellipsis for k in keys):
                return self.beside(1)[keys]  # `tile[:, i]` has one element in each partition, and kernels index it so
            keys = self._complete(keys)
        for at, k in enumerate(keys):
            if type(k) is Tensor and k.size > 1:
                return self._indirect(keys, at)
        if any(type(k) is IndexArray or type(k) is Moved or k is None for k in keys):
            return self._fancy(keys)
        offset, p0 = self.offset, self.p0
        pdim, new_pdim = self.pdim, -1
        out: list[tuple[int, int]] = []
        valid: list[Any] | None = [] if self.valid is not None else None
        axis = 0
        dynamic = self.dynamic
        reaches: list[Reach] = []
        for k in keys:
            step, count = dims[axis]
            if type(k) is slice:
                start, length, stride = bounds_of_slice(k, count, axis)
            elif type(k) is int:
                start, length, stride = k, -1, 1
            elif type(k) is Run:
                start, length, stride = k.start, k.size, k.step
            else:
                start, length, stride = single_position(k)
            if type(start) is int:
                if start < 0:
                    start += count
                if start < 0 or start + max(0, abs(length) - 1) * stride >= count or length == 0:
                    if type(k) is not Run or length < 1:
                        raise outside(self, k, axis, count)
                    reaches.append(Reach(axis, start, ((len(out), stride),), count, f"{start} +: {length}"))
            elif not isinstance(start, Affine):
                # a register: the offset is known at run time only
                if dynamic is not None or axis == pdim:
                    raise fail("one dimension of a view may be chosen by a register, and no partition")
                dynamic = ("scalar", start, step)
                start = 0
            if axis == pdim:
                if stride != 1:
                    raise fail(f"partitions cannot be strided, found a step of {stride}", "transpose, or move rows by DMA")
                p0 = p0 + start
                new_pdim = len(out)
                out.append((1, abs(length)))
                if valid is not None:
                    valid.append(shifted(self.valid[axis], start, abs(length)))
            else:
                offset = offset + start * step
                if length >= 0:
                    out.append((step * stride, length))
                    if valid is not None:
                        valid.append(shifted(self.valid[axis], start, length))
            axis += 1
        held: Any = tuple(valid) if valid is not None else None
        if reaches:
            held = Unproved.of(held or (None,) * len(out), reaches)
        return Tensor(self.storage, self.dtype, offset, p0, tuple(out), new_pdim, held, dynamic)

    def _complete(self, keys: tuple[Any, ...]) -> tuple[Any, ...]:
        rank = len(self.dims)
        given = sum(1 for k in keys if k is not Ellipsis and k is not None)
        if given > rank:
            raise fail(f"{given} indices for `{self.storage.name}`, which has {rank} dimensions")
        rest = (slice(None),) * (rank - given)
        for at, k in enumerate(keys):
            if k is Ellipsis:
                return keys[:at] + rest + keys[at + 1 :]
        return keys + rest

    def _fancy(self, keys: tuple[Any, ...]) -> Tensor:
        """Index arrays: every axis of their broadcast shape becomes a dimension, slices following in numpy's manner."""
        look: list[Any] = [self.pdim, self.dims]
        for k in keys:
            if type(k) is IndexArray:
                look.append(k.coefficients)
                look.append(k.extents)
            elif type(k) is int:
                look.append(None)
            else:
                return self._fancy_of(keys)
        if self.valid is not None:
            return self._fancy_of(keys)
        key = tuple(look)
        known = _fancy_dims.get(key)
        if known is None:
            out = self._fancy_of(keys)
            _fancy_dims[key] = (out.dims, out.pdim, [_span(k) for k in keys])
            return out
        offset, p0, pdim = self.offset, self.p0, self.pdim
        axis = 0
        for k in keys:
            step, count = self.dims[axis]
            if type(k) is IndexArray:
                start = k.const
                low, high = known[2][axis]
                if type(start) is int and (start + low < 0 or start + high >= count):
                    return self._fancy_of(keys)
            else:
                start = self._position(k, axis)
            if axis == pdim:
                p0 = p0 + start
            else:
                offset = offset + start * step
            axis += 1
        return Tensor(self.storage, self.dtype, offset, p0, known[0], known[1], None, self.dynamic)

    def _position(self, k: Any, axis: int) -> Any:
        """A single position, counted from the end where it is negative."""
        count = self.dims[axis][1]
        if type(k) is not int:
            return k if isinstance(k, Affine) else self._position(int(k), axis)
        if not -count <= k < count:
            raise outside(self, k, axis, count)
        return k + count if k < 0 else k

    def _started(self, keys: tuple[Any, ...]) -> Tensor:
        """Indexing by index arrays, one dimension of which begins where a register or a tile of one number says."""
        dynamic = self.dynamic
        plain: list[Any] = []
        for axis, k in enumerate(keys):
            start, rest = (k.start, k.array) if type(k) is Moved else (k, 0)
            if not _is_run_time(start):
                plain.append(k)
                continue
            if dynamic is not None or axis == self.pdim:
                raise fail("one dimension of a view may begin where a register or tile says, and no partition")
            if isinstance(start, Tensor) and start.size != 1:
                raise fail(f"beside index arrays, a dimension begins where one number says, found `{start.storage.name}` of shape {list(start.shape)}")
            dynamic = ("scalar", start, self.dims[axis][0])
            plain.append(rest)
        base = Tensor(self.storage, self.dtype, self.offset, self.p0, self.dims, self.pdim, self.valid, dynamic)
        return base._fancy(tuple(plain))

    def _fancy_of(self, keys: tuple[Any, ...]) -> Tensor:
        """The same, worked out."""
        if any(type(k) is Moved or _is_run_time(k) for k in keys):
            return self._started(keys)
        arrays = [k for k in keys if isinstance(k, IndexArray)]
        if not arrays:  # only new axes
            out = self
            for axis, k in enumerate(keys):
                if k is None:
                    out = out.expand_dims(axis)
            return out[tuple(slice(None) if k is None else k for k in keys)]
        rank = max(a.ndim for a in arrays)
        # a slice among index arrays is one more axis, at its own place
        base = self
        extents = (1,) * rank
        for a in arrays:
            extents = broadcast_shapes(extents, a.widened(rank)[1])
        steps = [0] * rank
        on_partitions = [0] * rank
        offset, p0 = base.offset, base.p0
        tail: list[tuple[int, int]] = []
        tail_pdim = -1
        valid: list[Any] = [None] * rank
        tail_valid: list[Any] = []
        reaches: list[Reach] = []
        axis = 0
        for k in keys:
            if k is None:
                raise fail("`None` among index arrays: write it on the index arrays themselves")
            step, count = base.dims[axis]
            if isinstance(k, slice):
                start, length, stride = bounds_of_slice(k, count, axis)
                if axis == base.pdim:
                    tail_pdim = len(tail)
                    p0 = p0 + start
                else:
                    offset = offset + start * step
                tail.append((step * stride, length))
                tail_valid.append(shifted(base.valid[axis], start, length) if base.valid is not None else None)
            elif isinstance(k, IndexArray):
                coefficients, _ = k.widened(rank)
                low, high = _span(k)
                if type(k.const) is int and (k.const + low < 0 or k.const + high >= count):
                    reaches.append(Reach(axis, k.const, tuple((at, c) for at, c in enumerate(coefficients) if c and extents[at] > 1), count))
                if base.valid is not None and base.valid[axis] is not None:
                    seen_through(base.valid[axis], k, extents, valid)
                if axis == base.pdim:
                    p0 = p0 + k.const
                    on_partitions = [a + b for a, b in zip(on_partitions, coefficients)]
                else:
                    offset = offset + k.const * step
                    steps = [a + b * step for a, b in zip(steps, coefficients)]
            else:
                start = self._position(k, axis)
                if base.valid is not None and type(start) is int and not within(base.valid[axis], start):
                    valid[-1] = (0, 0)
                if axis == base.pdim:
                    p0 = p0 + start
                else:
                    offset = offset + start * step
            axis += 1
        pdim = -1
        for at, coefficient in enumerate(on_partitions):
            if coefficient and extents[at] > 1:
                if pdim >= 0 or coefficient != 1 or steps[at]:
                    raise fail("one axis of the index arrays must run along partitions, by steps of 1, and along nothing else")
                pdim = at
        if pdim < 0 and base.pdim >= 0 and tail_pdim < 0:
            # one partition: the first axis of one element stands for it
            pdim = next((at for at, extent in enumerate(extents) if extent == 1), -1)
        if tail_pdim >= 0:
            pdim = rank + tail_pdim
        dims = tuple((1 if at == pdim else step, extent) for at, (step, extent) in enumerate(zip(steps, extents)))
        held: Any = None if base.valid is None else (*valid, *tail_valid)
        if reaches:
            held = Unproved.of((*valid, *tail_valid), reaches)
        return Tensor(base.storage, base.dtype, offset, p0, dims + tuple(tail), pdim, held, base.dynamic)

    def _indirect(self, keys: tuple[Any, ...], at: int) -> Tensor:
        """`table[index_tile, i_f]`: of DRAM, for each partition of the tile the part that its number there chooses."""
        index = keys[at]
        if self.on_chip:
            raise fail("an index tile chooses from tensors in DRAM", "use `nisa.nc_n_gather` or `nisa.local_gather`")
        if any(type(k) is Tensor for k in keys[at + 1 :]) or self.dynamic is not None:
            raise fail("one dimension of a view may be chosen by an index tile")
        if not index.on_chip or index.size != index.partitions:
            raise fail(f"an index tile holds one number in each partition, found `{index.storage.name}` of shape {list(index.shape)}")
        rest = self[keys[:at] + (0,) + keys[at + 1 :]]
        if type(rest.valid) is Unproved:
            rest.valid.prove(rest)
        dims = rest.dims
        if any(type(k) is IndexArray for k in keys):
            # the axis of the index arrays that ran along the tile's partitions
            if dims[0][1] != 1:
                raise fail("beside an index tile, index arrays run along their last axes only")
            dims = dims[1:]
        unit = self.dims[at][0]
        return Tensor(self.storage, self.dtype, rest.offset, 0, ((unit, index.partitions), *dims), -1, None, ("vector", index, unit))

    def trimmed(self, bounds: dict[int, tuple[int, int | None]]) -> Tensor:
        """The part a mask leaves; `bounds` are by axis counted from the last, and do not touch broadcast axes."""
        dims = list(self.dims)
        offset, p0, dynamic = self.offset, self.p0, self.dynamic
        for axis, (lo, hi) in bounds.items():
            at = axis + len(dims)
            if at < 0 or (dims[at][1] == 1 and hi != 0):
                continue
            step, count = dims[at]
            end = count if hi is None else min(hi, count)
            dims[at] = (step, max(0, end - lo))
            if at == self.pdim:
                p0 = p0 + lo
            elif at == 0 and dynamic is not None and dynamic[0] == "vector":
                dynamic = ("vector", dynamic[1][lo : max(lo, end)], dynamic[2])
            else:
                offset = offset + lo * step
        return Tensor(self.storage, self.dtype, offset, p0, tuple(dims), self.pdim, None, dynamic)

    def effective(self) -> Tensor:
        """The part that holds values."""
        if self.valid is None:
            return self
        if type(self.valid) is Unproved:
            self.valid.prove(self)
        rank = len(self.dims)
        return self.trimmed({axis - rank: bound for axis, bound in enumerate(self.valid) if bound is not None})

    def reshape(self, *args: Any, shape: Any = None) -> Tensor:
        """The same elements in another shape; the dimensions that merge must lie one behind the other."""
        shape = args if shape is None else (tuple(shape),)
        wanted = tuple(int(n) for n in (shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape))
        if -1 in wanted:
            known = 1
            for n in wanted:
                known *= n if n != -1 else 1
            wanted = tuple(self.size // max(1, known) if n == -1 else n for n in wanted)
        total = 1
        for n in wanted:
            total *= n
        if total != self.size:
            raise fail(f"cannot reshape {list(self.shape)} to {list(wanted)}: {self.size} elements and {total}")
        if wanted == self.shape:
            return self
        if self.pdim >= 0:
            return self._reshape_on_chip(wanted)
        return self._view(self.offset, self.p0, split(self.dims, wanted, self), -1)

    def _reshape_on_chip(self, wanted: tuple[int, ...]) -> Tensor:
        parts = self.partitions
        if self.pdim == 0 and wanted and wanted[0] == parts:
            return self._view(self.offset, self.p0, ((1, parts),) + split(self.dims[1:], wanted[1:], self), 0)
        before = 1
        for _, count in self.dims[: self.pdim]:
            before *= count
        reached = 1
        for at, n in enumerate(wanted if self.pdim > 0 else ()):
            if reached == before and n == parts:
                head = split(self.dims[: self.pdim], wanted[:at], self)
                tail = split(self.dims[self.pdim + 1 :], wanted[at + 1 :], self)
                return self._view(self.offset, self.p0, head + ((1, parts),) + tail, at)
            reached *= n
        from . import compute

        return compute.moved(self, wanted)

    def permute(self, *order: Any) -> Tensor:
        axes = tuple(order[0]) if len(order) == 1 and isinstance(order[0], (tuple, list)) else order
        if sorted(axes) != list(range(self.ndim)):
            raise fail(f"`{list(axes)}` is no order of {self.ndim} dimensions")
        pdim = axes.index(self.pdim) if self.pdim >= 0 else -1
        return self._view(self.offset, self.p0, tuple(self.dims[a] for a in axes), pdim)

    def transpose(self, *axes: Any) -> Tensor:
        return self.permute(*(axes or tuple(reversed(range(self.ndim)))))

    T = property(transpose)

    def broadcast_to(self, *shape: Any) -> Tensor:
        """A view in which dimensions of one element are read again and again."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        pad = len(wanted) - self.ndim
        if pad < 0 and self.pdim == 0 and all(n == 1 for n in self.shape[pad:]):
            # index arrays of a grid with an axis of one element, which the tensor has no dimension for
            return self._view(self.offset, self.p0, self.dims[:pad], 0, None if self.valid is None else tuple(self.valid)[:pad]).broadcast_to(wanted)
        if pad < 0:
            raise fail(f"cannot broadcast {list(self.shape)} to {list(wanted)}")
        if pad and self.pdim == 0 and self.partitions == wanted[0] > 1:
            return self.beside(pad).broadcast_to(wanted)
        dims = ((0, 1),) * pad + self.dims
        pdim = self.pdim + pad if self.pdim >= 0 else -1
        out = []
        for axis, ((step, count), n) in enumerate(zip(dims, wanted)):
            n = int(n)
            if count == n:
                out.append((step, count))
            elif axis != pdim and (count == 1 or step == 0):
                # a dimension that reads one element again and again has one to give
                out.append((0, n))
            elif count == 1:
                # partitions are not shared: a copy of the row in each
                from . import compute

                return compute.broadcast_to(self, wanted)
            else:
                raise fail(f"cannot broadcast {list(self.shape)} to {list(wanted)}")
        return self._view(self.offset, self.p0, tuple(out), pdim, None if self.valid is None else (None,) * pad + tuple(self.valid))

    def beside(self, pad: int) -> Tensor:
        """With `pad` dimensions of one element behind its partitions: what a reduction without `keepdims` leaves faces partitions, not rows."""
        valid = None if self.valid is None else (self.valid[0], *(None,) * pad, *self.valid[1:])
        return self._view(self.offset, self.p0, (self.dims[0], *((0, 1),) * pad, *self.dims[1:]), 0, valid)

    def broadcast(self, dim: int, size: int) -> Tensor:
        shape = list(self.shape)
        shape[dim] = size
        return self.broadcast_to(shape)

    def expand_dims(self, dim: Any) -> Tensor:
        if isinstance(dim, (tuple, list)):
            out, rank = self, self.ndim + len(dim)
            for at in sorted(axis_at(d, rank) for d in dim):
                out = out.expand_dims(at)
            return out
        at = axis_at(dim, self.ndim + 1)
        pdim = self.pdim + 1 if at <= self.pdim else self.pdim
        return self._view(self.offset, self.p0, self.dims[:at] + ((0, 1),) + self.dims[at:], pdim)

    expand_dim = expand_dims

    def squeeze(self, dim: Any = None) -> Tensor:
        gone = {axis for axis, (_, n) in enumerate(self.dims) if n == 1 and axis != self.pdim}
        if dim is not None:
            gone = {axis_at(d, self.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
            for d in gone:
                if self.dims[d][1] != 1:
                    raise fail(f"dimension {d} has {self.dims[d][1]} elements and cannot be squeezed")
        keep = [axis for axis in range(self.ndim) if axis not in gone]
        pdim = keep.index(self.pdim) if self.pdim in keep else -1
        return self._view(self.offset, self.p0, tuple(self.dims[a] for a in keep), pdim)

    squeeze_dim = squeeze

    def select(self, dim: int, index: Any) -> Tensor:
        """One position of a dimension, which goes away (partitions stay)."""
        at = axis_at(dim, self.ndim)
        return self[(slice(None),) * at + (index,)]

    def vector_select(self, dim: int, index: Tensor) -> Tensor:
        """Positions of a dimension by an index tile, one for each of its partitions."""
        at = axis_at(dim, self.ndim)
        return self._indirect((slice(None),) * at + (index,) + (slice(None),) * (self.ndim - at - 1), at)

    def slice(self, dim: int, start: Any, end: Any, step: int = 1) -> Tensor:
        at = axis_at(dim, self.ndim)
        end = min(end, self.dims[at][1]) if isinstance(end, int) else end
        return self[(slice(None),) * at + (slice(start, end, step),)]

    def flatten_dims(self, start_dim: int, end_dim: int) -> Tensor:
        shape = self.shape
        a, b = axis_at(start_dim, self.ndim), axis_at(end_dim, self.ndim)
        merged = 1
        for n in shape[a : b + 1]:
            merged *= n
        return self.reshape(shape[:a] + (merged,) + shape[b + 1 :])

    def reshape_dim(self, dim: int, shape: Any) -> Tensor:
        at = axis_at(dim, self.ndim)
        sizes = list(shape)
        if -1 in sizes:
            known = 1
            for n in sizes:
                known *= n if n != -1 else 1
            sizes[sizes.index(-1)] = self.shape[at] // known
        return self.reshape(self.shape[:at] + tuple(sizes) + self.shape[at + 1 :])

    def view(self, dtype: Any) -> Tensor:
        """The same bytes as elements of another dtype; the last dimension grows or shrinks."""
        new = dtypes.as_dtype(dtype)
        old = self.dtype
        if new.itemsize == old.itemsize:
            return Tensor(self.storage, new, self.offset, self.p0, self.dims, self.pdim, self.valid, self.dynamic)
        (step, count) = self.dims[-1]
        if step != 1 or self.pdim == self.ndim - 1:
            raise fail(f"cannot see `{old}` as `{new}`: the last dimension must be contiguous")
        if new.itemsize < old.itemsize:
            k = old.itemsize // new.itemsize
            dims = tuple((s if a == self.pdim else s * k, n) for a, (s, n) in enumerate(self.dims[:-1]))
            return Tensor(self.storage, new, self.offset * k, self.p0, dims + ((1, count * k),), self.pdim)
        k = new.itemsize // old.itemsize
        free = [s for a, (s, _) in enumerate(self.dims[:-1]) if a != self.pdim]
        if count % k or any(s % k for s in free) or not isinstance(self.offset, int) or self.offset % k:
            raise fail(f"cannot see `{old}` as `{new}`: offset, steps and the last count must be multiples of {k}")
        dims = tuple((s if a == self.pdim else s // k, n) for a, (s, n) in enumerate(self.dims[:-1]))
        return Tensor(self.storage, new, self.offset // k, self.p0, dims + ((1, count // k),), self.pdim)

    bitcast = view

    def ap(
        self,
        pattern: Any = None,
        offset: Any = 0,
        scalar_offset: Any = None,
        vector_offset: Any = None,
        indirect_dim: int = 0,
        dtype: Any = None,
        **unknown_arguments: Any,
    ) -> Tensor:
        """An access pattern over the whole storage: `[[step, count], ...]`, partitions first on chip."""
        if unknown_arguments:
            raise fail(f"`.ap` has no argument `{next(iter(unknown_arguments))}`")
        if pattern is None:
            return self
        s = self.storage
        new = dtypes.as_dtype(dtype) if dtype is not None else self.dtype
        row = s.row * s.dtype.itemsize // new.itemsize
        pairs = [(int(step), int(count)) for step, count in pattern]
        p0: Any = 0
        pdim = -1
        if s.space != "dram":
            step, count = pairs[0]
            if count > 1 and step != row:
                raise fail(f"the first step of an on-chip pattern must be the {row} elements of a partition, found {step}")
            if isinstance(offset, int):
                p0, offset = divmod(offset, row)
            pairs[0] = (1, count)
            pdim = 0
        out = Tensor(s, new, offset, p0, tuple(pairs), pdim)
        if scalar_offset is not None or vector_offset is not None:
            # one unit of the index is what lies to the right of `indirect_dim` in the tensor, which may be a storage in another shape
            units = [math.prod(self.shape[at + 1 :]) for at in range(self.ndim)]
            if self.size != s.row * s.parts or any(n > 1 and step != unit for n, step, unit in zip(self.shape, self.strides, units)):
                units = [math.prod(s.shape[at + 1 :]) for at in range(len(s.shape))]
            unit = units[axis_at(indirect_dim, len(units))]
            if vector_offset is not None:
                # rows of a part of the tensor that `offset` chose are told by their step
                unit = pairs[0][0] if pairs[0][0] in units[:-1] else unit
                out.dynamic = ("vector", vector_offset, unit)
            elif isinstance(scalar_offset, (int, Affine)):
                out.offset = out.offset + scalar_offset * unit
            else:
                out.dynamic = ("scalar", scalar_offset, unit)
        return out

    def indirect(self, index: Tensor, num_elem: int) -> Tensor:
        """A gather or scatter along rows by an index tile (trn3): `num_elem` columns."""
        out = self._view(self.offset, self.p0, self.dims, self.pdim)
        out.dynamic = ("columns", index, int(num_elem))
        return out

    def rearrange(self, pattern: str, **sizes: int) -> Tensor:
        """einops-style: `"p (a b) -> p b a"`, with the sizes that are not clear."""
        from .rearrange import rearrange

        return rearrange(self, pattern, sizes)  # type: ignore[no-any-return]

    def get_pattern(self) -> list[list[int]]:
        return [[self.storage.row if a == self.pdim else s, n] for a, (s, n) in enumerate(self.dims)]

    # ---- text ----

    def free_dims(self) -> Dims:
        """The dimensions beside partitions, merged where they lie one behind the other."""
        return free_dims(self.dims, self.pdim)

    def text(self) -> str:
        """The operand in `.bir` text; empty where it has no elements."""
        text = self._text
        if text is None:
            if type(self.valid) is Unproved:
                self.valid.prove(self)
            for _, count in self.dims:
                if count == 0:
                    self._text = ""
                    return ""
            text = self._text = access(self, dram_dims(self.dims) if self.storage.space == "dram" else free_dims(self.dims, self.pdim))
        return text
