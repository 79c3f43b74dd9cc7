"""Values of old-style NKI: functions that return tiles, lowered to documented instructions.

A tile made under a mask holds values in part only. Its `valid` bounds travel with it, and whatever is computed from it covers that part.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import dtypes, psum, tokens
from .access import Unproved
from .dtypes import DType, as_dtype, promote
from .errors import fail
from .index import Mask
from .record import BITWISE, recorder
from .storage import Storage
from .tensor import Tensor

Scalar = (int, float, np.number, np.bool_, bool)


# ---- making tiles ----


def whole(storage: Storage, shape: tuple[int, ...] | None = None, pdim: int = 0) -> Tensor:
    """All of a storage, in its own shape or in one whose first dimension lies on partitions."""
    shape = storage.shape if shape is None else shape
    dims: list[tuple[int, int]] = [(1, 1)] * len(shape)
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        if axis == pdim and storage.space != "dram":
            dims[axis] = (1, shape[axis])
        else:
            dims[axis] = (step, shape[axis])
            step *= shape[axis]
    return Tensor(storage, storage.dtype, 0, 0, tuple(dims), -1 if storage.space == "dram" else pdim if shape else -1)


def new_tile(shape: tuple[int, ...], dtype: DType, space: str = "sbuf", pdim: int = 0, name: str | None = None) -> Tensor:
    """A tile of any rank; its storage has at least a partition and a free dimension."""
    r = recorder()
    if not shape:
        return whole(r.alloc(space, (1, 1), dtype, name), ())
    parts = shape[pdim]
    rest = shape[:pdim] + shape[pdim + 1 :]
    storage = r.alloc(space, (parts,) + (rest or (1,)), dtype, name)
    return whole(storage, shape, pdim)


def with_mask(tensor: Any, mask: Any) -> Any:
    """`tensor` with the mask's bounds among its own."""
    if mask is None or not isinstance(tensor, Tensor) or mask is True:
        return tensor
    if isinstance(mask, (bool, np.bool_)):
        # a condition on plain numbers: all or nothing
        nothing = ((0, 0),) * tensor.ndim
        return tensor if mask else tensor._view(tensor.offset, tensor.p0, tensor.dims, tensor.pdim, nothing)
    if not isinstance(mask, Mask):
        raise fail("`mask` must be a comparison of index arrays")
    return with_bounds(tensor, mask.bounds())


def with_bounds(tensor: Tensor, bounds: dict[int, tuple[int, int | None]]) -> Tensor:
    if not bounds:
        return tensor
    rank = tensor.ndim
    valid = list(tensor.valid) if tensor.valid is not None else [None] * rank
    touched = False
    for axis, (lo, hi) in bounds.items():
        at = axis + rank
        if at < 0 or (tensor.dims[at][1] == 1 and hi != 0):
            continue
        old_lo, old_hi = valid[at] or (0, None)
        valid[at] = (max(lo, old_lo), old_hi if hi is None else hi if old_hi is None else min(hi, old_hi))
        touched = True
    if not touched:
        return tensor
    held = Unproved.of(valid, tensor.valid.reaches) if type(tensor.valid) is Unproved else tuple(valid)
    return tensor._view(tensor.offset, tensor.p0, tensor.dims, tensor.pdim, held)


def joint_bounds(tensors: list[Tensor]) -> dict[int, tuple[int, int | None]]:
    """What is valid in all of them, by axis from the last."""
    out: dict[int, tuple[int, int | None]] = {}
    for t in tensors:
        if t.valid is None:
            continue
        for at, bound in enumerate(t.valid):
            if bound is None or (t.dims[at][1] == 1 and bound[1] != 0):
                continue
            axis = at - t.ndim
            lo, hi = out.get(axis, (0, None))
            out[axis] = (max(lo, bound[0]), hi if bound[1] is None else bound[1] if hi is None else min(hi, bound[1]))
    return out


