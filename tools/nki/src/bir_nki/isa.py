"""`nki.isa`: one function per instruction.

Each takes a new-style call, `nisa.op(dst=…, …)`, or an old-style one that returns a tile: the `instruction` decorator tells them apart,
and gives the old one a tile to write. What an operand may be is the op table's business (`Recorder.emit`), not repeated here.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import compute, dtypes, enums, psum, tokens
from .compute import joint_bounds, new_tile, with_bounds, with_mask
from .dtypes import as_dtype
from .enums import dge_mode, dma_engine, engine, engine_word, matmul_perf_mode, nc_version, oob_mode, reduce_cmd  # noqa: F401
from .errors import fail, nearest, unknown
from .index import IndexArray, Mask
from .record import Register, recorder
from .tensor import Tensor, access

tensor_engine, vector_engine, scalar_engine = engine.tensor, engine.vector, engine.scalar
gpsimd_engine, sync_engine, unknown_engine = engine.gpsimd, engine.sync, engine.unknown


def instruction(old: str = "", tensors: str = "dst data") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function be called in both styles.

    `old` are the positional parameters of the old style; `tensors` those of the new that must be tensors for a call to be of the new.
    """
    old_names = old.split()
    needed = tensors.split()

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)
        known = frozenset(names) | {"name", "mask", "dtype"}
        own = frozenset(names)
        required = frozenset(needed)
        first = names[0]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not args and kwargs.keys() <= own and kwargs.keys() >= required:
                # the new style by keywords: nearly all calls of large kernels
                r = recorder()
                frame = sys._getframe(1)
                r.here = r.sites.get((id(frame.f_code), frame.f_lasti))
                try:
                    return function(**kwargs)
                finally:
                    r.here = None
            for key in kwargs:
                if key not in known:
                    raise fail(f"`nisa.{function.__name__}` has no argument `{key}`", nearest(key, known))
            if len(args) > len(names):
                raise fail(f"`nisa.{function.__name__}` takes at most {len(names)} arguments, found {len(args)}")
            if args and first not in kwargs:
                bound = dict(zip(names, args))
                for name in needed:
                    value = bound.get(name, kwargs.get(name))
                    if type(value) is not Tensor:
                        # not a destination and all it needs: a call that wants a tile back
                        if len(args) > len(old_names):
                            raise fail(f"operand `{name}` of `nisa.{function.__name__}` must be a tensor, found `{value!r}`")
                        bound = dict(zip(old_names, args))
                        break
                for key, value in bound.items():
                    if key in kwargs:
                        raise fail(f"`nisa.{function.__name__}` got `{key}` twice")
                    kwargs[key] = value
            mask = kwargs.pop("mask", None)
            if mask is True:
                mask = None
            elif isinstance(mask, (bool, np.bool_)):
                return _skipped(function, kwargs, own)
            kwargs.pop("name", None)
            if "dtype" not in own:
                kwargs.pop("dtype", None)
            if mask is not None:
                kwargs = {key: with_mask(value, mask) if key not in ("bias", "scale") else value for key, value in kwargs.items()}
            try:
                return function(**kwargs)
            except TypeError as error:
                missing = [n for n, p in inspect.signature(function).parameters.items() if p.default is p.empty and n not in kwargs]
                if missing:
                    raise fail(f"`nisa.{function.__name__}` needs argument `{missing[0]}`") from error
                raise

        return call

    return decorate


def _skipped(function: Callable[..., Any], kwargs: dict[str, Any], own: frozenset[str]) -> Any:
    """A call under a mask that is false: nothing is recorded, and what it returns holds nothing."""
    r = recorder()
    r.muted = True
    try:
        out = function(**{key: value for key, value in kwargs.items() if key in own})
    finally:
        r.muted = False
    return with_mask(out, False) if type(out) is Tensor else out


