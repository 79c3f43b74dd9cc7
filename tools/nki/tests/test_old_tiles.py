"""Old-style tiles: arrays of them, what masks leave, run-time starts, and calls of kernels on arrays."""

import functools

import ml_dtypes
import numpy as np
import pytest

import bir_nki
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from conftest import f32, same_after_passes
from neuronxcc.nki.typing import tensor


def check(kernel, arrays, wanted, tolerance=0):
    traced = bir_nki.trace(kernel, *arrays)
    results = traced.simulate()
    np.testing.assert_allclose(results, wanted, rtol=tolerance, atol=tolerance)
    same_after_passes(traced, results)
    return traced


# ---- starts known at run time only ----


def test_columns_from_where_a_tile_says(rng):
    """One dimension of a tile on chip begins at a number of another tile, alone and with an index array behind it."""

    def kernel(x, starts):
        out = nl.ndarray((128, 5, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:8]
        tile, at = nl.load(x), nl.load(starts)
        picked = nl.ndarray((128, 5, 8), dtype=x.dtype)
        for k in nl.affine_range(4):
            picked[i_p, k, i_f] = nisa.tensor_copy_dynamic_src(tile[i_p, at[0, k] + i_f])
        picked[i_p, 4, i_f] = nisa.tensor_copy_dynamic_src(tile[i_p, i_f + at[0, 4] + 2])
        nl.store(out, picked)
        return out

    x, starts = f32(rng, 128, 64), np.array([[3, 56, 0, 17, 9]], np.int32)
    wanted = np.stack([x[:, s : s + 8] for s in (3, 56, 0, 17, 11)], 1)
    check(kernel, [x, starts], wanted)


def test_rows_from_where_a_tile_says(rng):
    def kernel(x, starts):
        out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:64, 0:32]
        at = nl.load(starts)
        nl.store(out, nl.load(x[at[0, 0] + i_p, i_f]))
        return out

    x = f32(rng, 200, 32)
    check(kernel, [x, np.array([[77]], np.int32)], x[77:141])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda t, i, j, at: t[at[0, 0] + i, j], "one dimension of a view may begin where a register or tile says, and no partition"),
        (lambda t, i, j, at: t[i, at[0, 0:2] + j], "begins where one number says, found `at` of shape [1, 2]"),
    ],
)
def test_run_time_starts_that_cannot_be(index, message, rng):
    def kernel(x, starts):
        out = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:8]
        t, at = nl.load(x), nl.load(starts)
        nl.store(out, nisa.tensor_copy_dynamic_src(index(t, i, j, at)))
        return out

    with pytest.raises(bir_nki.KernelError, match=r"test_old_tiles.py:\d+: error: ") as caught:
        bir_nki.trace(kernel, f32(rng, 128, 64), np.zeros((1, 2), np.int32))
    assert message in str(caught.value)


# ---- partitions in between ----