def held_parts(dst: Tensor, *sources: Any) -> tuple[Any, ...]:
    """The parts of destination and sources that hold values."""
    if dst.valid is None:
        for source in sources:
            if type(source) is Tensor and source.valid is not None:
                break
        else:
            return (dst, *sources)
    bounds = joint_bounds([t for t in (dst, *sources) if type(t) is Tensor])
    return tuple(with_bounds(t, bounds).effective() if type(t) is Tensor else t for t in (dst, *sources))


def between(tensor: Tensor) -> bool:
    """Whether a part of a tile begins at a partition where compute engines cannot: DMA goes there."""
    p0, count = tensor.p0, tensor.partitions
    return tensor.storage.space == "sbuf" and type(p0) is int and p0 % (32 if count <= 32 else 64 if count <= 64 else 128) != 0


def is_empty(tensor: Tensor) -> bool:
    for _, count in tensor.dims:
        if count == 0:
            return True
    return False


def on_chip(value: Tensor) -> Tensor:
    """`value` in SBUF or PSUM; what lies in DRAM is loaded."""
    return load(value) if value.storage.space == "dram" else value


def in_sbuf(value: Tensor) -> Tensor:
    """`value` in SBUF."""
    value = on_chip(value)
    return copy(value) if value.storage.space == "psum" else value


