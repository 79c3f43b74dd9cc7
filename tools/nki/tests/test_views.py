"""Views: what each reads, against numpy's own."""

import dataclasses
import sys

import numpy as np
import pytest

import bir_nki
import nki
import nki.isa as nisa
import nki.language as nl
from conftest import f32

# shape of the tile, the view, and numpy's for it
ON_CHIP = {
    "slices": ((128, 8, 16), lambda t: t[0:64, 2:6, 4:16:3]),
    "int_keeps_partitions": ((128, 16), lambda t: t[32]),
    "int_drops_elements": ((128, 8, 16), lambda t: t[:, 3]),
    "ellipsis": ((128, 8, 16), lambda t: t[..., 5]),
    "negative": ((128, 16), lambda t: t[:, -4:-1]),
    "run": ((128, 16), lambda t: t[:, nl.ds(4, 8)]),
    "reshape": ((128, 8, 16), lambda t: t.reshape((128, 4, 32))),
    "reshape_inferred": ((128, 8, 16), lambda t: t.reshape((128, -1))),
    "permute": ((128, 8, 16), lambda t: t.permute((0, 2, 1))),
    "expand": ((128, 8), lambda t: t.expand_dims(1)),
    "squeeze": ((128, 1, 8), lambda t: t.squeeze(1)),
    "select": ((128, 8, 16), lambda t: t.select(1, 5)),
    "slice_of_a_dimension": ((128, 8, 16), lambda t: t.slice(2, 1, 9, 2)),
    "flatten": ((128, 8, 16), lambda t: t.flatten_dims(1, 2)),
    "reshape_dim": ((128, 24), lambda t: t.reshape_dim(1, (4, -1))),
    "broadcast": ((128, 1, 8), lambda t: t.broadcast(1, 5)),
    "broadcast_to": ((128, 1), lambda t: t.broadcast_to((128, 7))),
    "rearrange": ((128, 24), lambda t: t.rearrange("p (a b) -> p b a", a=4)),
    "slice_of_a_permutation": ((128, 8, 16), lambda t: t.permute((0, 2, 1))[:, 3:9, 2:4]),
    "pattern": ((128, 32), lambda t: t.ap(pattern=[[32, 128], [8, 4], [1, 2]], offset=5)),
    "pattern_of_some_partitions": ((128, 32), lambda t: t.ap(pattern=[[32, 32], [1, 16]], offset=64 * 32 + 8)),
    "reversed_pattern": ((128, 32), lambda t: t.ap(pattern=[[32, 128], [-1, 32]], offset=31)),
    "other_dtype": ((128, 32), lambda t: t.view(nl.uint16)[:, 2:40]),
    "wider_dtype": ((128, 32), lambda t: t.view(nl.uint8).view(nl.float32)),
    "pattern_in_another_dtype": ((128, 32), lambda t: t.ap(pattern=[[64, 128], [2, 32]], offset=1, dtype=nl.uint16)),
}


def numpy_pattern(array, pattern, offset=0, dtype=None):
    flat = array.reshape(-1).view(array.dtype if dtype is None else dtype.dtype)
    index = offset
    for axis, (step, count) in enumerate(pattern):
        index = index + (step * np.arange(count)).reshape((-1,) + (1,) * (len(pattern) - axis - 1))
    return flat[index]


WANTED = {
    "int_keeps_partitions": lambda a: a[32:33],
    "run": lambda a: a[:, 4:12],
    "reshape": lambda a: a.reshape(128, 4, 32),
    "reshape_inferred": lambda a: a.reshape(128, -1),
    "permute": lambda a: a.transpose(0, 2, 1),
    "expand": lambda a: a[:, None],
    "squeeze": lambda a: a[:, 0],
    "select": lambda a: a[:, 5],
    "slice_of_a_dimension": lambda a: a[:, :, 1:9:2],
    "flatten": lambda a: a.reshape(128, -1),
    "reshape_dim": lambda a: a.reshape(128, 4, 6),
    "broadcast": lambda a: np.broadcast_to(a, (128, 5, 8)),
    "broadcast_to": lambda a: np.broadcast_to(a, (128, 7)),
    "rearrange": lambda a: a.reshape(128, 4, 6).transpose(0, 2, 1),
    "slice_of_a_permutation": lambda a: a.transpose(0, 2, 1)[:, 3:9, 2:4],
    "pattern": lambda a: numpy_pattern(a, [(32, 128), (8, 4), (1, 2)], 5),
    "pattern_of_some_partitions": lambda a: a[64:96, 8:24],
    "reversed_pattern": lambda a: a[:, ::-1],
    "other_dtype": lambda a: a.view(np.uint16)[:, 2:40],
    "wider_dtype": lambda a: a,
    "pattern_in_another_dtype": lambda a: a.view(np.uint16)[:, 1::2],
}


