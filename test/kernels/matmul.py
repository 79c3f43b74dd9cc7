"""Reference of matmul.bir."""

import ml_dtypes
import numpy as np

TOLERANCE = {"c": (1e-5, 1e-3)}


def inputs(seed):
    rng = np.random.default_rng(seed)
    return {
        "a_t": rng.standard_normal((1024, 512)).astype(ml_dtypes.bfloat16),
        "b": rng.standard_normal((1024, 2048)).astype(ml_dtypes.bfloat16),
    }


def expected(inputs):
    return {"c": (inputs["a_t"].astype(np.float64).T @ inputs["b"].astype(np.float64)).astype(np.float32)}
