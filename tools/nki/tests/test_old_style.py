"""Old-style NKI (`neuronxcc.nki`): functions that return tiles, masks, index arrays, `par_dim`, operators."""

import math

import numpy as np
import pytest

import bir_nki
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from conftest import close, f32


def run(kernel, arrays, wanted, simulated, tolerance=1e-5, **kwargs):
    traced = bir_nki.trace(kernel, *arrays, **kwargs)
    close(simulated(traced), wanted, tolerance)
    return traced


@nki.jit
def tensor_add(a_input, b_input):
    c_output = nl.ndarray(a_input.shape, dtype=a_input.dtype, buffer=nl.shared_hbm)
    offset_i_x = nl.program_id(0) * 128
    offset_i_y = nl.program_id(1) * 64
    ix = offset_i_x + nl.arange(128)[:, None]
    iy = offset_i_y + nl.arange(64)[None, :]
    c_tile = nl.load(a_input[ix, iy]) + nl.load(b_input[ix, iy])
    nl.store(c_output[ix, iy], value=c_tile)
    return c_output


def test_grid_of_programs(rng, simulated):
    a, b = f32(rng, 256, 128), f32(rng, 256, 128)
    traced = run(tensor_add[2, 2], [a, b], a + b, simulated)
    assert traced.text.count("bir.module") == 1
    assert traced.instructions == 16


@pytest.mark.parametrize("rows", [128, 200, 300])
def test_masked_softmax_of_ragged_rows(rows, rng, simulated):
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p = nl.arange(128)[:, None]
        i_f = nl.arange(x.shape[1])[None, :]
        for i in nl.affine_range(math.ceil(x.shape[0] / 128)):
            mask = i * 128 + i_p < x.shape[0]
            tile = nl.load(x[i * 128 + i_p, i_f], mask=mask)
            top = nl.max(tile, axis=[1], keepdims=True)
            e = nl.exp(tile - top)
            total = nl.sum(e, axis=[1], keepdims=True)
            nl.store(out[i * 128 + i_p, i_f], value=e / total, mask=mask)
        return out

    x = f32(rng, rows, 96)
    e = np.exp(x - x.max(1, keepdims=True))
    run(kernel, [x], e / e.sum(1, keepdims=True), simulated)


def test_rmsnorm_with_weight_row(rng, simulated):
    def kernel(a_tensor, g_tensor):
        out = nl.ndarray(a_tensor.shape, dtype=a_tensor.dtype, buffer=nl.shared_hbm)
        ix = nl.arange(128)[:, None]
        iw = nl.arange(1)[:, None]
        iy = nl.arange(a_tensor.shape[1])[None, :]
        num_rows = a_tensor.shape[0]
        g_tile = nl.load(g_tensor.reshape((1, g_tensor.shape[0]))[iw, iy])
        for i in nl.affine_range(math.ceil(a_tensor.shape[0] / 128)):
            a_tile = nl.load(a_tensor[i * 128 + ix, iy], mask=(i * 128 + ix < num_rows))
            in_square = nl.square(a_tile)
            square_sum = nl.sum(in_square, axis=[1])
            mean = square_sum / a_tensor.shape[1]
            rms_reciprocal = nl.rsqrt(mean + 1e-5)
            out_tile = nl.multiply(a_tile, rms_reciprocal.reshape((128, 1)))
            g_bcast = g_tile.broadcast_to((1, a_tensor.shape[1]))
            out_tile[...] = nl.multiply(out_tile, nl.broadcast_to(g_bcast, (128, a_tensor.shape[1])), mask=(i * 128 + ix < num_rows))
            nl.store(out[i * 128 + ix, iy], value=out_tile, mask=(i * 128 + ix < num_rows))
        return out

    x, g = f32(rng, 250, 64), f32(rng, 64)
    run(kernel, [x, g], x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * g, simulated)


