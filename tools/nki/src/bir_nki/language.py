"""`nki.language`: memory, dtypes, loops, tokens, and the conveniences of old-style NKI."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from . import assign, compute, programs, reductions, replay, tokens
from .blocks import Blocks
from .dtypes import (  # noqa: F401
    DType,
    as_dtype,
    bfloat16,
    bool_,
    float4_e2m1fn_x4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e4m3fn_x4,
    float8_e5m2,
    float8_e5m2_x4,
    float8_e8m0fnu,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    tfloat32,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from .errors import fail, unknown
from .index import Affine, MGrid, ParDim, Run, arange  # noqa: F401
from .record import Register, entry, recorder
from .storage import Storage
from .tensor import Tensor
from .tokens import Token

# ---- memory ----


class Buffer:
    """A memory that tensors lie in. `buffer(...)`-style parameters (a bank or an address) place a tile."""

    __slots__ = ("name", "space", "shared")

    def __init__(self, name: str, space: str, shared: bool = False) -> None:
        self.name = name
        self.space = space
        self.shared = shared

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return self is other or self.name == str(other)

    def __hash__(self) -> int:
        return hash(self.name)


class ByHand:
    """A memory whose tiles a kernel places itself (`ncc.sbuf.mod_alloc`): they share memory where it says so."""

    __slots__ = ("placed",)

    def __init__(self, buffer: Buffer) -> None:
        self.placed = (buffer, None)


replay.plain(Buffer)
sbuf = Buffer("sbuf", "sbuf")
psum_buffer = Buffer("psum", "psum")
hbm = Buffer("hbm", "dram")
private_hbm = Buffer("private_hbm", "dram")
shared_hbm = Buffer("shared_hbm", "dram", True)
psum = psum_buffer
_BUFFERS = {b.name: b for b in (sbuf, psum_buffer, hbm, private_hbm, shared_hbm)} | {"shared": shared_hbm, "dram": hbm}


def buffer_of(storage: Storage) -> Buffer:
    """The buffer a storage lies in, as kernels compare it."""
    if storage.space == "sbuf":
        return sbuf
    if storage.space == "psum":
        return psum_buffer
    return shared_hbm if storage.kind != "internal" or storage.attrs.get("space") else hbm


def _buffer(value: Any, default: Buffer) -> tuple[Buffer, Any]:
    """The memory, and where in it."""
    if value is None:
        return default, None
    if isinstance(value, Buffer):
        return value, None
    if isinstance(value, str) and value in _BUFFERS:
        return _BUFFERS[value], None
    place = getattr(value, "placed", None)
    if place is not None:
        return place[0], place[1]
    raise fail(f"`{value!r}` is no buffer, expected one of {', '.join(_BUFFERS)}")


@entry
def ndarray(
    shape: Any, dtype: Any = None, *, buffer: Any = None, name: str = "", address: Any = None, init_value: Any = None, lazy_initialization: Any = None
) -> Tensor:
    """A new tensor, undefined. On chip its first dimension (or the one marked `par_dim`) lies on partitions."""
    if dtype is None:
        raise fail("`nl.ndarray` needs argument `dtype`")
    memory, place = _buffer(buffer, sbuf)
    shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    pdim = 0
    for axis, n in enumerate(shape):
        if type(n) is ParDim:
            pdim = axis
    sizes = tuple([int(n) for n in shape])
    kind = as_dtype(dtype)
    if memory.space == "dram":
        out = _dram(sizes, kind, memory.shared, name or None)
    elif pdim and (type(buffer) is ByHand or _beyond(sizes, pdim, kind, memory.space)):
        return Blocks(sizes, kind, memory.space, pdim, name or None)  # type: ignore[return-value]
    else:
        out = compute.new_tile(sizes, kind, memory.space, pdim, name or None)
    place = address if address is not None else place
    if place is not None:
        first, offset = place
        if first is None and offset is None:
            pass
        elif memory.space == "psum":
            bank, inside = divmod(int(offset or 0), 2048)
            if inside:
                raise fail(f"a PSUM tile begins at a bank, every 2048 bytes, found byte {offset}")
            out.storage.at = f" at [{int(first or 0)}, bank {bank}]"
        elif memory.space == "sbuf":
            out.storage.at = f" at [{int(first or 0)}, 0x{int(offset or 0):x}]"
    if init_value is not None:
        compute.memset(out, init_value)
    return out


def _beyond(sizes: tuple[int, ...], pdim: int, kind: DType, space: str) -> bool:
    """Whether tiles are more than a partition holds, taken together."""
    return bool(math.prod(sizes) // sizes[pdim] * kind.itemsize > recorder().limits[f"{space}_bytes"])


def _dram(shape: tuple[int, ...], kind: DType, shared: bool, name: str | None) -> Tensor:
    r = recorder()
    if shared and r.grid:
        # every program of the grid gets the same memory: it is known by when it is allocated
        at = r.shared_next
        r.shared_next += 1
        if at < len(r.shared):
            known = r.shared[at]
            if known.shape != shape or known.dtype is not kind:
                raise fail("the programs of a grid must allocate the same shared memory in the same order")
            if builtins.all(s is not known and s.name != known.name for s in r.module.storages):
                twin = Storage(known.name, "dram", shape, kind)
                twin.loc, twin.where = known.loc, known.where
                twin.attrs = dict(known.attrs)
                r.module.taken.setdefault(known.name, 0)
                r.module.storages.append(twin)
                return compute.whole(twin)
            return compute.whole(next(s for s in r.module.storages if s.name == known.name))
        storage = r.alloc("dram", shape, kind, name)
        r.shared.append(storage)
        if r.module.core is not None:
            storage.attrs = {"space": "shared"}
        return compute.whole(storage)
    return compute.whole(r.alloc("dram", shape, kind, name))


@entry
def zeros(shape: Any, dtype: Any = None, *, buffer: Any = None, name: str = "", **extra: Any) -> Any:
    return full(shape, 0, dtype, buffer=buffer, name=name, **extra)


@entry
def ones(shape: Any, dtype: Any = None, *, buffer: Any = None, name: str = "", **extra: Any) -> Any:
    return full(shape, 1, dtype, buffer=buffer, name=name, **extra)


@entry
def full(shape: Any, fill_value: Any, dtype: Any = None, *, buffer: Any = None, name: str = "", **extra: Any) -> Any:
    """A new tensor of one value."""
    memory, _ = _buffer(buffer, sbuf)
    kind = as_dtype(dtype if dtype is not None else float32)
    value = int(fill_value) if kind.is_int else fill_value
    if memory.space == "dram":
        sizes = tuple(int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))
        if math.prod(sizes) * kind.itemsize <= 1 << 20:
            out = ndarray(shape, dtype, buffer=buffer, name=name)
            flat = out.reshape((out.size,))
            for first in range(0, out.size, 1 << 14):
                part = flat[first : first + builtins.min(1 << 14, out.size - first)]
                assign.assign(part.reshape((1, part.size)), value)
            return out
        raise fail("filling this much DRAM is left to the kernel", "fill a tile and store it piece by piece")
    out = ndarray(shape, kind, buffer=buffer, name=name, **extra)
    if type(out) is Blocks:
        return out.filled(value)
    compute.memset(out, value)
    return recorder().made(out)


def zeros_like(x: Tensor, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Any:
    return full(x.shape, 0, dtype or x.dtype, buffer=buffer or (x.storage.space if x.storage.space != "dram" else None), name=name)


def empty_like(x: Tensor, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Any:
    return ndarray(x.shape, dtype or x.dtype, buffer=buffer or (x.storage.space if x.storage.space != "dram" else None), name=name)


def shared_constant(constant: Any, dtype: Any = None, name: Any = None) -> Tensor:
    """A constant in DRAM: an array, or the `.npy` file that holds it."""
    if isinstance(constant, str):
        try:
            constant = np.load(constant)
        except OSError as error:
            raise fail(f"cannot read `{constant}`: {error.strerror or error}") from None
    return compute.shared_constant(constant, dtype)


shared_identity_matrix = lambda n, dtype=float32: compute.shared_constant(np.eye(n, dtype=as_dtype(dtype).dtype))  # noqa: E731

# ---- indices and loops ----

mgrid = MGrid()
par_dim = ParDim
TensorRef = Tensor
NkiTensor = Tensor


def ds(start: Any, size: Any, step: int = 1) -> Run:
    """`size` positions from `start`."""
    return Run(start, int(size), int(step))


dslice = ds


def affine_range(*args: Any, name: Any = None, **hints: Any) -> range:
    """A loop unrolled while tracing."""
    for a in args:
        if isinstance(a, Register):
            raise fail("a loop with a bound known at run time only is `nl.dynamic_range`")
    return range(*[int(a) for a in args])


static_range = sequential_range = affine_range


def dynamic_range(start: Any, stop: Any = None, step: int = 1) -> Iterator[Affine]:
    """A loop of the IR: its body is traced once."""
    r = recorder()
    lower, upper = (0, start) if stop is None else (start, stop)
    bounds = [r.register("register_load", {"src": b}, name="bound") if isinstance(b, Tensor) else b for b in (lower, upper)]
    return r.loop(bounds[0], bounds[1], step, r.assigned_name() or "i")


def fori_loop(lower: Any, upper: Any, body: Any, step: int = 1) -> None:
    for i in recorder().loop(lower, upper, step, "i"):
        body(i)


def while_loop(register: Register, body: Any) -> None:
    recorder().while_loop(register, body)


# ---- programs ----


def program_id(axis: int = 0) -> int:
    r = recorder()
    return r.program[axis] if axis < len(r.program) else 0


def num_programs(axes: Any = None) -> Any:
    grid = recorder().grid
    if axes is None:
        return math.prod(grid) if grid else 1
    if isinstance(axes, (tuple, list)):
        return tuple(grid[a] if a < len(grid) else 1 for a in axes)
    return grid[axes] if axes < len(grid) else 1


def program_ndim() -> int:
    return len(recorder().grid)


class Nc:
    """`nl.nc(n)`: a grid axis over physical cores."""

    def __init__(self, count: int = 1) -> None:
        self.count = int(count)

    def __mul__(self, other: Any) -> int:
        return self.count * int(other)

    __rmul__ = __mul__

    def __index__(self) -> int:
        return self.count


nc = Nc


def spmd_dim(*sizes: Any) -> int:
    return math.prod(int(s) if not isinstance(s, Nc) else s.count for s in sizes)


class _Limits(type):
    """Sizes that depend on the target of the trace under way."""

    @property
    def sbuf_fmax_bytes(cls) -> int:
        return int(recorder().limits["sbuf_bytes"])

    @property
    def total_available_sbuf_size(cls) -> int:
        return int(recorder().limits["sbuf_bytes"])

    @property
    def psum_fmax_bytes(cls) -> int:
        return int(recorder().limits["psum_bytes"])


class tile_size(metaclass=_Limits):
    """Sizes of the hardware."""

    pmax = 128
    psum_fmax = 512
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512
    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1
    psum_bank_size = 2048
    psum_num_banks = 8


class fp32:
    """Limits of float32."""

    min = -3.4028234663852886e38
    max = 3.4028234663852886e38


class bfp16:
    """Limits of bfloat16."""

    min = -3.3895313892515355e38
    max = 3.3895313892515355e38


def static_cast(input_data: Any, dtype: Any) -> Any:
    """A number, array or tile in another dtype."""
    if isinstance(input_data, Tensor):
        return compute.copy(input_data, dtype)
    return np.asarray(input_data).astype(as_dtype(dtype).dtype)[()]


def sizeinbytes(dtype: Any) -> int:
    """Bytes of one element."""
    return int(as_dtype(dtype).itemsize)


def finfo(dtype: Any) -> Any:
    """Limits of a float dtype."""
    return ml_dtypes.finfo(as_dtype(dtype).dtype)  # type: ignore[no-untyped-call]


def iinfo(dtype: Any) -> Any:
    """Limits of a whole-number dtype."""
    return np.iinfo(as_dtype(dtype).dtype)


class constants:
    """Old name of `tile_size` and its like."""

    pmax = 128
    psum_fmax = 512


# ---- loads, stores, values ----

load = entry(compute.load)
store = entry(assign.store)


@entry
def load_transpose2d(src: Any, *, mask: Any = None, dtype: Any = None, name: Any = None) -> Any:
    """DRAM to a new SBUF tile, transposed by DMA."""
    from . import isa_move as isa

    if not isinstance(src, Tensor) or src.ndim != 2:
        raise fail("`nl.load_transpose2d` reads a tensor of two dimensions")
    out = isa.dma_transpose(src=compute.with_mask(src, mask))
    return out if dtype is None or as_dtype(dtype) is out.dtype else compute.copy(out, dtype)


def atomic_rmw(dst: Tensor, value: Any, op: Any, *, mask: Any = None) -> None:
    """DRAM combined with a tile in place; DMA can add."""
    from . import isa_move as isa

    isa.dma_compute(dst=compute.with_mask(dst, mask).effective(), srcs=[dst, value], reduce_op=op)


def copy(src: Any, *, mask: Any = None, dtype: Any = None, name: Any = None) -> Tensor:
    return compute.copy(src, dtype, mask)


@entry
def transpose(x: Tensor, *, dtype: Any = None, mask: Any = None, name: Any = None) -> Tensor:
    """A new SBUF tile with the two dimensions exchanged."""
    out = reductions.pe_transpose(compute.with_mask(x, mask))
    return compute.copy(out, dtype)


@entry
def matmul(x: Tensor, y: Tensor, *, transpose_x: bool = False, mask: Any = None, name: Any = None) -> Tensor:
    return reductions.matmul(x, y, transpose_x, mask)


@entry
def broadcast_to(src: Any, shape: Any = None, name: Any = None) -> Tensor:
    return compute.broadcast_to(src, shape)


def expand_dims(data: Tensor, axis: Any) -> Tensor:
    return data.expand_dims(axis)


@entry
def where(condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None, name: Any = None) -> Any:
    return compute.where(condition, x, y, dtype, mask)


def _binary_function(word: str) -> Any:
    def call(x: Any, y: Any, dtype: Any = None, mask: Any = None, *, name: Any = None) -> Any:
        return compute.binary(word, x, y, dtype, mask)

    call.__qualname__ = f"nl.{word}"  # as Python's own messages name it
    return call


def _unary_function(word: str) -> Any:
    def call(x: Any, *, dtype: Any = None, mask: Any = None, name: Any = None) -> Any:
        return compute.unary(word, x, dtype, mask)

    call.__qualname__ = f"nl.{word}"
    return call


def _reduction(word: str) -> Any:
    def call(x: Any, axis: Any = None, *, dtype: Any = None, mask: Any = None, keepdims: bool = False, name: Any = None) -> Any:
        if not isinstance(x, Tensor):
            return tokens.NUMPY[word].reduce(x)  # type: ignore[attr-defined]
        if axis is None:
            raise fail(f"`nl.{word}` needs argument `axis`")
        return reductions.reduce(word, x, axis, dtype, mask, keepdims)

    call.__qualname__ = f"nl.{word}"
    return call


def _minmax(word: str) -> Any:
    """`nl.max(tile, axis)`; of plain numbers, Python's own."""
    reduction, plain = _reduction(word), getattr(builtins, word)

    def call(x: Any, *rest: Any, **kwargs: Any) -> Any:
        if isinstance(x, Tensor):
            return reduction(x, *rest, **kwargs)
        return plain(x, *rest, **kwargs)

    return call


