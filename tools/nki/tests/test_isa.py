"""Every instruction, called in the new style: traced, verified, and run against numpy."""

import numpy as np
import pytest

import bir_nki
import nki.isa as nisa
import nki.language as nl
from conftest import f32
from instructions import check, loaded, registry, sbuf, stored

CASES, case = registry()


@case()
def dma_copy_between_drams(rng):
    def kernel(x):
        out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x[0:64, 0:64:2])
        return out

    x = f32(rng, 128, 64)
    return kernel, [x], x[:64, ::2]


@case()
def tensor_copy_casts(rng):
    def kernel(x):
        t = sbuf(x.shape, nl.bfloat16)
        nisa.tensor_copy(dst=t, src=loaded(x))
        return stored(t)

    x = f32(rng, 128, 32)
    return kernel, [x], x.astype(nl.bfloat16.dtype)


@case()
def memset_and_tensor_tensor(rng):
    def kernel(x, y):
        a, b, c = loaded(x), loaded(y), sbuf(x.shape)
        nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.maximum)
        ones = sbuf(x.shape)
        nisa.memset(dst=ones, value=1.0)
        nisa.tensor_tensor(c, c, ones, nl.subtract)
        return stored(c)

    x, y = f32(rng, 128, 32), f32(rng, 128, 32)
    return kernel, [x, y], np.maximum(x, y) - 1


@case(tolerance=0)
def integer_tensor_tensor_is_exact(rng):
    def kernel(x, y):
        c = sbuf(x.shape, nl.int32)
        nisa.tensor_tensor(dst=c, data1=loaded(x), data2=loaded(y), op=nl.multiply)
        return stored(c)

    x, y = (rng.integers(-(2**15), 2**15, (128, 16)).astype(np.int32) for _ in range(2))
    return kernel, [x, y], x * y


@case()
def tensor_scalar_two_steps(rng):
    def kernel(x, s):
        c = sbuf(x.shape)
        nisa.tensor_scalar(dst=c, data=loaded(x), op0=np.multiply, operand0=loaded(s), op1=nl.subtract, operand1=3.0, reverse1=True)
        return stored(c)

    x, s = f32(rng, 128, 32), f32(rng, 128, 1)
    return kernel, [x, s], 3 - x * s


@case(tolerance=0)
def tensor_scalar_on_bits(rng):
    def kernel(x):
        c = sbuf(x.shape, nl.uint32)
        nisa.tensor_scalar(dst=c, data=loaded(x), op0=nl.right_shift, operand0=3, op1=nl.bitwise_and, operand1=0xFF)
        return stored(c)

    x = rng.integers(0, 2**32, (64, 8), dtype=np.uint32)
    return kernel, [x], (x >> 3) & 0xFF


@case(tolerance=1e-5)
def tensor_scalar_with_steps_of_the_pool_engine(rng):
    """`rsqrt` and `power` run on the pool engine, and nothing else of `tensor_scalar` does."""

    def kernel(x):
        a, b, c = sbuf(x.shape), sbuf(x.shape), sbuf(x.shape)
        t = loaded(x)
        nisa.tensor_scalar(dst=a, data=t, op0=nl.add, operand0=1e-5, op1=nl.rsqrt, operand1=0.0)
        nisa.tensor_scalar(dst=b, data=t, op0=nl.rsqrt, operand0=0.0)
        nisa.tensor_scalar(b, b, nl.multiply, 2.0, op1=nl.power, operand1=-2.0)
        nisa.tensor_scalar(dst=c, data=t, op0=nl.power, operand0=0.5)
        return stored(a, b, c)

    x = abs(f32(rng, 128, 16)) + 1
    return kernel, [x], (1 / np.sqrt(x + np.float32(1e-5)), x / 4, np.sqrt(x))


