"""Reference of mamba.bir."""

import numpy as np

TOLERANCE = {"y": (1e-4, 1e-4)}


def inputs(seed):
    rng = np.random.default_rng(seed)
    return {
        # softplus of a normal: positive step sizes, as the model makes them
        "delta": np.log1p(np.exp(rng.standard_normal((256, 1024)) - 2)).astype(np.float32),
        "u": rng.standard_normal((256, 1024)).astype(np.float32),
        "a": -np.arange(1, 17, dtype=np.float32) * np.ones((256, 1), np.float32),
        "b": rng.standard_normal((16, 1024)).astype(np.float32),
        "c": rng.standard_normal((16, 1024)).astype(np.float32),
        "d": np.ones((256, 1), np.float32),
    }


def expected(inputs):
    delta, u, a, b, c, d = (inputs[name].astype(np.float64) for name in ("delta", "u", "a", "b", "c", "d"))
    y = d * u
    h = np.zeros(a.shape)
    for t in range(u.shape[1]):
        h = np.exp(delta[:, t, None] * a) * h + (delta[:, t] * u[:, t])[:, None] * b[:, t]
        y[:, t] += h @ c[:, t]
    return {"y": y.astype(np.float32)}