@pytest.mark.parametrize("name", ON_CHIP)
def test_view_on_chip(name, rng):
    shape, view = ON_CHIP[name]

    def kernel(x):
        tile = nl.ndarray(shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        seen = view(tile)
        copy = nl.ndarray(seen.shape, dtype=seen.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=copy, src=seen)
        out = nl.ndarray(seen.shape, dtype=seen.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=copy)
        return out

    x = f32(rng, *shape)
    wanted = WANTED[name](x) if name in WANTED else view(x)
    result = bir_nki.simulate(kernel, x)
    assert result.shape == wanted.shape
    np.testing.assert_array_equal(result, wanted)


IN_DRAM = {
    "int_drops_the_first_dimension": lambda t: t[1],
    "columns": lambda t: t[:, 2:10, 5],
    "strided": lambda t: t[0:3:2, ::4],
    "merged_and_split": lambda t: t.reshape((12, 4, 8)),
    "permuted": lambda t: t.permute((2, 0, 1)) if hasattr(t, "permute") else t.transpose(2, 0, 1),
}


@pytest.mark.parametrize("name", IN_DRAM)
def test_view_in_dram(name, rng):
    view = IN_DRAM[name]

    def kernel(x):
        seen = view(x)
        out = nl.ndarray(seen.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=seen)
        return out

    x = f32(rng, 3, 16, 8)
    np.testing.assert_array_equal(bir_nki.simulate(kernel, x), view(x))


def test_returned_view_is_seen_as_it_was_returned(rng):
    def kernel(x):
        out = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        return out.reshape((2, 12))[1], out

    x = f32(rng, 4, 6)
    row, whole = bir_nki.simulate(kernel, x)
    np.testing.assert_array_equal(row, x.reshape(2, 12)[1])
    np.testing.assert_array_equal(whole, x)


def test_reshape_over_partitions_copies(rng):
    def kernel(x):
        tile = nl.ndarray((64, 4), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        out = nl.ndarray((1, 256), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile.reshape((1, 256)))
        return out

    x = f32(rng, 64, 4)
    np.testing.assert_array_equal(bir_nki.simulate(kernel, x), x.reshape(1, 256))


def test_names_and_places_come_from_the_kernel():
    def kernel(x):
        rows = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
        named = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf, name="given")
        nisa.dma_copy(dst=rows, src=x)
        nisa.tensor_copy(dst=named, src=rows)
        for _ in range(2):
            rows = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=rows, src=named)
        nisa.dma_copy(dst=x, src=rows)

    text = bir_nki.trace(kernel, np.zeros((128, 4), np.float32)).text
    first = kernel.__code__.co_firstlineno
    # before 3.11 Python does not know columns
    outer, inner = (9, 13) if sys.version_info >= (3, 11) else (1, 1)
    for name in ("rows", "rows_1", "rows_2", "given"):
        assert f"%{name} = alloc sbuf<128x4xf32> loc(" in text
    assert f'load %rows <- %x loc("test_views.py":{first + 3}:{outer})' in text
    assert f'tensor_copy %rows_2 <- %given loc("test_views.py":{first + 7}:{inner})' in text


def test_tiles_placed_by_hand():
    def kernel(x):
        tile = nl.ndarray((64, 4), dtype=x.dtype, buffer=nl.sbuf, address=(64, 4096))
        bank = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum, address=(0, 3 * 2048))
        nisa.dma_copy(dst=tile, src=x)
        nisa.memset(dst=bank[:, 0:4], value=1.0)
        nisa.tensor_copy(dst=tile, src=bank[64:128, 0:4])
        nisa.dma_copy(dst=x, src=tile)

    text = bir_nki.trace(kernel, np.zeros((64, 4), np.float32)).text
    assert "%tile = alloc sbuf<64x4xf32> at [64, 0x1000]" in text
    assert "%bank = alloc psum<128x512xf32> at [0, bank 3]" in text


def test_dtypes_have_all_their_names():
    assert nl.bfloat16 == nl.bfloat16.dtype == "bfloat16"
    assert nl.float32 == np.float32 and np.dtype(nl.float32) == np.float32
    assert nl.float32 != nl.bfloat16 and nl.float32 != "int32" and nl.float32 is not None
    assert str(nl.float8_e4m3) == "float8_e4m3" and len({nl.int8, nl.int8, nl.uint8}) == 2
    assert nl.tile_size.pmax == 128 and nl.tile_size.gemm_moving_fmax == 512