def test_layernorm_by_bn_stats(rng, simulated):
    def kernel(x, gamma, beta):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0 : x.shape[1]]
        g = nl.load(gamma.reshape((1, x.shape[1])).broadcast_to((128, x.shape[1])))
        b = nl.load(beta.reshape((1, x.shape[1])).broadcast_to((128, x.shape[1])))
        for t in nl.affine_range(x.shape[0] // 128):
            tile = nl.load(x[t * 128 + i_p, i_f])
            stats = nisa.bn_stats(tile, dtype=np.float32)
            aggregated = nisa.bn_aggr(stats, dtype=np.float32)
            inverse = nl.rsqrt(aggregated[:, 1] + 1e-5)
            shifted = nisa.tensor_scalar(data=tile, op0=np.subtract, operand0=aggregated[:, 0], op1=np.multiply, operand1=inverse)
            nl.store(out[t * 128 + i_p, i_f], shifted * g + b)
        return out

    x, gamma, beta = f32(rng, 256, 96), f32(rng, 96), f32(rng, 96)
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma + beta
    run(kernel, [x, gamma, beta], want, simulated, 1e-4)


def test_matmul_into_block_dimensions(rng, simulated):
    """`par_dim` behind block dimensions, and `psum += nc_matmul`."""

    def kernel(lhs_t, rhs):
        k, m = lhs_t.shape
        n = rhs.shape[1]
        result = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
        i_lhs = nl.mgrid[0:128, 0:128]
        i_rhs = nl.mgrid[0:128, 0:n]
        lhs_tiles = nl.ndarray((k // 128, nl.par_dim(128), m), dtype=lhs_t.dtype, buffer=nl.sbuf)
        rhs_tiles = nl.ndarray((k // 128, nl.par_dim(128), n), dtype=rhs.dtype, buffer=nl.sbuf)
        for t in nl.affine_range(k // 128):
            lhs_tiles[t] = nl.load(lhs_t[t * 128 : (t + 1) * 128, :])
            rhs_tiles[t, i_rhs.p, i_rhs.x] = nl.load(rhs[t * 128 + i_rhs.p, i_rhs.x])
        for block in nl.affine_range(m // 128):
            res_psum = nl.zeros((128, n), nl.float32, buffer=nl.psum)
            for t in nl.sequential_range(k // 128):
                res_psum[...] += nisa.nc_matmul(lhs_tiles[t, i_lhs.p, block * 128 + i_lhs.x], rhs_tiles[t])
            res_sb = nl.copy(res_psum, dtype=result.dtype)
            nl.store(result[block * 128 : (block + 1) * 128, :], value=res_sb)
        return result

    a, b = f32(rng, 256, 256), f32(rng, 256, 192)
    traced = run(kernel, [a, b], a.T @ b, simulated, 1e-4)
    assert traced.text.count("matmult") == 4
    assert traced.text.count("accumulate") == 2
    assert "memset" not in traced.text


def test_attention_forward(rng, simulated):
    def kernel(q_ref, k_ref, v_ref, scale, use_causal_mask):
        d, seqlen = q_ref.shape
        out = nl.ndarray((seqlen, d), dtype=q_ref.dtype, buffer=nl.shared_hbm)
        q, k, v = nl.load(q_ref), nl.load(k_ref), nl.load(v_ref)
        q = nl.multiply(q, scale)
        qk_psum = nl.matmul(q, k, transpose_x=True)
        qk = nl.copy(qk_psum)
        if use_causal_mask:
            i_q, i_k = nl.mgrid[0:seqlen, 0:seqlen]
            qk = nisa.affine_select(pred=(i_q >= i_k), on_true_tile=qk, on_false_value=-9984.0, dtype=nl.float32)
        neg_max = nisa.tensor_reduce(np.max, qk, axis=(1,), negate=True)
        total = nl.ndarray((nl.par_dim(seqlen), 1), dtype=nl.float32, buffer=nl.sbuf)
        e = nisa.activation(np.exp, qk, bias=neg_max, scale=1.0, reduce_op=np.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        trans = nl.copy(nisa.nc_transpose(e))
        scores = nisa.nc_matmul(trans, v)
        nl.store(out, value=nisa.tensor_scalar(scores, np.multiply, nisa.reciprocal(total)))
        return out

    q, k, v = f32(rng, 64, 128), f32(rng, 64, 128), f32(rng, 128, 64)
    for causal in (False, True):
        s = (q.T @ k) * 0.125
        if causal:
            s = np.where(np.tri(128, dtype=bool), s, -9984)
        p = np.exp(s - s.max(1, keepdims=True))
        run(kernel, [q, k, v, 0.125, causal], (p / p.sum(1, keepdims=True)) @ v, simulated, 1e-4)


def test_transpose_of_a_2d_shape_in_each_row(rng, simulated):
    """Copies one element of each row at a time, with index arrays over three dimensions."""

    def kernel(in_tensor, f1, f2):
        out = nl.ndarray(in_tensor.shape, dtype=in_tensor.dtype, buffer=nl.shared_hbm)
        i_p = nl.arange(128)[:, None]
        tile = nl.load(in_tensor[i_p, nl.arange(f1 * f2)[None, :]])
        flipped = nl.ndarray((nl.par_dim(128), f1 * f2), dtype=tile.dtype)
        for i in nl.affine_range(f1):
            for j in nl.affine_range(f2):
                flipped[i_p, nl.arange(1)[None, :] + j * f1 + i] = nl.copy(tile[i_p, nl.arange(1)[None, :] + i * f2 + j])
        nl.store(out[i_p, nl.arange(f1 * f2)[None, :]], value=flipped)
        return out

    x = f32(rng, 128, 12)
    run(kernel, [x, 3, 4], x.reshape(128, 3, 4).transpose(0, 2, 1).reshape(128, 12), simulated, 0)


def test_average_pool_by_five_dimensional_view(rng, simulated):
    def kernel(in_tensor, pool):
        c, h, w = in_tensor.shape
        out = nl.ndarray((c, h // pool, w // pool), dtype=in_tensor.dtype, buffer=nl.shared_hbm)
        i0 = nl.arange(c)[:, None, None, None, None]
        i1 = nl.arange(h // pool)[None, :, None, None, None]
        i2 = nl.arange(w // pool)[None, None, :, None, None]
        i3 = nl.arange(pool)[None, None, None, :, None]
        i4 = nl.arange(pool)[None, None, None, None, :]
        tile = nl.load(in_tensor)
        total = nl.sum(tile[i0, pool * i1 + i3, pool * i2 + i4], axis=[3, 4])
        nl.store(out, value=total / (pool * pool))
        return out

    x = f32(rng, 64, 8, 12)
    run(kernel, [x, 2], x.reshape(64, 4, 2, 6, 2).mean((2, 4)), simulated)


def test_maxpool_with_overlapping_windows(rng, simulated):
    def kernel(x, k, stride):
        c, h, w = x.shape
        ho, wo = (h - k) // stride + 1, (w - k) // stride + 1
        out = nl.ndarray((c, ho, wo), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p = nl.arange(c)[:, None, None, None, None]
        i_h = nl.arange(ho)[None, :, None, None, None] * stride + nl.arange(k)[None, None, None, :, None]
        i_w = nl.arange(wo)[None, None, :, None, None] * stride + nl.arange(k)[None, None, None, None, :]
        tile = nl.load(x)
        nl.store(out, nisa.tensor_reduce(nl.max, tile[i_p, i_h, i_w], axis=[3, 4]))
        return out

    x = f32(rng, 32, 7, 7)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2]
    run(kernel, [x, 3, 2], windows.max((3, 4)), simulated, 0)


def test_mamba_scan(rng, simulated):
    def kernel(delta, u, a, b, c):
        channels, seq_len = delta.shape
        states = a.shape[1]
        out = nl.ndarray((channels, seq_len), dtype=delta.dtype, buffer=nl.shared_hbm)
        delta_i, u_i = nl.load(delta), nl.load(u)
        scan_c = nl.zeros((nl.par_dim(channels), seq_len), dtype=delta.dtype)
        for state in nl.affine_range(states):
            a_i = nl.load(a[0:channels, state])
            delta_a = nisa.activation(op=nl.exp, data=delta_i, scale=a_i)
            b_i = nl.load(b[state : state + 1, 0:seq_len])
            delta_u = nisa.tensor_tensor(delta_i, u_i, op=nl.multiply)
            delta_bu = nisa.tensor_tensor(delta_u, b_i.broadcast_to((1, seq_len)) if channels == 1 else nl.broadcast_to(b_i, (channels, seq_len)), op=nl.multiply)
            scan = nisa.tensor_tensor_scan(delta_a, delta_bu, initial=0, op0=np.multiply, op1=np.add)
            c_i = nl.load(c[state : state + 1, 0:seq_len])
            scan_c[...] += nisa.tensor_tensor(scan, nl.broadcast_to(c_i, (channels, seq_len)), op=nl.multiply)
        nl.store(out, scan_c)
        return out

    delta, u, a = abs(f32(rng, 64, 32)) * 0.1, f32(rng, 64, 32), -abs(f32(rng, 64, 4))
    b, c = f32(rng, 4, 32), f32(rng, 4, 32)
    want = np.zeros((64, 32))
    for n in range(4):
        state = np.zeros(64)
        for t in range(32):
            state = np.exp(delta[:, t] * a[:, n]) * state + delta[:, t] * u[:, t] * b[n, t]
            want[:, t] += state * c[n, t]
    run(kernel, [delta, u, a, b, c], want, simulated, 1e-4)


def test_kernel_that_writes_its_arguments(rng, simulated):
    def kernel(x, out):
        tile = nl.load(x)
        nl.store(out[0:64, :], nl.negative(tile[0:64, :]))

    x, out = f32(rng, 128, 8), f32(rng, 128, 8)
    traced = run(kernel, [x, out], np.concatenate([-x[:64], out[64:]]), simulated)
    assert "%out = alloc dram<128x8xf32> {kind = inout}" in traced.text


erf = np.vectorize(math.erf, otypes=[np.float32])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))



UNARY = {
    nl.exp: np.exp,
    nl.tanh: np.tanh,
    nl.square: np.square,
    nl.abs: np.abs,
    nl.relu: lambda x: np.maximum(x, 0),
    nl.sigmoid: lambda x: 1 / (1 + np.exp(-x)),
    nl.silu: lambda x: x / (1 + np.exp(-x)),
    nl.negative: np.negative,
    nl.reciprocal: np.reciprocal,
    nl.sign: np.sign,
    nl.floor: np.floor,
    nl.ceil: np.ceil,
    nl.trunc: np.trunc,
    nl.rsqrt: lambda x: 1 / np.sqrt(x),
    nl.sqrt: np.sqrt,
    nl.log: np.log,
    nl.gelu_apprx_sigmoid: lambda x: x / (1 + np.exp(-1.702 * x)),
    nl.softplus: lambda x: np.log1p(np.exp(x)),
    nl.logical_not: lambda x: np.float32(x == 0),
    nl.copy: lambda x: x,
    nl.sin: np.sin,
    nl.cos: np.cos,
    nl.tan: np.tan,
    nl.softmax: lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    nl.arctan: np.arctan,
    nl.erf: erf,
    nl.erf_dx: lambda x: 2 / np.sqrt(np.pi) * np.exp(-(x**2)),
    nl.mish: lambda x: x * np.tanh(np.log1p(np.exp(x))),
    nl.silu_dx: lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    nl.gelu: lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    nl.gelu_dx: lambda x: (1 + erf(x / np.sqrt(2))) / 2 + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi),
    nl.gelu_apprx_tanh: lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    nl.gelu_apprx_sigmoid_dx: lambda x: sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x))),
}


@pytest.mark.parametrize("function", UNARY, ids=str)
def test_function_of_a_tile(function, rng, simulated):
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, function(nl.load(x), axis=1) if function is nl.softmax else function(nl.load(x)))
        return out

    x = np.clip(f32(rng, 128, 16), -3, 3)
    if function in (nl.sin, nl.cos):
        x *= 7  # several turns
    if function is nl.tan:
        x *= 0.4
    if function in (nl.rsqrt, nl.sqrt, nl.log):
        x = abs(x) + 0.1
    run(kernel, [x], UNARY[function](x), simulated)


BINARY = {
    nl.add: np.add,
    nl.subtract: np.subtract,
    nl.multiply: np.multiply,
    nl.divide: np.divide,
    nl.maximum: np.maximum,
    nl.minimum: np.minimum,
    nl.greater: np.greater,
    nl.less_equal: np.less_equal,
    nl.not_equal: np.not_equal,
    nl.logical_or: np.logical_or,
    nl.logical_xor: np.logical_xor,
}


@pytest.mark.parametrize("shape", [(128, 16), (128, 1), (1, 16), ()], ids=str)
@pytest.mark.parametrize("function", BINARY, ids=str)
def test_function_of_two(function, shape, rng, simulated):
    def kernel(x, y):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        other = y if shape == () else nl.load(y)
        both = nl.add(function(nl.load(x), other), function(other, nl.load(x)), dtype=nl.float32)
        nl.store(out, both)
        return out

    x, y = f32(rng, 128, 16), 1.5 if shape == () else f32(rng, *shape)
    first, second = (np.float32(BINARY[function](*pair)) for pair in ((x, y), (y, x)))
    run(kernel, [x, y], first + second, simulated)


REDUCTIONS = {nl.sum: np.sum, nl.max: np.max, nl.min: np.min, nl.mean: np.mean, nl.var: np.var, nl.prod: np.prod}


@pytest.mark.parametrize("axis", [1, 2, (1, 2)], ids=str)
@pytest.mark.parametrize("function", REDUCTIONS, ids=str)
def test_reduction(function, axis, rng, simulated):
    def kernel(x):
        reduced = function(nl.load(x), axis=axis, keepdims=True)
        out = nl.ndarray(reduced.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, reduced)
        return out

    x = f32(rng, 128, 4, 6)
    run(kernel, [x], REDUCTIONS[function](x, axis=axis, keepdims=True), simulated)


def test_sum_over_partitions(rng, simulated):
    def kernel(x):
        out = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.zeros((1, 1), dtype=nl.float32, buffer=nl.sbuf)
        total[...] = nl.add(total, nl.sum(nl.load(x), axis=(0, 1)))
        nl.store(out, total)
        return out

    x = f32(rng, 128, 16)
    run(kernel, [x], x.sum().reshape(1, 1), simulated)


def test_where_and_comparisons(rng, simulated):
    def kernel(x, y):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        a, b = nl.load(x), nl.load(y)
        nl.store(out, nl.where((a > b) & (a > 0.0), a, b * 2.0))
        return out

    x, y = f32(rng, 128, 16), f32(rng, 128, 16)
    run(kernel, [x, y], np.where((x > y) & (x > 0), x, 2 * y), simulated)


def test_whole_numbers(rng, simulated):
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=nl.uint32, buffer=nl.shared_hbm)
        a = nl.load(x)
        nl.store(out, ((a << 3) | (a >> 5)) & 0xFFFF ^ ~a)
        return out

    x = rng.integers(0, 2**32, (128, 8), dtype=np.uint32)
    run(kernel, [x], ((x << np.uint32(3)) | (x >> np.uint32(5))) & np.uint32(0xFFFF) ^ ~x, simulated, 0)


def test_arrays_a_kernel_closes_over_become_constants(rng, simulated):
    table = f32(rng, 128, 8)

    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x) + table)
        return out

    x = f32(rng, 128, 8)
    traced = run(kernel, [x], x + table, simulated)
    assert "kind = const" in traced.text


def test_lower_precision(rng, simulated):
    def kernel(x, w):
        out = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        nl.store(out, nl.matmul(nl.load(x), nl.load(w)))
        return out

    x, w = (f32(rng, *s).astype(nl.bfloat16.dtype) for s in ((128, 128), (128, 64)))
    run(kernel, [x, w], x.astype(np.float32) @ w.astype(np.float32), simulated, 1e-2)


def test_calling_a_kernel_on_arrays_runs_it(rng, simulated):
    a, b = f32(rng, 128, 64), f32(rng, 128, 64)
    np.testing.assert_array_equal(tensor_add(a, b), a + b)
    np.testing.assert_array_equal(nki.simulate_kernel(tensor_add, a, b), a + b)
    np.testing.assert_array_equal(nki.simulate(tensor_add)(a, b), a + b)


def test_flash_attention_tile(rng, simulated):
    """The habits of flash attention kernels: conditions on plain numbers as masks, blocks of PSUM, running maxima of one number per row."""

    def kernel(q, k, v, tile_k):
        d, rows = q.shape
        keys = k.shape[1]
        out = nl.ndarray((rows, d), dtype=q.dtype, buffer=nl.shared_hbm)
        q_sbuf, k_sbuf = nl.load(q), nl.load(k)
        v_sbuf = nl.ndarray((keys // 128, nl.par_dim(128), d), dtype=v.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(keys // 128):
            v_sbuf[i, :, :] = nl.load(v[nl.ds(i * 128, 128), :])
        o_buffer = nl.zeros((nl.par_dim(rows), d), dtype=nl.float32)
        m_buffer = nl.full((nl.par_dim(rows), 1), fill_value=-9984.0, dtype=nl.float32)
        l_buffer = nl.full((nl.par_dim(rows), 1), fill_value=0.0, dtype=nl.float32)
        for t in nl.sequential_range(keys // tile_k):
            qk_psum = nl.ndarray((nl.par_dim(rows), tile_k), dtype=np.float32, buffer=nl.psum)
            qk_psum[:, :] = nl.matmul(q_sbuf, k_sbuf[:, nl.ds(t * tile_k, tile_k)], transpose_x=True)
            i_q, i_k = nl.mgrid[0:rows, 0:tile_k]
            qk = nl.ndarray((nl.par_dim(rows), tile_k), dtype=nl.float32)
            left = (t + 1) * tile_k <= 128
            qk[:, :] = nisa.affine_select(pred=i_q + 128 >= t * tile_k + i_k, on_true_tile=qk_psum, on_false_value=-9984.0, dtype=nl.float32)
            qk[:, :] = nl.add(qk_psum, 0.0, mask=left)
            qk[:, :] = nisa.tensor_copy(qk_psum, mask=left and not left)
            top = nisa.tensor_reduce(np.max, qk[:, :], axis=(1,), dtype=nl.float32, negate=False)
            m_previous = nl.copy(m_buffer[:, 0])
            m_buffer[:, 0] = nl.maximum(m_previous, top)
            m_current = m_buffer[:, 0]
            alpha = nisa.activation(np.exp, m_current, bias=m_previous, scale=-1.0)
            scaled = nl.ndarray((nl.par_dim(rows), d), dtype=nl.float32)
            scaled[...] = nl.multiply(o_buffer[:, :], alpha)
            partial = nl.ndarray((nl.par_dim(rows), 1), dtype=nl.float32)
            p = nisa.activation_reduce(np.exp, qk, bias=-1 * m_current, scale=1.0, reduce_op=nl.add, reduce_res=partial[:, 0], dtype=nl.float32)
            pv = nl.zeros((nl.par_dim(rows), d), dtype=np.float32, buffer=nl.psum, lazy_initialization=True)
            for j in nl.affine_range(tile_k // 128):
                transposed = nl.ndarray((nl.par_dim(128), rows), dtype=np.float32, buffer=nl.psum)
                transposed[:, :] = nisa.nc_transpose(p[:, nl.ds(j * 128, 128)])
                pv[:, :] += nl.matmul(nl.copy(transposed), v_sbuf[t * (tile_k // 128) + j, :, :], transpose_x=True)
            o_buffer[:, :] = nl.add(scaled, pv)
            l_buffer[:, 0] = nl.add(nl.multiply(l_buffer[:, 0], alpha), partial[:, 0])
        nl.store(out, o_buffer / l_buffer)
        return out

    q, k, v = f32(rng, 64, 128) * 0.3, f32(rng, 64, 512) * 0.3, f32(rng, 512, 64)
    s = q.T @ k
    s = np.where(np.arange(128)[:, None] + 128 >= np.arange(512), s, -9984)
    p = np.exp(s - s.max(1, keepdims=True))
    traced = run(kernel, [q, k, v, 256], (p / p.sum(1, keepdims=True)) @ v, simulated, 1e-4)
    assert "tensor_copy %qk_psum" not in traced.text


def test_rows_against_reductions_without_keepdims(rng, simulated):
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        e = nl.exp(nl.subtract(tile, nl.max(tile, axis=1)))
        nl.store(out, nl.divide(e, nl.sum(e, axis=1)))
        return out

    x = f32(rng, 128, 16)
    e = np.exp(x - x.max(1, keepdims=True))
    run(kernel, [x], e / e.sum(1, keepdims=True), simulated)


def test_rotary_embedding_of_ragged_rows(rng, simulated):
    def core(x, cos, sin, out):
        half = x.shape[-1] // 2
        out[0, :, :] = x * cos
        out[0, :, :half] = out[0, :, :half] + (-1 * x[:, half:] * sin[:, :half])
        out[0, :, half:] = out[0, :, half:] + (x[:, :half] * sin[:, half:])

    def kernel(x, cos, sin):
        rows, d = x.shape
        out = nl.ndarray([1] + list(x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(128)[:, None], nl.arange(d)[None, :]
        for b in nl.affine_range(0, (rows + 127) // 128):
            mask = b * nl.tile_size.pmax + i_p < rows
            tiles = [nl.load(t[b * nl.tile_size.pmax + i_p, i_f], mask=mask) for t in (x, cos, sin)]
            rotated = nl.ndarray([1] + [nl.par_dim(128), d], dtype=x.dtype, buffer=nl.sbuf)
            core(*tiles, rotated)
            target = out[0]
            nl.store(target[b * nl.tile_size.pmax + i_p, i_f], rotated[0, :, :], mask=mask)
        return out

    x, cos, sin = f32(rng, 200, 32), f32(rng, 200, 32), f32(rng, 200, 32)
    turned = np.concatenate([-x[:, 16:], x[:, :16]], 1)
    run(kernel, [x, cos, sin], (x * cos + turned * sin)[None], simulated)


def test_windows_selected_by_iota_and_where(rng, simulated):
    def kernel(x):
        out = nl.ndarray((128, 4), dtype=nl.int32, buffer=nl.shared_hbm)
        window = nl.mgrid[0:128, 0:4, 0:3, 0:3]
        tile = nl.load(x)
        windows = nl.copy(tile[window.p, window.y, 2 * window.x + window.z])
        top = nl.max(windows, axis=[2, 3], keepdims=True)
        is_top = nl.equal(top, windows, dtype=nl.int8)
        index = nisa.iota(3 * window.y + window.z, dtype=nl.uint32)
        first = nl.min(nl.where(is_top, index, 9, dtype=nl.uint32), axis=[2, 3], dtype=nl.int32)
        nl.store(out, first)
        return out

    x = f32(rng, 128, 3, 9)
    views = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, 0, ::2]
    run(kernel, [x], views.reshape(128, 4, 9).argmax(2).astype(np.int32), simulated, 0)


def test_old_grid_of_two_stays_one_module(rng):
    a, b = f32(rng, 256, 64), f32(rng, 256, 64)
    assert bir_nki.trace(tensor_add[2], a, b).text.count("bir.module") == 1


def test_normalisation_and_running_sums(rng, simulated):
    def kernel(x, w):
        a, b = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(2))
        tile = nl.load(x)
        nl.store(a, nl.rms_norm(tile, nl.load(w), axis=1, n=x.shape[1], epsilon=1e-5))
        nl.store(b, nl.cumsum(tile, axis=1))
        return a, b

    x, w = f32(rng, 128, 32), f32(rng, 128, 32)
    normed = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * w
    run(kernel, [x, w], (normed, np.cumsum(x, 1)), simulated, 1e-4)


def test_remainders_and_powers(rng, simulated):
    def kernel(x):
        a, b = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(2))
        tile = nl.load(x)
        nl.store(a, nl.mod(tile, 3.0))
        nl.store(b, nl.power(nl.abs(tile), 1.5))
        return a, b

    x = f32(rng, 128, 16) * 10
    run(kernel, [x], (np.mod(x, 3), np.abs(x) ** 1.5), simulated, 1e-4)


@pytest.mark.parametrize("divisor", [3, 41, 49, -49, 83, 0.5, "tile"])
@pytest.mark.parametrize("function", ["mod", "fmod", "floor_divide"])
def test_remainders_of_multiples_are_exact(function, divisor, rng, simulated):
    """Multiples of the divisor are where a quotient that is a little off makes a remainder of the whole divisor."""

    def kernel(x, y):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, getattr(nl, function)(nl.load(x), y if isinstance(y, float) else nl.load(y)))
        return out

    x = np.arange(-1024, 1024, dtype=np.float32).reshape(128, 16)
    y = rng.choice([41, 47, -49, 55, 83], x.shape).astype(np.float32) if divisor == "tile" else float(divisor)
    run(kernel, [x, y], getattr(np, function)(x, np.float32(y)), simulated, 0)


def test_a_value_that_is_kept_is_not_made_elsewhere(rng, simulated):
    """A value just made may be written where it is assigned, but not if the kernel uses it again."""

    def kernel(x):
        out = nl.ndarray((4, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        a = nl.load(x)
        both = nl.ndarray((nl.par_dim(128), 2, 64), dtype=nl.float32)
        b = nl.exp(a)
        both[:, 0, :] = b
        both[:, 1, :] = b
        nl.store(out[0], both[:, 0, :])
        nl.store(out[1], both[:, 1, :])
        c = nl.ndarray((nl.par_dim(128), 64), dtype=nl.float32)
        kept = [nl.tanh(a)]
        c[...] = kept[0]
        nl.store(out[2], c + kept[0])
        product = nisa.nc_matmul(a[:, 0:64], a[:, 0:64])
        total = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
        total += product
        nl.store(out[3, 0:64, :], nl.copy(total))
        nl.store(out[3, 64:128, :], nl.copy(product))
        return out

    x = f32(rng, 128, 64)
    wanted = np.stack([np.exp(x), np.exp(x), 2 * np.tanh(x), np.concatenate([x.T @ x] * 2)])
    run(kernel, [x], wanted, simulated, 1e-4)


def test_a_value_nobody_keeps_is_made_where_it_is_assigned(rng):
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        c = nl.ndarray((nl.par_dim(128), 2, 64), dtype=nl.float32)
        c[:, 0, :] = nl.load(x)
        d = nl.ndarray((nl.par_dim(128), 2, 64), dtype=nl.float32)
        d[:, 1, :] = nl.exp(c[:, 0, :])
        nl.store(out, d[:, 1, :])
        return out

    text = bir_nki.trace(kernel, f32(rng, 128, 64)).text
    assert "load %c[" in text and "activation exp %d[" in text and "tensor_copy" not in text
    assert text.count("alloc sbuf") == 2


def test_overlapping_assignment_copies_first(rng, simulated):
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        tile[:, 0:32] = tile[:, 1:33] + 0.0
        nl.store(out, tile)
        return out

    x = f32(rng, 128, 64)
    wanted = x.copy()
    wanted[:, 0:32] = x[:, 1:33]
    run(kernel, [x], wanted, simulated, 0)


def test_rows_that_a_mask_left_out_are_filled_later(rng, simulated):
    """A masked tile holds more once the rest of it, or all of it, is assigned to."""

    def kernel(x):
        out = nl.ndarray((256, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:64]
        t = nl.load(x[i, j], mask=i < 96)
        t[96:128, :] = 2.0
        nl.store(out[0:128, :], t + 1.0)
        u = nl.load(x[i, j], mask=i < 96)
        u[...] = 3.0
        nl.store(out[128:256, :], u)
        return out

    x = f32(rng, 96, 64)
    wanted = np.concatenate([x + 1, np.full((160, 64), 3.0, np.float32)])
    np.testing.assert_array_equal(simulated(bir_nki.trace(kernel, x)), wanted)


def test_masked_tiles_seen_through_index_arrays(rng, simulated):
    """Where a tile holds nothing, neither does what index arrays choose of it."""

    def kernel(x):
        out = nl.ndarray((100, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:64]
        t = nl.load(x[i, 2 * j], mask=(i < 100) & (2 * j < 90))
        odd = nl.exp(t[i, j] * 0.5)
        p, f = nl.mgrid[0:128, 0:32]
        shifted = t[p, f + 32] + odd[:, 32:64]
        nl.store(out[i, j], odd, mask=(i < 100) & (2 * j < 90))
        nl.store(out[p, f + 45], shifted[p, f], mask=(p < 100) & (f < 13))
        nl.store(out[0:100, 58:64], t[0:100, 0:6])
        return out

    x = f32(rng, 100, 128)
    even = x[:, ::2]
    wanted = np.concatenate([np.exp(even[:, :45] / 2), (even + np.exp(even / 2))[:, 32:45], even[:, :6]], 1)
    np.testing.assert_allclose(simulated(bir_nki.trace(kernel, x)), wanted, rtol=1e-5, atol=1e-6)


def test_negative_position_beside_index_arrays(rng, simulated):
    def kernel(x):
        out = nl.ndarray((128, 2), dtype=x.dtype, buffer=nl.shared_hbm)
        i = nl.arange(128)[:, None]
        t = nl.load(x)
        nl.store(out[i, 0], t[i, -1])
        nl.store(out[i, -1], t[i, -2])
        return out

    x = f32(rng, 128, 8)
    np.testing.assert_array_equal(simulated(bir_nki.trace(kernel, x)), x[:, [-1, -2]])


def test_inverted_mask(rng, simulated):
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:64]
        t = nl.load(x)
        nl.store(out[i, j], t * 2.0, mask=i < 32)
        nl.store(out[i, j], t, mask=~(i < 32))
        return out

    x = f32(rng, 128, 64)
    np.testing.assert_array_equal(simulated(bir_nki.trace(kernel, x)), np.concatenate([x[:32] * 2, x[32:]]))


def test_totals_of_loops(rng, simulated):
    """`nl.loop_reduce` over two loops at once, beside a loop that is not reduced, and again in a loop around."""

    def kernel(x):
        out = nl.ndarray((256, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        for k in nl.affine_range(2):
            for i in nl.affine_range(2):
                for j in nl.affine_range(3):
                    halves = []
                    for h in nl.affine_range(2):
                        tile = nl.load(x[k, i, j, :, nl.ds(h * 16, 16)])
                        halves.append(nl.loop_reduce(tile, op=nl.add, loop_indices=[i, j]))
            nl.store(out[nl.ds(k * 128, 128), 0:16], halves[0])
            nl.store(out[nl.ds(k * 128, 128), 16:32], halves[1])
        return out

    x = f32(rng, 2, 2, 3, 128, 32)
    np.testing.assert_allclose(simulated(bir_nki.trace(kernel, x)), x.sum((1, 2)).reshape(256, 32), rtol=1e-5, atol=1e-5)