@case(tolerance=1e-5)
def accumulator_of_the_activation_engine(rng):
    """Sums go on from one instruction to the next, and only the last is read out."""

    def kernel(x):
        t, e, total = loaded(x), sbuf((128, 16)), sbuf((128, 1))
        nisa.activation(dst=e, op=nl.exp, data=t[:, 0:16], reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.activation(dst=e, op=nl.exp, data=t[:, 16:32], reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reduce)
        return stored(total)

    x = f32(rng, 128, 32)
    return kernel, [x], np.exp(x).sum(1, keepdims=True)


@case(tolerance=1e-4)
def psum_zeroed_and_written_in_parts(rng):
    """A zero fill is held back while matmuls fill the tile, and appears where it was asked for if they leave some of it."""

    def kernel(x):
        t, first, second = loaded(x), sbuf((64, 96)), sbuf((64, 96))
        for out, ends in ((first, 96), (second, 64)):
            p = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
            nisa.memset(p, 0.0)
            for start in range(0, ends, 32):
                for _ in range(2):
                    nisa.nc_matmul(dst=p[:, start : start + 32], stationary=t, moving=t[:, 0:32], accumulate=True)
            nisa.tensor_copy(out, p)
        return stored(first, second)

    x = f32(rng, 128, 64)
    product = 2 * x.T @ x[:, :32]
    return kernel, [x], (np.tile(product, 3), np.concatenate([product, product, 0 * product], 1))


@case(tolerance=1e-4)
def matmul_of_double_rows_and_in_a_corner(rng):
    def kernel(a, b, x):
        p, q = (nl.ndarray((32, 64), dtype=nl.float32, buffer=nl.psum) for _ in range(2))
        out, corner = sbuf((32, 64)), sbuf((32, 32))
        nisa.nc_matmul(dst=p, stationary=loaded(a), moving=loaded(b), perf_mode=nisa.matmul_perf_mode.double_row)
        nisa.tensor_copy(out, p)
        t = loaded(x)
        nisa.nc_matmul(dst=q[:, 0:32], stationary=t, moving=t, tile_position=(0, 0), tile_size=(32, 32))
        nisa.tensor_copy(corner, q[:, 0:32])
        return stored(out, corner)

    a, b = (f32(rng, 128, 2, n).astype(nl.float8_e4m3.dtype) for n in (32, 64))
    x = f32(rng, 32, 32)
    return kernel, [a, b, x], (np.einsum("kjm,kjn->mn", a.astype(np.float32), b.astype(np.float32)), x.T @ x)


@case(tolerance=0)
def outputs_numpy_has_no_name_for(rng):
    def kernel(x):
        t = sbuf(x.shape, nl.float8_e5m2)
        nisa.tensor_copy(dst=t, src=loaded(x))
        return stored(t)

    x = f32(rng, 128, 16)
    return kernel, [x], x.astype(nl.float8_e5m2.dtype)


@case()
def scalar_tensor_tensor(rng):
    def kernel(x, y):
        c = sbuf(x.shape)
        nisa.scalar_tensor_tensor(dst=c, data=loaded(x), op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=loaded(y))
        return stored(c)

    x, y = f32(rng, 128, 32), f32(rng, 128, 32)
    return kernel, [x, y], 2 * x + y


@case(tolerance=1e-5)
def activation_with_bias_and_sum(rng):
    def kernel(x, b):
        e, total = sbuf(x.shape), sbuf((128, 1))
        nisa.activation(
            dst=e, op=nl.exp, data=loaded(x), bias=loaded(b), scale=0.5, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce
        )
        return stored(e, total)

    x, b = f32(rng, 128, 32), f32(rng, 128, 1)
    e = np.exp(0.5 * x + b)
    return kernel, [x, b], (e, e.sum(1, keepdims=True))


@case()
def activation_reduce(rng):
    def kernel(x):
        e, total = sbuf(x.shape), sbuf((128, 1))
        nisa.activation_reduce(dst=e, op=nl.square, data=loaded(x), reduce_op=nl.add, reduce_res=total)
        return stored(e, total)

    x = f32(rng, 128, 32)
    return kernel, [x], (x * x, (x * x).sum(1, keepdims=True))


@case(tolerance=1e-4)
def nc_transpose_and_matmul(rng):
    def kernel(x, y):
        xt = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=xt, data=loaded(x))
        xs, p, c = sbuf((64, 128)), nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.psum), sbuf((128, 96))
        nisa.tensor_copy(dst=xs, src=xt)
        nisa.nc_matmul(dst=p, stationary=xs, moving=loaded(y))
        nisa.tensor_copy(dst=c, src=p)
        return stored(c)

    x, y = f32(rng, 128, 64), f32(rng, 64, 96)
    return kernel, [x, y], x @ y


