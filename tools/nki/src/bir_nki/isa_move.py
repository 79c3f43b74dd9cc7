"""`nki.isa`: instructions that move data, by engines and by DMA."""

from __future__ import annotations

from typing import Any

from . import compute, dtypes, enums, reductions, tokens
from .access import access
from .compute import held_parts, new_tile, with_bounds
from .dtypes import as_dtype
from .enums import dge_mode, engine_word, oob_mode
from .errors import fail
from .instruction import (
    a_tile,
    instruction,
    made,
    out_tile,
)
from .record import Register, recorder
from .storage import Storage
from .tensor import Tensor


@instruction("shape value dtype engine", "dst")
def memset(dst: Any = None, value: Any = 0, shape: Any = None, dtype: Any = None, engine: Any = None) -> Any:
    if shape is not None:
        dst = new_tile(tuple(shape), as_dtype(dtype or dtypes.float32))
    target = a_tile(dst, "dst").effective()
    if not compute.is_empty(target):
        compute.memset(target, value, engine_word(engine))
    return dst


@instruction("src engine dtype mask", "dst src")
def tensor_copy(dst: Any = None, src: Any = None, engine: Any = None, dtype: Any = None) -> Any:
    src = a_tile(src, "src")
    out = out_tile(dst, src, dtype)
    d, s = held_parts(out, src)
    r = recorder()
    if s.dynamic is not None or d.dynamic is not None:
        _dynamic_copy(d, s, engine)
    else:
        r.emit("tensor_copy", {"dst": d, "src": s}, {"engine": engine_word(engine)} if engine else None)
    return made(out)


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
            if side == "src" and value.partitions > 16:
                # each 16 partitions by columns of their own, which is another instruction
                r.emit("local_gather", values, {"count": count, "width": 1})
                return
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
    out = a_tile(dst, "dst")
    d, p, s = held_parts(out, a_tile(predicate, "predicate"), src)
    recorder().emit("copy_predicated", {"dst": d, "pred": p, "on_true": s}, {"reverse": reverse_pred})
    return out


def _dma_attrs(mode: Any, oob: Any = None, queue: Any = None) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    word = enums.member(dge_mode, mode).name
    if word in ("swdge", "hwdge"):
        attrs["dge"] = word
    if oob is not None and enums.member(oob_mode, oob) is oob_mode.skip:
        attrs["oob"] = "skip"
    return attrs


def _numbered_by(s: Storage, unit: int) -> None:
    """Index tiles number rows of so many elements of a tensor in DRAM. A location has one kind of rows, which its shape declares."""
    r = recorder()
    own = s.row // s.shape[0]
    known = s.index_row
    if known is None and unit != own:
        known = own if any(f"%{s.name}[" in line and "_index %" in line for line in r.module.lines) else None
    elif known is None:
        return
    if known not in (None, unit) or unit < 1 or s.row % unit:
        raise fail(
            f"index tiles choose rows of {unit} elements of `{s.name}`, which has {s.row}" + (f", and others rows of {known}" if known not in (None, unit) else ""),
            "copy it to a tensor of such rows first",
        )
    r.once()
    if s.index_row is None:
        s.index_row = unit
        s.code += f" by {unit}"


