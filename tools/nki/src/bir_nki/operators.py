"""Operators of tensors: old-style NKI computes with them, and stores by assignment."""

from __future__ import annotations

import sys
from typing import Any

from .index import IndexArray, Moved


class _Probe:
    """How many references a value has that nobody keeps, in the two methods below; it differs between versions of Python."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self.stored = sys.getrefcount(value)

    def __iadd__(self, other: Any) -> _Probe:
        self.added = sys.getrefcount(other)
        return self


_probe = _Probe()
_probe[...] = object()
_probe += object()


class Operators:
    """What `Tensor` does with `+`, `<`, `~`, `+=` and `tensor[...] = value`."""

    __slots__ = ()

    def _binary(self, name: str, other: Any, reverse: bool = False) -> Any:
        from . import compute, record, replay

        args = (name, other, self) if reverse else (name, self, other)
        r = record.current()
        if r is None:
            return compute.binary(*args)
        return replay.run(r, compute.binary, args, {}, sys._getframe(2))

    def __add__(self, other: Any) -> Any:
        return Moved(self, other) if type(other) is IndexArray else self._binary("add", other)

    def __radd__(self, other: Any) -> Any:
        return Moved(self, other) if type(other) is IndexArray else self._binary("add", other, True)

    def __sub__(self, other: Any) -> Any:
        return self._binary("subtract", other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("subtract", other, True)

    def __mul__(self, other: Any) -> Any:
        return self._binary("multiply", other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("multiply", other, True)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("divide", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("divide", other, True)

    def __pow__(self, other: Any) -> Any:
        return self._binary("power", other)

    def __mod__(self, other: Any) -> Any:
        return self._binary("mod", other)

    def __and__(self, other: Any) -> Any:
        return self._binary("bitwise_and", other)

    def __or__(self, other: Any) -> Any:
        return self._binary("bitwise_or", other)

    def __xor__(self, other: Any) -> Any:
        return self._binary("bitwise_xor", other)

    def __lshift__(self, other: Any) -> Any:
        return self._binary("left_shift", other)

    def __rshift__(self, other: Any) -> Any:
        return self._binary("right_shift", other)

    def __lt__(self, other: Any) -> Any:
        return self._binary("less", other)

    def __le__(self, other: Any) -> Any:
        return self._binary("less_equal", other)

    def __gt__(self, other: Any) -> Any:
        return self._binary("greater", other)

    def __ge__(self, other: Any) -> Any:
        return self._binary("greater_equal", other)

    def __eq__(self, other: Any) -> Any:
        return self is other if other is None else self._binary("equal", other)

    def __ne__(self, other: Any) -> Any:
        return self is not other if other is None else self._binary("not_equal", other)

    def __neg__(self) -> Any:
        return self._binary("multiply", -1.0)

    def __invert__(self) -> Any:
        from . import compute

        return compute.invert(self)

    def __iadd__(self: Any, other: Any) -> Any:
        from . import assign, record

        r = record.current()
        nobody_keeps = r is not None and -r.references(other) + sys.getrefcount(other) <= _probe.added
        return assign.update("add", self, other, nobody_keeps)

    def __isub__(self: Any, other: Any) -> Any:
        from . import assign

        return assign.update("subtract", self, other)

    def __imul__(self: Any, other: Any) -> Any:
        from . import assign

        return assign.update("multiply", self, other)

    def __itruediv__(self: Any, other: Any) -> Any:
        from . import assign

        return assign.update("divide", self, other)

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        from . import assign, record

        r = record.current()
        # the recorder's own references first: asking for them drops one
        nobody_keeps = r is not None and -r.references(value) + sys.getrefcount(value) <= _probe.stored
        assign.assign(assign.target(self, key, value), value, nobody_keeps)

    def astype(self, dtype: Any) -> Any:
        from . import compute

        return compute.copy(self, dtype=dtype)
