"""What the functions of `nki.isa` share: calls in both styles, destinations, masks."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import compute
from .compute import joint_bounds, new_tile, with_bounds, with_mask
from .dtypes import as_dtype
from .errors import fail, nearest
from .record import Recorder, recorder
from .tensor import Tensor
from .tokens import Token


def always(_: dict[str, Any]) -> bool:
    """Whether a call is one instruction whatever the shapes of its tensors."""
    return True


def instruction(
    old: str = "", tensors: str = "dst data", direct: Callable[[dict[str, Any]], bool] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function be called in both styles.

    `old` are the positional parameters of the old style; `tensors` those of the new that must be tensors for a call to be of the new.
    `direct` says of a new-style call's arguments whether the call is one instruction that depends on spaces, dtypes and plain values alone:
    then the second call that looks like an earlier one skips the function.
    """
    old_names = old.split()
    needed = tensors.split()

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)
        known = frozenset(names) | {"name", "mask", "dtype"}
        own = frozenset(names)
        required = frozenset(needed)
        first = names[0]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not args and kwargs.keys() <= own and kwargs.keys() >= required:
                # the new style by keywords: nearly all calls of large kernels
                r = recorder()
                frame = sys._getframe(1)
                site = r.sites.get((id(frame.f_code), frame.f_lasti))
                look = _look(call, kwargs) if direct is not None and site is not None and direct(kwargs) else None
                if look is not None:
                    known_call = r.direct.get(look)
                    if known_call is not None and site is not None and not r.muted:
                        r.append(known_call[0], kwargs, known_call[1], site)
                        return kwargs["dst"]
                r.here = site
                before = r.calls
                try:
                    out = function(**kwargs)
                finally:
                    r.here = None
                if look is not None and r.calls == before + 1:
                    _learn(r, look, kwargs)
                return out
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
                return function(**kwargs)
            except TypeError as error:
                missing = [n for n, p in inspect.signature(function).parameters.items() if p.default is p.empty and n not in kwargs]
                if missing:
                    raise fail(f"`nisa.{function.__name__}` needs argument `{missing[0]}`") from error
                raise

        return call

    return decorate


def _look(call: Any, kwargs: dict[str, Any]) -> Any:
    """What a call looks like: its function, its argument names, plain values, spaces and dtypes; None where that is not all there is to it."""
    look: list[Any] = [call]
    add = look.append
    for name, value in kwargs.items():
        add(name)
        if type(value) is Tensor:
            if value.valid is not None or value.dynamic is not None:
                return None
            storage = value.storage
            add(storage.code if value.dtype is storage.dtype else f"{storage.space} {value.dtype.bir}")
        elif value is None or type(value) is float and value:
            add(value)
        elif type(value) is Token or type(value) is np.ufunc:
            add(value)
        elif isinstance(value, (int, float, str)):
            add(repr(value))
        else:
            return None
    return tuple(look)


def _learn(r: Recorder, look: Any, kwargs: dict[str, Any]) -> None:
    """Remember the one instruction a call became, if its tensors are arguments of the call, each a tensor of its own."""
    if r.latest is None:
        return
    template, values = r.latest
    tensors = {id(value): name for name, value in kwargs.items() if type(value) is Tensor}
    if not template.reusable or len(tensors) != sum(1 for value in kwargs.values() if type(value) is Tensor):
        return
    roles = []
    for role, out in template.roles:
        name = tensors.get(id(values[role]))
        if name is None:
            return
        roles.append((name, out))
    r.direct[look] = (template, roles)


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


def held_parts(dst: Tensor, *sources: Any) -> tuple[Any, ...]:
    """The parts of destination and sources that hold values."""
    if dst.valid is None:
        for source in sources:
            if type(source) is Tensor and source.valid is not None:
                break
        else:
            return (dst, *sources)
    bounds = joint_bounds([t for t in (dst, *sources) if type(t) is Tensor])
    return tuple(with_bounds(t, bounds).effective() if type(t) is Tensor else t for t in (dst, *sources))


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
    if type(column) is Tensor and column.partitions != part.partitions and column.partitions == whole.partitions:
        return column[part.p0 - whole.p0 : part.p0 - whole.p0 + part.partitions]
    return column