def _row_text(view: Tensor) -> Tensor:
    """A table seen row by row: the first dimension of an indexed pattern says nothing but how many."""
    unit = view.dynamic[2]
    _numbered_by(view.storage, unit * view.dtype.itemsize // view.storage.dtype.itemsize)
    out = Tensor(view.storage, view.dtype, view.offset, view.p0, ((unit, 1),) + view.dims[1:], -1)
    dims = tuple(d for d in view.dims[1:] if d[1] != 1) or ((1, 1),)
    out._text = access(out, ((unit, 1), *dims), exact=True)
    return out


@instruction("dst src mask dst_rmw_op oob_mode dge_mode", "dst src")
def dma_copy(
    dst: Any = None, src: Any = None, dst_rmw_op: Any = None, oob_mode: Any = None, dge_mode: Any = None, unique_indices: Any = True,
    engine: Any = None, priority: Any = None,
) -> Any:  # fmt: skip
    dst, src = a_tile(dst, "dst"), a_tile(src, "src")
    attrs = _dma_attrs(dge_mode, oob_mode)
    if priority is not None:
        attrs["priority"] = priority
    if dst_rmw_op is not None:
        if tokens.alu(dst_rmw_op) != "add":
            raise fail("a DMA can only add to what is there")
        return dma_compute(dst=dst, srcs=[dst, src], reduce_op="add", dge_mode=dge_mode, oob_mode=oob_mode)
    r = recorder()
    if dst.dynamic is None and src.dynamic is None:
        dst, src = held_parts(dst, src)
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
    src = a_tile(src, "src")
    rank = src.ndim
    order = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}.get(rank)
    if order is None or (axes is not None and tuple(axes) != order):
        raise fail(f"a DMA transposes {rank} dimensions as {order}, found {axes}")
    if dst is None and dtype is not None and as_dtype(dtype) is not src.dtype:
        return compute.copy(dma_transpose(src=src, axes=axes, dge_mode=dge_mode, oob_mode=oob_mode), dtype)
    if dst is None:
        dst = new_tile(tuple(src.shape[a] for a in order), src.dtype)
    if src.valid is not None:
        # where the source holds values, turned as they are
        dst = with_bounds(dst, {at - rank: src.valid[a] for at, a in enumerate(order) if src.valid[a] is not None})
    source = src.effective()
    values: dict[str, Any] = {"dst": dst.effective()}
    if compute.is_empty(source):
        return made(dst)
    attrs = _dma_attrs(dge_mode)
    if src.dynamic is not None:
        values["src_index"] = src.dynamic[1]
        attrs["dge"] = "swdge"
    values["src"] = exact(source)
    recorder().emit("dma_transpose", values, attrs)
    return made(dst)


def exact(view: Tensor) -> Tensor:
    """The view with every dimension spelt out, for instructions that look at them one by one."""
    out = Tensor(view.storage, view.dtype, view.offset, view.p0, view.dims, view.pdim)
    out._text = access(out, tuple(d for a, d in enumerate(view.dims) if a != view.pdim), exact=True)
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
        dst = out_tile(None, src, dtype)
    recorder().emit("stream_shuffle", {"dst": dst, "src": src}, {"mask": [int(m) for m in shuffle_mask]})
    return made(dst)


@instruction("data engine mask dtype", "dst data")
def nc_transpose(dst: Any = None, data: Any = None, engine: Any = None, dtype: Any = None) -> Any:
    data = a_tile(data)
    if dst is None:
        data = compute.on_chip(data)
    source = data.effective()
    word = engine_word(engine)
    if dst is None:
        free = data.size // data.partitions
        small = data.partitions <= 32 and free <= 32 and word != "pe"
        if data.dtype.itemsize == 1 and not small and word != "dve":
            # the tensor engine passes wider elements only; bf16 holds these exactly
            wide = nc_transpose(data=compute.copy(data, dtypes.bfloat16), engine=engine)
            return made(compute.copy(wide, dtype if dtype is not None else data.dtype))
        shape = (free, data.partitions)
        dst = new_tile(shape, as_dtype(dtype) if dtype is not None else data.dtype, "sbuf" if small or word == "dve" else "psum")
        word = "dve" if small else word
        dst = reductions.turned(dst, data)
    elif word is None and dst.storage.space == "sbuf":
        word = "dve"
    if word == "dve" and source.partitions * (source.size // source.partitions) > 1024 and dst.storage.space == "psum":
        word = None
    recorder().emit("transpose", {"dst": dst.effective(), "src": source}, {"engine": word})
    if dst.storage.space == "psum":
        recorder().last_matmul = (dst, "transpose", {"src": source}, {"engine": word})
    return made(dst)


