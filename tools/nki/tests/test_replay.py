"""Calls that look like an earlier call: what is read off a replay is what thinking again would give."""

import numpy as np
import pytest
from conftest import f32

import bir_nki
import nki
import nki.isa as nisa
import nki.language as nl
from bir_nki import replay


def softmax_rows(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = nl.arange(128)[:, None], nl.arange(x.shape[1])[None, :]
    for i in nl.affine_range(5):
        mask = i * 128 + p < x.shape[0]
        tile = nl.load(x[i * 128 + p, f], mask=mask)
        e = nl.exp(tile - nl.max(tile, axis=1, keepdims=True))
        nl.store(out[i * 128 + p, f], e / nl.sum(e, axis=[1], keepdims=True), mask=mask)
    return out


def parts_of_tiles(x):
    """Parts at several places, one tile twice, two parts of one tile, both zeros."""
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[0:128, 0:64])
    for i in range(4):
        part, other = tile[:, i * 8 : i * 8 + 8], tile[:, 32 + i * 8 : 40 + i * 8]
        total = nl.sum(part, axis=1, keepdims=True)
        low = nl.multiply(part, part)
        low = low + nl.multiply(part, other)
        low = nl.add(low, 0.0) + nl.add(low, -0.0) * (1 if i % 2 else 1.0)
        nl.store(out[:, i * 8 : i * 8 + 8], low)
        nl.store(out[:, 32 + i * 8 : 40 + i * 8], nl.add(total, part))
    return out


def rows_to_partitions(x):
    """A row copied to all partitions, from places where that takes one instruction and where it takes more."""
    out = nl.ndarray((512, 16), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[0:128, 0:16])
    for i, row in enumerate((0, 32, 33, 33)):
        nl.store(out[i * 128 : (i + 1) * 128, :], nl.broadcast_to(tile[row : row + 1, :], (128, 16)))
    return out


def products(x):
    """PSUM: zeroed or not, filled by matmuls, copied out by several engines."""
    out = nl.ndarray((640, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(5):
        tile = nl.load(x[i * 100 : i * 100 + 128, 0:64])
        sums = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum) if i != 2 else nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
        for k in range(3):
            sums += nisa.nc_matmul(tile, tile)
        turned = nl.transpose(tile)
        nl.store(out[i * 128 : i * 128 + 64, :], nl.copy(sums) + nl.exp(sums * 0.01))
        nl.store(out[i * 128 + 64 : i * 128 + 128, :], turned[:, 0:64])
    return out


def new_style(x):
    out = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum)
    for i in range(4):
        a, b = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf), nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a, src=x[i * 128 : i * 128 + 128, 0:64])
        nisa.tensor_scalar(dst=b[:, 0:32], data=a[:, 32:64], op0=nl.multiply, operand0=float(i), op1=nl.add, operand1=i)
        nisa.tensor_scalar(dst=b[:, 32:64], data=a[:, 0:32], op0=np.add, operand0=1.0)
        nisa.activation(dst=sums[:, i * 64 : i * 64 + 64], op=nl.tanh, data=b)
        nisa.tensor_copy(dst=a, src=sums[:, i * 64 : i * 64 + 64])
        nisa.tensor_tensor(dst=b, data1=a, data2=a[:, 0:1], op=nl.add)
        nisa.tensor_copy(dst=b[:, 0:8], src=b[:, 8:16])
        nisa.dma_copy(dst=out[:, i * 64 : i * 64 + 64], src=b)
    return out


def loops(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in range(3):
        for i in nl.dynamic_range(4):
            tile = nl.load(x[nl.ds(i * 128, 128), :])
            nl.store(out[nl.ds(i * 128, 128), :], nl.exp(tile) * 0.5)
    return out


@pytest.mark.parametrize("kernel", [softmax_rows, parts_of_tiles, rows_to_partitions, products, new_style, loops])
def test_replay_spells_what_thinking_again_would(kernel, rng, monkeypatch):
    x = f32(rng, 602, 64)
    played = []
    play = replay.Replay.play
    monkeypatch.setattr(replay.Replay, "play", lambda self, *args: (played.append(self), play(self, *args))[1])
    quick = bir_nki.trace(kernel, x if kernel is not loops else x[:512])
    assert played, "nothing was replayed"
    monkeypatch.setattr(replay, "_look", lambda *_: None)
    played.clear()
    slow = bir_nki.trace(kernel, x if kernel is not loops else x[:512])
    assert not played
    assert quick.text == slow.text and quick.instructions == slow.instructions


@pytest.mark.parametrize("kernel", [softmax_rows, new_style])
def test_most_calls_of_a_long_kernel_are_replayed(kernel, rng, monkeypatch):
    """What makes long kernels quick to trace, counted and not timed."""

    @nki.jit
    def long(x):
        for _ in range(20):
            out = kernel(x)
        return out

    played = []
    play = replay.Replay.play
    monkeypatch.setattr(replay.Replay, "play", lambda self, *args: (played.append(len(self.lines)), play(self, *args))[1])
    traced = bir_nki.trace(long, bir_nki.Spec((640, 64), nl.float32), verify=False)
    assert sum(played) > 0.9 * traced.instructions


def test_mistake_in_a_replayed_call_is_found_at_its_own_line():
    @nki.jit
    def kernel(x):
        tile = nl.load(x[0:64, 0:128])
        moved = nl.load(x[0:128, 0:64]).reshape((64, 128))
        for target in (tile, tile, tile, moved):
            nisa.tensor_scalar(dst=target, data=tile, op0=nl.add, operand0=1.0)

    with pytest.raises(bir_nki.KernelError, match="was reshaped from") as caught:
        bir_nki.trace(kernel, bir_nki.Spec((128, 128), nl.float32))
    assert caught.value.line == kernel.func.__code__.co_firstlineno + 5
