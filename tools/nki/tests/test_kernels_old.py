"""Kernels of the old style, as others write them.

Each case makes a kernel, its arrays and what numpy says of them.
"""

import math

import ml_dtypes
import numpy as np
import pytest
from conftest import check_kernel, f32, kernel_cases, softmax

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.language import par_dim

CASES, case = kernel_cases()


@case()
def gather_masked(rng):
    @nki.jit
    def kernel(table, idx):
        n, d = idx.shape[0], table.shape[1]
        out = nl.ndarray((n, d), dtype=table.dtype, buffer=nl.shared_hbm)
        i_p = nl.arange(128)[:, None]
        i_f = nl.arange(d)[None, :]
        i_1 = nl.arange(1)[None, :]
        for t in nl.affine_range(math.ceil(n / 128)):
            m = t * 128 + i_p < n
            ix = nl.load(idx[t * 128 + i_p, i_1], mask=m)
            rows = nl.load(table[ix[i_p, 0], i_f], mask=m)
            nl.store(out[t * 128 + i_p, i_f], value=rows * 2.0, mask=m)
        return out

    table = f32(rng, 1000, 64)
    idx = rng.integers(0, 1000, (200, 1)).astype(np.int32)
    return kernel, (table, idx), table[idx[:, 0]] * 2


@case(0)
def scatter(rng):
    @nki.jit
    def kernel(x, idx, out):
        i_p = nl.arange(128)[:, None]
        i_f = nl.arange(x.shape[1])[None, :]
        idx_tile = nl.load(idx[i_p, nl.arange(1)[None, :]])
        t = nl.load(x[i_p, i_f])
        nl.store(out[idx_tile, i_f], value=t)

    x = f32(rng, 128, 32)
    idx = rng.permutation(200)[:128].astype(np.int32)[:, None]
    out = np.zeros((200, 32), np.float32)
    w = out.copy()
    w[idx[:, 0]] = x
    return kernel, (x, idx, out), w


@case()
def conv1d_depthwise(rng):
    @nki.jit
    def kernel(x, w):
        N, C, L = x.shape
        _, K = w.shape
        Lo = L - K + 1
        out = nl.ndarray((N, C, Lo), dtype=x.dtype, buffer=nl.shared_hbm)
        for n in nl.affine_range(N):
            for c in nl.affine_range(math.ceil(C / 128)):
                i_c = nl.arange(128)[:, None]
                i_l = nl.arange(L)[None, :]
                m = c * 128 + i_c < C
                x_tile = nl.load(x[n, c * 128 + i_c, i_l], mask=m)
                w_tile = nl.load(w[c * 128 + i_c, nl.arange(K)[None, :]], mask=m)
                acc = nl.zeros((nl.par_dim(128), Lo), dtype=nl.float32, buffer=nl.sbuf)
                i_o = nl.arange(Lo)[None, :]
                for k in nl.static_range(K):
                    acc[i_c, i_o] = nl.add(acc[i_c, i_o], nl.multiply(x_tile[i_c, i_o + k], w_tile[i_c, k], mask=m), mask=m)
                nl.store(out[n, c * 128 + i_c, i_o], value=acc[i_c, i_o], mask=m)
        return out

    x, w = f32(rng, 2, 160, 40), f32(rng, 160, 4)
    want = sum(x[:, :, k : k + 37] * w[None, :, k : k + 1] for k in range(4))
    return kernel, (x, w), want