def _out(dst: Any, source: Tensor, dtype: Any, shape: tuple[int, ...] | None = None, space: str = "sbuf") -> Tensor:
    """`dst`, or for an old-style call a new tile like `source`."""
    if dst is not None:
        if type(dst) is not Tensor:
            raise fail(f"`dst` must be a tensor, found `{dst!r}`")
        return dst
    kind = as_dtype(dtype) if dtype is not None else source.dtype
    if shape is not None:
        return new_tile(shape, kind, space)
    return with_bounds(new_tile(source.shape, kind, space, max(0, source.pdim)), joint_bounds([source]))


def _parts(dst: Tensor, *sources: Any) -> tuple[Any, ...]:
    """The parts of destination and sources that hold values."""
    if dst.valid is None:
        for source in sources:
            if type(source) is Tensor and source.valid is not None:
                break
        else:
            return (dst, *sources)
    bounds = joint_bounds([t for t in (dst, *sources) if type(t) is Tensor])
    return tuple(with_bounds(t, bounds).effective() if type(t) is Tensor else t for t in (dst, *sources))


def _made(dst: Tensor) -> Tensor:
    return recorder().made(dst)


def _tile(value: Any, what: str = "data") -> Tensor:
    if type(value) is not Tensor:
        raise fail(f"operand `{what}` must be a tensor, found `{value!r}`")
    return value


def _scalar_or_column(value: Any) -> Any:
    return float(value) if isinstance(value, bool) else value


# ---- moving data ----


@instruction("shape value dtype engine", "dst")
def memset(dst: Any = None, value: Any = 0, shape: Any = None, dtype: Any = None, engine: Any = None) -> Any:
    if shape is not None:
        dst = new_tile(tuple(shape), as_dtype(dtype or dtypes.float32))
    target = _tile(dst, "dst").effective()
    if not compute.is_empty(target):
        compute.memset(target, value, engine_word(engine))
    return dst


@instruction("src engine dtype mask", "dst src")
def tensor_copy(dst: Any = None, src: Any = None, engine: Any = None, dtype: Any = None) -> Any:
    src = _tile(src, "src")
    out = _out(dst, src, dtype)
    d, s = _parts(out, src)
    r = recorder()
    if s.dynamic is not None or d.dynamic is not None:
        _dynamic_copy(d, s, engine)
    else:
        r.emit("tensor_copy", {"dst": d, "src": s}, {"engine": engine_word(engine)} if engine else None)
    return _made(out)


def _static(view: Tensor) -> Tensor:
    return view._view(view.offset, view.p0, view.dims, view.pdim) if view.dynamic is None else _without_dynamic(view)


def _without_dynamic(view: Tensor) -> Tensor:
    return Tensor(view.storage, view.dtype, view.offset, view.p0, view.dims, view.pdim, view.valid)


def _offset_register(dynamic: Any) -> Register:
    """The run-time part of an offset, in elements."""
    value: Any = dynamic[1]
    unit = dynamic[2]
    r = recorder()
    if type(value) is Tensor:
        value = r.register("register_load", {"src": value}, name="offset")
    if unit != 1:
        return r.register("register_alu", {"lhs": value, "rhs": unit}, {"op": "multiply"}, "offset")
    return value  # type: ignore[no-any-return]


def _dynamic_copy(dst: Tensor, src: Tensor, engine: Any) -> None:
    r = recorder()
    attrs = {"engine": engine_word(engine)}
    for side, view in (("src", src), ("dst", dst)):
        if view.dynamic is None:
            continue
        kind, value, count = view.dynamic
        if kind == "columns":
            values = {"dst": _without_dynamic(dst), "src": _without_dynamic(src), "index": value}
            r.emit("tensor_gather" if side == "src" else "tensor_scatter", values, attrs)
        elif kind == "scalar":
            offset = _offset_register(view.dynamic)
            r.emit(f"tensor_copy_dynamic_{side}", {"dst": _without_dynamic(dst), "src": _without_dynamic(src), "offset": offset}, attrs)
        else:
            raise fail("a vector offset is for DMA only", "use `nisa.dma_copy`")
        return


