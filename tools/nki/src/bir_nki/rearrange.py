"""einops-style `rearrange` of views: splits, permutes and merges dimensions without moving data."""

from __future__ import annotations

import re
from typing import Any

from .errors import fail


def _groups(side: str) -> list[list[str]]:
    return [token.strip("()").split() for token in re.findall(r"\([^)]*\)|\S+", side)]


def rearrange(tensor: Any, pattern: Any, sizes: dict[str, int]) -> Any:
    """`tensor` seen through `pattern`, e.g. `"p (a b) -> p b a"`."""
    if not isinstance(pattern, str) or pattern.count("->") != 1:
        raise fail(f"`{pattern!r}` is no pattern such as `p (a b) -> p b a`")
    left, right = (_groups(side) for side in pattern.split("->"))
    if len(left) != tensor.ndim:
        raise fail(f"`{pattern}` has {len(left)} dimensions on its left, the tensor {tensor.ndim}")
    known = dict(sizes)
    shape: list[int] = []
    for names, extent in zip(left, tensor.shape):
        product = 1
        missing = []
        for name in names:
            if name == "1":
                continue
            if name in known:
                product *= known[name]
            else:
                missing.append(name)
        if len(missing) > 1:
            raise fail(f"sizes of `{' '.join(missing)}` in `{pattern}` are not known")
        if missing:
            known[missing[0]] = extent // product
            product *= known[missing[0]]
        if product != extent:
            raise fail(f"`({' '.join(names)})` has {product} elements, the dimension {extent}")
        shape += [1 if name == "1" else known[name] for name in names]
    order = [name for names in left for name in names]
    split = tensor.reshape(tuple(shape))
    wanted = [name for names in right for name in names if name != "1"]
    if sorted(wanted) != sorted(name for name in order if name != "1"):
        raise fail(f"both sides of `{pattern}` must name the same dimensions")
    ones = [at for at, name in enumerate(order) if name == "1"]
    moved = split.permute([order.index(name) for name in wanted] + ones)
    out = []
    for names in right:
        extent = 1
        for name in names:
            extent *= 1 if name == "1" else known[name]
        out.append(extent)
    return moved.reshape(tuple(out))