def test_objects_with_fields_that_have_no_annotations():
    @dataclasses.dataclass
    class Config(nki.NKIObject):
        rows: int
        columns = 4
        name = "config"

    assert Config(rows=3, columns=5) == Config(3, 5)
    assert Config(3).columns == 4


def test_views_of_a_class_that_makes_patterns(rng):
    """As libraries do it: an object over a tensor that answers with `.ap`."""

    class View(nl.NKIObject):
        base: nl.ndarray

        def __init__(self, base):
            self.base, self.shape = base, tuple(base.shape)
            self.strides = tuple(int(np.prod(self.shape[axis + 1 :])) for axis in range(len(self.shape)))

        def broadcast(self, dim, size):
            self.shape = (*self.shape[:dim], size, *self.shape[dim:])
            self.strides = (*self.strides[:dim], 0, *self.strides[dim:])
            return self

        def get_view(self):
            return self.base.ap(pattern=list(zip(self.strides, self.shape)), offset=0, dtype=self.base.dtype)

    def kernel(x, c):
        rows, factors, out = (nl.ndarray(s, dtype=x.dtype, buffer=nl.sbuf) for s in (x.shape, c.shape, x.shape))
        nisa.dma_copy(dst=rows, src=x)
        nisa.dma_copy(dst=factors, src=c)
        nisa.tensor_tensor(out, View(rows).get_view(), View(factors).broadcast(2, 3).get_view(), nl.multiply)
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=result, src=out)
        return result

    x, c = f32(rng, 64, 2, 3, 8), f32(rng, 64, 2, 8)
    np.testing.assert_array_equal(bir_nki.simulate(kernel, x, c), x * c[:, :, None])


def test_trace_knows_its_program():
    def kernel(x):
        assert (nl.program_ndim(), nl.num_programs(), nl.program_id(0)) == (0, 1, 0)
        assert nisa.get_nc_version() == nisa.nc_version.gen4
        assert x.buffer in (nl.hbm, nl.shared_hbm) and x.buffer != nl.sbuf
        assert (x.shape, x.ndim, x.dtype, x.strides) == ((4, 6), 2, nl.float32, (6, 1))
        nisa.dma_copy(dst=x, src=x[:, ::-1] if False else x)

    bir_nki.trace(kernel, np.zeros((4, 6), np.float32), target="trn3", verify=False)


def test_two_cores_share_memory_and_meet(rng):
    @nki.jit
    def kernel(x):
        core = nl.program_id(0)
        out = nl.ndarray((256, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        mine, theirs = (nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf) for _ in range(2))
        nisa.dma_copy(dst=mine, src=x[nl.ds(core * 128, 128), :])
        nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
        nisa.dma_copy(dst=out[nl.ds(core * 128, 128), :], src=theirs)
        nisa.core_barrier(data=out, cores=(0, 1))
        return out

    x = f32(rng, 256, 4)
    traced = bir_nki.trace(kernel[2], x)
    np.testing.assert_array_equal(traced.simulate(), np.concatenate([x[128:], x[:128]]))
    text = traced.text
    first, second = text.split("bir.module @kernel1")
    assert "bir.module @kernel0" in first
    for part, other in ((first, 1), (second, 0)):
        assert part.count("%out = alloc dram<256x4xf32> {kind = output, space = shared}") == 1
        assert f"sendrecv %theirs <- %mine {{pipe_id = 0, recv_from = {other}, send_to = {other}}}" in part or (
            f"send_to = {other}" in part and f"recv_from = {other}" in part
        )
        assert "core_barrier %out" in part
    assert "save %out[0:128, :]" in first and "save %out[128:256, :]" in second


def test_compile_runs_passes(rng):
    def kernel(x):
        for i in nl.dynamic_range(2):
            tile = nl.ndarray((64, 4), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[nl.ds(i * 64, 64), :])
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
            nisa.dma_copy(dst=x[nl.ds(i * 64, 64), :], src=tile)

    x = f32(rng, 128, 4)
    assert "loop %i = 0 to 2" in bir_nki.trace(kernel, x).text
    unrolled = bir_nki.compile(kernel, x, pipeline="unroll", validate="each")
    assert "loop" not in unrolled.text and unrolled.text.count("tensor_scalar") == 2
    np.testing.assert_array_equal(unrolled.simulate(), x + 1)
