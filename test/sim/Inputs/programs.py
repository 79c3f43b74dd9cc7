"""Inputs and numpy's answers for cores.test, sorting.test and mx.test: programs.py NAME DIR"""

import pathlib
import sys

import ml_dtypes
import numpy as np

name, out = sys.argv[1], pathlib.Path(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(7)


def two_cores():
    a = rng.standard_normal((256, 64), dtype=np.float32)
    b = rng.standard_normal((256, 96), dtype=np.float32)
    y = a.T @ b
    np.save(out / "a.npy", a[:2, :3])
    np.save(out / "b.npy", b[:2, :3])
    expected = {"y@0": y, "y@1": y, "part@0": y[:32], "part@1": y[32:]}
    return {"a": a, "b": b}, expected


def sorting():
    # Few different values: equal ones take successive positions.
    x = rng.integers(-40, 40, (128, 200)).astype(np.float32)
    order = np.argsort(-x, axis=1, kind="stable")[:, :16]
    return {"x": x}, {"top": np.take_along_axis(x, order, axis=1), "where": order.astype(np.uint32)}


def quantised(x, dtype, e_max, room):
    """Scales per 8 x 4 elements, and the values they stand for; the largest is `room` powers of two below the format's."""
    p, n = x.shape
    groups = x.astype(np.float64).reshape(p // 8, 8, n // 4, 4)
    largest = np.abs(groups).max(axis=(1, 3))
    exponent = np.floor(np.log2(largest)) - (e_max - room)
    factor = np.exp2(exponent)[:, None, :, None]
    most = float(ml_dtypes.finfo(dtype).max)
    values = (groups / factor).astype(np.float32).clip(-most, most).astype(dtype).astype(np.float64) * factor
    return (exponent + 127).astype(np.uint8), values.reshape(p, n // 4, 4)


def mx(room=1):
    a = rng.standard_normal((128, 256)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((128, 384)).astype(ml_dtypes.bfloat16)
    scale, av = quantised(a, ml_dtypes.float8_e4m3fn, 8, room)
    _, bv = quantised(b, ml_dtypes.float8_e5m2, 15, room)
    rows = np.zeros((128, 64), np.uint8)
    for group in range(16):
        rows[group // 4 * 32 + group % 4] = scale[group]
    y = np.einsum("pmj,pnj->mn", av, bv).astype(np.float32)
    return {"a": a.view(np.uint16), "b": b.view(np.uint16)}, {"sa": rows, "y": y}


inputs, expected = {"two_cores": two_cores, "sorting": sorting, "mx": mx, "mx_ocp": lambda: mx(0)}[name]()
np.savez(out / "inputs.npz", **inputs)
np.savez(out / "expected.npz", **expected)
