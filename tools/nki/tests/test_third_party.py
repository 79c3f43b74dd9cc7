"""Kernels others wrote, from their packages on PyPI, unmodified: traced, verified, simulated, compared with numpy, and passed through passes."""

import numpy as np
import pytest

import bir_nki
from conftest import close, f32, same_after_passes, third_party

GEMM = "_gemm_kernel_{}_{}_{}"


def check(kernel, arrays, wanted, simulated, tolerance=1e-4):
    traced = bir_nki.trace(kernel, *arrays)
    results = simulated(traced)
    close(results, wanted, tolerance)
    same_after_passes(traced, results)


@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("n", [128, 256, 512])
def test_trnblas_gemm(m, n, rng, simulated):
    a, b = f32(rng, 256, 256), f32(rng, 256, 512)
    check(third_party("trnblas", "nki/dispatch.py", GEMM.format(m, 128, n)), [a, b], a @ b, simulated)


def test_trnblas_syrk(rng, simulated):
    a = f32(rng, 512, 128)
    check(third_party("trnblas", "nki/dispatch.py", "_syrk_kernel"), [a], a @ a.T, simulated)


def test_trnblas_fused_gemm_energy(rng, simulated):
    b_i, b_j, occupied, virtual = f32(rng, 128, 128), f32(rng, 128, 128), -2 - abs(f32(rng, 1, 1)), 1 + abs(f32(rng, 128, 1))
    t = b_i @ b_j.T
    wanted = (t * (2 * t - t.T) / (occupied - virtual - virtual.T)).sum(1, keepdims=True)
    kernel = third_party("trnblas", "nki/dispatch.py", "_fused_gemm_energy_kernel")
    check(kernel, [b_i, b_j, occupied, virtual, virtual.T.copy()], wanted, simulated, 1e-3)


def test_trnfft_complex_gemm(rng, simulated):
    parts = [f32(rng, *shape) for shape in ((128, 256), (128, 256), (256, 512), (256, 512))]
    wanted = (parts[0] + 1j * parts[1]) @ (parts[2] + 1j * parts[3])
    check(third_party("trnfft", "nki/dispatch.py", "_complex_gemm_kernel"), parts, (wanted.real, wanted.imag), simulated)


@pytest.mark.parametrize("name", ["butterfly_stage_kernel", "butterfly_stage_kernel_kahan"])
def test_trnfft_butterfly(name, rng, simulated):
    rows, n, stage = 4, 16, 2
    m, half = 2 ** (stage + 1), 2**stage
    x = (f32(rng, rows, n) + 1j * f32(rng, rows, n)).reshape(-1, m)
    twiddle = np.broadcast_to(np.exp(-2j * np.pi * np.arange(half) / m), (x.shape[0], half))
    product = twiddle * x[:, half:]
    wanted = np.concatenate([x[:, :half] + product, x[:, :half] - product], 1).reshape(rows, n)
    arrays = [np.ascontiguousarray(part, dtype=np.float32) for part in (x.real, x.imag, twiddle.real, twiddle.imag)]
    arrays[0], arrays[1] = arrays[0].reshape(rows, n), arrays[1].reshape(rows, n)
    check(third_party("trnfft", "nki/butterfly.py", name), [*arrays, n, stage], (wanted.real, wanted.imag), simulated)


def threefry(counter, key):
    """Threefry 4x32-20 in whole numbers; the low 24 bits of each word, as a fraction."""
    mask = 0xFFFFFFFF
    x, k = [c.astype(np.uint64) for c in counter], [c.astype(np.uint64) for c in key]
    k.append(k[0] ^ k[1] ^ k[2] ^ k[3] ^ np.uint64(0x1BD11BDA))

    def inject(step):
        for i in range(4):
            x[i] = (x[i] + k[(step + i) % 5] + np.uint64(step if i == 3 else 0)) & np.uint64(mask)

    def mix(a, b, rotation):
        x[a] = (x[a] + x[b]) & np.uint64(mask)
        left, right = np.uint64(rotation), np.uint64(32 - rotation)
        x[b] = (((x[b] << left) | (x[b] >> right)) & np.uint64(mask)) ^ x[a]

    inject(0)
    for step in range(20):
        r0, r1 = ((10, 26), (11, 21), (13, 27), (23, 5))[step % 4]
        pairs = ((0, 1), (2, 3)) if step % 2 == 0 else ((0, 3), (2, 1))
        mix(*pairs[0], r0)
        mix(*pairs[1], r1)
        if step % 4 == 3:
            inject((step + 1) // 4)
    return np.concatenate([(w & np.uint64(0xFFFFFF)).astype(np.float32) * np.float32(2**-24) for w in x], 1)


def test_trnrand_threefry_is_exact(rng, simulated):
    words = [rng.integers(0, 2**24, (128, 1)).astype(np.int32) for _ in range(8)]
    check(third_party("trnrand", "nki/dispatch.py", "threefry4x32_kernel"), words, threefry(words[:4], words[4:]), simulated, 0)


def test_trnrand_philox_is_exact(rng, simulated):
    """Products of 32-bit words, put together from bytes that f32 holds exactly."""
    words = [rng.integers(0, 2**20, (128, 1)).astype(np.int32) for _ in range(3)]
    c, k = [words[0].astype(np.uint64), *(np.zeros((128, 1), np.uint64),) * 3], [w.astype(np.uint64) for w in words[1:]]
    mask = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        high, low = np.uint64(32), mask
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> high) ^ c[1] ^ k[0], p1 & low, (p0 >> high) ^ c[3] ^ k[1], p0 & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & mask, (k[1] + np.uint64(0xBB67AE85)) & mask]
    wanted = np.concatenate(c, 1).astype(np.uint32).view(np.int32)
    traced = bir_nki.trace(third_party("trnrand", "nki/dispatch.py", "philox4x32_kernel"), *words)
    close(simulated(traced), wanted, 0)


