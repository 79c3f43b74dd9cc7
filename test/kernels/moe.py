"""Reference of moe.bir."""

import numpy as np

TOLERANCE = {"y": (1e-5, 1e-5), "chosen": (0, 0)}


def inputs(seed):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.standard_normal((256, 64), dtype=np.float32),
        "router": rng.standard_normal((64, 16), dtype=np.float32),
        "experts": rng.standard_normal((16, 64), dtype=np.float32),
    }


def expected(inputs):
    x, router, experts = (inputs[name].astype(np.float64) for name in ("x", "router", "experts"))
    scores = x @ router
    chosen = scores.argmax(axis=1)
    exps = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = exps.max(axis=1, keepdims=True) / exps.sum(axis=1, keepdims=True)
    return {"y": (x + p * experts[chosen]).astype(np.float32), "chosen": chosen.astype(np.uint32)[:, None]}
