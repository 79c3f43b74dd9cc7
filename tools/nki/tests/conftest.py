"""What the tests of the NKI front end share."""

import functools
import hashlib
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import bir_nki
from bir_nki import load
from bir_nki.table import tool

HERE = pathlib.Path(__file__).resolve().parent
bir_nki.install(force=True)
# Tests run the command in folders of their own.
os.environ["PYTHONPATH"] = str(pathlib.Path(bir_nki.__file__).resolve().parents[1])
os.environ["BIR_OPT"] = str(pathlib.Path(tool("bir-opt")).resolve())


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def f32(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def third_party(package, file, kernel):
    """A kernel of an installed package, its file unmodified; torch, which only its host side needs, is stubbed."""
    spec = importlib.util.find_spec(package)
    path = pathlib.Path(spec.submodule_search_locations[0]) / file
    print(f"{path.name} of {package}: sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    if "torch" not in sys.modules:
        load.stub(["torch"])
    return getattr(load.load_module(path), kernel)


@functools.lru_cache(maxsize=None)
def pipelines():
    """Passes every traced kernel must survive: those of the -O planes that this `bir-opt` has all passes of, and what it has for sure."""
    found = ["canonicalize-names, unroll"]
    for level in ("-O1", "-O2", "-O3"):
        empty = b"bir.module @m {\n  bir.func @main {\n  }\n}\n"
        if subprocess.run([tool("bir-opt"), "-", level], input=empty, capture_output=True).returncode == 0:
            found.append(level)
    return found


def same_after_passes(traced, results):
    """Passes under --validate leave the results as they are, bit by bit."""
    for pipeline in pipelines():
        after = traced.compiled(pipeline, validate="each").simulate()
        for a, b in zip(after if isinstance(after, tuple) else (after,), results if isinstance(results, tuple) else (results,)):
            np.testing.assert_array_equal(a, b)


@pytest.fixture
def simulated():
    """Run a trace."""
    return lambda traced: traced.simulate()


def close(results, wanted, tolerance):
    """Results equal numpy's, relative to the largest of them; a tolerance of 0 means the same bits."""
    pairs = list(zip(results if isinstance(results, tuple) else (results,), wanted if isinstance(wanted, tuple) else (wanted,), strict=True))
    for result, want in pairs:
        assert result.shape == want.shape
        if tolerance == 0:
            np.testing.assert_array_equal(result, want)
        else:
            scale = max(1.0, np.abs(want).max())
            np.testing.assert_allclose(result.astype(np.float64) / scale, np.asarray(want, np.float64) / scale, rtol=0, atol=tolerance)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def kernel_cases():
    """A list of cases, and the decorator that puts functions on it: each makes a kernel, its arrays and what numpy says of it."""
    cases = []

    def case(tolerance=1e-5, grid=None):
        def add(function):
            cases.append(pytest.param(function, tolerance, grid, id=function.__name__))
            return function

        return add

    return cases, case


def check_kernel(make, tolerance, grid, rng):
    """Trace the kernel of a case, run it, compare; and again after every pipeline."""
    kernel, arrays, wanted = make(rng)
    traced = bir_nki.trace(kernel, *arrays, grid=grid)
    results = traced.simulate()
    close(results, wanted, tolerance)
    same_after_passes(traced, results)
