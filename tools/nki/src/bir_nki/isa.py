"""`nki.isa`: one function per instruction.

Each takes a new-style call, `nisa.op(dst=…, …)`, or an old-style one that returns a tile: the `instruction` decorator tells them apart,
and gives the old one a tile to write. What an operand may be is the op table's business (`Recorder.emit`), not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import compute, dtypes, enums, psum, reductions
from .compute import new_tile
from .dtypes import as_dtype
from .enums import (  # noqa: F401
    dge_mode,
    dma_engine,
    engine,
    engine_word,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
)
from .errors import fail, unknown
from .index import IndexArray
from .instruction import a_tile, instruction, made, out_tile
from .isa_math import (  # noqa: F401
    activate2,
    activation,
    activation_reduce,
    affine_select,
    bn_aggr,
    bn_stats,
    dropout,
    exponential,
    max8,
    nc_find_index8,
    nc_match_replace8,
    pattern_of,
    range_select,
    reciprocal,
    scalar_tensor_tensor,
    select_reduce,
    tensor_partition_reduce,
    tensor_reduce,
    tensor_scalar,
    tensor_scalar_cumulative,
    tensor_scalar_reduce,
    tensor_tensor,
    tensor_tensor_scan,
    topk,
)  # fmt: skip
from .isa_move import (  # noqa: F401
    dma_compute,
    dma_copy,
    dma_transpose,
    exact,
    memset,
    nc_stream_shuffle,
    nc_transpose,
    tensor_copy,
    tensor_copy_dynamic_dst,
    tensor_copy_dynamic_src,
    tensor_copy_predicated,
)  # fmt: skip
from .record import Register, recorder
from .tensor import Tensor

tensor_engine, vector_engine, scalar_engine = engine.tensor, engine.vector, engine.scalar
gpsimd_engine, sync_engine, unknown_engine = engine.gpsimd, engine.sync, engine.unknown


# ---- generation and gathers ----


@instruction("expr dtype mask", "dst")
def iota(dst: Any = None, pattern: Any = None, offset: Any = 0, channel_multiplier: Any = 0, expr: Any = None, dtype: Any = None) -> Any:
    if isinstance(pattern, int) and isinstance(offset, (list, tuple)):  # iota(dst, offset, pattern)
        pattern, offset = offset, pattern
    if expr is not None:
        if not isinstance(expr, IndexArray):
            raise fail("`nisa.iota` of an index array, or with a `pattern`")
        coefficients, extents = expr.widened(max(2, expr.ndim))
        dst = new_tile(extents, as_dtype(dtype or dtypes.int32))
        pattern, offset, channel_multiplier = [[c, n] for c, n in zip(coefficients[1:], extents[1:])], expr.const, coefficients[0]
    attrs = {"pattern": pattern_of(pattern), "offset": int(offset) or None, "channel_multiplier": int(channel_multiplier) or None}
    recorder().emit("iota", {"dst": dst}, attrs)
    return made(dst)


def _numbers(index: Any) -> Any:
    """Indices as the instructions read them: a signed one that is not negative has the same bits without its sign."""
    unsigned = {"int16": dtypes.uint16, "int32": dtypes.uint32}
    return index.view(unsigned[index.dtype.name]) if index.dtype.name in unsigned else index


@instruction("src_buffer index num_elem_per_idx num_valid_indices mask", "dst src_buffer index")
def local_gather(
    dst: Any = None, src_buffer: Any = None, index: Any = None, num_elem_per_idx: int = 1, num_valid_indices: Any = None, dtype: Any = None
) -> Any:
    src_buffer, index = a_tile(src_buffer, "src_buffer"), _numbers(a_tile(index, "index"))
    count = int(num_valid_indices) if num_valid_indices is not None else 16 * (index.size // index.partitions)
    out = out_tile(dst, src_buffer, dtype, (src_buffer.partitions, count * int(num_elem_per_idx)))
    recorder().emit("local_gather", {"dst": out, "src": src_buffer, "index": index}, {"count": count, "width": int(num_elem_per_idx)})
    return made(out)


@instruction("data indices mask", "dst data indices")
def nc_n_gather(dst: Any = None, data: Any = None, indices: Any = None, dtype: Any = None) -> Any:
    indices = _numbers(a_tile(indices, "indices"))
    out = out_tile(dst, a_tile(data), dtype, indices.shape)
    recorder().emit("n_gather", {"dst": out, "src": data, "index": indices})
    return made(out)


@instruction("segment_ids dtype", "dst segment_ids")
def sequence_bounds(dst: Any = None, segment_ids: Any = None, dtype: Any = None) -> Any:
    segment_ids = a_tile(segment_ids, "segment_ids")
    dst = out_tile(dst, segment_ids, dtype, (segment_ids.partitions, 2, segment_ids.size // segment_ids.partitions))
    recorder().emit("sequence_bounds", {"dst": dst, "src": segment_ids})
    return made(dst)


@instruction("", "dst src")
def nonzero_with_count(dst: Any = None, src: Any = None, index_offset: Any = 0, padding_val: Any = -1) -> Any:
    recorder().emit("nonzero_with_count", {"dst": dst, "src": src}, {"offset": int(index_offset), "padding": int(padding_val)})
    return dst


@instruction("", "dst")
def rng(dst: Any = None, engine: Any = None) -> Any:
    recorder().emit("rng", {"dst": dst}, {"engine": engine_word(engine)})
    return dst


@instruction("", "dst")
def rand2(dst: Any = None, min: Any = 0.0, max: Any = 1.0) -> Any:
    recorder().emit("rand2", {"dst": dst, "low": min, "high": max})
    return dst


@instruction("src_seeds", "src_seeds")
def set_rng_seed(src_seeds: Any = None) -> None:
    recorder().emit("set_rng_seed", {"src": src_seeds})


@instruction("src_seeds", "src_seeds")
def rand_set_state(src_seeds: Any = None, engine: Any = None) -> None:
    recorder().emit("rand_set_state", {"src": src_seeds}, {"engine": engine_word(engine)})


@instruction("", "dst")
def rand_get_state(dst: Any = None, engine: Any = None) -> Any:
    recorder().emit("rand_get_state", {"dst": dst}, {"engine": engine_word(engine)})
    return dst


# ---- matrices ----


@instruction("stationary moving is_stationary_onezero is_moving_onezero is_transpose", "dst stationary moving")
def nc_matmul(
    dst: Any = None, stationary: Any = None, moving: Any = None, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
    is_transpose: bool = False, accumulate: Any = None, tile_position: Any = (), tile_size: Any = (), perf_mode: Any = None,
) -> Any:  # fmt: skip
    attrs: dict[str, Any] = {}
    if is_stationary_onezero:
        attrs["stationary_onezero"] = True
    if is_moving_onezero:
        attrs["moving_onezero"] = True
    if is_transpose:
        attrs["is_transpose"] = True
    if tile_size:
        attrs["tile_size"] = [int(n) for n in tile_size]
        attrs["tile_position"] = [int(n) for n in (tile_position or (0, 0))]
    if perf_mode:
        mode = enums.member(matmul_perf_mode, perf_mode)
        if mode is matmul_perf_mode.double_row:
            attrs["double_row"] = True
        elif mode is not matmul_perf_mode.none:
            raise fail(f"`{mode.name}` is not supported")
    stationary, moving = a_tile(stationary, "stationary"), a_tile(moving, "moving")
    if dst is None:
        # what the tensor engine made a moment ago lies in PSUM, where it does not read
        return reductions.product(compute.in_sbuf(stationary), compute.in_sbuf(moving), attrs)
    if accumulate is None and is_transpose:
        accumulate = False
    if stationary.valid is not None or moving.valid is not None:
        stationary, moving = stationary.effective(), moving.effective()
    dst = a_tile(dst, "dst").effective()
    attrs["accumulate"] = psum.accumulation(recorder(), dst, accumulate)
    recorder().emit("matmult", {"dst": dst, "stationary": stationary, "moving": moving}, attrs)
    return dst


@instruction("", "dst stationary moving")
def nc_matmul_mx(
    dst: Any = None, stationary: Any = None, moving: Any = None, stationary_scale: Any = None, moving_scale: Any = None, accumulate: Any = None,
    tile_position: Any = (), tile_size: Any = (),
) -> Any:  # fmt: skip
    attrs = {"accumulate": psum.accumulation(recorder(), dst, accumulate)}
    values = {"dst": dst, "stationary": stationary, "stationary_scale": stationary_scale, "moving": moving, "moving_scale": moving_scale}
    if tile_size and tuple(tile_size) != (128, 128):
        raise fail("tiles of the array are not supported by `matmult_mx`")
    recorder().emit("matmult_mx", values, attrs)
    return dst


@instruction("", "dst src")
def quantize_mx(dst: Any = None, src: Any = None, dst_scale: Any = None) -> Any:
    recorder().emit("quantize_mx", {"dst": dst, "scale": dst_scale, "src": src})
    return dst


# ---- registers, loops, cores ----


def register_alloc(x: Any = None) -> Register:
    """A register; with a number, or a 1x1 tile, already holding it."""
    r = recorder()
    name = r.assigned_name() or "r"
    if type(x) is Tensor:
        return r.register("register_load", {"src": x}, name=name)
    return r.register("register_move", {"value": 0 if x is None else x}, name=name)


@instruction("dst src", "dst")
def register_load(dst: Any = None, src: Any = None) -> Any:
    r = recorder()
    if src is None or not isinstance(dst, Register):  # old style: a register back
        return r.register("register_load", {"src": dst if src is None else src}, name=r.assigned_name() or "r")
    r.emit("register_load", {"dst": dst, "src": src})
    return dst


@instruction("dst src", "dst")
def register_store(dst: Any = None, src: Any = None) -> None:
    recorder().emit("register_store", {"dst": dst, "src": src})


@instruction("dst src", "dst")
def register_move(dst: Any = None, src: Any = None, imm: Any = None) -> Any:
    recorder().emit("register_move", {"dst": dst, "value": imm if src is None else src})
    return dst


def dynamic_range(start: Any, stop: Any = None, step: int = 1) -> Any:
    from . import language

    return language.dynamic_range(start, stop, step)


def fori_loop(lower: Any, upper: Any, body: Callable[[Any], Any], step: int = 1) -> None:
    for i in recorder().loop(lower, upper, step, "i"):
        body(i)


def while_loop(register: Register, body: Callable[[Register], Any]) -> None:
    recorder().while_loop(register, body)


@instruction("src dst send_to_rank recv_from_rank pipe_id", "dst src")
def sendrecv(
    src: Any = None, dst: Any = None, send_to_rank: Any = None, recv_from_rank: Any = None, pipe_id: Any = 0, dma_engine: Any = None,
    use_gpsimd_dma: bool = False,
) -> Any:  # fmt: skip
    gpsimd = use_gpsimd_dma or (dma_engine is not None and enums.member(enums.dma_engine, dma_engine) is enums.dma_engine.gpsimd_dma)
    attrs = {"send_to": int(send_to_rank), "recv_from": int(recv_from_rank), "pipe_id": int(pipe_id), "engine": "pool" if gpsimd else None}
    recorder().emit("sendrecv", {"dst": dst, "src": src}, attrs)
    return dst


@instruction("data cores engine", "data")
def core_barrier(data: Any = None, cores: Any = (0, 1), engine: Any = None) -> None:
    shared = None
    if type(data) is Tensor:
        shared = compute.whole(data.storage)
    recorder().emit("core_barrier", {"data": shared}, {"cores": [int(c) for c in cores], "engine": engine_word(engine)})


def get_nc_version() -> Any:
    return {"trn1": nc_version.gen2, "trn2": nc_version.gen3, "trn3": nc_version.gen4}[recorder().target]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise unknown("nki.isa", name, [n for n in globals() if not n.startswith("_")])


