"""`nki.isa`: elementwise instructions, reductions, scans, selection."""

from __future__ import annotations

import math
from typing import Any

from . import compute, dtypes, enums, reductions, tokens
from .compute import held_parts, joint_bounds, new_tile, with_bounds
from .enums import engine_word
from .errors import fail
from .index import IndexArray, Mask
from .instruction import (
    a_tile,
    instruction,
    made,
    number_or_tile,
    out_tile,
    rows_of,
)
from .record import recorder
from .tensor import Tensor


@instruction("data1 data2 op dtype mask engine", "dst data1 data2")
def tensor_tensor(dst: Any = None, data1: Any = None, data2: Any = None, op: Any = None, engine: Any = None, dtype: Any = None) -> Any:
    word = tokens.alu(op)
    if dst is None:
        data1, data2 = a_tile(data1, "data1"), a_tile(data2, "data2")
        if data1.shape != data2.shape:
            shape = compute.shape_of(data1.shape, data2.shape)
            data1, data2 = data1.broadcast_to(shape), data2.broadcast_to(shape)
        kind = compute.result_type(word, data1, data2, dtype) if dtype is not None or word in tokens.COMPARISONS else dtypes.promote(data1.dtype, data2.dtype)
        dst = with_bounds(new_tile(data1.shape, kind), joint_bounds([data1, data2]))
    else:
        shape = dst.shape
        data1, data2 = (t.broadcast_to(shape) if t.shape != shape and t.ndim == len(shape) and t.size < dst.size else t for t in (a_tile(data1, "data1"), a_tile(data2, "data2")))
    d, a, b = held_parts(dst, data1, data2)
    compute.tensor_tensor(d, a, b, word, engine_word(engine))
    return made(dst)


#: Operations that `tensor_scalar` and `tensor_tensor` compute on the pool engine only.
POOL_ONLY = frozenset({"rsqrt", "power"})


