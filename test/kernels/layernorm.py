"""Reference of layernorm.bir."""

import numpy as np

TOLERANCE = {"y": (1e-5, 1e-5)}


def inputs(seed):
    rng = np.random.default_rng(seed)
    return {
        "x": (3 + 2 * rng.standard_normal((256, 768))).astype(np.float32),
        "gamma": (1 + 0.1 * rng.standard_normal((1, 768))).astype(np.float32),
        "beta": (0.1 * rng.standard_normal((1, 768))).astype(np.float32),
    }


def expected(inputs):
    x, gamma, beta = (inputs[name].astype(np.float64) for name in ("x", "gamma", "beta"))
    mean = x.mean(axis=1, keepdims=True)
    variance = x.var(axis=1, keepdims=True)
    return {"y": ((x - mean) / np.sqrt(variance + 1e-5) * gamma + beta).astype(np.float32)}