@case(tolerance=1e-4)
def accumulate_is_inferred(rng):
    """No `accumulate`: the first write of each region overwrites, later ones add."""

    def kernel(x, y):
        p, c = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum), sbuf((128, 128))
        xs, ys = loaded(x.reshape((4, 32, 128)).permute((1, 0, 2))), loaded(y.reshape((4, 32, 128)).permute((1, 0, 2)))
        for half in range(2):
            for k in range(4):
                nisa.nc_matmul(dst=p[:, half * 64 : half * 64 + 64], stationary=xs[:, k, :], moving=ys[:, k, half * 64 : half * 64 + 64])
        nisa.tensor_copy(dst=c, src=p)
        return stored(c)

    x, y = f32(rng, 128, 128), f32(rng, 128, 128)
    return kernel, [x, y], x.T @ y


@case(tolerance=0)
def dve_transpose(rng):
    def kernel(x):
        t = sbuf((32, 32))
        nisa.nc_transpose(dst=t, data=loaded(x), engine=nisa.engine.vector)
        return stored(t)

    x = f32(rng, 32, 32)
    return kernel, [x], x.T


@case()
def tensor_reduce_free_axes(rng):
    def kernel(x):
        t = loaded(x)
        last, both = sbuf((128, 8)), sbuf((128, 1))
        nisa.tensor_reduce(dst=last, op=nl.add, data=t, axis=2)
        nisa.tensor_reduce(dst=both, op=np.max, data=t, axis=(1, 2), negate=True)
        return stored(last, both)

    x = f32(rng, 128, 8, 16)
    return kernel, [x], (x.sum(2), -x.max((1, 2)).reshape(128, 1))


@case()
def scalar_tensor_tensor_by_a_bf16_column(rng):
    """The instruction takes a column of f32; a kernel's of another type is converted, and no more of it than is used."""

    def kernel(x, c):
        t, wide = loaded(x), loaded(c)
        narrow, out = sbuf((128, 2), nl.bfloat16), sbuf((128, 16))
        nisa.tensor_copy(dst=narrow, src=wide)
        nisa.scalar_tensor_tensor(dst=out, data=t, op0=nl.multiply, operand0=narrow[:, 1:2], op1=nl.add, operand1=t)
        return stored(out)

    x, c = f32(rng, 128, 16), rng.integers(-8, 8, (128, 2)).astype(np.float32)
    return kernel, [x, c], x * c[:, 1:2] + x


@case()
def tensor_reduce_axes_counted_from_the_innermost(rng):
    """Axes that do not end at the last are of releases that counted them the other way round."""

    def kernel(x):
        t = loaded(x)
        one, two = sbuf((128, 4, 4)), sbuf((128, 4))
        nisa.tensor_reduce(dst=one, op=nl.maximum, data=t, axis=1)
        nisa.tensor_reduce(dst=two, op=nl.add, data=t, axis=[1, 2])
        return stored(one, two)

    x = f32(rng, 128, 4, 4, 4)
    return kernel, [x], (x.max(3), x.sum((2, 3)))


@case(tolerance=0)
def dma_transpose(rng):
    def kernel(x):
        t = sbuf((64, 128))
        nisa.dma_transpose(dst=t, src=x)
        return stored(t)

    x = f32(rng, 128, 64)
    return kernel, [x], x.T


@case()
def reciprocal(rng):
    def kernel(x):
        t = sbuf(x.shape)
        nisa.reciprocal(dst=t, data=loaded(x))
        return stored(t)

    x = f32(rng, 128, 16)
    return kernel, [x], 1 / x