def shape_of(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """numpy's broadcast."""
    if a == b:
        return a
    rank = max(len(a), len(b))
    a = (1,) * (rank - len(a)) + a
    b = (1,) * (rank - len(b)) + b
    out = []
    for x, y in zip(a, b):
        if x != y and x != 1 and y != 1:
            raise fail(f"shapes {list(a)} and {list(b)} do not broadcast")
        out.append(y if x == 1 else x)
    return tuple(out)


# ---- moving ----


def load(src: Any, dtype: Any = None, mask: Any = None, name: str | None = None) -> Tensor:
    """`nl.load`: DRAM to a new SBUF tile whose partitions are the first dimension of `src`."""
    if not isinstance(src, Tensor):
        raise fail(f"`nl.load` reads a tensor, found `{src!r}`")
    r = recorder()
    if src.storage.space != "dram":
        return copy(src, dtype=dtype, mask=mask)
    if src.ndim and src.dims[0][1] > 128:
        raise fail(f"`nl.load` of shape {list(src.shape)} takes {src.dims[0][1]} partitions, and there are 128")
    out = new_tile(src.shape, as_dtype(dtype) if dtype is not None else src.dtype, name=name)
    if mask is None and src.valid is None and src.dynamic is None:
        r.emit("load", {"dst": out, "src": src})
        return r.made(out)
    src = chosen(with_mask(src, mask))
    bounds = joint_bounds([src])
    out = with_bounds(out, bounds)
    dst = out.effective()
    if not is_empty(dst):
        dma(dst, src.effective())
    return r.made(out)


def chosen(view: Tensor) -> Tensor:
    """A view by an index tile holds values only for the partitions where the tile does."""
    if view.dynamic is None or view.dynamic[0] != "vector" or view.dynamic[1].valid is None:
        return view
    index = view.dynamic[1]
    out = Tensor(view.storage, view.dtype, view.offset, view.p0, view.dims, view.pdim, view.valid, ("vector", index._view(index.offset, index.p0, index.dims, index.pdim), view.dynamic[2]))
    return with_bounds(out, {-view.ndim: index.valid[index.pdim] or (0, None)})


def dma(dst: Tensor, src: Tensor) -> None:
    """Elements of `src` to `dst` by DMA: `load`, `save` or `dma_copy`, by where they lie."""
    r = recorder()
    if dst.dynamic is not None or src.dynamic is not None:
        from . import isa_move

        isa_move.dma_copy(dst=dst, src=src)
        return
    if dst.size != src.size:
        raise fail(f"a DMA moves as many elements as it reads: destination {list(dst.shape)}, source {list(src.shape)}")
    spaces = (src.storage.space, dst.storage.space)
    op = {("dram", "sbuf"): "load", ("sbuf", "dram"): "save"}.get(spaces, "dma_copy")
    r.emit(op, {"dst": dst, "src": src})


def moved(src: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`src` in a shape that spreads its elements over partitions in another way: a copy by DMA, which can be read only."""
    if shape[0] > 128:
        raise fail(f"cannot reshape {list(src.shape)} to {list(shape)}: {shape[0]} partitions, and there are 128")
    source = in_sbuf(src)
    out = new_tile(shape, src.dtype)
    recorder().emit("dma_copy", {"dst": out, "src": source})
    out.storage.frozen = (
        f"`{src.storage.name}` was reshaped from {list(src.shape)} to {list(shape)}, which moves elements between partitions: the result is a "
        "copy, and writing it would change nothing else"
    )
    return out


def fit(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`value` broadcast to `shape`, or seen in it where only dimensions of one element differ."""
    if value.shape == shape:
        return value
    ones = tuple(n for n in value.shape if n != 1)
    if ones == tuple(n for n in shape if n != 1) and value.valid is None and value.pdim <= 0:
        if value.pdim < 0 or (shape and shape[0] == value.partitions):
            return value.reshape(shape)
    return broadcast_to(value, shape)


def memset(dst: Tensor, value: Any, engine: str | None = None) -> None:
    r = recorder()
    if dst.storage.space == "psum" and value == 0 and psum.zero(r, dst):
        return
    if dst.dtype.kind in "iub" and isinstance(value, float) and value == int(value):
        value = int(value)
    r.emit("memset", {"dst": dst, "value": value}, {"engine": engine} if engine else None)


def full(shape: Any, value: Any, dtype: Any, space: str = "sbuf", name: str | None = None, pdim: int = 0) -> Tensor:
    out = new_tile(tuple(shape), as_dtype(dtype), space, pdim, name)
    memset(out, value)
    return recorder().made(out)


def constant(array: np.ndarray) -> Tensor:
    """A numpy array the kernel closes over, as a constant in DRAM, loaded."""
    return load(shared_constant(array))


def shared_constant(array: Any, dtype: Any = None) -> Tensor:
    """A constant in DRAM."""
    r = recorder()
    array = np.ascontiguousarray(array)
    if dtype is not None:
        array = array.astype(as_dtype(dtype).dtype)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype == np.int64:
        array = array.astype(np.int32)
    key = (array.shape, array.dtype.str, array.dtype.name, array.tobytes(), r.module.name)
    known = r.constants.get(key)
    if known is None:
        kind = as_dtype(array.dtype)
        shape = array.shape or (1,)
        storage = r.alloc("dram", shape, kind, r.assigned_name() or "constant")
        storage.kind = "const"
        storage.value = array
        known = r.constants[key] = whole(storage)
    return known


def copy(src: Any, dtype: Any = None, mask: Any = None, space: str = "sbuf") -> Tensor:
    """A new tile with the elements of `src`, converted."""
    if isinstance(src, Tensor) and src.storage.space == "dram":
        return load(src, dtype=dtype, mask=mask)
    kind = as_dtype(dtype) if dtype is not None else src.dtype
    out = new_tile(src.shape, kind, space, max(0, src.pdim))
    src = with_mask(src, mask)
    out = with_bounds(out, joint_bounds([src]))
    dst = out.effective()
    if not is_empty(dst):
        if kind is not src.dtype and kind.kind in "iu" and src.dtype.kind in "iu" and kind.itemsize == src.dtype.itemsize:
            # signed and unsigned are the same bits, as in numpy; a conversion would go by way of f32
            dst = dst.view(src.dtype)
        recorder().emit("tensor_copy", {"dst": dst, "src": src.effective()})
    return recorder().made(out)


def broadcast_to(src: Any, shape: Any, mask: Any = None) -> Tensor:
    """`src` in `shape`. Free dimensions are read again and again; one partition is copied to many, 32 at a time."""
    shape = tuple(int(n) for n in shape)
    src = with_mask(on_chip(src) if src.storage.space == "dram" and src.size != 1 else src, mask)
    if src.storage.space == "dram":
        src = load(src)
    pad = len(shape) - src.ndim
    if pad < 0:
        raise fail(f"cannot broadcast {list(src.shape)} to {list(shape)}")
    if pad and src.pdim == 0 and src.partitions == shape[0] > 1:
        src, pad = src.beside(pad), 0
    dims = ((0, 1),) * pad + src.dims
    pdim = src.pdim + pad if src.pdim >= 0 else 0
    if pad and src.partitions != 1 and src.pdim == 0:
        raise fail(f"cannot broadcast {list(src.shape)} to {list(shape)}: its partitions would become elements of a row")
    if pad and src.partitions == 1:
        # what stood on the one partition is a free dimension of one element, so the new first one can take its place
        pdim = 0
    view = Tensor(src.storage, src.dtype, src.offset, src.p0, dims, pdim, None if src.valid is None else (None,) * pad + src.valid)
    if not shape or view.dims[pdim][1] == shape[pdim]:
        return view.broadcast_to(shape)
    if view.dims[pdim][1] != 1:
        raise fail(f"cannot broadcast {list(src.shape)} to {list(shape)}")
    r = recorder()
    row = view
    if not isinstance(row.p0, int) or row.p0 % 32:
        moved = new_tile(row.shape, row.dtype, pdim=pdim)
        r.emit("dma_copy", {"dst": moved, "src": in_sbuf(row)})
        row = moved
    out = new_tile((shape[pdim],) + tuple(n for a, (_, n) in enumerate(row.dims) if a != pdim), row.dtype)
    for first in range(0, shape[pdim], 32):
        rows = min(32, shape[pdim] - first)
        mask32 = [0] * rows + [255] * (32 - rows)
        r.emit("stream_shuffle", {"dst": out[first : first + rows], "src": row}, {"mask": mask32})
    order = list(range(1, pdim + 1)) + [0] + list(range(pdim + 1, len(shape)))
    return out.permute(order).broadcast_to(shape)


# ---- elementwise ----


def result_type(op: str, a: Any, b: Any, dtype: Any) -> DType:
    if dtype is not None:
        return as_dtype(dtype)
    if op in tokens.COMPARISONS or op in tokens.LOGICAL:
        return dtypes.bool_
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return promote(a.dtype, b.dtype)
    tile, scalar = (a, b) if isinstance(a, Tensor) else (b, a)
    kind: DType = tile.dtype
    if kind.is_int and (isinstance(scalar, (float, np.floating)) or op in ("divide", "power")):
        return dtypes.float32
    return dtypes.int32 if kind is dtypes.bool_ and op not in BITWISE else kind


def binary(op: str, a: Any, b: Any, dtype: Any = None, mask: Any = None) -> Any:
    """A new tile (or, of two numbers, a number): `a op b` with numpy's broadcasting."""
    if isinstance(a, np.ndarray) and isinstance(b, Tensor):
        a = constant(a) if a.ndim else a.item()
    elif isinstance(b, np.ndarray) and isinstance(a, Tensor):
        b = constant(b) if b.ndim else b.item()
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        if not isinstance(a, (*Scalar, np.ndarray)) or not isinstance(b, (*Scalar, np.ndarray)):
            raise fail(f"`{op}` of `{a!r}` and `{b!r}`: one of them must be a tensor")
        out = tokens.NUMPY[op](a, b)
        return out.item() if isinstance(out, np.generic) else out
    for value in (a, b):
        if not isinstance(value, (Tensor, *Scalar)):
            raise fail(f"`{op}` takes tensors and numbers, found `{value!r}`")
    kind = result_type(op, a, b, dtype)
    if op == "divide":
        if isinstance(b, Scalar):
            return binary("multiply", a, 1.0 / float(b), kind, mask)
        inverse = reciprocal(b, dtype=dtypes.float32, mask=mask)
        return copy(inverse, kind) if isinstance(a, Scalar) and a == 1 and kind is not dtypes.float32 else (
            inverse if isinstance(a, Scalar) and a == 1 else binary("multiply", a, inverse, kind, mask)
        )
    if op in ("mod", "fmod", "divide_int"):
        return _mod(op, a, b, kind, mask)
    a = with_mask(on_chip(a), mask) if isinstance(a, Tensor) else a
    b = with_mask(on_chip(b), mask) if isinstance(b, Tensor) else b
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return _with_scalar(op, a, b, kind)
    return _tensors(op, a, b, kind)


def _with_scalar(op: str, a: Any, b: Any, kind: DType) -> Tensor:
    tile, scalar = (a, b) if isinstance(a, Tensor) else (b, a)
    reverse = tile is b and op not in tokens.COMMUTATIVE
    out = new_tile(tile.shape, kind, pdim=max(0, tile.pdim))
    if tile.valid is not None:
        out = with_bounds(out, joint_bounds([tile]))
    dst = out.effective()
    if not is_empty(dst):
        tensor_scalar(dst, tile.effective(), op, scalar, reverse)
    return recorder().made(out)


def tensor_scalar(dst: Tensor, src: Tensor, op: str, operand: Any, reverse: bool = False) -> None:
    attrs: dict[str, Any] = {"op0": op}
    if reverse:
        attrs["reverse0"] = True
    if op == "power":
        src = in_sbuf(src)
        attrs["engine"] = "pool"
    recorder().emit("tensor_scalar", {"dst": dst, "src": src, "operand0": operand}, attrs)


def is_column(t: Tensor, other: Tensor) -> bool:
    """One f32 per partition, beside a tile of as many partitions."""
    return (
        t.dtype is dtypes.float32
        and t.pdim == 0 and other.pdim == 0
        and t.partitions == other.partitions
        and t.size == t.partitions
        and other.size > other.partitions
        and t.valid is None
    )  # fmt: skip


def _tensors(op: str, a: Tensor, b: Tensor, kind: DType) -> Tensor:
    r = recorder()
    if a.ndim != b.ndim and a.pdim == 0 and b.pdim == 0 and a.partitions == b.partitions > 1:
        # partitions face partitions: a reduction without `keepdims` leaves one element in each
        low, high = (a, b) if a.ndim < b.ndim else (b, a)
        pad = high.ndim - low.ndim
        if high.shape == (*low.shape, *(1,) * pad):
            low = low._view(low.offset, low.p0, low.dims + ((0, 1),) * pad, 0, None if low.valid is None else (*low.valid, *(None,) * pad))
        else:
            low = low.beside(pad)
        a, b = (low, high) if a.ndim < b.ndim else (high, low)
    shape = a.shape if a.shape == b.shape else shape_of(a.shape, b.shape)
    if a.ndim == b.ndim and op not in BITWISE and op != "power" and a.shape != b.shape:
        # one number per partition is an operand of tensor_scalar
        for tile, column, reverse in ((a, b, False), (b, a, True)):
            if tile.shape == shape and is_column(column, tile):
                out = new_tile(shape, kind)
                out = with_bounds(out, joint_bounds([tile]))
                dst = out.effective()
                if not is_empty(dst):
                    source = tile.effective()
                    operand = column if source.partitions == column.partitions else column[source.p0 - tile.p0 : source.p0 - tile.p0 + source.partitions]
                    tensor_scalar(dst, source, op, operand, reverse and op not in tokens.COMMUTATIVE)
                return r.made(out)
    if a.shape != shape:
        a = broadcast_to(a, shape)
    if b.shape != shape:
        b = broadcast_to(b, shape)
    pdim = max(a.pdim, b.pdim, 0)
    if a.pdim != b.pdim and a.partitions > 1 and b.partitions > 1:
        raise fail(f"`{a.storage.name}` and `{b.storage.name}` lie on partitions along different dimensions", "transpose one of them")
    if a.storage.space == "psum" and b.storage.space == "psum":
        b = in_sbuf(b)
    out = new_tile(shape, kind, pdim=pdim)
    if a.valid is not None or b.valid is not None:
        bounds = joint_bounds([a, b])
        a, b, out = with_bounds(a, bounds), with_bounds(b, bounds), with_bounds(out, bounds)
    dst = out.effective()
    if not is_empty(dst):
        tensor_tensor(dst, a.effective(), b.effective(), op)
    return r.made(out)


_EXACT = (dtypes.int32, dtypes.uint32)


def tensor_tensor(dst: Tensor, a: Tensor, b: Tensor, op: str, engine: str | None = None) -> None:
    if engine is None:
        if op == "power":
            a, b = in_sbuf(a), in_sbuf(b)
            engine = "pool"
        elif a.dtype in _EXACT and b.dtype in _EXACT and dst.dtype in _EXACT and op not in BITWISE:
            # whole numbers of 32 bits are exact on the pool engine only, and go there by default
            if "psum" not in (a.storage.space, b.storage.space, dst.storage.space):
                engine = "pool"
    recorder().emit("tensor_tensor", {"dst": dst, "lhs": a, "rhs": b}, {"op": op, "engine": engine})


def unary(function: str, x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """A new tile: an activation function of every element."""
    if not isinstance(x, Tensor):
        return _number_function(function, x)
    x = with_mask(on_chip(x), mask)
    kind = as_dtype(dtype) if dtype is not None else x.dtype if x.dtype.is_float else dtypes.float32
    out = new_tile(x.shape, kind, pdim=max(0, x.pdim))
    if x.valid is not None:
        out = with_bounds(out, joint_bounds([x]))
    dst = out.effective()
    if not is_empty(dst):
        recorder().emit("activation", {"dst": dst, "src": x.effective()}, {"func": function})
    return recorder().made(out)


def _number_function(function: str, x: Any) -> Any:
    known: dict[str, Any] = {"exp": math.exp, "log": math.log, "sqrt": math.sqrt, "sin": math.sin, "tanh": math.tanh, "abs": abs, "square": lambda v: v * v,
             "rsqrt": lambda v: 1 / math.sqrt(v), "relu": lambda v: max(v, 0.0), "sigmoid": lambda v: 1 / (1 + math.exp(-v))}  # fmt: skip
    if isinstance(x, Scalar) and function in known:
        return known[function](x)
    raise fail(f"`{function}` takes a tensor, found `{x!r}`")


def reciprocal(x: Any, dtype: Any = None, mask: Any = None) -> Any:
    if not isinstance(x, Tensor):
        return 1.0 / x
    x = with_mask(on_chip(x), mask)
    kind = as_dtype(dtype) if dtype is not None else x.dtype if x.dtype.is_float else dtypes.float32
    out = with_bounds(new_tile(x.shape, kind, pdim=max(0, x.pdim)), joint_bounds([x]))
    dst = out.effective()
    if not is_empty(dst):
        recorder().emit("reciprocal", {"dst": dst, "src": x.effective()})
    return recorder().made(out)


def invert(x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """`~x`: all bits flipped; of a bool, the other one."""
    if x.dtype is dtypes.bool_:
        return binary("equal", x, 0.0, dtype, mask)
    ones = (1 << (8 * x.dtype.itemsize)) - 1 if x.dtype.kind == "u" else -1
    return binary("bitwise_xor", x, ones, dtype, mask)


def floor(x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """The whole number below: rounded to the nearest, less one where that is above."""
    if not isinstance(x, Tensor):
        return math.floor(x)
    whole_number = copy(copy(x, dtypes.int32, mask), dtypes.float32)
    return binary("subtract", whole_number, binary("greater", whole_number, x, dtypes.float32), dtype or x.dtype)


def ceil(x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """The whole number above."""
    if not isinstance(x, Tensor):
        return math.ceil(x)
    whole_number = copy(copy(x, dtypes.int32, mask), dtypes.float32)
    return binary("add", whole_number, binary("less", whole_number, x, dtypes.float32), dtype or x.dtype)


def trunc(x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """The whole number towards zero."""
    if not isinstance(x, Tensor):
        return math.trunc(x)
    return binary("multiply", unary("sign", x, dtypes.float32, mask), floor(unary("abs", x, dtypes.float32, mask)), dtype or x.dtype)


def _mod(op: str, a: Any, b: Any, kind: DType, mask: Any) -> Any:
    """`mod` with the sign of `b`, `fmod` with that of `a`, and the whole number of times that `b` goes into `a`."""
    if op == "fmod":
        sign = unary("sign", a, dtypes.float32, mask) if isinstance(a, Tensor) else math.copysign(1.0, a)
        size_a, size_b = (unary("abs", t, dtypes.float32, mask) if isinstance(t, Tensor) else abs(t) for t in (a, b))
        return binary("multiply", _mod("mod", size_a, size_b, dtypes.float32, mask), sign, kind)
    quotient = floor(binary("divide", a, b, dtypes.float32, mask))
    rest = binary("subtract", a, binary("multiply", quotient, b, dtypes.float32), dtypes.float32)
    # a product with a reciprocal is not quite a quotient: 49 times 1/49 is less than 1
    sign, size = (unary("sign", b, dtypes.float32), unary("abs", b, dtypes.float32)) if isinstance(b, Tensor) else (math.copysign(1.0, b), abs(b))
    forward = rest if isinstance(sign, float) and sign > 0 else binary("multiply", rest, sign)
    off = binary("subtract", binary("greater_equal", forward, size, dtypes.float32), binary("less", forward, 0.0, dtypes.float32))
    if op == "divide_int":
        return binary("add", quotient, off, kind)
    return binary("subtract", rest, binary("multiply", off, b, dtypes.float32), kind)


def sine(x: Any, dtype: Any = None, mask: Any = None, shift: float = 0.0) -> Any:
    """sin(x + shift) of any `x`: the engine's sine is valid from -pi to pi, so whole turns are taken off first."""
    if not isinstance(x, Tensor):
        return math.sin(x + shift)
    kind = dtype or (x.dtype if x.dtype.is_float else dtypes.float32)
    if shift:
        x = binary("add", x, shift, dtypes.float32, mask)
    turns = binary("multiply", x, 1 / (2 * math.pi), dtypes.int32, mask)  # rounded to the nearest
    rest = binary("subtract", x, binary("multiply", turns, 2 * math.pi, dtypes.float32), dtypes.float32)
    return unary("sin", rest, kind)


def where(condition: Any, x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
    """`x` where `condition` is not zero, else `y`."""
    if not isinstance(condition, Tensor):
        return x if condition else y
    condition = in_sbuf(condition)
    if not condition.dtype.is_int:
        condition = binary("not_equal", condition, 0.0)
    tensors = [t for t in (condition, x, y) if isinstance(t, Tensor)]
    shape = condition.shape
    for t in tensors[1:]:
        shape = shape_of(shape, t.shape)
    kinds = [t.dtype for t in (x, y) if isinstance(t, Tensor)]
    kind = as_dtype(dtype) if dtype is not None else promote(kinds[0], kinds[-1]) if kinds else dtypes.float32
    condition, x, y = (
        with_mask(t if t.shape == shape else broadcast_to(t, shape), mask) if isinstance(t, Tensor) else t for t in (condition, x, y)
    )
    tensors = [t for t in (condition, x, y) if isinstance(t, Tensor)]
    bounds = joint_bounds(tensors)
    out = with_bounds(new_tile(shape, kind), bounds)
    parts = [with_bounds(t, bounds).effective() if isinstance(t, Tensor) else t for t in (condition, x, y)]
    if any(isinstance(t, Tensor) and t.dtype in (*_EXACT, dtypes.tfloat32) for t in (x, y)):
        # `select` computes in f32; these keep all their bits
        dst, mask_tile, on_true, on_false = out.effective(), *parts
        if isinstance(on_false, Tensor):
            recorder().emit("tensor_copy", {"dst": dst, "src": on_false})
        else:
            memset(dst, on_false)
        if mask_tile.dtype.kind == "i":
            mask_tile = copy(mask_tile, dtypes.uint8)
        if isinstance(on_true, Tensor) and on_true.dtype is not kind:
            on_true = copy(on_true, kind)
        recorder().emit("copy_predicated", {"dst": dst, "pred": mask_tile, "on_true": on_true})
        return recorder().made(out)
    recorder().emit("select", {"dst": out.effective(), "pred": parts[0], "on_true": parts[1], "on_false": parts[2]})
    return recorder().made(out)