@case()
def conv1d_dense(rng):
    @nki.jit
    def kernel(x, w):
        Cin, L = x.shape
        K, _, Cout = w.shape
        Lo = L - K + 1
        out = nl.ndarray((Cout, Lo), dtype=x.dtype, buffer=nl.shared_hbm)
        x_sb = nl.load(x)
        acc = nl.zeros((nl.par_dim(Cout), Lo), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(K):
            w_sb = nl.load(w[k])
            acc += nl.matmul(w_sb, x_sb[:, nl.ds(k, Lo)], transpose_x=True)
        nl.store(out, value=acc)
        return out

    x, w = f32(rng, 64, 100), f32(rng, 3, 64, 32)
    want = sum(w[k].T @ x[:, k : k + 98] for k in range(3))
    return kernel, (x, w), want


@case(1e-4)
def layernorm(rng):
    @nki.jit
    def nki_layernorm(input_tensor, epsilon, gamma_vector, beta_vector):
        output_tensor = nl.ndarray(input_tensor.shape, dtype=input_tensor.dtype, buffer=nl.shared_hbm)
        i_p = nl.arange(nl.tile_size.pmax)[:, None]
        i_f = nl.arange(input_tensor.shape[1])[None, :]
        i_one = nl.arange(1)[:, None]
        gamma_sb = nl.load(gamma_vector.reshape((1, gamma_vector.shape[0]))[i_one, i_f])
        beta_sb = nl.load(beta_vector.reshape((1, beta_vector.shape[0]))[i_one, i_f])
        gamma_b = gamma_sb.broadcast_to((nl.tile_size.pmax, gamma_vector.shape[0]))
        beta_b = beta_sb.broadcast_to((nl.tile_size.pmax, gamma_vector.shape[0]))
        num_rows, hidden = input_tensor.shape
        for i in nl.affine_range(math.ceil(num_rows / nl.tile_size.pmax)):
            rows = i * nl.tile_size.pmax + i_p
            x = nl.load(input_tensor[rows, i_f], mask=(rows < num_rows))
            stats = nl.ndarray((par_dim(128), 6 * (hidden // 256)), dtype=nl.float32, buffer=nl.sbuf)
            for s in nl.affine_range(hidden // 256):
                stats[i_p, s * 6 + nl.arange(6)[None, :]] = nisa.bn_stats(
                    x[i_p, s * 256 + nl.arange(256)[None, :]], mask=(rows < num_rows), dtype=np.float32
                )
            mv = nisa.bn_aggr(stats, mask=(rows < num_rows))
            i_c = nl.arange(1)[None, :]
            var_eps = nl.rsqrt(mv[i_p, 1 + i_c] + epsilon, mask=(rows < num_rows))
            y = nisa.tensor_scalar(x, np.subtract, mv[i_p, i_c], op1=np.multiply, operand1=var_eps[i_p, i_c], mask=(rows < num_rows))
            y = y * gamma_b + beta_b
            nl.store(output_tensor[rows, i_f], value=y, mask=(rows < num_rows))
        return output_tensor

    x, g, b = f32(rng, 200, 512), f32(rng, 512), f32(rng, 512)
    m = x.mean(1, keepdims=True)
    v = x.var(1, keepdims=True)
    return nki_layernorm, (x, 1e-5, g, b), (x - m) / np.sqrt(v + 1e-5) * g + b


@case(0)
def topk16(rng):
    @nki.jit
    def kernel(x):
        vals = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        idxs = nl.ndarray((128, 16), dtype=nl.uint32, buffer=nl.shared_hbm)
        t = nl.load(x)
        for r in range(2):
            m = nisa.max8(src=t)
            ix = nisa.nc_find_index8(data=t, vals=m)
            t = nisa.nc_match_replace8(data=t, vals=m, imm=-1e30)
            nl.store(vals[:, r * 8 : (r + 1) * 8], m)
            nl.store(idxs[:, r * 8 : (r + 1) * 8], ix)
        return vals, idxs

    x = rng.permutation(128 * 64).reshape(128, 64).astype(np.float32)
    o = np.argsort(-x, axis=1)[:, :16]
    return kernel, (x,), (np.take_along_axis(x, o, 1), o.astype(np.uint32))


@case()
def bilinear_2x(rng):
    @nki.jit
    def kernel(src):
        C, H, W = src.shape
        out = nl.ndarray((C, 2 * H, 2 * W), dtype=src.dtype, buffer=nl.shared_hbm)
        t = nl.load(src)
        rows = nl.ndarray((par_dim(C), 2 * H, W), dtype=nl.float32, buffer=nl.sbuf)
        ip, ih, iw = nl.mgrid[0:C, 0 : H - 1, 0:W]
        rows[ip, 2 * ih + 1, iw] = 0.75 * t[ip, ih, iw] + 0.25 * t[ip, ih + 1, iw]
        rows[ip, 2 * ih + 2, iw] = 0.25 * t[ip, ih, iw] + 0.75 * t[ip, ih + 1, iw]
        rows[:, 0, :] = t[:, 0, :]
        rows[:, 2 * H - 1, :] = t[:, H - 1, :]
        o = nl.ndarray((par_dim(C), 2 * H, 2 * W), dtype=nl.float32, buffer=nl.sbuf)
        ip, ih, iw = nl.mgrid[0:C, 0 : 2 * H, 0 : W - 1]
        o[ip, ih, 2 * iw + 1] = 0.75 * rows[ip, ih, iw] + 0.25 * rows[ip, ih, iw + 1]
        o[ip, ih, 2 * iw + 2] = 0.25 * rows[ip, ih, iw] + 0.75 * rows[ip, ih, iw + 1]
        o[:, :, 0:1] = rows[:, :, 0:1]
        o[:, :, 2 * W - 1] = rows[:, :, W - 1]
        nl.store(out, value=o)
        return out

    x = f32(rng, 40, 6, 9)

    def up(a):
        w = np.zeros(a.shape[:-1] + (2 * a.shape[-1],), np.float32)
        w[..., 0] = a[..., 0]
        w[..., -1] = a[..., -1]
        w[..., 1:-1:2] = 0.75 * a[..., :-1] + 0.25 * a[..., 1:]
        w[..., 2:-1:2] = 0.25 * a[..., :-1] + 0.75 * a[..., 1:]
        return w

    w = up(up(x.transpose(0, 2, 1)).transpose(0, 2, 1))
    return kernel, (x,), w


@case()
def loop_reduce(rng):
    @nki.jit
    def kernel(a):
        out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        for j in nl.affine_range(2):
            for i in nl.affine_range(4):
                t = nl.load(a[j, i])
                m = nl.loop_reduce(t, op=np.max, loop_indices=[i], dtype=nl.float32)
            nl.store(out[:, j * 32 : (j + 1) * 32], m)
        return out

    a = f32(rng, 2, 4, 128, 32)
    return kernel, (a,), np.concatenate([a[0].max(0), a[1].max(0)], 1)


@case(1e-6, grid=(2, 3))
def all_reduce_axes(rng):
    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        i, j = nl.program_id(0), nl.program_id(1)
        t = nl.load(a[i, j])
        m = nl.all_reduce(t, op=np.max, program_axes=[1])
        m += 1.0
        s = nl.all_reduce(m, op=nl.add, program_axes=(0, 1))
        nl.store(out[i, j], m + s)
        return out

    a = f32(rng, 2, 3, 64, 16)
    m = a.max(1, keepdims=True) + 1
    s = np.broadcast_to(m, a.shape).sum((0, 1), keepdims=True)
    return kernel, (a,), m + s + np.zeros_like(a)


@case()
def running_max_sum(rng):
    @nki.jit
    def online_softmax(x, tile=64):
        R, N = x.shape
        out = nl.ndarray((R, N), dtype=x.dtype, buffer=nl.shared_hbm)
        m = nl.full((R, 1), -1e30, dtype=nl.float32, buffer=nl.sbuf)
        l = nl.zeros((R, 1), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.sequential_range(N // tile):
            t = nl.load(x[:, nl.ds(j * tile, tile)])
            m_new = nl.maximum(m, nl.max(t, axis=[1], keepdims=True))
            corr = nl.exp(m - m_new)
            p = nl.exp(t - m_new)
            l[...] = l * corr + nl.sum(p, axis=[1], keepdims=True)
            m[...] = m_new
        for j in nl.affine_range(N // tile):
            t = nl.load(x[:, nl.ds(j * tile, tile)])
            nl.store(out[:, nl.ds(j * tile, tile)], nl.exp(t - m) / l)
        return out

    x = f32(rng, 100, 256)
    return online_softmax, (x,), softmax(x)


@case(1e-4)
def groupnorm(rng):
    @nki.jit
    def kernel(x, groups):
        C, L = x.shape
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.load(x)
        per = C // groups
        g = np.zeros((C, C), dtype=np.float32)
        for i in range(groups):
            g[i * per : (i + 1) * per, i * per : (i + 1) * per] = 1.0 / (per * L)
        gt = nl.load(nl.shared_constant(g))
        s1 = nl.sum(t, axis=1, keepdims=True)
        s2 = nl.sum(nl.square(t), axis=1, keepdims=True)
        both = nl.ndarray((nl.par_dim(C), 2), dtype=nl.float32, buffer=nl.sbuf)
        both[:, 0:1] = s1
        both[:, 1:2] = s2
        mom = nl.copy(nl.matmul(gt, both, transpose_x=True))
        var = mom[:, 1:2] - nl.square(mom[:, 0:1])
        y = (t - mom[:, 0:1]) * nl.rsqrt(var + 1e-5)
        nl.store(out, y)
        return out

    x = f32(rng, 64, 50)
    xx = x.reshape(8, 8 * 50)
    return kernel, (x, 8), ((xx - xx.mean(1, keepdims=True)) / np.sqrt(xx.var(1, keepdims=True) + 1e-5)).reshape(64, 50)


@case(1e-4, grid=(2,))
def sd_attention(rng):
    @nki.jit
    def fused_self_attn(q_ref, k_ref, v_ref, use_causal_mask=False, mixed_precision=True):
        kernel_dtype = q_ref.dtype
        pe_in_dt = nl.bfloat16 if mixed_precision else np.float32
        bs, seqlen, d_head = q_ref.shape
        batch_id = nl.program_id(axis=0)
        out_ref = nl.ndarray((bs, seqlen, d_head), dtype=kernel_dtype, buffer=nl.shared_hbm)
        softmax_scale = 0.125
        q_n, k_n = seqlen // 128, seqlen // 128
        v_n = seqlen // 128
        trans_v = nl.ndarray((par_dim(128), v_n, d_head), dtype=pe_in_dt)
        for i_k in nl.affine_range(k_n):
            ip_v = nl.arange(128)[:, None]
            if_v = nl.arange(d_head)[None, :]
            trans_v[ip_v, i_k, if_v] = nl.load(v_ref[batch_id, i_k * 128 + ip_v, if_v], dtype=pe_in_dt)
        q_local = nl.ndarray((q_n, par_dim(d_head), 128), dtype=pe_in_dt)
        ip_q = nl.arange(d_head)[:, None]
        if_q = nl.arange(128)[None, :]
        for i_q in nl.affine_range(q_n):
            q_local[i_q, ip_q, if_q] = (
                nl.load_transpose2d(q_ref[batch_id, i_q * 128 + nl.arange(128)[:, None], nl.arange(d_head)[None, :]], dtype=pe_in_dt) * softmax_scale
            )
        k_local = nl.ndarray((k_n, par_dim(d_head), 128), dtype=pe_in_dt)
        for i_k in nl.affine_range(k_n):
            k_local[i_k, ip_q, if_q] = nl.load_transpose2d(k_ref[batch_id, nl.ds(i_k * 128, 128), :], dtype=pe_in_dt)
        for i_q in nl.affine_range(q_n):
            qk_res = nl.ndarray((par_dim(128), seqlen), dtype=kernel_dtype)
            neg_max = nl.ndarray((par_dim(128), k_n), dtype=kernel_dtype)
            ip_max = nl.arange(128)[:, None]
            if_max = nl.arange(k_n)[None, :]
            for i_k in nl.affine_range(k_n):
                qk_psum = nl.zeros((par_dim(128), 128), dtype=np.float32, buffer=nl.psum)
                ip_qk = nl.arange(128)[:, None]
                if_qk = nl.arange(128)[None, :]
                qk_psum[ip_qk, if_qk] += nisa.nc_matmul(moving=k_local[i_k, ip_q, if_q], stationary=q_local[i_q, ip_q, if_q])
                if use_causal_mask:
                    qk_res[ip_qk, i_k * 128 + if_qk] = nisa.affine_select(
                        pred=(i_q * 128 + ip_qk >= i_k * 128 + if_qk), on_true_tile=qk_psum[ip_qk, if_qk], on_false_value=-9984.0, dtype=kernel_dtype
                    )
                else:
                    qk_res[ip_qk, i_k * 128 + if_qk] = nl.copy(qk_psum[ip_qk, if_qk], dtype=kernel_dtype)
                neg_max[ip_max, i_k] = nisa.tensor_reduce(np.max, data=qk_res[ip_qk, i_k * 128 + if_qk], axis=(1,), dtype=kernel_dtype, negate=True)
            neg_max_res = nisa.tensor_reduce(np.min, data=neg_max[ip_max, if_max], axis=(1,), dtype=kernel_dtype, negate=False)
            ip_s = nl.arange(128)[:, None]
            if_s = nl.arange(seqlen)[None, :]
            exp_res = nisa.activation(np.exp, data=qk_res[ip_s, if_s], bias=neg_max_res, scale=1.0)
            sum_res = nisa.tensor_reduce(np.add, data=exp_res, axis=(1,), dtype=kernel_dtype)
            softmax_res = nl.copy(exp_res, dtype=pe_in_dt)
            recip = nl.reciprocal(sum_res).broadcast_to((128, d_head))
            trans_softmax = nl.ndarray((par_dim(128), k_n, 128), dtype=pe_in_dt)
            for i_k in nl.affine_range(k_n):
                trans_softmax[ip_qk, i_k, if_qk] = nisa.nc_transpose(softmax_res[ip_s, i_k * 128 + nl.arange(128)[None, :]])
            attn = nl.zeros((par_dim(128), d_head), dtype=np.float32, buffer=nl.psum)
            ip_o = nl.arange(128)[:, None]
            if_o = nl.arange(d_head)[None, :]
            for i_k in nl.affine_range(k_n):
                attn[ip_o, if_o] += nisa.nc_matmul(stationary=trans_softmax[ip_qk, i_k, if_qk], moving=trans_v[ip_qk, i_k, if_o])
            res = nl.multiply(attn[ip_o, if_o], recip[ip_o, if_o])
            nl.store(out_ref[batch_id, i_q * 128 + ip_o, if_o], value=res)
        return out_ref

    q, k, v = (f32(rng, 2, 256, 64) for _ in range(3))
    s = q @ k.transpose(0, 2, 1) * 0.125
    i = np.arange(256)
    s = np.where(i[:, None] >= i[None, :], s, -9984.0)
    return fused_self_attn, (q, k, v, True, False), softmax(s) @ v


@case(1e-4)
def attention_backward(rng):
    @nki.jit
    def bwd(q, k, v, dy):
        d, S = q.shape
        dq = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
        dk = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
        dv = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
        ql, kl, vl, dyl = nl.load(q), nl.load(k), nl.load(v), nl.load(dy)
        s = nl.matmul(ql, kl, transpose_x=True)
        m = nl.max(s, axis=1, keepdims=True)
        p = nl.exp(s - m)
        p = p / nl.sum(p, axis=1, keepdims=True)
        dyT = nl.copy(nl.transpose(dyl))
        nl.store(dv, nl.matmul(p, dyT, transpose_x=True))
        dp = nl.matmul(dyl, vl, transpose_x=True)
        pdp = nl.multiply(p, dp)
        delta = nl.sum(pdp, axis=[1], keepdims=True)
        ds = pdp - p * delta
        kT, qT = nl.transpose(kl), nl.transpose(ql)
        nl.store(dq, nl.matmul(ds, kT))
        nl.store(dk, nl.matmul(ds, qT, transpose_x=True))
        return dq, dk, dv

    d, S = 64, 128
    q, k, v, dy = (f32(rng, d, S) * 0.3 for _ in range(4))
    P = softmax(q.T @ k)
    dP = dy.T @ v
    dS = P * (dP - (P * dP).sum(1, keepdims=True))
    return bwd, (q, k, v, dy), (dS @ k.T, dS.T @ q.T, P.T @ dy.T)


@case()
def maxpool_masked_tail(rng):
    @nki.jit
    def kernel(x, k, s):
        C, H, W = x.shape
        HO, WO = (H - k) // s + 1, (W - k) // s + 1
        out = nl.ndarray((C, HO, WO), dtype=x.dtype, buffer=nl.shared_hbm)
        n = math.ceil(C / 128)
        i_p, i_h, i_w = nl.mgrid[0:128, 0:H, 0:W]
        o0, o1, o2, o3, o4 = nl.mgrid[0:128, 0:HO, 0:WO, 0:k, 0:k]
        s0, s1, s2 = nl.mgrid[0:128, 0:HO, 0:WO]
        for t in nl.affine_range(n):
            tile = nl.load(x[t * 128 + i_p, i_h, i_w], mask=(t * 128 + i_p < C))
            r = nl.max(tile[o0, s * o1 + o3, s * o2 + o4], axis=[3, 4], mask=(t * 128 + o0 < C))
            nl.store(out[t * 128 + s0, s1, s2], value=r, mask=(t * 128 + s0 < C))
        return out

    x = f32(rng, 150, 9, 11)
    k, s = 3, 2
    w = np.stack([x[:, i : i + 2 * 4 : 2, j : j + 2 * 5 : 2] for i in range(3) for j in range(3)]).max(0)
    return kernel, (x, k, s), w


@case(1e-4)
def matmul_masked(rng):
    @nki.jit
    def kernel(a, b):
        M, K = a.shape
        _, N = b.shape
        out = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)
        ik, im, iN = nl.arange(128)[:, None], nl.arange(128)[None, :], nl.arange(512)[None, :]
        ip = nl.arange(128)[:, None]
        for m in nl.affine_range(math.ceil(M / 128)):
            for n in nl.affine_range(math.ceil(N / 512)):
                acc = nl.zeros((par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
                for k in nl.affine_range(math.ceil(K / 128)):
                    at = nl.load_transpose2d(a[m * 128 + ip, k * 128 + im], mask=((m * 128 + ip < M) & (k * 128 + im < K)))
                    bt = nl.load(b[k * 128 + ik, n * 512 + iN], mask=((k * 128 + ik < K) & (n * 512 + iN < N)))
                    acc += nl.matmul(at, bt, transpose_x=True)
                nl.store(out[m * 128 + ip, n * 512 + iN], value=nl.copy(acc, dtype=out.dtype), mask=((m * 128 + ip < M) & (n * 512 + iN < N)))
        return out

    a, b = f32(rng, 200, 300) * 0.1, f32(rng, 300, 600) * 0.1
    return kernel, (a, b), a @ b


@case()
def select_and_scatter(rng):
    @nki.jit
    def kernel(operand, source):
        # 2x2 windows, stride 2: the gradient goes to where the maximum was
        C, H, W = operand.shape
        out = nl.ndarray(operand.shape, dtype=operand.dtype, buffer=nl.shared_hbm)
        t, g = nl.load(operand), nl.load(source)
        i0, i1, i2, i3, i4 = nl.mgrid[0:C, 0 : H // 2, 0 : W // 2, 0:2, 0:2]
        mx = nl.max(t[i0, 2 * i1 + i3, 2 * i2 + i4], axis=[3, 4])
        o = nl.ndarray((par_dim(C), H, W), dtype=operand.dtype, buffer=nl.sbuf)
        p, a, b = nl.mgrid[0:C, 0 : H // 2, 0 : W // 2]
        for y in nl.static_range(2):
            for x in nl.static_range(2):
                hit = nl.equal(t[p, 2 * a + y, 2 * b + x], mx[p, a, b], dtype=operand.dtype)
                o[p, 2 * a + y, 2 * b + x] = nl.multiply(hit, g[p, a, b])
        nl.store(out, o)
        return out

    x = rng.permutation(32 * 8 * 8).reshape(32, 8, 8).astype(np.float32)
    g = f32(rng, 32, 4, 4)
    xx = x.reshape(32, 4, 2, 4, 2)
    m = xx.max((2, 4), keepdims=True)
    return kernel, (x, g), ((xx == m) * g[:, :, None, :, None]).reshape(x.shape).astype(np.float32)


@case(0)
def int_ops(rng):
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.shared_hbm)
        t = nl.load(x)
        a = nl.bitwise_and(t, 0xFF)
        b = nl.right_shift(t, 4)
        c = nl.bitwise_xor(a, b)
        d = nl.left_shift(c, 2, dtype=nl.int32)
        e = nl.where(t > 100, d, nl.invert(c))
        nl.store(out, e | 1)
        return out

    x = rng.integers(0, 1 << 20, (128, 16)).astype(np.int32)
    c = (x & 255) ^ (x >> 4)
    return kernel, (x,), np.where(x > 100, c << 2, ~c) | 1


@case(1e-4)
def masked_softmax_cols(rng):
    @nki.jit
    def kernel(x):
        R, N = x.shape
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        ip, jf = nl.arange(128)[:, None], nl.arange(512)[None, :]
        for t in nl.affine_range((R + 127) // 128):
            a = nl.load(x[t * 128 + ip, jf], mask=(t * 128 + ip < R) & (jf < N))
            m = nl.max(a[ip, jf], axis=[1], mask=(t * 128 + ip < R) & (jf < N))
            e = nl.exp(nl.subtract(a[ip, jf], m, mask=(t * 128 + ip < R) & (jf < N)))
            s = nl.sum(e[ip, jf], axis=[1], mask=(t * 128 + ip < R) & (jf < N), keepdims=True)
            nl.store(out[t * 128 + ip, jf], nl.divide(e, s.broadcast_to((128, 512))), mask=(t * 128 + ip < R) & (jf < N))
        return out

    x = f32(rng, 150, 300)
    return kernel, (x,), softmax(x)


@case(1e-4)
def misc(rng):
    @nki.jit
    def kernel(x, y):
        out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        a, b = nl.load(x), nl.load(y)
        c = nl.minimum(nl.maximum(a, -1.0), 1.0)
        d = nl.where(nl.logical_and(a > 0, b > 0), nl.sqrt(nl.abs(a)), nl.negative(b))
        e = nl.silu(a) + nl.sigmoid(b) * nl.tanh(a) - nl.softplus(b)
        z = nl.zeros_like(a)
        z[:, :] = c + d
        z -= 0.5
        z *= e
        z /= 2.0
        v = nl.var(a, axis=1)
        z = z + nl.mean(a, axis=[1], keepdims=True) * v
        nl.store(out, z**2)
        return out

    x, y = f32(rng, 128, 64), f32(rng, 128, 64)
    sg = lambda t: 1 / (1 + np.exp(-t))
    c = np.clip(x, -1, 1)
    d = np.where((x > 0) & (y > 0), np.sqrt(np.abs(x)), -y)
    e = x * sg(x) + sg(y) * np.tanh(x) - np.log1p(np.exp(y))
    z = (c + d - 0.5) * e / 2 + x.mean(1, keepdims=True) * x.var(1, keepdims=True)
    return kernel, (x, y), z**2


@case()
def causal(rng):
    @nki.jit
    def kernel(qk):
        out = nl.ndarray(qk.shape, dtype=qk.dtype, buffer=nl.shared_hbm)
        i_q, i_k = nl.mgrid[0:128, 0:256]
        t = nl.load(qk)
        m = nisa.affine_select(pred=(i_q + 64 >= i_k), on_true_tile=t, on_false_value=-9984.0)
        idx = nisa.iota(i_k, dtype=nl.int32)
        w = nl.where(nl.less(idx, 10), m, nl.maximum(m, -5.0))
        nl.store(out, w)
        return out

    x = f32(rng, 128, 256)
    i = np.arange(128)[:, None]
    k = np.arange(256)[None, :]
    m = np.where(i + 64 >= k, x, -9984.0)
    return kernel, (x,), np.where(k < 10, m, np.maximum(m, -5.0)).astype(np.float32)


@case()
def transposed_convolution(rng):
    @nki.jit
    def kernel(x, w):
        # transposed 1d convolution, stride 2, by writing every other column
        C, L = x.shape
        _, O, K = w.shape
        out = nl.ndarray((O, 2 * L + K - 2), dtype=x.dtype, buffer=nl.shared_hbm)
        xt, wt = nl.load(x), nl.load(w)
        acc = nl.zeros((par_dim(O), 2 * L + K - 2), dtype=nl.float32, buffer=nl.sbuf)
        i_o, i_l = nl.mgrid[0:O, 0:L]
        for k in nl.static_range(K):
            p = nl.matmul(wt[:, :, k], xt, transpose_x=True)
            acc[i_o, 2 * i_l + k] += p
        nl.store(out, acc)
        return out

    x, w = f32(rng, 32, 20), f32(rng, 32, 16, 3)
    want = np.zeros((16, 41), np.float32)
    for k in range(3):
        want[:, k : k + 40 : 2] += np.einsum("co,cl->ol", w[:, :, k], x)
    return kernel, (x, w), want


@case(2e-2)
def bf16_layernorm_bwd(rng):
    @nki.jit
    def kernel(x, dy, g):
        R, H = x.shape
        dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        dg = nl.ndarray((1, H), dtype=nl.float32, buffer=nl.shared_hbm)
        gt = nl.load(g.reshape((1, H)), dtype=nl.float32).broadcast_to((128, H))
        ones = nl.ones((128, 1), dtype=nl.float32)
        acc = nl.zeros((1, H), dtype=nl.float32, buffer=nl.psum)
        for i in nl.affine_range(R // 128):
            xt = nl.load(x[i * 128 : (i + 1) * 128], dtype=nl.float32)
            d = nl.load(dy[i * 128 : (i + 1) * 128], dtype=nl.float32)
            mu = nl.mean(xt, axis=1, keepdims=True)
            xc = nl.subtract(xt, mu)
            var = nl.mean(nl.square(xc), axis=1, keepdims=True)
            r = nl.rsqrt(nl.add(var, 1e-5))
            xn = xc * r
            dn = d * gt
            t = dn - nl.mean(dn, axis=1, keepdims=True) - xn * nl.mean(dn * xn, axis=1, keepdims=True)
            nl.store(dx[i * 128 : (i + 1) * 128], nl.multiply(t, r, dtype=x.dtype))
            acc += nl.matmul(ones, d * xn, transpose_x=True)
        nl.store(dg, acc)
        return dx, dg

    bf = ml_dtypes.bfloat16
    F = np.float32
    x, dy, g = f32(rng, 256, 96).astype(bf), f32(rng, 256, 96).astype(bf), f32(rng, 96)
    X, D = x.astype(F), dy.astype(F)
    mu = X.mean(1, keepdims=True)
    v = X.var(1, keepdims=True)
    r = 1 / np.sqrt(v + 1e-5)
    n = (X - mu) * r
    dn = D * g
    return kernel, (x, dy, g), ((dn - dn.mean(1, keepdims=True) - n * (dn * n).mean(1, keepdims=True)) * r, (D * n).sum(0, keepdims=True))


@case()
def argmax_by_iota(rng):
    @nki.jit
    def kernel(x):
        R, N = x.shape
        out = nl.ndarray((R, 1), dtype=nl.int32, buffer=nl.shared_hbm)
        t = nl.load(x)
        m = nl.max(t, axis=1, keepdims=True)
        idx = nisa.iota(nl.arange(N)[None, :], dtype=nl.float32)
        idx = idx.broadcast_to((R, N))
        big = nl.full((R, N), float(N), dtype=nl.float32, buffer=nl.sbuf)
        c = nl.where(t >= m, idx, big)
        nl.store(out, nl.min(c, axis=1, keepdims=True, dtype=nl.int32))
        return out

    x = f32(rng, 70, 50)
    return kernel, (x,), x.argmax(1).astype(np.int32)[:, None]


@case()
def softmax_in_a_dynamic_loop(rng):
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        ip, jf = nl.arange(128)[:, None], nl.arange(64)[None, :]
        for i in nl.dynamic_range(4):
            t = nl.load(x[i * 128 + ip, jf])
            u = nl.exp(t)
            nl.store(out[i * 128 + ip, jf], u / nl.sum(u, axis=1, keepdims=True))
        return out

    x = f32(rng, 512, 64)
    e = np.exp(x)
    return kernel, (x,), e / e.sum(1, keepdims=True)


@case()
def load_1d_on_partitions(rng):
    @nki.jit
    def kernel(v, x):
        out = nl.ndarray(x.shape, dtype=v.dtype, buffer=nl.shared_hbm)
        i_p = nl.arange(128)
        s = nl.load(v[i_p])
        t = nl.load(x)
        nl.store(out, t * s)
        return out

    v, x = f32(rng, 128), f32(rng, 128, 16)
    return kernel, (v, x), x * v[:, None]


@case()
def one_row_vector_ops(rng):
    @nki.jit
    def kernel(v, w):
        out = nl.ndarray((1,), dtype=v.dtype, buffer=nl.shared_hbm)
        a = nl.load(v.reshape((1, v.shape[0])))
        b = nl.load(w.reshape((1, w.shape[0])))
        nl.store(out, nl.sum(a * b, axis=1))
        return out

    v, w = f32(rng, 300), f32(rng, 300)
    return kernel, (v, w), np.array([(v * w).sum()])


@case()
def sliding_window_sum(rng):
    @nki.jit
    def kernel(x, w):
        R, N = x.shape
        out = nl.ndarray((R, N - w + 1), dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.load(x)
        i_p, i_o, i_w = nl.mgrid[0:R, 0 : N - w + 1, 0:w]
        s = nl.sum(t[i_p, i_o + i_w], axis=2)
        nl.store(out, s)
        return out

    x = f32(rng, 100, 40)
    return kernel, (x, 5), np.lib.stride_tricks.sliding_window_view(x, 5, axis=1).sum(2)


@pytest.mark.parametrize("make, tolerance, grid", CASES)
def test_kernel_as_others_write_it(make, tolerance, grid, rng):
    check_kernel(make, tolerance, grid, rng)