@instruction("src dtype mask", "dst src")
def tensor_copy_dynamic_src(dst: Any = None, src: Any = None, dtype: Any = None, engine: Any = None) -> Any:
    return tensor_copy(dst=dst, src=src, engine=engine, dtype=dtype)


@instruction("dst src mask", "dst src")
def tensor_copy_dynamic_dst(dst: Any = None, src: Any = None, engine: Any = None) -> Any:
    return tensor_copy(dst=dst, src=src, engine=engine)


@instruction("src dst predicate mask dtype reverse_pred", "dst src predicate")
def tensor_copy_predicated(dst: Any = None, src: Any = None, predicate: Any = None, reverse_pred: bool = False, dtype: Any = None) -> Any:
    out = _tile(dst, "dst")
    d, p, s = _parts(out, _tile(predicate, "predicate"), src)
    recorder().emit("copy_predicated", {"dst": d, "pred": p, "src": s}, {"reverse": reverse_pred})
    return out


def _dma_attrs(mode: Any, oob: Any = None, queue: Any = None) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    word = enums.member(dge_mode, mode).name
    if word in ("swdge", "hwdge"):
        attrs["dge"] = word
    if oob is not None and enums.member(oob_mode, oob) is oob_mode.skip:
        attrs["oob"] = "skip"
    return attrs


def _row_text(view: Tensor) -> Tensor:
    """A table seen row by row: the first dimension of an indexed pattern says nothing but how many."""
    unit = view.dynamic[2]
    out = Tensor(view.storage, view.dtype, view.offset, view.p0, ((unit, 1),) + view.dims[1:], -1)
    dims = [d for d in view.dims[1:] if d[1] != 1] or [(1, 1)]
    out._text = access(out, [(unit, 1)] + dims, exact=True)
    return out


@instruction("dst src mask dst_rmw_op oob_mode dge_mode", "dst src")
def dma_copy(
    dst: Any = None, src: Any = None, dst_rmw_op: Any = None, oob_mode: Any = None, dge_mode: Any = None, unique_indices: Any = True,
    engine: Any = None, priority: Any = None,
) -> Any:  # fmt: skip
    dst, src = _tile(dst, "dst"), _tile(src, "src")
    attrs = _dma_attrs(dge_mode, oob_mode)
    if priority is not None:
        attrs["priority"] = priority
    if dst_rmw_op is not None:
        if tokens.alu(dst_rmw_op) != "add":
            raise fail("a DMA can only add to what is there")
        return dma_compute(dst=dst, srcs=[dst, src], reduce_op="add", dge_mode=dge_mode, oob_mode=oob_mode)
    r = recorder()
    if dst.dynamic is None and src.dynamic is None:
        dst, src = _parts(dst, src)
        if compute.is_empty(dst):
            return dst
        if dst.size != src.size:
            raise fail(f"a DMA writes as many elements as it reads: destination {list(dst.shape)}, source {list(src.shape)}")
        attrs.pop("oob", None)  # nothing here is known at run time only
        spaces = (src.storage.space, dst.storage.space)
        op = {("dram", "sbuf"): "load", ("sbuf", "dram"): "save"}.get(spaces, "dma_copy")
        r.emit(op, {"dst": dst, "src": src}, attrs)
        return dst
    values: dict[str, Any] = {"dst": dst, "src": src}
    for side in ("src", "dst"):
        view = values[side]
        if view.dynamic is None:
            continue
        kind, value, _ = view.dynamic
        if kind == "vector":
            values[f"{side}_index"] = value
            values[side] = _row_text(view)
            attrs["dge"] = "swdge"
            if side == "dst" and unique_indices:
                attrs["unique_indices"] = True
        elif kind == "scalar":
            values[f"{side}_offset"] = _offset_register(view.dynamic)
            values[side] = _without_dynamic(view)
        else:
            raise fail("an index along rows is for compute engines only")
    r.emit("dma_copy", values, attrs)
    return dst


