"""What the functions of `nki.isa` share: calls in both styles, destinations, masks."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import compute, replay
from .compute import joint_bounds, new_tile, with_bounds, with_mask
from .dtypes import as_dtype
from .errors import fail, nearest
from .record import recorder
from .tensor import Tensor


def instruction(
    old: str = "", tensors: str = "dst data"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function be called in both styles.

    `old` are the positional parameters of the old style; `tensors` those of the new that must be tensors for a call to be of the new.
    """
    old_names = old.split()
    needed = tensors.split()

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)
        known = frozenset(names) | {"name", "mask", "dtype"}
        own = frozenset(names)
        required = frozenset(needed)
        first = names[0]
        #: Names that calls of the new style by keywords gave: nearly all calls of large kernels.
        usual: set[tuple[str, ...]] = set()

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not args:
                given = tuple(kwargs)
                if given not in usual and kwargs.keys() <= own and kwargs.keys() >= required:
                    usual.add(given)
                if given in usual:
                    return replay.run(recorder(), function, args, kwargs, sys._getframe(1))
            for key in kwargs:
                if key not in known:
                    raise fail(f"`nisa.{function.__name__}` has no argument `{key}`", nearest(key, known))
            if len(args) > len(names):
                raise fail(f"`nisa.{function.__name__}` takes at most {len(names)} arguments, found {len(args)}")
            if args and first not in kwargs:
                bound = dict(zip(names, args))
                for name in needed:
                    value = bound.get(name, kwargs.get(name))
                    if type(value) is not Tensor:
                        # not a destination and all it needs: a call that wants a tile back
                        if len(args) > len(old_names):
                            raise fail(f"operand `{name}` of `nisa.{function.__name__}` must be a tensor, found `{value!r}`")
                        bound = dict(zip(old_names, args))
                        break
                for key, value in bound.items():
                    if key in kwargs:
                        raise fail(f"`nisa.{function.__name__}` got `{key}` twice")
                    kwargs[key] = value
            mask = kwargs.pop("mask", None)
            if mask is True:
                mask = None
            elif isinstance(mask, (bool, np.bool_)):
                return _skipped(function, kwargs, own)
            kwargs.pop("name", None)
            if "dtype" not in own:
                kwargs.pop("dtype", None)
            if mask is not None:
                kwargs = {key: with_mask(value, mask) if key not in ("bias", "scale") else value for key, value in kwargs.items()}
            try:
                return replay.run(recorder(), function, (), kwargs, sys._getframe(1))
            except TypeError as error:
                missing = [n for n, p in inspect.signature(function).parameters.items() if p.default is p.empty and n not in kwargs]
                if missing:
                    raise fail(f"`nisa.{function.__name__}` needs argument `{missing[0]}`") from error
                raise

        return call

    return decorate


def _skipped(function: Callable[..., Any], kwargs: dict[str, Any], own: frozenset[str]) -> Any:
    """A call under a mask that is false: nothing is recorded, and what it returns holds nothing."""
    r = recorder()
    r.muted = True
    try:
        out = function(**{key: value for key, value in kwargs.items() if key in own})
    finally:
        r.muted = False
    return with_mask(out, False) if type(out) is Tensor else out


def out_tile(dst: Any, source: Tensor, dtype: Any, shape: tuple[int, ...] | None = None, space: str = "sbuf") -> Tensor:
    """`dst`, or for an old-style call a new tile like `source`."""
    if dst is not None:
        if type(dst) is not Tensor:
            raise fail(f"`dst` must be a tensor, found `{dst!r}`")
        return dst
    kind = as_dtype(dtype) if dtype is not None else source.dtype
    if shape is not None:
        return new_tile(shape, kind, space)
    return with_bounds(new_tile(source.shape, kind, space, max(0, source.pdim)), joint_bounds([source]))


def made(dst: Tensor) -> Tensor:
    return recorder().made(dst)


def a_tile(value: Any, what: str = "data") -> Tensor:
    if type(value) is not Tensor:
        raise fail(f"operand `{what}` must be a tensor, found `{value!r}`")
    return value


def number_or_tile(value: Any) -> Any:
    if value is None or type(value) is Tensor or isinstance(value, compute.Scalar):
        return value
    raise fail(f"an operand must be a number or a tensor, found `{value!r}`")


def rows_of(column: Any, whole: Tensor, part: Tensor) -> Any:
    """A per-partition operand beside the part of a tile that holds values."""
    if type(column) is Tensor and column.partitions == whole.partitions != part.partitions > 0:
        return column[part.p0 - whole.p0 : part.p0 - whole.p0 + part.partitions]
    return column