def test_rows_are_written_where_engines_cannot_begin(rng):
    def kernel(x):
        out = nl.ndarray((32, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        table = nl.zeros((32, 4), dtype=nl.float32)
        tile = nl.load(x)
        for i in nl.static_range(32):
            table[i, i % 4] = float(i)
        table[5:7, :] = tile[9:11, :]
        nl.store(out, table)
        return out

    x = f32(rng, 32, 4)
    wanted = np.zeros((32, 4), np.float32)
    wanted[np.arange(32), np.arange(32) % 4] = np.arange(32)
    wanted[5:7] = x[9:11]
    check(kernel, [x], wanted)


# ---- bytes through the tensor engine ----


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3, np.int8, np.uint8])
def test_tiles_of_bytes_are_transposed(dtype, rng):
    def kernel(x):
        out = nl.ndarray((2, x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.store(out[0], nisa.nc_transpose(tile))
        nl.store(out[1], nl.transpose(tile))
        return out

    x = rng.integers(0, 100, (128, 64)).astype(dtype)
    results = bir_nki.trace(kernel, x).simulate()
    np.testing.assert_array_equal(results.view(np.uint8), np.stack([x.T, x.T]).view(np.uint8))


def test_two_rows_at_a_time_give_back_a_tile(rng):
    def kernel(a, b):
        out = nl.ndarray((16, 512), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nisa.nc_matmul(nl.load(a), nl.load(b), perf_mode="double_row_gen3"))
        return out

    a, b = (f32(rng, *shape).astype(ml_dtypes.float8_e4m3) for shape in ((128, 2, 16), (128, 2, 512)))
    wanted = np.einsum("kti,ktj->ij", a.astype(np.float32), b.astype(np.float32))
    check(kernel, [a, b], wanted, 1e-4)


def test_sequence_bounds_give_back_a_tile():
    def kernel(ids):
        out = nl.ndarray((1, 2, 6), dtype=ids.dtype, buffer=nl.shared_hbm)
        nl.store(out, nisa.sequence_bounds(segment_ids=nl.load(ids)))
        return out

    ids = np.array([[1, 1, 0, 2, 2, 2]], np.float32)
    check(kernel, [ids], np.array([[[0, 0, 6, 3, 3, 3], [2, 2, -1, 6, 6, 6]]], np.float32))


# ---- arrays of tiles ----


def test_tiles_placed_by_hand_share_memory(rng):
    """Of 64 tiles of 16 KiB two are alive at a time, and of as many PSUM banks one."""
    n = 64

    def kernel(x):
        out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
        i_p, i_f, i_b = nl.arange(128)[:, None], nl.arange(4096)[None, :], nl.arange(512)[None, :]
        wide = nl.ndarray((n, nl.par_dim(128), 4096), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2,)))
        banks = nl.ndarray((n, 2, nl.par_dim(128), 512), dtype=nl.float32, buffer=ncc.psum.alloc(lambda idx, p, f: (idx[1], 0, 0)))
        total = nl.zeros((128, 512), dtype=nl.float32)
        for k in nl.affine_range(n):
            wide[k, i_p, i_f] = nl.load(x[i_p, i_f]) * float(k)
            banks[k, k % 2, i_p, i_b] = nisa.nc_matmul(wide[k, :, 0:128], wide[k, :, 512:1024])
            banks[k, k % 2] += nisa.nc_matmul(wide[k, :, 128:256], wide[k, :, 1024:1536])
            total += banks[k, k % 2]
        nl.store(out, total)
        return out

    x = f32(rng, 128, 4096)
    one = x[:, 0:128].T @ x[:, 512:1024] + x[:, 128:256].T @ x[:, 1024:1536]
    squares = sum(k * k for k in range(n))
    traced = bir_nki.trace(kernel, x)
    np.testing.assert_allclose(traced.simulate(), one * squares, rtol=1e-3, atol=squares * 1e-3)
    # what is computed for a tile is made there, never copied
    assert traced.text.count("matmult") == 2 * n and "tensor_copy" not in traced.text