@instruction("src axes mask dtype", "dst src")
def dma_transpose(
    dst: Any = None, src: Any = None, axes: Any = None, dge_mode: Any = None, oob_mode: Any = None, dtype: Any = None, engine: Any = None
) -> Any:
    src = _tile(src, "src")
    rank = src.ndim
    order = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}.get(rank)
    if order is None or (axes is not None and tuple(axes) != order):
        raise fail(f"a DMA transposes {rank} dimensions as {order}, found {axes}")
    if dst is None:
        dst = new_tile(tuple(src.shape[a] for a in order), src.dtype)
    source = src.effective()
    values: dict[str, Any] = {"dst": dst.effective()}
    attrs = _dma_attrs(dge_mode)
    if src.dynamic is not None:
        values["src_index"] = src.dynamic[1]
        attrs["dge"] = "swdge"
    values["src"] = exact(source)
    recorder().emit("dma_transpose", values, attrs)
    return _made(dst)


def exact(view: Tensor) -> Tensor:
    """The view with every dimension spelt out, for instructions that look at them one by one."""
    out = Tensor(view.storage, view.dtype, view.offset, view.p0, view.dims, view.pdim)
    out._text = access(out, [d for a, d in enumerate(view.dims) if a != view.pdim], exact=True)
    return out


@instruction("dst srcs reduce_op scales", "dst")
def dma_compute(
    dst: Any = None, srcs: Any = None, reduce_op: Any = None, scales: Any = None, unique_indices: Any = True, dge_mode: Any = None,
    oob_mode: Any = None, engine: Any = None,
) -> Any:  # fmt: skip
    if isinstance(reduce_op, (list, tuple)):  # dma_compute(dst, srcs, scales, reduce_op)
        reduce_op, scales = scales, reduce_op
    srcs = [srcs] if isinstance(srcs, Tensor) else list(srcs)
    if reduce_op is not None and tokens.alu(reduce_op) != "add":
        raise fail("`nisa.dma_compute` adds, and does nothing else")
    for scale in scales or ():
        if float(scale) != 1.0:
            raise fail(f"`nisa.dma_compute` takes scales of 1.0 only, found {scale}")
    if len(srcs) == 1:
        srcs = [dst, srcs[0]]
    r = recorder()
    attrs = _dma_attrs(dge_mode, oob_mode)
    indexed = [v for v in (dst, *srcs) if v.dynamic is not None]
    if not indexed:
        attrs.pop("oob", None)
        r.emit("dma_compute", {"dst": dst, "srcs": srcs}, {"op": "add", **attrs})
        return dst
    attrs["dge"] = "swdge"
    if dst.dynamic is not None:  # table[index] += tile
        value = next(s for s in srcs if s.dynamic is None)
        r.emit("dma_scatter_add", {"dst": _row_text(dst), "src": value, "index": dst.dynamic[1]}, attrs)
    else:  # tile += table[index]
        if not any(s.dynamic is None and s.text() == dst.text() for s in srcs):
            raise fail("an indexed `nisa.dma_compute` adds to its destination: it must be one of two sources")
        table = indexed[0]
        r.emit("dma_gather_add", {"dst": dst, "src": _row_text(table), "index": table.dynamic[1]}, attrs)
    return dst


@instruction("src dst shuffle_mask", "dst src")
def nc_stream_shuffle(dst: Any = None, src: Any = None, shuffle_mask: Any = None, dtype: Any = None) -> Any:
    if dst is None:
        dst = _out(None, src, dtype)
    recorder().emit("stream_shuffle", {"dst": dst, "src": src}, {"mask": [int(m) for m in shuffle_mask]})
    return _made(dst)