def test_trnrand_box_muller(rng, simulated):
    u = (rng.random((128, 2)) * 0.98 + 0.01).astype(np.float32)
    r, angle = np.sqrt(-2 * np.log(u[:, 0])), 2 * np.pi * u[:, 1]
    wanted = np.stack([r * np.cos(angle), r * np.sin(angle)], 1)
    check(third_party("trnrand", "nki/dispatch.py", "box_muller_kernel"), [u], wanted, simulated, 1e-5)


def test_trnsolver_jacobi_rotation(rng, simulated):
    """Writes rows, columns and single elements of its arguments."""
    n, p, q, c, s = 16, 3, 9, np.float32(0.8), np.float32(0.6)
    d, v = f32(rng, n, n), f32(rng, n, n)
    d = d + d.T
    rotated, vectors = d.copy(), v.copy()
    for array, axes in ((rotated, "rows columns"), (vectors, "columns")):
        for axis in axes.split():
            view = array if axis == "rows" else array.T
            view[p], view[q] = c * view[p] - s * view[q], s * view[p] + c * view[q]
    rotated[p, q] = rotated[q, p] = 0
    kernel = third_party("trnsolver", "nki/dispatch.py", "jacobi_rotation_kernel")
    check(kernel, [d, v, p, q, float(c), float(s), n], (rotated, vectors), simulated, 1e-5)


def test_trnsparse_bsr_spmm(rng, simulated):
    blocks, gathered = f32(rng, 2, 3, 128, 128), f32(rng, 2, 3, 128, 512)
    wanted = np.einsum("mkij,mkjn->min", blocks, gathered).reshape(256, 512)
    check(third_party("trnsparse", "nki/kernels.py", "_bsr_spmm_kernel"), [blocks, gathered], wanted, simulated)


def test_trnsparse_screened_spmm(rng, simulated):
    a, q, b = f32(rng, 256, 256), abs(f32(rng, 256, 1)), f32(rng, 256, 128)
    kernel = third_party("trnsparse", "nki/kernels.py", "_screened_spmm_kernel")
    check(kernel, [a, q, 0.5, b], (a * (q * q.T > 0.5)) @ b, simulated)


def test_trnsparse_attention_statistics(rng, simulated):
    q, k = f32(rng, 2, 128, 64), f32(rng, 2, 3, 128, 64)
    scores = np.einsum("mqd,mknd->mkqn", q, k)
    top = scores.max(-1, keepdims=True)
    kernel = third_party("trnsparse", "nki/kernels.py", "_attn_stats_kernel")
    check(kernel, [q, k], (top, np.exp(scores - top).sum(-1, keepdims=True)), simulated)


def test_trnsparse_attention(rng, simulated):
    q, k, v = f32(rng, 1, 128, 64) * 0.3, f32(rng, 1, 2, 128, 64) * 0.3, f32(rng, 1, 2, 128, 64)
    scores = np.einsum("mqd,mknd->mkqn", q, k)
    top = scores.max((1, 3))[..., None]
    e = np.exp(scores - top[:, None])
    denominator = e.sum((1, 3))[..., None]
    wanted = np.einsum("mkqn,mknd->mqd", e / denominator[:, None], v).reshape(128, 64)
    check(third_party("trnsparse", "nki/kernels.py", "_attn_out_kernel"), [q, k, v, top, denominator], wanted, simulated, 1e-4)


def test_trntensor_matmul(rng, simulated):
    a, b = f32(rng, 256, 256), f32(rng, 256, 512)
    check(third_party("trntensor", "nki/_kernels.py", "matmul_kernel"), [a, b], a @ b, simulated)


def test_trntensor_mp2_energy(rng, simulated):
    b, occupied, virtual = f32(rng, 2, 64, 64), -2 - abs(f32(rng, 2, 1)), 1 + abs(f32(rng, 64, 1))
    wanted = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            t = b[i] @ b[j].T
            wanted[i, j] = (t * (2 * t - t.T) / (occupied[i] + occupied[j] - virtual - virtual.T)).sum()
    check(third_party("trntensor", "nki/_kernels.py", "mp2_energy_kernel"), [b, occupied, virtual], wanted, simulated, 1e-3)


def test_trntensor_ao_to_mo(rng, simulated):
    eri, occupied, virtual = f32(rng, 128, 128, 3), f32(rng, 128, 16), f32(rng, 128, 64)
    wanted = np.einsum("mi,mnp,na->iap", occupied, eri, virtual)
    check(third_party("trntensor", "nki/_kernels.py", "ao_to_mo_transform_kernel"), [eri, occupied, virtual], wanted, simulated, 1e-3)