@case(tolerance=0)
def iota(rng):
    def kernel(x):
        t = sbuf((128, 4, 8), nl.int32)
        nisa.iota(dst=t, pattern=[[100, 4], [1, 8]], offset=5, channel_multiplier=1000)
        return stored(t)

    want = 5 + 1000 * np.arange(128)[:, None, None] + 100 * np.arange(4)[None, :, None] + np.arange(8)
    return kernel, [f32(rng, 1, 1)], want.astype(np.int32)


@case(tolerance=0)
def nc_stream_shuffle(rng):
    def kernel(x):
        t = sbuf(x.shape)
        nisa.nc_stream_shuffle(dst=t, src=loaded(x), shuffle_mask=[(i - 1) % 32 for i in range(32)])
        return stored(t)

    x = f32(rng, 128, 16)
    return kernel, [x], np.roll(x.reshape(4, 32, 16), 1, axis=1).reshape(128, 16)


@case()
def dma_compute(rng):
    def kernel(x, y):
        t = sbuf(x.shape)
        nisa.dma_compute(dst=t, srcs=[x, y], reduce_op=nl.add, scales=[1.0, 1.0])
        return stored(t)

    x, y = f32(rng, 128, 16), f32(rng, 128, 16)
    return kernel, [x, y], x + y


@case(tolerance=0)
def nc_n_gather(rng):
    def kernel(x, index):
        t = sbuf(index.shape)
        nisa.nc_n_gather(dst=t, data=loaded(x), indices=loaded(index))
        return stored(t)

    x, index = f32(rng, 128, 32), rng.integers(0, 32, (128, 8), dtype=np.uint32)
    return kernel, [x, index], np.take_along_axis(x, index.astype(np.int64), 1)


@case()
def tensor_tensor_scan(rng):
    def kernel(x, y):
        t = sbuf(x.shape)
        nisa.tensor_tensor_scan(dst=t, data0=loaded(x), data1=loaded(y), initial=0.0, op0=nl.multiply, op1=nl.add)
        return stored(t)

    x, y = f32(rng, 128, 16) * 0.5, f32(rng, 128, 16)
    want, state = np.zeros_like(x), np.zeros(128, np.float32)
    for i in range(16):
        state = x[:, i] * state + y[:, i]
        want[:, i] = state
    return kernel, [x, y], want


@case(tolerance=0)
def max8_find_match(rng):
    def kernel(x):
        t = loaded(x)
        top, where, rest, again = sbuf((128, 8)), sbuf((128, 8), nl.uint32), sbuf(x.shape), sbuf((128, 8), nl.uint32)
        nisa.max8(dst=top, src=t)
        nisa.nc_find_index8(dst=where, data=t, vals=top)
        nisa.nc_match_replace8(dst=rest, data=t, vals=top, imm=-1e30, dst_idx=again)
        return stored(top, where, rest)

    x = f32(rng, 128, 64)
    order = np.argsort(-x, 1)[:, :8]
    rest = x.copy()
    np.put_along_axis(rest, order, np.float32(-1e30), 1)
    return kernel, [x], (np.take_along_axis(x, order, 1), order.astype(np.uint32), rest)


@case()
def affine_select(rng):
    def kernel(x):
        t = sbuf(x.shape)
        nisa.affine_select(dst=t, pattern=[[-1, 128]], offset=0, channel_multiplier=1, on_true_tile=loaded(x), on_false_value=-5.0, cmp_op=nl.greater_equal)
        return stored(t)

    x = f32(rng, 128, 128)
    return kernel, [x], np.where(np.tri(128, dtype=bool), x, -5)


@case()
def tensor_scalar_reduce(rng):
    def kernel(x):
        t, total = sbuf(x.shape), sbuf((128, 1))
        nisa.tensor_scalar_reduce(dst=t, data=loaded(x), op0=nl.multiply, operand0=2.0, reduce_op=nl.add, reduce_res=total)
        return stored(t, total)

    x = f32(rng, 128, 16)
    return kernel, [x], (2 * x, (2 * x).sum(1, keepdims=True))