@instruction("data engine mask dtype", "dst data")
def nc_transpose(dst: Any = None, data: Any = None, engine: Any = None, dtype: Any = None) -> Any:
    data = _tile(data)
    source = data.effective()
    word = engine_word(engine)
    if dst is None:
        free = data.size // data.partitions
        small = data.partitions <= 32 and free <= 32 and word != "pe"
        shape = (free, data.partitions)
        dst = new_tile(shape, as_dtype(dtype) if dtype is not None else data.dtype, "sbuf" if small or word == "dve" else "psum")
        word = "dve" if small else word
        bounds = joint_bounds([data])
        swapped = {-1 if a == -data.ndim else -2: b for a, b in bounds.items()}
        dst = with_bounds(dst, swapped)
    elif word is None and dst.storage.space == "sbuf":
        word = "dve"
    if word == "dve" and source.partitions * (source.size // source.partitions) > 1024 and dst.storage.space == "psum":
        word = None
    recorder().emit("transpose", {"dst": dst.effective(), "src": source}, {"engine": word})
    if dst.storage.space == "psum":
        recorder().last_matmul = (dst, "transpose", {"src": source}, {"engine": word})
    return _made(dst)


# ---- elementwise ----


@instruction("data1 data2 op dtype mask engine", "dst data1 data2")
def tensor_tensor(dst: Any = None, data1: Any = None, data2: Any = None, op: Any = None, engine: Any = None, dtype: Any = None) -> Any:
    word = tokens.alu(op)
    if dst is None:
        data1, data2 = _tile(data1, "data1"), _tile(data2, "data2")
        if data1.shape != data2.shape:
            shape = compute.shape_of(data1.shape, data2.shape)
            data1, data2 = data1.broadcast_to(shape), data2.broadcast_to(shape)
        kind = compute.result_type(word, data1, data2, dtype) if dtype is not None or word in tokens.COMPARISONS else dtypes.promote(data1.dtype, data2.dtype)
        dst = with_bounds(new_tile(data1.shape, kind), joint_bounds([data1, data2]))
    else:
        shape = dst.shape
        data1, data2 = (t.broadcast_to(shape) if t.shape != shape and t.ndim == len(shape) and t.size < dst.size else t for t in (_tile(data1, "data1"), _tile(data2, "data2")))
    d, a, b = _parts(dst, data1, data2)
    compute.tensor_tensor(d, a, b, word, engine_word(engine))
    return _made(dst)


def _number_or_tile(value: Any) -> Any:
    if value is None or type(value) is Tensor or isinstance(value, compute.Scalar):
        return value
    raise fail(f"an operand must be a number or a tensor, found `{value!r}`")


def _rows(column: Any, whole: Tensor, part: Tensor) -> Any:
    """A per-partition operand beside the part of a tile that holds values."""
    if type(column) is Tensor and column.partitions != part.partitions and column.partitions == whole.partitions:
        return column[part.p0 - whole.p0 : part.p0 - whole.p0 + part.partitions]
    return column


@instruction("data op0 operand0 reverse0 op1 operand1 reverse1 dtype mask engine", "dst data")
def tensor_scalar(
    dst: Any = None, data: Any = None, op0: Any = None, operand0: Any = None, reverse0: bool = False, op1: Any = None, operand1: Any = None,
    reverse1: bool = False, engine: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    data = _tile(data)
    word0 = tokens.alu(op0)
    word1 = tokens.alu(op1) if op1 is not None else None
    if word1 == "bypass":
        word1 = None
    out = _out(dst, data, dtype)
    d, s = _parts(out, data)
    operand0 = _operand(word0, operand0, data, s)
    operand1 = _operand(word1, operand1, data, s) if word1 is not None else None
    attrs = {"op0": word0, "op1": word1, "reverse0": bool(reverse0) or None, "reverse1": bool(reverse1) or None}
    if engine:
        attrs["engine"] = engine_word(engine)
    recorder().emit("tensor_scalar", {"dst": d, "src": s, "operand0": operand0, "operand1": operand1}, attrs)
    return _made(out)


def _operand(word: str, value: Any, whole: Tensor, part: Tensor) -> Any:
    """A scalar operand of an ALU operation; those on one value have none."""
    if type(value) is float:
        return None if word in tokens.UNARY else value
    if word in tokens.UNARY:
        return None
    if value is None:
        raise fail(f"`{word}` needs an operand")
    return _rows(_number_or_tile(value), whole, part)


@instruction("data op0 operand0 op1 operand1 reverse0 reverse1 dtype mask", "dst data operand1")
def scalar_tensor_tensor(
    dst: Any = None, data: Any = None, op0: Any = None, operand0: Any = None, op1: Any = None, operand1: Any = None, reverse0: bool = False,
    reverse1: bool = False, dtype: Any = None,
) -> Any:  # fmt: skip
    data = _tile(data)
    out = _out(dst, data, dtype)
    d, s, other = _parts(out, data, _tile(operand1, "operand1"))
    recorder().emit(
        "scalar_tensor_tensor",
        {"dst": d, "src": s, "scalar": _rows(_number_or_tile(operand0), data, s), "other": other},
        {"op0": tokens.alu(op0), "op1": tokens.alu(op1), "reverse0": bool(reverse0) or None, "reverse1": bool(reverse1) or None},
    )
    return _made(out)


@instruction("data dtype mask", "dst data")
def reciprocal(dst: Any = None, data: Any = None, dtype: Any = None) -> Any:
    out = _out(dst, _tile(data), dtype)
    d, s = _parts(out, data)
    recorder().emit("reciprocal", {"dst": d, "src": s})
    return _made(out)


def _activation(name: str, dst: Any, op: Any, data: Any, bias: Any, scale: Any, reduce: dict[str, Any], dtype: Any, alpha: Any = None) -> Any:
    data = _tile(data)
    out = _out(dst, data, dtype)
    d, s = _parts(out, data)
    scale = _number_or_tile(scale)
    if not isinstance(scale, Tensor) and (scale is None or scale == 1.0):
        scale = None
    bias = _number_or_tile(bias)
    if not isinstance(bias, Tensor) and bias is not None and bias == 0:
        bias = None
    values = {"dst": d, "src": s, "scale": _rows(scale, data, s), "bias": _rows(bias, data, s), "reduce_res": _rows(reduce.pop("res", None), data, s)}
    attrs = {"func": tokens.activation(op), **reduce}
    if alpha is not None:
        attrs["alpha"] = float(alpha)
    recorder().emit(name, values, attrs)
    return _made(out)


def _reduction(reduce_op: Any, reduce_res: Any, cmd: Any, default: str = "idle") -> dict[str, Any]:
    word = enums.REDUCE_CMDS[enums.member(reduce_cmd, cmd)] if cmd is not None else default
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
    out = _out(dst, _tile(data), dtype)
    d, s = _parts(out, data)
    recorder().emit("dropout", {"dst": d, "src": s, "prob": prob})
    return _made(out)


# ---- reductions and scans ----


@instruction("op data axis mask dtype negate keepdims", "dst data")
def tensor_reduce(
    dst: Any = None, op: Any = None, data: Any = None, axis: Any = None, negate: bool = False, keepdims: bool = False, dtype: Any = None
) -> Any:
    data = _tile(data)
    word = tokens.alu(op)
    if axis is None:
        raise fail("`nisa.tensor_reduce` needs argument `axis`")
    axes = compute.axes_of(data, axis)
    if data.pdim in axes:
        raise fail("`nisa.tensor_reduce` cannot reduce partitions", "use `nisa.tensor_partition_reduce`, or a matmul with ones")
    if dst is None:
        return compute.reduce(word, data, axis, dtype, keepdims=keepdims, negate=negate)
    compute.tensor_reduce(word, dst.effective(), data.effective(), axes, negate)
    return dst


@instruction("op data mask dtype", "dst data")
def tensor_partition_reduce(dst: Any = None, op: Any = None, data: Any = None, dtype: Any = None) -> Any:
    data = _tile(data)
    out = _out(dst, data, dtype, (1,) + data.shape[1:])
    recorder().emit("tensor_partition_reduce", {"dst": out, "src": data.effective()}, {"op": tokens.alu(op)})
    return _made(out)


@instruction("data op0 operand0 reduce_op reduce_res reverse0 dtype mask", "dst data")
def tensor_scalar_reduce(
    dst: Any = None, data: Any = None, op0: Any = None, operand0: Any = None, reduce_op: Any = None, reduce_res: Any = None,
    reverse0: bool = False, reduce_cmd: Any = None, reduce_init: Any = None, reduce_res_negate: bool = False, dtype: Any = None,
) -> Any:  # fmt: skip
    if reverse0:
        raise fail("`nisa.tensor_scalar_reduce` has no reversed form on this hardware")
    data = _tile(data)
    out = _out(dst, data, dtype)
    d, s = _parts(out, data)
    reduce = _reduction(reduce_op, reduce_res, reduce_cmd, "reset")
    recorder().emit(
        "tensor_scalar_reduce",
        {"dst": d, "src": s, "operand0": _rows(operand0, data, s), "init": reduce_init, "reduce_res": _rows(reduce.pop("res", None), data, s)},
        {"op0": tokens.alu(op0), **reduce, "negate": bool(reduce_res_negate) or None},
    )
    return _made(out)


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
    data0, data1 = _tile(data0, "data0"), _tile(data1, "data1")
    out = _out(dst, data1 if data0.size < data1.size else data0, dtype)
    d, a, b = _parts(out, data0, data1)
    if type(initial) is Tensor and initial.dtype is not dtypes.float32:
        initial = compute.copy(initial, dtypes.float32)
    recorder().emit(
        "tensor_tensor_scan",
        {"dst": d, "lhs": a, "rhs": b, "initial": _rows(initial, data0, a)},
        {"op0": tokens.alu(op0), "op1": tokens.alu(op1), "reverse0": bool(reverse0) or None, "reverse1": bool(reverse1) or None},
    )
    return _made(out)


@instruction("data mask dtype", "dst data")
def bn_stats(dst: Any = None, data: Any = None, dtype: Any = None) -> Any:
    data = _tile(data)
    out = _out(dst, data, dtype or dtypes.float32, (data.partitions, 6))
    s = data.effective()
    recorder().emit("bn_stats", {"dst": _rows(out, data, s), "src": s})
    return _made(with_bounds(out, {-2: (0, s.partitions)}) if dst is None and s.partitions != data.partitions else out)


@instruction("data mask dtype", "dst data")
def bn_aggr(dst: Any = None, data: Any = None, dtype: Any = None) -> Any:
    data = _tile(data)
    out = _out(dst, data, dtype or dtypes.float32, (data.partitions, 2))
    s = data.effective()
    recorder().emit("bn_aggr", {"dst": _rows(out, data, s), "src": s})
    return _made(with_bounds(out, {-2: (0, s.partitions)}) if dst is None and s.partitions != data.partitions else out)


@instruction("src mask dtype", "dst src")
def max8(dst: Any = None, src: Any = None, dtype: Any = None) -> Any:
    out = _out(dst, _tile(src, "src"), dtype, (src.partitions, 8))
    recorder().emit("max8", {"dst": out, "src": src})
    return _made(out)


@instruction("data vals mask dtype", "dst data vals")
def nc_find_index8(dst: Any = None, data: Any = None, vals: Any = None, dtype: Any = None) -> Any:
    out = _out(dst, _tile(data), dtype or dtypes.uint32, (data.partitions, 8))
    recorder().emit("find_index8", {"dst": out, "src": data, "values": vals})
    return _made(out)


@instruction("data vals imm dst_idx mask dtype", "dst data vals")
def nc_match_replace8(dst: Any = None, data: Any = None, vals: Any = None, imm: Any = None, dst_idx: Any = None, dtype: Any = None) -> Any:
    out = _out(dst, _tile(data), dtype)
    recorder().emit("match_replace8", {"dst": out, "dst_index": dst_idx, "src": data, "values": vals, "replacement": imm})
    return _made(out)


@instruction("", "dst src")
def topk(dst: Any = None, src: Any = None, dst_idx: Any = None, k: Any = None) -> Any:
    recorder().emit("topk", {"dst": dst, "dst_index": dst_idx, "src": src}, {"k": int(k)})
    return dst


# ---- selection ----


def _pattern(pattern: Any) -> list[list[int]]:
    return [[int(step), int(count)] for step, count in pattern] or [[0, 1]]


@instruction("pred on_true_tile on_false_value mask dtype", "dst on_true_tile")
def affine_select(
    dst: Any = None, pattern: Any = None, channel_multiplier: Any = 0, on_true_tile: Any = None, on_false_value: Any = None,
    cmp_op: Any = "equal", offset: Any = 0, pred: Any = None, dtype: Any = None,
) -> Any:  # fmt: skip
    data = _tile(on_true_tile, "on_true_tile")
    if dst is None:
        data = compute.in_sbuf(data)  # the pool engine does not reach PSUM
    out = _out(dst, data, dtype)
    d, s = _parts(out, data)
    if pred is not None:
        offset, channel_multiplier, pattern, cmp_op = _slanted(pred, data)
    attrs = {"op": tokens.alu(cmp_op), "pattern": _pattern(pattern), "offset": int(offset), "channel_multiplier": int(channel_multiplier)}
    recorder().emit("affine_select", {"dst": d, "src": s, _literal_role("affine_select"): float(on_false_value)}, attrs)
    return _made(out)


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
    data = _tile(on_true_tile, "on_true_tile")
    out = _out(dst, data, dtype)
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
    return _made(out)


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
    attrs = {"pattern": _pattern(pattern), "offset": int(offset) or None, "channel_multiplier": int(channel_multiplier) or None}
    recorder().emit("iota", {"dst": dst}, attrs)
    return _made(dst)


@instruction("src_buffer index num_elem_per_idx num_valid_indices mask", "dst src_buffer index")
def local_gather(
    dst: Any = None, src_buffer: Any = None, index: Any = None, num_elem_per_idx: int = 1, num_valid_indices: Any = None, dtype: Any = None
) -> Any:
    src_buffer, index = _tile(src_buffer, "src_buffer"), _tile(index, "index")
    count = int(num_valid_indices) if num_valid_indices is not None else 16 * (index.size // index.partitions)
    out = _out(dst, src_buffer, dtype, (src_buffer.partitions, count * int(num_elem_per_idx)))
    recorder().emit("local_gather", {"dst": out, "src": src_buffer, "index": index}, {"count": count, "width": int(num_elem_per_idx)})
    return _made(out)


@instruction("data indices mask", "dst data indices")
def nc_n_gather(dst: Any = None, data: Any = None, indices: Any = None, dtype: Any = None) -> Any:
    out = _out(dst, _tile(data), dtype, _tile(indices, "indices").shape)
    recorder().emit("n_gather", {"dst": out, "src": data, "index": indices})
    return _made(out)


@instruction("", "dst segment_ids")
def sequence_bounds(dst: Any = None, segment_ids: Any = None) -> Any:
    recorder().emit("sequence_bounds", {"dst": dst, "src": segment_ids})
    return dst


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
    stationary, moving = _tile(stationary, "stationary"), _tile(moving, "moving")
    if dst is None:
        return compute.product(stationary, moving, attrs)
    if accumulate is None and is_transpose:
        accumulate = False
    if stationary.valid is not None or moving.valid is not None:
        stationary, moving = stationary.effective(), moving.effective()
    dst = _tile(dst, "dst").effective()
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
    return r.register("register_move", {"src": 0 if x is None else x}, name=name)


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
    recorder().emit("register_move", {"dst": dst, "src": imm if src is None else src})
    return dst


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


