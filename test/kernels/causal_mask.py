"""Reference of causal_mask.bir."""

import numpy as np

# A select copies: equal to the bit.
TOLERANCE = {"by_position": (0, 0), "by_select": (0, 0), "by_predicate": (0, 0)}


def inputs(seed):
    return {"scores": np.random.default_rng(seed).standard_normal((256, 256)).astype(np.float32)}


def expected(inputs):
    masked = np.where(np.tri(256, dtype=bool), inputs["scores"], np.float32(-3.0e38))
    return {name: masked for name in TOLERANCE}