@case(tolerance=0)
def tensor_scalar_reduce_by_others(rng):
    """Each reduction there is, also through `tensor_scalar_reduce` of the old style, which takes its name second."""

    def kernel(x):
        t, results = sbuf(x.shape), []
        for op in (nl.maximum, np.min, nl.multiply):
            res = sbuf((128, 1))
            nisa.tensor_scalar_reduce(dst=t, data=loaded(x), op0=nl.add, operand0=1.0, reduce_op=op, reduce_res=res)
            results.append(res)
        return stored(*results)

    x = rng.integers(0, 2, (128, 8)).astype(np.float32)
    y = x + 1
    return kernel, [x], tuple(f(y, axis=1, keepdims=True) for f in (np.max, np.min, np.prod))


@case(tolerance=0)
def nonzero_with_count(rng):
    def kernel(x):
        t = sbuf((128, 17), nl.int32)
        nisa.memset(dst=t, value=0)
        nisa.nonzero_with_count(dst=t, src=loaded(x), index_offset=16, padding_val=-1)
        return stored(t)

    x = (rng.random((128, 16)) < 0.4).astype(np.int32)
    want = np.zeros((128, 17), np.int32)
    for p in range(0, 128, 16):
        found = np.flatnonzero(x[p]) + 16
        want[p, :16], want[p, 16], want[p, : len(found)] = -1, len(found), found
    return kernel, [x], want


@case(tolerance=0)
def tensor_copy_predicated(rng):
    def kernel(x, y, m):
        t = loaded(y)
        nisa.tensor_copy_predicated(dst=t, src=loaded(x), predicate=loaded(m))
        return stored(t)

    x, y, m = f32(rng, 128, 16), f32(rng, 128, 16), rng.integers(0, 2, (128, 16)).astype(np.uint8)
    return kernel, [x, y, m], np.where(m != 0, x, y)


@case(tolerance=0)
def range_select(rng):
    def kernel(x, lo, hi):
        t, top = sbuf(x.shape), sbuf((128, 1))
        nisa.range_select(
            dst=t, on_true_tile=loaded(x), comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=loaded(lo), bound1=loaded(hi), reduce_res=top,
            reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_op=np.max, range_start=4, on_false_value=nl.fp32.min,
        )  # fmt: skip
        return stored(t, top)

    x = f32(rng, 128, 16)
    lo, hi = np.full((128, 1), 6, np.float32), np.full((128, 1), 15, np.float32)
    j = np.arange(4, 20)
    want = np.where((j >= 6) & (j < 15), x, np.float32(nl.fp32.min))
    return kernel, [x, lo, hi], (want, want.max(1, keepdims=True))


@case(tolerance=0)
def select_without_and_with_maximum(rng):
    def kernel(x, m):
        a, b, top = sbuf(x.shape), sbuf(x.shape), sbuf((128, 1))
        t, mask = loaded(x), loaded(m)
        nisa.select_reduce(dst=a, predicate=mask, on_true=t, on_false=0.0)
        nisa.select_reduce(dst=b, predicate=mask, on_true=t, on_false=-9.0, reduce_res=top, reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_op=nl.maximum)
        return stored(a, b, top)

    x, m = f32(rng, 128, 16), rng.integers(0, 2, (128, 16)).astype(np.uint8)
    b = np.where(m != 0, x, np.float32(-9))
    return kernel, [x, m], (np.where(m != 0, x, 0), b, b.max(1, keepdims=True))


@case(tolerance=1e-4)
def bn_stats_and_aggr(rng):
    def kernel(x):
        six, mv = sbuf((128, 6)), sbuf((128, 2))
        nisa.bn_stats(dst=six, data=loaded(x))
        nisa.bn_aggr(dst=mv, data=six)
        return stored(mv)

    x = f32(rng, 128, 64)
    return kernel, [x], np.stack([x.mean(1), x.var(1)], 1)


@case(tolerance=1e-4)
def tensor_partition_reduce(rng):
    def kernel(x):
        t = sbuf((1, 16))
        nisa.tensor_partition_reduce(dst=t, op=nl.add, data=loaded(x))
        return stored(t)

    x = f32(rng, 128, 16)
    return kernel, [x], x.sum(0, keepdims=True)