def test_array_of_tiles_that_is_sliced_is_one(rng):
    def kernel(x):
        out = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        tiles = nl.ndarray((4, nl.par_dim(128), 32), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
        tiles[0:2] = nl.load(x[0:2].permute(1, 0, 2)).permute(1, 0, 2)
        tiles[2:4] = nl.load(x[2:4].permute(1, 0, 2)).permute(1, 0, 2)
        sums = nl.ndarray((128, 4), dtype=x.dtype)
        for k in range(4):
            sums[:, k] = nl.sum(tiles[k], axis=1)
        nl.store(out, sums)
        return out

    x = f32(rng, 4, 128, 32)
    check(kernel, [x], x.sum(2).T, 1e-5)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda tiles: tiles[4, :, 0:8], "index `4` of dimension 0 is outside `tiles`, which has 4 elements there"),
        (lambda tiles: tiles[0:2], "the tiles of `tiles` were chosen by plain numbers before"),
    ],
)
def test_mistakes_with_arrays_of_tiles(index, message, rng):
    def kernel(x):
        out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        tiles = nl.ndarray((4, nl.par_dim(128), 32), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
        tiles[0] = nl.load(x)
        nl.store(out, index(tiles))
        return out

    with pytest.raises(bir_nki.KernelError, match=r"test_old_tiles.py:\d+: error: ") as caught:
        bir_nki.trace(kernel, f32(rng, 128, 32))
    assert message in str(caught.value)


# ---- masks ----


@pytest.mark.parametrize("rows", [128, 100, 3])
def test_tile_that_is_filled_under_a_mask(rows, rng):
    """What is assigned under a mask to all of a fresh tile, and of a tile of an array, is what it holds."""

    def kernel(x, height):
        out = nl.ndarray((height, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:128]
        tile = nl.ndarray((128, 128), dtype=x.dtype)
        tile[...] = nl.load(x[i, j], mask=i < height)
        tiles = nl.ndarray((2, nl.par_dim(128), 128), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
        tiles[1] = nl.exp(tile)
        turned = nisa.nc_transpose(tiles[1])
        nl.store(out[i, j], nl.transpose(nl.copy(turned)), mask=i < height)
        return out

    x = f32(rng, rows, 128)
    check(functools.partial(kernel, height=rows), [x], np.exp(x), 1e-6)


def test_tile_that_is_filled_again_holds_more(rng):
    def kernel(x):
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:64]
        tile = nl.ndarray((128, 64), dtype=x.dtype)
        tile[...] = nl.load(x[i, j], mask=i < 10)
        tile[...] = nl.load(x[i, j], mask=i < 100)
        tile[...] = nl.copy(tile * 2.0, mask=i < 50)
        nl.store(out[i, j], tile, mask=i < 100)
        nl.store(out[100:128], nl.load(x[100:128]))
        return out

    x = f32(rng, 128, 64)
    check(kernel, [x], np.concatenate([x[:50] * 2, x[50:]]))


def test_instructions_that_are_masked_off_as_a_whole(rng):
    """A transpose, products, a reduction and an activation with a column, of tiles that hold nothing."""

    def kernel(x):
        out = nl.ndarray((2, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.zeros((128, 128), dtype=nl.float32)
        for k in range(2):
            tile = nl.load(x[k], mask=k == 0)
            column = nl.sum(tile, axis=1, keepdims=True)
            e = nisa.activation(np.exp, tile, bias=column)
            turned = nl.copy(nisa.nc_transpose(e))
            product = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.psum)
            product += nisa.nc_matmul(turned, turned, mask=k == 0)
            nl.store(out[k], product, mask=k == 0)
            total[...] = nl.copy(product, mask=k == 0)
        nl.store(out[1], total)
        return out

    x = f32(rng, 2, 128, 128) * 0.1
    e = np.exp(x[0] + x[0].sum(1, keepdims=True))
    wanted = e @ e.T
    results = bir_nki.trace(kernel, x).simulate()
    np.testing.assert_allclose(results, np.stack([wanted, wanted]), rtol=1e-3)


def test_results_that_are_written_in_part(rng):
    """Refused, at the line that stores what a mask left; zero elsewhere if one asks for it."""

    def kernel(x):
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:64]
        nl.store(out, nl.load(x[i, j], mask=i < 50))
        return out

    x = f32(rng, 50, 64)
    with pytest.raises(bir_nki.KernelError, match="rows 50 to 127 of output `%out` of `@main` are never written") as caught:
        bir_nki.trace(kernel, x)
    assert "what is stored here holds nothing where a mask was false; write all of it, or trace with `partial_outputs`" in str(caught.value)
    assert caught.value.line == kernel.__code__.co_firstlineno + 3
    results = bir_nki.trace(kernel, x, partial_outputs=True).simulate()
    np.testing.assert_array_equal(results, np.concatenate([x, np.zeros((78, 64), np.float32)]))


# ---- calls on arrays ----


@nki.trace
def halves_and_doubles(x, half, double):
    tile = nl.load(x)
    nl.store(half, tile * 0.5)
    nl.store(double, tile + tile)


def test_arguments_are_written_in_place(rng):
    x = f32(rng, 64, 32)
    half, double = np.zeros_like(x), np.zeros_like(x)
    nki.simulate_kernel(halves_and_doubles, x, half, double)
    np.testing.assert_array_equal(half, x * 0.5)
    np.testing.assert_array_equal(double, x * 2)
    half[...] = 0
    halves_and_doubles[0](x, half, double)  # one program
    np.testing.assert_array_equal(half, x * 0.5)
    double.flags.writeable = False
    halves_and_doubles(x, half, double)


def test_arguments_without_data_are_made_up():
    results = nki.benchmark(warmup=1, iters=1)(halves_and_doubles)(*(tensor[[64, 32], nl.float32],) * 3)
    assert [r.shape for r in results] == [(64, 32)] * 2 and np.all(results[0] * 4 == results[1])


def test_tiles_that_are_returned_are_stored(rng):
    @nki.jit(mode="simulation")
    def kernel(x):
        tile = nl.load(x)
        return tile, nisa.nc_transpose(tile)

    x = f32(rng, 64, 128)
    a, b = kernel(x)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b, x.T)


# ---- names and arguments others use ----


def test_dtypes_of_what_moves(rng):
    """Transposes by DMA, gathers, random numbers and dropouts of the dtype asked for."""

    def kernel(x, at):
        turned = nisa.dma_transpose(x, dtype=nl.bfloat16)
        gathered = nl.gather_flattened(nl.load(x), nl.load(at), dtype=nl.bfloat16)
        kept = nl.dropout(nl.load(x), 0.0, dtype=nl.bfloat16)
        drawn = nl.rand((128, 64), dtype=nl.bfloat16)
        return turned, gathered, kept, drawn

    x, at = f32(rng, 128, 64), rng.integers(0, 64, (128, 8)).astype(np.uint32)
    results = bir_nki.trace(nki.jit(kernel), x, at).simulate()
    b = x.astype(ml_dtypes.bfloat16)
    for result, want in zip(results, (b.T, np.take_along_axis(b, at.astype(np.int64), 1), b), strict=False):
        np.testing.assert_array_equal(result.astype(np.float32), want.astype(np.float32))
    assert results[3].dtype == ml_dtypes.bfloat16


def test_product_of_what_was_transposed_a_moment_ago(rng):
    """A transpose lies in PSUM, where products do not read: it is copied."""

    def kernel(x, w):
        out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nisa.nc_matmul(nisa.nc_transpose(nl.load(x)), nisa.nc_transpose(nl.load(w))))
        return out

    x, w = f32(rng, 128, 64), f32(rng, 128, 64)
    check(kernel, [x, w], x @ w.T, 1e-4)