for _word in ("add", "subtract", "multiply", "divide", "power", "mod", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal",
              "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):  # fmt: skip
    globals()[_word] = Token(_word, _word, None, _binary_function(_word))
maximum = Token("maximum", "max", None, _binary_function("max"))
minimum = Token("minimum", "min", None, _binary_function("min"))
fmod = Token("fmod", "mod", None, _binary_function("fmod"))
floor_divide = Token("floor_divide", "divide_int", None, _binary_function("divide_int"))
bitwise_left_shift = Token("bitwise_left_shift", "left_shift", None, _binary_function("left_shift"))
bitwise_right_shift = Token("bitwise_right_shift", "right_shift", None, _binary_function("right_shift"))
for _word in ("sigmoid", "relu", "gelu", "gelu_dx", "gelu_apprx_tanh", "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx", "silu", "silu_dx", "tanh",
              "softplus", "mish", "erf", "erf_dx", "exp", "log", "arctan", "sqrt", "rsqrt", "sign", "square", "prelu", "identity"):  # fmt: skip
    globals()[_word] = Token(_word, _word, _word, _unary_function(_word))
globals()["abs"] = Token("abs", "abs", "abs", _unary_function("abs"))
copy = Token("copy", None, "copy", copy)
reciprocal = Token("reciprocal", "reciprocal", "reciprocal", lambda x, *, dtype=None, mask=None, name=None: compute.reciprocal(x, dtype, mask))
negative = Token("negative", None, None, lambda x, *, dtype=None, mask=None, name=None: compute.binary("multiply", x, -1.0, dtype or x.dtype, mask))
invert = Token("invert", "invert", None, lambda x, *, dtype=None, mask=None, name=None: compute.invert(x, dtype, mask))
bitwise_not = Token("bitwise_not", "invert", None, invert.call)
logical_not = Token("logical_not", None, None, lambda x, *, dtype=None, mask=None, name=None: compute.binary("equal", x, 0.0, dtype, mask))
floor = Token("floor", None, None, lambda x, *, dtype=None, mask=None, name=None: compute.floor(x, dtype, mask))
ceil = Token("ceil", None, None, lambda x, *, dtype=None, mask=None, name=None: compute.ceil(x, dtype, mask))
trunc = Token("trunc", None, None, lambda x, *, dtype=None, mask=None, name=None: compute.trunc(x, dtype, mask))
sin = Token("sin", None, "sin", lambda x, *, dtype=None, mask=None, name=None: compute.sine(x, dtype, mask))
cos = Token("cos", None, None, lambda x, *, dtype=None, mask=None, name=None: compute.sine(x, dtype, mask, math.pi / 2))
tan = Token("tan", None, None, lambda x, *, dtype=None, mask=None, name=None: compute.binary("divide", sin(x, dtype=dtype, mask=mask), cos(x, dtype=dtype, mask=mask)))
abs_max = Token("abs_max", "abs_max", None)
abs_min = Token("abs_min", "abs_min", None)
average = Token("average", "average", None)
bypass = Token("bypass", "bypass", None)
globals()["max"] = Token("max", "max", None, _minmax("max"))
globals()["min"] = Token("min", "min", None, _minmax("min"))
globals()["sum"] = Token("sum", "add", None, _reduction("add"))
prod = Token("prod", "multiply", None, _reduction("multiply"))
globals()["all"] = Token("all", "logical_and", None, _reduction("logical_and"))
globals()["any"] = Token("any", "logical_or", None, _reduction("logical_or"))
mean = Token("mean", "average", None, lambda x, axis, *, dtype=None, mask=None, keepdims=False, name=None: reductions.mean(x, axis, dtype, mask, keepdims))
var = Token("var", None, None, lambda x, axis, *, dtype=None, mask=None, keepdims=False, name=None: reductions.var(x, axis, dtype, mask, keepdims))


@entry
def loop_reduce(x: Tensor, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None, name: Any = None) -> Tensor:
    """`x` of all iterations of unrolled loops combined, e.g. by `nl.max`."""
    return reductions.loop_reduce(x, tokens.alu(op), loop_indices, dtype, mask)


@entry
def all_reduce(
    x: Tensor, op: Any, program_axes: Any, *, dtype: Any = None, mask: Any = None, parallel_reduce: bool = True, asynchronous: bool = False, name: Any = None
) -> Any:  # fmt: skip
    """`x` of all programs along axes of the grid combined, for each of them."""
    return programs.all_reduce(x, tokens.alu(op), program_axes, dtype, mask)


@entry
def softmax(x: Tensor, axis: Any = -1, *, dtype: Any = None, compute_dtype: Any = None, mask: Any = None, name: Any = None) -> Any:
    return reductions.softmax(x, axis, dtype if dtype is not None else compute_dtype, mask)


@entry
def rms_norm(
    x: Tensor, w: Tensor, axis: Any, n: Any = None, epsilon: float = 1e-6, *, dtype: Any = None, compute_dtype: Any = None, mask: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """x / sqrt(sum(x^2) / n + epsilon) * w."""
    squares = reductions.reduce("add", compute.unary("square", x, float32, mask), axis, float32, keepdims=True)
    count = n if n is not None else math.prod(x.shape[a] for a in reductions.axes_of(x, axis))
    scaled = compute.binary("add", compute.binary("multiply", squares, 1.0 / count), float(epsilon))
    normed = compute.binary("multiply", x, compute.unary("rsqrt", scaled), float32)
    return compute.binary("multiply", normed, w, dtype or compute_dtype or x.dtype)  # type: ignore[no-any-return]


@entry
def cumsum(x: Tensor, axis: Any = -1, *, dtype: Any = None, mask: Any = None, name: Any = None) -> Tensor:
    """Running sums along the last dimension."""
    x = compute.with_mask(compute.on_chip(x), mask)
    if reductions.axes_of(x, axis) != (x.ndim - 1,):
        raise fail("`nl.cumsum` runs along the last dimension")
    ones_tile = compute.full(x.shape, 1.0, float32)
    out = compute.with_bounds(compute.new_tile(x.shape, as_dtype(dtype or x.dtype)), compute.joint_bounds([x]))
    recorder().emit(
        "tensor_tensor_scan",
        {"dst": out.effective(), "lhs": compute.with_bounds(ones_tile, compute.joint_bounds([x])).effective(), "rhs": x.effective(), "initial": 0.0},
        {"op0": "multiply", "op1": "add"},
    )
    return out


@entry
def gather_flattened(data: Tensor, indices: Tensor, *, mask: Any = None, dtype: Any = None, name: Any = None) -> Tensor:
    from . import isa

    out: Tensor = isa.nc_n_gather(data=data, indices=indices)
    return out if dtype is None and mask is None else compute.copy(out, dtype, mask)


def random_seed(seed: Any, *, mask: Any = None, name: Any = None) -> None:
    if mask is False:
        return
    tile = seed if isinstance(seed, Tensor) else compute.full((1, 1), int(seed), uint32)
    recorder().emit("set_rng_seed", {"src": compute.in_sbuf(tile)})


def rand(shape: Any, dtype: Any = float32, *, mask: Any = None, name: Any = None) -> Tensor:
    """Uniform numbers in [0, 1): 24 random bits each."""
    bits = compute.new_tile(tuple(int(n) for n in shape), uint32)
    recorder().emit("rng", {"dst": bits})
    shifted = compute.binary("right_shift", bits, 8, uint32)
    return compute.binary("multiply", shifted, 2.0**-24, dtype, mask)  # type: ignore[no-any-return]


def dropout(x: Tensor, rate: Any, *, dtype: Any = None, mask: Any = None, name: Any = None) -> Tensor:
    from . import isa_math as isa

    return isa.dropout(data=x, prob=rate, mask=mask, dtype=dtype)  # type: ignore[no-any-return]


def device_print(*args: Any, mask: Any = None, **named: Any) -> None:
    """Print tensors when the kernel runs, after the text that stands beside them."""
    if mask is False:
        return
    values = (*args, *named.values())
    text = " ".join(a for a in values if isinstance(a, str))
    for tensor in (compute.with_mask(a, mask).effective() for a in values if isinstance(a, Tensor)):
        recorder().emit("device_print", {"src": compute.in_sbuf(tensor) if tensor.storage.space == "psum" else tensor}, {"text": text or tensor.storage.name})


def static_assert(condition: Any, message: str = "") -> None:
    if not condition:
        raise fail(f"static assertion failed: {message}" if message else "static assertion failed")


def no_reorder(*_: Any, **__: Any) -> Any:
    """Program order is kept by the recorder, so there is nothing to do."""
    import contextlib

    return contextlib.nullcontext()


def get_nc_version() -> Any:
    from . import isa

    return isa.get_nc_version()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise unknown("nki.language", name, [n for n in globals() if not n.startswith("_")])
