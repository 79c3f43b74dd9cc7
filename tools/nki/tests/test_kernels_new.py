"""Kernels of the new style, as others write them.

Each case makes a kernel, its arrays and what numpy says of them.
"""

import dataclasses
import enum
import math

import ml_dtypes
import numpy as np
import pytest
from conftest import check_kernel, f32, kernel_cases, softmax

import nki
import nki.isa as nisa
import nki.language as nl
from nki.isa.constants import dge_mode, oob_mode

CASES, case = kernel_cases()
P = 128


def div_ceil(a, b):
    return (a + b - 1) // b


class NormType(enum.Enum):
    RMS = 0
    LAYER = 1


@dataclasses.dataclass
class NormConfig(nl.NKIObject):
    hidden: int
    eps: float = 1e-6
    norm: NormType = NormType.RMS
    dtype = nl.float32


@case()
def rmsnorm(rng):
    def load_tile(x, r0, rows):
        t = nl.ndarray((rows, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf, name="x_tile")
        nisa.dma_copy(dst=t[0:rows, :], src=x[r0 : r0 + rows, :])
        return t

    @nki.jit
    def kernel(x: nl.NkiTensor, w, cfg=None, eps: float = 1e-6):
        cfg = cfg or NormConfig(hidden=x.shape[1], eps=eps)
        rows_total, H = x.shape
        assert H == cfg.hidden and x.dtype == cfg.dtype
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        wt = nl.ndarray((P, H), dtype=w.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=wt, src=w.reshape((1, H)).broadcast_to((P, H)))
        for i in range(div_ceil(rows_total, P)):
            n = min(P, rows_total - i * P)
            xt = load_tile(x, i * P, n)
            ss = nl.ndarray((n, 1), dtype=nl.float32, buffer=nl.sbuf)
            sq = nl.ndarray(xt.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation_reduce(dst=sq, op=nl.square, data=xt, reduce_op=nl.add, reduce_res=ss)
            nisa.tensor_scalar(dst=ss, data=ss, op0=nl.multiply, operand0=1.0 / H, op1=nl.add, operand1=cfg.eps)
            nisa.activation(dst=ss, op=nl.rsqrt, data=ss)
            y = nl.ndarray(xt.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.scalar_tensor_tensor(dst=y, data=xt, op0=nl.multiply, operand0=ss, op1=nl.multiply, operand1=wt[0:n, :])
            nisa.dma_copy(dst=out[nl.ds(i * P, n), :], src=y)
        return out

    x, w = f32(rng, 300, 256), f32(rng, 256)
    return kernel, (x, w), x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w


@case(1e-4)
def flash(rng):
    @nki.jit
    def kernel(q, k, v, scale=None):
        B, S, D = q.shape
        scale = scale or 1.0 / math.sqrt(D)
        out = nl.ndarray((B, S, D), dtype=q.dtype, buffer=nl.shared_hbm)
        for b in nl.affine_range(B):
            for qi in nl.affine_range(S // P):
                qT = nl.ndarray((D, P), dtype=q.dtype, buffer=nl.sbuf)
                nisa.dma_transpose(dst=qT, src=q[b, qi * P : (qi + 1) * P, :])
                m = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                nisa.memset(dst=m, value=-3e38)
                l = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                nisa.memset(dst=l, value=0.0)
                o = nl.ndarray((P, D), dtype=nl.float32, buffer=nl.sbuf)
                nisa.memset(dst=o, value=0.0)
                for ki in range(qi + 1):
                    kT = nl.ndarray((D, P), dtype=q.dtype, buffer=nl.sbuf)
                    nisa.dma_transpose(dst=kT, src=k[b, ki * P : (ki + 1) * P, :])
                    vt = nl.ndarray((P, D), dtype=q.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(dst=vt, src=v[b, ki * P : (ki + 1) * P, :])
                    sp = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.psum)
                    nisa.nc_matmul(dst=sp, stationary=qT, moving=kT)
                    s = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.tensor_scalar(dst=s, data=sp, op0=nl.multiply, operand0=scale)
                    if ki == qi:
                        nisa.affine_select(
                            dst=s, pattern=[[-1, P]], offset=0, channel_multiplier=1, on_true_tile=s, on_false_value=-1e30, cmp_op=nl.greater_equal
                        )
                    mx = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.tensor_reduce(dst=mx, op=nl.maximum, data=s, axis=1)
                    mn = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.tensor_tensor(dst=mn, data1=mx, data2=m, op=nl.maximum)
                    neg = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.tensor_scalar(dst=neg, data=mn, op0=nl.multiply, operand0=-1.0)
                    corr = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.activation(dst=corr, op=nl.exp, data=m, bias=neg)
                    rs = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                    p = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.activation(dst=p, op=nl.exp, data=s, bias=neg, reduce_op=nl.add, reduce_res=rs, reduce_cmd=nisa.reduce_cmd.reset_reduce)
                    nisa.scalar_tensor_tensor(dst=l, data=l, op0=nl.multiply, operand0=corr, op1=nl.add, operand1=rs)
                    pT = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.psum)
                    nisa.nc_transpose(dst=pT, data=p)
                    ps = nl.ndarray((P, P), dtype=q.dtype, buffer=nl.sbuf)
                    nisa.tensor_copy(dst=ps, src=pT, engine=nisa.engine.vector)
                    op = nl.ndarray((P, D), dtype=nl.float32, buffer=nl.psum)
                    nisa.nc_matmul(dst=op, stationary=ps, moving=vt)
                    nisa.scalar_tensor_tensor(dst=o, data=o, op0=nl.multiply, operand0=corr, op1=nl.add, operand1=op)
                    nisa.tensor_copy(dst=m, src=mn)
                nisa.reciprocal(dst=l, data=l)
                res = nl.ndarray((P, D), dtype=q.dtype, buffer=nl.sbuf)
                nisa.activation(dst=res, op=nl.copy, data=o, scale=l)
                nisa.dma_copy(dst=out[b, nl.ds(qi * P, P), :], src=res)
        return out

    q, k, v = (f32(rng, 2, 256, 64) for _ in range(3))
    s = q @ k.transpose(0, 2, 1) / 8
    i = np.arange(256)
    s = np.where(i[:, None] >= i[None, :], s, -1e30)
    return kernel, (q, k, v), softmax(s) @ v


@case(0)
def moe_gather(rng):
    @nki.jit
    def kernel(tokens, index):
        T, H = tokens.shape
        out = nl.ndarray((index.shape[0], H), dtype=tokens.dtype, buffer=nl.shared_hbm)
        for i in range(index.shape[0] // P):
            ix = nl.ndarray((P, 1), dtype=nl.int32, buffer=nl.sbuf)
            nisa.dma_copy(dst=ix, src=index.reshape((index.shape[0], 1))[i * P : (i + 1) * P, :])
            t = nl.ndarray((P, H), dtype=tokens.dtype, buffer=nl.sbuf)
            nisa.memset(dst=t, value=0)
            nisa.dma_copy(
                dst=t,
                src=tokens.ap(pattern=[[H, P], [1, H]], offset=0, vector_offset=ix, indirect_dim=0),
                oob_mode=oob_mode.skip,
                dge_mode=dge_mode.swdge,
            )
            nisa.dma_copy(dst=out[i * P : (i + 1) * P, :], src=t)
        return out

    t = f32(rng, 100, 32)
    ix = rng.integers(0, 140, 256).astype(np.int32)
    w = np.where((ix < 100)[:, None], t[np.minimum(ix, 99)], 0).astype(np.float32)
    return kernel, (t, ix), w


@case()
def rope_interleaved(rng):
    @nki.jit
    def kernel(x, cos, sin):
        S, D = x.shape
        out = nl.ndarray((S, D), dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray((S, D), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        c = nl.ndarray((S, D // 2), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=c, src=cos)
        s = nl.ndarray((S, D // 2), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=s, src=sin)
        even, odd = t[:, 0:D:2], t[:, nl.ds(1, D // 2, 2)]
        o = nl.ndarray((S, D), dtype=x.dtype, buffer=nl.sbuf)
        ov = o.rearrange("s (d two) -> s two d", two=2)
        tmp = nl.ndarray((S, D // 2), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=ov[:, 0, :], data1=even, data2=c, op=nl.multiply)
        nisa.tensor_tensor(dst=tmp, data1=odd, data2=s, op=nl.multiply)
        nisa.tensor_tensor(dst=ov[:, 0, :], data1=ov[:, 0], data2=tmp, op=nl.subtract)
        nisa.tensor_tensor(dst=ov[:, 1, :], data1=even, data2=s, op=nl.multiply)
        nisa.tensor_tensor(dst=tmp, data1=odd, data2=c, op=nl.multiply)
        nisa.tensor_tensor(dst=ov[:, 1, :], data1=ov[:, 1, :], data2=tmp, op=np.add)
        nisa.dma_copy(dst=out, src=o)
        return out

    x, c, s = f32(rng, 96, 64), f32(rng, 96, 32), f32(rng, 96, 32)
    e, o = x[:, ::2], x[:, 1::2]
    w = np.empty_like(x)
    w[:, ::2] = e * c - o * s
    w[:, 1::2] = e * s + o * c
    return kernel, (x, c, s), w


@case(2e-2)
def swiglu_mlp_bf16(rng):
    @nki.jit
    def kernel(x, wg, wu, wd):
        T, H = x.shape
        I = wg.shape[1]
        out = nl.ndarray((T, H), dtype=x.dtype, buffer=nl.shared_hbm)
        KT = H // P
        xT = [nl.ndarray((P, T), dtype=x.dtype, buffer=nl.sbuf, name=f"xT{k}") for k in range(KT)]
        for k in range(KT):
            nisa.dma_transpose(dst=xT[k], src=x[:, k * P : (k + 1) * P])
        act = []
        for i in range(I // P):
            g = nl.ndarray((P, T), dtype=nl.float32, buffer=nl.psum)
            u = nl.ndarray((P, T), dtype=nl.float32, buffer=nl.psum)
            for w, d in ((wg, g), (wu, u)):
                for k in range(KT):
                    wt = nl.ndarray((P, P), dtype=w.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(dst=wt, src=w[k * P : (k + 1) * P, i * P : (i + 1) * P])
                    nisa.nc_matmul(dst=d, stationary=wt, moving=xT[k], accumulate=k > 0)
            a = nl.ndarray((P, T), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=a, op=nl.silu, data=g)
            h = nl.ndarray((P, T), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=h, data1=a, data2=u, op=nl.multiply)
            act.append(h)
        acc = nl.ndarray((T, H), dtype=nl.float32, buffer=nl.psum)
        for i, h in enumerate(act):
            wt = nl.ndarray((P, H), dtype=wd.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=wt, src=wd[i * P : (i + 1) * P, :])
            nisa.nc_matmul(dst=acc, stationary=h, moving=wt)
        res = nl.ndarray((T, H), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=res, src=acc)
        nisa.dma_copy(dst=out, src=res)
        return out

    bf = ml_dtypes.bfloat16
    x, wg, wu, wd = [(f32(rng, *s) * 0.1).astype(bf) for s in ((64, 256), (256, 384), (256, 384), (384, 256))]
    F = np.float32
    g = x.astype(F) @ wg.astype(F)
    u = x.astype(F) @ wu.astype(F)
    return kernel, (x, wg, wu, wd), (g / (1 + np.exp(-g)) * u) @ wd.astype(F)


@case()
def conv2d_im2col(rng):
    @nki.jit
    def kernel(img, w):
        Cin, H, W = img.shape
        Cout, _, KH, KW = w.shape
        HO, WO = H - KH + 1, W - KW + 1
        out = nl.ndarray((Cout, HO, WO), dtype=img.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray((Cin, H, W), dtype=img.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=img)
        wt = nl.ndarray((Cin, KH, KW, Cout), dtype=w.dtype, buffer=nl.sbuf)
        for a in range(KH):
            for b in range(KW):
                nisa.dma_copy(dst=wt[:, a, b, :], src=w[:, :, a, b].permute(1, 0))
        p = nl.ndarray((Cout, HO, WO), dtype=nl.float32, buffer=nl.psum)
        for a in range(KH):
            for b in range(KW):
                nisa.nc_matmul(dst=p, stationary=wt[:, a, b], moving=t[:, a : a + HO, b : b + WO])
        o = nl.ndarray(p.shape, dtype=img.dtype, buffer=nl.sbuf)
        nisa.activation(dst=o, op=nl.relu, data=p)
        nisa.dma_copy(dst=out, src=o)
        return out

    x, w = f32(rng, 16, 10, 12), f32(rng, 24, 16, 3, 3) * 0.1
    want = np.zeros((24, 8, 10), np.float32)
    for a in range(3):
        for b in range(3):
            want += np.einsum("oc,chw->ohw", w[:, :, a, b], x[:, a : a + 8, b : b + 10])
    return kernel, (x, w), np.maximum(want, 0)


@case()
def cross_entropy(rng):
    @nki.jit
    def kernel(logits, labels):
        N, V = logits.shape
        loss = nl.ndarray((N, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        t = nl.ndarray((N, V), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=logits)
        lab = nl.ndarray((N, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=lab, src=labels.reshape((N, 1)))
        labf = nl.ndarray((N, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=labf, src=lab)
        io = nl.ndarray((N, V), dtype=nl.float32, buffer=nl.sbuf)
        nisa.iota(dst=io, pattern=[[1, V]], offset=0, channel_multiplier=0)
        oh = nl.ndarray((N, V), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=oh, data=io, op0=nl.equal, operand0=labf)
        pick = nl.ndarray((N, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=oh, data1=oh, data2=t, op=nl.multiply)
        nisa.tensor_reduce(dst=pick, op=nl.add, data=oh, axis=1)
        mx = nl.ndarray((N, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=mx, op=nl.maximum, data=t, axis=[1], negate=True)
        se = nl.ndarray((N, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(dst=t, op=nl.exp, data=t, bias=mx, reduce_op=nl.add, reduce_res=se)
        nisa.activation(dst=se, op=nl.log, data=se)
        nisa.tensor_tensor(dst=se, data1=se, data2=mx, op=nl.subtract)
        nisa.tensor_tensor(dst=se, data1=se, data2=pick, op=nl.subtract)
        nisa.dma_copy(dst=loss, src=se)
        return loss

    x = f32(rng, 100, 50)
    y = rng.integers(0, 50, 100).astype(np.int32)
    m = x.max(1, keepdims=True)
    w = np.log(np.exp(x - m).sum(1, keepdims=True)) + m - np.take_along_axis(x, y[:, None].astype(int), 1)
    return kernel, (x, y), w


@case()
def dynamic_rows(rng):
    @nki.jit
    def kernel(x, n):
        R, W = x.shape
        out = nl.ndarray((R, W), dtype=x.dtype, buffer=nl.shared_hbm)
        z = nl.ndarray((P, W), dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(dst=z, value=0)
        for i in nl.static_range(R // P):
            nisa.dma_copy(dst=out[i * P : (i + 1) * P, :], src=z)
        nt = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=nt, src=n.reshape((1, 1)))
        reg = nisa.register_alloc(nt)
        for i in nl.dynamic_range(0, reg):
            t = nl.ndarray((P, W), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x[nl.ds(i * P, P), :])
            nisa.activation(dst=t, op=nl.gelu, data=t)
            nisa.dma_copy(dst=out[nl.ds(i * P, P), :], src=t)
        return out

    from math import erf

    x = f32(rng, 512, 8)
    n = np.array([3], np.int32)
    g = np.vectorize(lambda t: 0.5 * t * (1 + erf(t / 2**0.5)))(x)
    g[384:] = 0
    return kernel, (x, n), g


@case(1e-5, grid=(2,))
def lnc2_rowsum(rng):
    @nki.jit
    def kernel(x):
        R, W = x.shape
        h = W // nl.num_programs(0)
        pid = nl.program_id(0)
        out = nl.ndarray((R, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray((R, h), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[:, pid * h : (pid + 1) * h])
        s = nl.ndarray((R, 1), dtype=nl.float32, buffer=nl.sbuf)
        o = nl.ndarray((R, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=s, op=nl.add, data=t, axis=1)
        nisa.sendrecv(src=s, dst=o, send_to_rank=1 - pid, recv_from_rank=1 - pid, pipe_id=0)
        nisa.tensor_tensor(dst=s, data1=s, data2=o, op=nl.add)
        if pid == 0:
            nisa.dma_copy(dst=out, src=s)
        nisa.core_barrier(data=out, cores=[0, 1])
        return out

    x = f32(rng, 128, 256)
    return kernel, (x,), x.sum(1, keepdims=True)


@case(0)
def transposes(rng):
    @nki.jit
    def kernel(x):
        B, M, N = x.shape
        out = nl.ndarray((B, N, M), dtype=x.dtype, buffer=nl.shared_hbm)
        for b in range(B):
            for i in range(div_ceil(M, P)):
                for j in range(div_ceil(N, P)):
                    m, n = min(P, M - i * P), min(P, N - j * P)
                    t = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(dst=t, src=x[b, i * P : i * P + m, j * P : j * P + n])
                    p = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.psum)
                    nisa.nc_transpose(dst=p, data=t)
                    o = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.sbuf)
                    nisa.tensor_copy(dst=o, src=p)
                    nisa.dma_copy(dst=out[b, j * P : j * P + n, i * P : i * P + m], src=o)
        return out

    x = f32(rng, 2, 200, 150)
    return kernel, (x,), x.transpose(0, 2, 1)


@case(1e-6)
def scatter_add(rng):
    @nki.jit
    def kernel(grad, index, table):
        N, H = grad.shape
        g = nl.ndarray((N, H), dtype=grad.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=g, src=grad)
        ix = nl.ndarray((N, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=ix, src=index)
        nisa.dma_copy(dst=table.ap([[H, N], [1, H]], vector_offset=ix), src=g, dst_rmw_op=nl.add)
        return table

    g = f32(rng, 64, 16)
    ix = rng.permutation(100)[:64].astype(np.int32)[:, None]
    t = f32(rng, 100, 16)
    w = t.copy()
    w[ix[:, 0]] += g
    return kernel, (g, ix, t), w


@case()
def helper_class(rng):
    class TilePool:
        def __init__(self, shape, dtype, n):
            self.tiles = [nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf) for _ in range(n)]
            self.at = 0

        def next(self):
            t = self.tiles[self.at % len(self.tiles)]
            self.at += 1
            return t

    @nki.jit
    def inner(dst, src, fn=nl.exp):
        nisa.activation(dst=dst, op=fn, data=src)
        return dst

    @nki.jit
    def kernel(x, *, ops=("exp", "tanh")):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        pool = TilePool((P, x.shape[-1]), x.dtype, 2)
        for i in range(x.shape[0] // P):
            t = pool.next()
            nisa.dma_copy(dst=t[...], src=x[i * P : (i + 1) * P, ...])
            for o in ops:
                inner(t, t, fn=getattr(nl, o))
            nisa.dma_copy(dst=out[i * P : (i + 1) * P], src=t)
        return out

    x = f32(rng, 512, 32)
    return kernel, (x,), np.tanh(np.exp(x))


@case()
def range_select_bounds(rng):
    @nki.jit
    def kernel(x, lens):
        R, N = x.shape
        out = nl.ndarray((R, N), dtype=x.dtype, buffer=nl.shared_hbm)
        mxo = nl.ndarray((R, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray((R, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        hi = nl.ndarray((R, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=hi, src=lens)
        lo = nl.ndarray((R, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=lo, value=0.0)
        o = nl.ndarray((R, N), dtype=x.dtype, buffer=nl.sbuf)
        mx = nl.ndarray((R, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.range_select(
            dst=o,
            on_true_tile=t,
            comp_op0=nl.greater_equal,
            comp_op1=nl.less,
            bound0=lo,
            bound1=hi,
            reduce_res=mx,
            reduce_op=nl.maximum,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
            range_start=0,
            on_false_value=nl.fp32.min,
        )
        nisa.dma_copy(dst=out, src=o)
        nisa.dma_copy(dst=mxo, src=mx)
        return out, mxo

    x = f32(rng, 64, 40)
    l = rng.integers(1, 40, (64, 1)).astype(np.float32)
    w = np.where(np.arange(40)[None] < l, x, np.float32(-3.4028235e38))
    return kernel, (x, l), (w, w.max(1, keepdims=True))


@case()
def cumsum_matmul(rng):
    @nki.jit
    def kernel(x):
        R, N = x.shape
        out = nl.ndarray((R, N), dtype=x.dtype, buffer=nl.shared_hbm)
        tri = nl.ndarray((R, R), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=tri, value=1.0)
        nisa.affine_select(dst=tri, pattern=[[1, R]], offset=0, channel_multiplier=-1, on_true_tile=tri, on_false_value=0.0, cmp_op=nl.greater_equal)
        t = nl.ndarray((R, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        p = nl.zeros((R, N), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=p, stationary=tri, moving=t, accumulate=True)
        o = nl.ndarray((R, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=o, src=p)
        nisa.dma_copy(dst=out, src=o)
        return out

    x = f32(rng, 128, 40)
    return kernel, (x,), np.cumsum(x, 0)


@pytest.mark.parametrize("make, tolerance, grid", CASES)
def test_kernel_as_others_write_it(make, tolerance, grid, rng):
    check_kernel(make, tolerance, grid, rng)