def test_arguments_of_the_documented_signatures(rng):
    """Positional dtypes and masks, `compute_dtype`, engines, several new axes, masks as indices, constants by name."""
    from neuronxcc.nki.language.constants import sizeinbytes

    def kernel(x, w):
        out = nl.ndarray((7, 128, 32), dtype=nl.float32, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:32]
        tile, weight = nl.load(x), nl.load(w)
        assert tile.shape_2d == (128, 32) and tile.as_tile().shape == (128, 32)
        assert tile.expand_dims((1, -1)).shape == (128, 1, 32, 1)
        assert (sizeinbytes(nl.bfloat16), nl.static_cast(3.7, np.int32), nl.bfp16.min < -3.3e38) == (2, 3, True)
        nl.store(out[0], nl.fmod(tile, 0.75, nl.float32, i < 64), mask=i < 64)
        nl.store(out[0, 64:128], nl.mod(tile[64:128], 0.75, nl.float32))
        nl.store(out[1], nl.softmax(tile, axis=-1, compute_dtype=nl.float32))
        nl.store(out[2], nl.rms_norm(tile, weight, axis=1, n=32, compute_dtype=nl.float32))
        nl.store(out[3], nisa.reciprocal(tile, engine=nisa.scalar_engine))
        nl.store(out[4], nisa.reciprocal(tile, engine=nisa.vector_engine))
        nl.store(out[5], tile[i < 100])
        nl.store(out[5, 100:128], nl.static_cast(tile, nl.float32)[100:128])
        nl.store(out[6], nl.load(nl.shared_constant(constant=np.full((128, 32), 7.0, np.float32))))
        nl.random_seed(3, mask=False)
        nl.device_print("rows", tile, mask=i < 2)
        return out

    x, w = f32(rng, 128, 32), f32(rng, 128, 32)
    x[abs(x) < 0.1] = 0.5
    e = np.exp(x - x.max(1, keepdims=True))
    remainder = np.concatenate([np.fmod(x[:64], 0.75), np.mod(x[64:], 0.75)])
    normed = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w
    results = bir_nki.trace(kernel, x, w).simulate()
    wanted = [remainder, e / e.sum(1, keepdims=True), normed, 1 / x, 1 / x, x, np.full_like(x, 7)]
    for result, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)