@case(tolerance=0)
def local_gather(rng):
    def kernel(x, index):
        t = sbuf((32, 32))
        nisa.local_gather(dst=t, src_buffer=loaded(x), index=loaded(index), num_elem_per_idx=2, num_valid_indices=16)
        return stored(t)

    x, index = f32(rng, 32, 64), (2 * rng.integers(0, 32, (32, 1))).astype(np.uint16)
    want = np.zeros((32, 32), np.float32)
    for group in range(2):
        rows = slice(16 * group, 16 * group + 16)
        for j, at in enumerate(index[rows, 0]):
            want[rows, 2 * j : 2 * j + 2] = x[rows, int(at) : int(at) + 2]
    return kernel, [x, index], want


@case(tolerance=1e-5)
def tensor_scalar_cumulative(rng):
    def kernel(x):
        t = sbuf(x.shape)
        nisa.tensor_scalar_cumulative(dst=t, src=loaded(x), op0=nl.multiply, op1=nl.add, imm0=2.0, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        return stored(t)

    x = f32(rng, 128, 16)
    return kernel, [x], np.cumsum(2 * x, 1)


@case(target="trn3")
def exponential(rng):
    def kernel(x):
        t, total = sbuf(x.shape), sbuf((128, 1))
        nisa.exponential(dst=t, src=loaded(x), max_value=1.0, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        return stored(t, total)

    x = f32(rng, 128, 16)
    return kernel, [x], (np.exp(x - 1), np.exp(x - 1).sum(1, keepdims=True))


@case(target="trn3")
def activate2(rng):
    def kernel(x):
        t = sbuf(x.shape)
        nisa.activate2(dst=t, op=nl.tanh, data=loaded(x), op0=nl.multiply, operand0=0.5, op1=nl.subtract, operand1=0.25)
        return stored(t)

    x = f32(rng, 128, 16)
    return kernel, [x], np.tanh(0.5 * x - 0.25)


@case(target="trn3", tolerance=0.02)
def quantize_and_matmul_mx(rng):
    def kernel(x, y):
        products = []
        for t in (loaded(x), loaded(y)):
            q, scale = sbuf((32, t.shape[1] // 4), nl.float8_e4m3fn_x4), sbuf((32, t.shape[1] // 4), nl.uint8)
            nisa.memset(dst=scale, value=0)
            nisa.quantize_mx(dst=q, src=t, dst_scale=scale)
            products += [q, scale]
        p, c = nl.ndarray((16, 32), dtype=nl.float32, buffer=nl.psum), sbuf((16, 32))
        nisa.nc_matmul_mx(dst=p, stationary=products[0], stationary_scale=products[1], moving=products[2], moving_scale=products[3])
        nisa.tensor_copy(dst=c, src=p)
        return stored(c)

    x, y = f32(rng, 32, 64), f32(rng, 32, 128)
    # so that products are below 1, and the tolerance is one of the whole
    x, y = x / 16, y / 16
    want = np.einsum("kmj,knj->mn", x.reshape(32, 16, 4), y.reshape(32, 32, 4))
    return kernel, [x.astype(nl.bfloat16.dtype), y.astype(nl.bfloat16.dtype)], want


@pytest.mark.parametrize("make, target, tolerance", CASES)
def test_instruction(make, target, tolerance, rng):
    check(make, target, tolerance, rng)


def test_random_numbers_depend_on_the_seed_only(simulated):
    def kernel(seed):
        nisa.set_rng_seed(src_seeds=loaded(seed))
        t = sbuf((128, 64), nl.uint32)
        nisa.rng(dst=t)
        return stored(t)

    one, again, other = (simulated(bir_nki.trace(kernel, np.array([[s]], np.uint32))) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).mean() > 0.9
    assert np.unique(one).size > 8000


def test_dropout_drops_its_share(rng, simulated):
    def kernel(x):
        t = sbuf(x.shape)
        nisa.dropout(dst=t, data=loaded(x), prob=0.25)
        return stored(t)

    x = np.ones((128, 256), np.float32)
    result = simulated(bir_nki.trace(kernel, x))
    assert set(np.unique(result)) == {0, 1}
    assert abs((result == 0).mean() - 0.25) < 0.02
