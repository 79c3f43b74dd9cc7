"""Cases of instructions: kernels with what numpy says of them."""

import numpy as np
import pytest

import bir_nki
import nki.isa as nisa
import nki.language as nl


def registry():
    """A list of cases, and the decorator that puts functions on it: each makes a kernel, its inputs and what numpy says of it."""
    cases = []

    def case(target="trn2", tolerance=1e-5):
        def add(function):
            cases.append(pytest.param(function, target, tolerance, id=function.__name__))
            return function

        return add

    return cases, case


def loaded(x, dtype=None):
    tile = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def stored(*tiles):
    outs = []
    for tile in tiles:
        out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        outs.append(out)
    return outs[0] if len(outs) == 1 else tuple(outs)


def sbuf(shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


def check(make, target, tolerance, rng):
    """Trace the kernel of a case, run it, compare."""
    kernel, arrays, wanted = make(rng)
    results = bir_nki.trace(kernel, *arrays, target=target).simulate()
    for result, want in zip(results if isinstance(results, tuple) else (results,), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert result.shape == want.shape
        if tolerance == 0:
            np.testing.assert_array_equal(result, want)
        else:
            np.testing.assert_allclose(result.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance)