def test_index_arrays_of_several_grids(rng):
    """Those of one `nl.mgrid` go with those of another: each has its own axis alone."""

    def kernel(x):
        out = nl.ndarray((2, nl.par_dim(128), 64), dtype=x.dtype, buffer=nl.shared_hbm)
        rows, wide = nl.mgrid[0:128, 0:256]
        _, narrow = nl.mgrid[0:1, 0:64]
        _, half = nl.mgrid[0:1, 0:128]
        tile = nl.load(x[rows, wide])
        peak = nl.ndarray((2, nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
        halves = nl.ndarray((2, nl.par_dim(128), 64), dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.affine_range(2):
            peak[i, rows, 0] = nisa.tensor_reduce(np.max, tile[rows, i * 128 + half], axis=1)
            halves[i, rows, narrow] = peak[i, rows, 0].broadcast_to((128, 64))
            nl.store(out[i, rows, narrow], nl.add(halves[i, rows, narrow], tile[rows, i * 64 + narrow]))
        return out

    x = f32(rng, 128, 256)
    peaks = x.reshape(128, 2, 128).max(2)
    check(kernel, [x], np.stack([peaks[:, i, None] + x[:, i * 64 : i * 64 + 64] for i in range(2)]))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_gather_by_signed_numbers(rng, dtype):
    def kernel(x, numbers):
        out = nl.ndarray(numbers.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.gather_flattened(nl.load(x), nl.load(numbers)))
        return out

    x, numbers = f32(rng, 128, 40), rng.integers(0, 40, (128, 12)).astype(dtype)
    check(kernel, [x, numbers], np.take_along_axis(x, numbers.astype(np.int64), 1))


def test_column_of_a_tile_as_a_tile(rng):
    """`tile[:, i]` handed on is indexed again as the column that it is."""

    def add_up(total, x):
        total[:, 0] = nl.add(total[:, 0], nisa.activation(np.exp, x, bias=total[:, 0], scale=-1.0))
        total[:, 0:1] = nl.multiply(total, 2.0)

    def kernel(x):
        out = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        totals = nl.zeros((nl.par_dim(128), 4), dtype=np.float32)
        tile = nl.load(x)
        for i in nl.affine_range(4):
            for j in nl.sequential_range(2):
                add_up(totals[:, i], tile[:, 2 * i + j])
        nl.store(out, totals)
        return out

    x, wanted = f32(rng, 128, 8), np.zeros((128, 4))
    for i in range(8):
        wanted[:, i // 2] = 2 * (wanted[:, i // 2] + np.exp(wanted[:, i // 2] - x[:, i]))
    check(kernel, [x], wanted, 1e-4)


def test_masked_runs_past_the_end(rng):
    """`nl.ds` of whole tiles, with masks for what the array does not have."""

    def kernel(x):
        out = nl.ndarray((200, 5, 7), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(2):
            for j in nl.affine_range(3):
                rows, groups, columns = nl.mgrid[0:128, 0:3, 0:5]
                inside = (i * 128 + rows < 200) & (j * 3 + groups < 7)
                tile = nl.load(x[nl.ds(i * 128, 128), nl.ds(j * 3, 3), :], mask=inside)
                turned = nl.ndarray((nl.par_dim(128), 5, 3), dtype=x.dtype, buffer=nl.sbuf)
                turned[rows, columns, groups] = nl.copy(tile[rows, groups, columns], mask=inside)
                rows, columns, groups = nl.mgrid[0:128, 0:5, 0:3]
                nl.store(out[nl.ds(i * 128, 128), :, nl.ds(j * 3, 3)], turned, mask=(i * 128 + rows < 200) & (j * 3 + groups < 7))
        return out

    x = f32(rng, 200, 7, 5)
    check(kernel, [x], x.transpose(0, 2, 1))


def test_windows_that_hang_over_the_edges(rng):
    """A slanted mask of a reduction: which elements of a window there are depends on where the window is."""

    def kernel(x, size, step, around, shown):
        channels, height, width = x.shape
        rows, columns = (height + 2 * around - size) // step + 1, (width + 2 * around - size) // step + 1
        tops = nl.ndarray((channels, rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
        sums = nl.ndarray((channels, rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        axes = nl.mgrid[0:channels, 0:rows, 0:columns, 0:size, 0:size]
        h, w = step * axes[1] + axes[3] - around, step * axes[2] + axes[4] - around
        inside = (h >= 0) & (w >= 0) & (h < height) & (w < width)
        nl.store(tops, nl.max(tile[axes[0], h, w], axis=[3, 4], mask=inside))
        nl.store(sums, nl.sum(tile[axes[0], h, w], axis=[3, 4], mask=inside & (axes[2] < shown)), mask=nl.arange(columns)[None, None, :] < shown)
        i_c = nl.arange(columns)[None, None, :]
        nl.store(sums, nl.zeros((channels, rows, columns), dtype=x.dtype), mask=i_c >= shown)
        return tops, sums

    for height, width, size, step, around in [(9, 8, 3, 1, 1), (8, 12, 4, 2, 1), (7, 9, 5, 3, 2)]:
        x = f32(rng, 16, height, width) - 5
        shown = 2
        traced = bir_nki.trace(kernel, x, size, step, around, shown)
        tops, sums = traced.simulate()

        def windows(fill):
            padded = np.pad(x, ((0, 0), (around, around), (around, around)), constant_values=fill)
            return np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))[:, ::step, ::step]

        np.testing.assert_array_equal(tops, windows(-np.inf).max((3, 4)))
        wanted = windows(0).sum((3, 4))
        wanted[:, :, shown:] = 0
        np.testing.assert_allclose(sums, wanted, rtol=1e-5)
        same_after_passes(traced, (tops, sums))


def test_filled_arrays_that_no_partition_holds(rng):
    """Tiles of `nl.zeros` are filled when they are first used, in PSUM and in SBUF."""

    def kernel(x):
        out = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        turned = nl.zeros((5, 2, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
        ones = nl.ones((5, nl.par_dim(128), 16384), dtype=x.dtype)
        total = nl.zeros((128, 128), dtype=x.dtype)
        tile = nl.load(x)
        for i in nl.affine_range(5):
            turned[i, 1, :, 0:128] = nisa.nc_transpose(tile)
            total += nl.add(turned[i, 1, :, 0:128], turned[i, 1, :, 128:256])
            ones[i, :, 0:64] = nl.copy(tile[:, 0:64])
            total += ones[i, :, 0:128]
        nl.store(out, total)
        return out

    x = f32(rng, 128, 128)
    wanted = 5 * x.T
    wanted[:, :64] += 5 * x[:, :64]
    wanted[:, 64:] += 5
    check(kernel, [x], wanted, 1e-4)


def test_filled_array_first_used_inside_of_a_loop():
    def kernel(x):
        tiles = nl.zeros((5, nl.par_dim(128), 16384), dtype=x.dtype)
        for i in nl.dynamic_range(3):
            nl.store(x[0:128, 0:8], tiles[1, :, 0:8])

    with pytest.raises(bir_nki.KernelError, match="a tile of `tiles` is filled when it is first used, which is inside of a loop"):
        bir_nki.trace(kernel, np.zeros((128, 8), np.float32))


def test_transpose_and_product_of_arrays_in_dram(rng):
    """Instructions that return their result load what still lies in DRAM."""

    def kernel(x, y):
        out = nl.ndarray((64, 96), dtype=x.dtype, buffer=nl.shared_hbm)
        turned = nl.copy(nisa.nc_transpose(x[:, nl.ds(0, 128)]))
        nl.store(out, nl.copy(nisa.nc_matmul(turned, y)))
        return out

    x, y = f32(rng, 64, 200), f32(rng, 128, 96)
    check(kernel, [x, y], x[:, :128] @ y, 1e-3)


def test_grid_with_an_axis_that_tensors_do_not_have(rng):
    """A grid's last axis of one element, for rows of parameters, stands behind the tiles of its arrays and changes nothing."""

    def kernel(x, scale):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        rows, columns, first = nl.mgrid[0:128, 0:96, 0:1]
        factors = nl.load(scale.reshape((1, 96))[first, columns]).broadcast_to((128, 96))
        for i in nl.affine_range(2):
            inside = i * 128 + rows < 200
            tile = nl.load(x[i * 128 + rows, columns], mask=inside)
            centred = tile - nl.mean(tile, axis=1)
            nl.store(out[i * 128 + rows, columns], factors - centred * factors, mask=inside)
        return out

    x, scale = f32(rng, 200, 96), f32(rng, 96)
    check(kernel, [x, scale], scale - (x - x.mean(1, keepdims=True)) * scale, 1e-4)