@instruction("data op0 operand0 reverse0 op1 operand1 reverse1 dtype mask engine", "dst data")
def tensor_scalar(
    dst: Any = None, data: Any = None, op0: Any = None, operand0: Any = None, reverse0: bool = False, op1: Any = None, operand1: Any = None,
    reverse1: bool = False, engine: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    data = a_tile(data)
    word0 = tokens.alu(op0)
    word1 = tokens.alu(op1) if op1 is not None else None
    if word1 == "bypass":
        word1 = None
    out = out_tile(dst, data, dtype)
    d, s = held_parts(out, data)
    operand0 = _operand(word0, operand0, data, s)
    operand1 = _operand(word1, operand1, data, s) if word1 is not None else None
    attrs = {"op0": word0, "op1": word1, "reverse0": bool(reverse0) or None, "reverse1": bool(reverse1) or None}
    if engine:
        attrs["engine"] = engine_word(engine)
    if word0 in POOL_ONLY or word1 in POOL_ONLY:
        if word1 is not None:
            # one step is the pool engine's, which computes nothing else: two instructions
            between = new_tile(s.shape, dtypes.float32, pdim=max(0, s.pdim))
            tensor_scalar(dst=between, data=s, op0=word0, operand0=operand0, reverse0=reverse0)
            tensor_scalar(dst=d, data=between, op0=word1, operand0=operand1, reverse0=reverse1)
            return made(out)
        attrs["engine"] = "pool"
        s = compute.in_sbuf(s)
    recorder().emit("tensor_scalar", {"dst": d, "src": s, "operand0": operand0, "operand1": operand1}, attrs)
    return made(out)


def _operand(word: str, value: Any, whole: Tensor, part: Tensor) -> Any:
    """A scalar operand of an ALU operation; those on one value have none."""
    if type(value) is float:
        return None if word in tokens.UNARY else value
    if word in tokens.UNARY:
        return None
    if value is None:
        raise fail(f"`{word}` needs an operand")
    return rows_of(number_or_tile(value), whole, part)


@instruction("data op0 operand0 op1 operand1 reverse0 reverse1 dtype mask", "dst data operand1")
def scalar_tensor_tensor(
    dst: Any = None, data: Any = None, op0: Any = None, operand0: Any = None, op1: Any = None, operand1: Any = None, reverse0: bool = False,
    reverse1: bool = False, dtype: Any = None,
) -> Any:  # fmt: skip
    data = a_tile(data)
    out = out_tile(dst, data, dtype)
    d, s, other = held_parts(out, data, a_tile(operand1, "operand1"))
    scalar = rows_of(number_or_tile(operand0), data, s)
    if type(scalar) is Tensor and scalar.dtype is not dtypes.float32:
        scalar = compute.copy(scalar, dtypes.float32)
    recorder().emit(
        "scalar_tensor_tensor",
        {"dst": d, "src": s, "scalar": scalar, "other": other},
        {"op0": tokens.alu(op0), "op1": tokens.alu(op1), "reverse0": bool(reverse0) or None, "reverse1": bool(reverse1) or None},
    )
    return made(out)


@instruction("data dtype mask engine", "dst data")
def reciprocal(dst: Any = None, data: Any = None, dtype: Any = None, engine: Any = None) -> Any:
    out = out_tile(dst, a_tile(data), dtype)
    d, s = held_parts(out, data)
    word = engine_word(engine)
    if word == "act":
        recorder().emit("activation", {"dst": d, "src": s}, {"func": "reciprocal"})
    else:
        recorder().emit("reciprocal", {"dst": d, "src": s}, {"engine": word} if word else None)
    return made(out)


def _activation(name: str, dst: Any, op: Any, data: Any, bias: Any, scale: Any, reduce: dict[str, Any], dtype: Any, alpha: Any = None) -> Any:
    data = a_tile(data)
    out = out_tile(dst, data, dtype)
    d, s = held_parts(out, data)
    scale = number_or_tile(scale)
    if not isinstance(scale, Tensor) and (scale is None or scale == 1.0):
        scale = None
    bias = number_or_tile(bias)
    if not isinstance(bias, Tensor) and bias is not None and bias == 0:
        bias = None
    values = {"dst": d, "src": s, "scale": rows_of(scale, data, s), "bias": rows_of(bias, data, s), "reduce_res": rows_of(reduce.pop("res", None), data, s)}
    attrs = {"func": tokens.activation(op), **reduce}
    if alpha is not None:
        attrs["alpha"] = float(alpha)
    recorder().emit(name, values, attrs)
    return made(out)


def _reduction(reduce_op: Any, reduce_res: Any, cmd: Any, default: str = "idle") -> dict[str, Any]:
    word = enums.REDUCE_CMDS[enums.member(enums.reduce_cmd, cmd)] if cmd is not None else default
    if reduce_res is None and word == "idle":
        return {}
    out: dict[str, Any] = {"res": reduce_res, "reduce_cmd": word}
    if reduce_op is not None:
        out["reduce"] = tokens.alu(reduce_op)
    return out


@instruction("op data bias scale reduce_op reduce_res reduce_cmd mask dtype", "dst data")
def activation(
    dst: Any = None, op: Any = None, data: Any = None, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None, reduce_res: Any = None,
    reduce_cmd: Any = None, dtype: Any = None, relu_param: Any = None,
) -> Any:  # fmt: skip
    return _activation("activation", dst, op, data, bias, scale, _reduction(reduce_op, reduce_res, reduce_cmd), dtype, relu_param)


@instruction("op data reduce_op reduce_res bias scale mask dtype", "dst data")
def activation_reduce(
    dst: Any = None, op: Any = None, data: Any = None, reduce_op: Any = None, reduce_res: Any = None, bias: Any = None, scale: Any = 1.0,
    dtype: Any = None,
) -> Any:  # fmt: skip
    if reduce_op is not None and tokens.alu(reduce_op) != "add":
        raise fail("`nisa.activation_reduce` reduces by `add` only")
    return _activation("activation_reduce", dst, op, data, bias, scale, {"res": reduce_res}, dtype)


@instruction("", "dst data")
def activate2(
    dst: Any = None, op: Any = None, data: Any = None, op0: Any = None, operand0: Any = None, op1: Any = None, operand1: Any = None,
    reverse0: bool = False, reverse1: bool = False, reduce_op: Any = None, reduce_res: Any = None, reduce_cmd: Any = None, relu_param: Any = None,
) -> Any:  # fmt: skip
    reduce = _reduction(reduce_op, reduce_res, reduce_cmd)
    words = [tokens.alu(o) if o is not None else "bypass" for o in (op0, op1)]
    values = {"dst": dst, "src": data, "operand0": operand0, "operand1": operand1, "reduce_res": reduce.pop("res", None)}
    attrs = {"func": tokens.activation(op), "op0": words[0], "op1": words[1], "reverse0": bool(reverse0) or None, "reverse1": bool(reverse1) or None, **reduce}
    if relu_param is not None:
        attrs["alpha"] = float(relu_param)
    recorder().emit("activate2", values, attrs)
    return dst


@instruction("", "dst src")
def exponential(
    dst: Any = None, src: Any = None, max_value: Any = 0.0, reduce_res: Any = None, reduce_cmd: Any = None, reduce_init: Any = None
) -> Any:
    reduce = _reduction(None, reduce_res, reduce_cmd)
    if not isinstance(max_value, Tensor) and max_value == 0:
        max_value = None
    recorder().emit("exponential", {"dst": dst, "src": src, "max": max_value, "init": reduce_init, "reduce_res": reduce.pop("res", None)}, reduce)
    return dst


@instruction("data prob mask dtype", "dst data")
def dropout(dst: Any = None, data: Any = None, prob: Any = None, dtype: Any = None) -> Any:
    if dst is None and dtype is not None:
        return compute.copy(dropout(data=data, prob=prob), dtype)
    out = out_tile(dst, a_tile(data), None)
    d, s = held_parts(out, data)
    recorder().emit("dropout", {"dst": d, "src": s, "prob": prob})
    return made(out)


# ---- reductions and scans ----


def _counted_axes(axes: tuple[int, ...], data: Tensor, dst: Tensor) -> tuple[int, ...]:
    """Kernels write axes that end at the last, and those of earlier releases count them from the innermost: 1 is it, (1, 2) the last two."""
    n = len(axes)
    inner = tuple(range(data.ndim - n, data.ndim))
    left = math.prod(data.shape[1 : data.ndim - n])
    return inner if axes == tuple(range(1, n + 1)) and data.pdim == 0 and dst.size == left * dst.partitions else axes


@instruction("op data axis mask dtype negate keepdims", "dst data")
def tensor_reduce(
    dst: Any = None, op: Any = None, data: Any = None, axis: Any = None, negate: bool = False, keepdims: bool = False, dtype: Any = None
) -> Any:
    data = a_tile(data)
    word = tokens.alu(op)
    if axis is None:
        raise fail("`nisa.tensor_reduce` needs argument `axis`")
    axes = reductions.axes_of(data, axis)
    if data.pdim in axes:
        raise fail("`nisa.tensor_reduce` cannot reduce partitions", "use `nisa.tensor_partition_reduce`, or a matmul with ones")
    if dst is None:
        return reductions.reduce(word, data, axis, dtype, keepdims=keepdims, negate=negate)
    axes = _counted_axes(axes, data, dst)
    reductions.tensor_reduce(word, dst.effective(), data.effective(), axes, negate)
    return dst


@instruction("op data mask dtype", "dst data")
def tensor_partition_reduce(dst: Any = None, op: Any = None, data: Any = None, dtype: Any = None) -> Any:
    data = a_tile(data)
    out = out_tile(dst, data, dtype, (1,) + data.shape[1:])
    recorder().emit("tensor_partition_reduce", {"dst": out, "src": data.effective()}, {"op": tokens.alu(op)})
    return made(out)


@instruction("data op0 operand0 reduce_op reduce_res reverse0 dtype mask", "dst data")
def tensor_scalar_reduce(
    dst: Any = None, data: Any = None, op0: Any = None, operand0: Any = None, reduce_op: Any = None, reduce_res: Any = None,
    reverse0: bool = False, reduce_cmd: Any = None, reduce_init: Any = None, reduce_res_negate: bool = False, dtype: Any = None,
) -> Any:  # fmt: skip
    if reverse0:
        raise fail("`nisa.tensor_scalar_reduce` has no reversed form on this hardware")
    data = a_tile(data)
    out = out_tile(dst, data, dtype)
    d, s = held_parts(out, data)
    reduce = _reduction(reduce_op, reduce_res, reduce_cmd, "reset")
    recorder().emit(
        "tensor_scalar_reduce",
        {"dst": d, "src": s, "operand0": rows_of(operand0, data, s), "init": reduce_init, "reduce_res": rows_of(reduce.pop("res", None), data, s)},
        {"op0": tokens.alu(op0), **reduce, "negate": bool(reduce_res_negate) or None},
    )
    return made(out)


@instruction("", "dst src")
def tensor_scalar_cumulative(
    dst: Any = None, src: Any = None, op0: Any = None, op1: Any = None, imm0: Any = None, imm1: Any = None, reduce_cmd: Any = None,
    reverse0: bool = False,
) -> Any:  # fmt: skip
    if reverse0:
        raise fail("`nisa.tensor_scalar_cumulative` has no reversed form in this op table")
    word = enums.REDUCE_CMDS[enums.member(enums.reduce_cmd, reduce_cmd)] if reduce_cmd is not None else "reset"
    recorder().emit(
        "tensor_scalar_cumulative",
        {"dst": dst, "src": src, "operand0": imm0, "init": imm1 if word == "load" else None},
        {"op0": tokens.alu(op0), "op1": tokens.alu(op1), "reduce_cmd": word},
    )
    return dst


@instruction("data0 data1 initial op0 op1 reverse0 reverse1 dtype mask", "dst data0 data1")
def tensor_tensor_scan(
    dst: Any = None, data0: Any = None, data1: Any = None, initial: Any = None, op0: Any = None, op1: Any = None, reverse0: bool = False,
    reverse1: bool = False, dtype: Any = None,
) -> Any:  # fmt: skip
    data0, data1 = a_tile(data0, "data0"), a_tile(data1, "data1")
    out = out_tile(dst, data1 if data0.size < data1.size else data0, dtype)
    d, a, b = held_parts(out, data0, data1)
    if type(initial) is Tensor and initial.dtype is not dtypes.float32:
        initial = compute.copy(initial, dtypes.float32)
    recorder().emit(
        "tensor_tensor_scan",
        {"dst": d, "lhs": a, "rhs": b, "initial": rows_of(initial, data0, a)},
        {"op0": tokens.alu(op0), "op1": tokens.alu(op1), "reverse0": bool(reverse0) or None, "reverse1": bool(reverse1) or None},
    )
    return made(out)


@instruction("data mask dtype", "dst data")
def bn_stats(dst: Any = None, data: Any = None, dtype: Any = None) -> Any:
    data = a_tile(data)
    out = out_tile(dst, data, dtype or dtypes.float32, (data.partitions, 6))
    s = data.effective()
    recorder().emit("bn_stats", {"dst": rows_of(out, data, s), "src": s})
    return made(with_bounds(out, {-2: (0, s.partitions)}) if dst is None and s.partitions != data.partitions else out)


@instruction("data mask dtype", "dst data")
def bn_aggr(dst: Any = None, data: Any = None, dtype: Any = None) -> Any:
    data = a_tile(data)
    out = out_tile(dst, data, dtype or dtypes.float32, (data.partitions, 2))
    s = data.effective()
    recorder().emit("bn_aggr", {"dst": rows_of(out, data, s), "src": s})
    return made(with_bounds(out, {-2: (0, s.partitions)}) if dst is None and s.partitions != data.partitions else out)


@instruction("src mask dtype", "dst src")
def max8(dst: Any = None, src: Any = None, dtype: Any = None) -> Any:
    out = out_tile(dst, a_tile(src, "src"), dtype, (src.partitions, 8))
    recorder().emit("max8", {"dst": out, "src": src})
    return made(out)


@instruction("data vals mask dtype", "dst data vals")
def nc_find_index8(dst: Any = None, data: Any = None, vals: Any = None, dtype: Any = None) -> Any:
    out = out_tile(dst, a_tile(data), dtype or dtypes.uint32, (data.partitions, 8))
    recorder().emit("find_index8", {"dst": out, "src": data, "values": vals})
    return made(out)


@instruction("data vals imm dst_idx mask dtype", "dst data vals")
def nc_match_replace8(dst: Any = None, data: Any = None, vals: Any = None, imm: Any = None, dst_idx: Any = None, dtype: Any = None) -> Any:
    out = out_tile(dst, a_tile(data), dtype)
    recorder().emit("match_replace8", {"dst": out, "dst_index": dst_idx, "src": data, "values": vals, "replacement": imm})
    return made(out)


@instruction("", "dst src")
def topk(dst: Any = None, src: Any = None, dst_idx: Any = None, k: Any = None) -> Any:
    recorder().emit("topk", {"dst": dst, "dst_index": dst_idx, "src": src}, {"k": int(k)})
    return dst


# ---- selection ----


def pattern_of(pattern: Any) -> list[list[int]]:
    return [[int(step), int(count)] for step, count in pattern] or [[0, 1]]


@instruction("pred on_true_tile on_false_value mask dtype", "dst on_true_tile")
def affine_select(
    dst: Any = None, pattern: Any = None, channel_multiplier: Any = 0, on_true_tile: Any = None, on_false_value: Any = None,
    cmp_op: Any = "equal", offset: Any = 0, pred: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    data = a_tile(on_true_tile, "on_true_tile")
    if dst is None:
        data = compute.in_sbuf(data)  # the pool engine does not reach PSUM
    out = out_tile(dst, data, dtype)
    d, s = held_parts(out, data)
    if pred is not None:
        offset, channel_multiplier, pattern, cmp_op = _slanted(pred, data)
    attrs = {"op": tokens.alu(cmp_op), "pattern": pattern_of(pattern), "offset": int(offset), "channel_multiplier": int(channel_multiplier)}
    recorder().emit("affine_select", {"dst": d, "src": s, _literal_role("affine_select"): float(on_false_value)}, attrs)
    return made(out)


def _literal_role(op: str) -> str:
    """The one operand of `op` that is always a number."""
    return next(role.name for role in recorder().table.ops[op].roles if role.kind == "literal")


def _slanted(pred: Any, data: Tensor) -> tuple[Any, Any, Any, str]:
    """An old-style predicate over index arrays as offset, partition step and pattern of one comparison with 0."""
    if not isinstance(pred, Mask) or len(pred.conditions) != 1 or not isinstance(pred.conditions[0], IndexArray):
        raise fail("`pred` must be one comparison of index arrays")
    condition = pred.conditions[0]
    coefficients, _ = condition.widened(data.ndim)
    channel = coefficients[data.pdim] if data.pdim >= 0 else 0
    pattern = [[c, n] for a, (c, n) in enumerate(zip(coefficients, data.shape)) if a != data.pdim]
    return condition.const, channel, pattern, "greater_equal"


@instruction("", "dst on_true_tile")
def range_select(
    dst: Any = None, on_true_tile: Any = None, comp_op0: Any = None, comp_op1: Any = None, bound0: Any = None, bound1: Any = None,
    reduce_cmd: Any = None, reduce_res: Any = None, reduce_op: Any = None, range_start: Any = 0, on_false_value: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    data = a_tile(on_true_tile, "on_true_tile")
    if reduce_op is not None and tokens.alu(reduce_op) != "max":
        raise fail("`nisa.range_select` reduces by `max` only")
    out = out_tile(dst, data, dtype)
    reduce = _reduction(None, reduce_res, reduce_cmd, "reset")
    if reduce_res is None and reduce_cmd is None:
        reduce = {}
    if on_false_value is not None and not isinstance(on_false_value, Tensor) and float(on_false_value) > -3.4e38:
        raise fail("`nisa.range_select` fills with the smallest f32 only", "use `nl.fp32.min` or leave it out")
    recorder().emit(
        "range_select",
        {"dst": out, "src": data, "bound0": bound0, "bound1": bound1, "reduce_res": reduce.pop("res", None)},
        {"cmp0": tokens.alu(comp_op0), "cmp1": tokens.alu(comp_op1), "range_start": int(range_start) or None, **reduce},
    )
    return made(out)


@instruction("", "dst predicate")
def select_reduce(
    dst: Any = None, predicate: Any = None, on_true: Any = None, on_false: Any = None, reduce_res: Any = None, reduce_cmd: Any = None,
    reduce_op: Any = None, reverse_pred: bool = False, dtype: Any = None,
) -> Any:  # fmt: skip
    if reduce_op is not None and tokens.alu(reduce_op) != "max":
        raise fail("`nisa.select_reduce` reduces by `max` only")
    reduce = _reduction(None, reduce_res, reduce_cmd)
    values = {"dst": dst, "pred": predicate, "on_true": on_true, "on_false": on_false}
    if reduce:
        recorder().emit("select_reduce", {**values, "reduce_res": reduce.pop("res")}, {"reverse": reverse_pred, **reduce})
    else:
        recorder().emit("select", values, {"reverse": reverse_pred})
    return dst
