"""Things a kernel indexes with: loop indices, runs (`nl.ds`), and the fancy index arrays of old-style NKI.

Every fancy index is affine. `IndexArray` keeps it as a constant and one coefficient per axis of its broadcast shape, so a tensor indexed
by such arrays is an access pattern and never a list of numbers. A comparison of index arrays is a `Mask`: half-planes that trim axes.
"""

from __future__ import annotations

from typing import Any, Union

from .errors import fail


class Affine:
    """A constant plus multiples of the indices of loops that are in the IR."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int, terms: tuple[tuple[str, int], ...]) -> None:
        self.const = const
        self.terms = terms

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Affine):
            sums = dict(self.terms)
            for name, factor in other.terms:
                sums[name] = sums.get(name, 0) + factor
            terms = tuple((name, factor) for name, factor in sums.items() if factor)
            return Affine(self.const + other.const, terms) if terms else self.const + other.const
        if isinstance(other, int):
            return Affine(self.const + other, self.terms)
        return NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return Affine(-self.const, tuple((name, -factor) for name, factor in self.terms))

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        if other == 0:
            return 0
        return Affine(self.const * other, tuple((name, factor * other) for name, factor in self.terms))

    __rmul__ = __mul__

    def _no_value(self, *_: Any) -> Any:
        raise fail(
            "the index of a dynamic loop has no value while the kernel is traced",
            "use it in sums and multiples that index tensors, or loop over `nl.static_range`",
        )

    __bool__ = __int__ = __index__ = __float__ = _no_value
    __lt__ = __le__ = __gt__ = __ge__ = _no_value
    __floordiv__ = __mod__ = __truediv__ = _no_value

    def __str__(self) -> str:
        parts = [name if factor == 1 else f"{factor}*{name}" for name, factor in self.terms]
        text = " + ".join(parts)
        if self.const:
            text += f" + {self.const}" if self.const > 0 else f" - {-self.const}"
        return text.replace("+ -", "- ")


Scalar = Union[int, Affine]

#: By axis, counted from the last as -1: first position and end (None: no end).
Bounds = dict[int, tuple[int, Union[int, None]]]


class Run:
    """`nl.ds(start, size)`: `size` elements from `start`."""

    __slots__ = ("start", "size", "step")

    def __init__(self, start: Any, size: int, step: int = 1) -> None:
        self.start = start
        self.size = size
        self.step = step


class ParDim:
    """`nl.par_dim(n)`: the dimension of a shape that lies on partitions."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = int(size)

    def __index__(self) -> int:
        return self.size

    __int__ = __index__


class IndexArray:
    """An affine index over a broadcast shape: `const + sum(coefficients[k] * position[k])`."""

    __slots__ = ("const", "coefficients", "extents", "name")

    def __init__(self, const: Scalar, coefficients: tuple[int, ...], extents: tuple[int, ...]) -> None:
        self.const = const
        self.coefficients = coefficients
        self.extents = extents

    @property
    def shape(self) -> tuple[int, ...]:
        return self.extents

    @property
    def ndim(self) -> int:
        return len(self.extents)

    def __getitem__(self, key: Any) -> IndexArray:
        """`[:, None]`, `[None, :]` and their like: new axes, and no others."""
        keys = key if isinstance(key, tuple) else (key,)
        coefficients: list[int] = []
        extents: list[int] = []
        taken = 0
        for k in keys:
            if k is None:
                coefficients.append(0)
                extents.append(1)
            elif k is Ellipsis:
                rest = self.ndim - sum(1 for other in keys if other is not None and other is not Ellipsis)
                coefficients += self.coefficients[taken : taken + rest]
                extents += self.extents[taken : taken + rest]
                taken += rest
            elif isinstance(k, slice) and k == slice(None) and taken < self.ndim:
                coefficients.append(self.coefficients[taken])
                extents.append(self.extents[taken])
                taken += 1
            else:
                raise fail(f"an index array takes `:` and `None` between brackets, found `{k!r}`")
        coefficients += self.coefficients[taken:]
        extents += self.extents[taken:]
        return IndexArray(self.const, tuple(coefficients), tuple(extents))

    def widened(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Coefficients and extents with leading axes of one element, `rank` of them in all."""
        pad = rank - len(self.extents)
        return (0,) * pad + self.coefficients, (1,) * pad + self.extents

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (int, Affine)):
            return IndexArray(self.const + other, self.coefficients, self.extents)
        if isinstance(other, IndexArray):
            rank = max(self.ndim, other.ndim)
            (ca, ea), (cb, eb) = self.widened(rank), other.widened(rank)
            return IndexArray(
                self.const + other.const, tuple(a + b for a, b in zip(ca, cb)), broadcast_shapes(ea, eb)
            )
        return NotImplemented

    __radd__ = __add__

    def __neg__(self) -> IndexArray:
        return IndexArray(self.const * -1, tuple(-c for c in self.coefficients), self.extents)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, int):
            raise fail("an index array can be multiplied by a whole number only, to stay affine")
        return IndexArray(self.const * other, tuple(c * other for c in self.coefficients), self.extents)

    __rmul__ = __mul__

    def __lt__(self, other: Any) -> Mask:
        return Mask([(other - self) - 1])

    def __le__(self, other: Any) -> Mask:
        return Mask([other - self])

    def __gt__(self, other: Any) -> Mask:
        return Mask([(self - other) - 1])

    def __ge__(self, other: Any) -> Mask:
        return Mask([self - other])

    def __eq__(self, other: Any) -> Any:
        difference = self - other
        return Mask([difference, -difference])

    __hash__ = None  # type: ignore[assignment]

    def _not_affine(self, *_: Any) -> Any:
        raise fail("an index array stays affine: it can be added to and multiplied, and nothing else")

    __floordiv__ = __rfloordiv__ = __truediv__ = __mod__ = __rmod__ = __pow__ = __lshift__ = __rshift__ = _not_affine
    __and__ = __or__ = __xor__ = __bool__ = __int__ = __index__ = __float__ = _not_affine


class Moved:
    """An index array that begins where a register, or a tile of one number, says: `starts[0, b] + i_f`."""

    __slots__ = ("start", "array")

    def __init__(self, start: Any, array: IndexArray) -> None:
        self.start = start
        self.array = array

    def __add__(self, other: Any) -> Moved:
        return Moved(self.start, self.array + other)

    __radd__ = __add__


def broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """numpy's broadcast of two shapes of one rank."""
    out = []
    for x, y in zip(a, b):
        if x != y and x != 1 and y != 1:
            raise fail(f"shapes {list(a)} and {list(b)} do not broadcast")
        out.append(y if x == 1 else x)
    return tuple(out)


def _moves(condition: Any) -> tuple[list[tuple[int, int, int]], int]:
    """The axes, counted from the last, along which a condition of a mask moves, with steps and extents; and its least value."""
    if not isinstance(condition, IndexArray) or not isinstance(condition.const, int):
        raise fail("a mask must compare index arrays with numbers")
    moving = [(axis - condition.ndim, c, extent) for axis, (c, extent) in enumerate(zip(condition.coefficients, condition.extents)) if c and extent > 1]
    return moving, condition.const + sum(min(0, c * (extent - 1)) for _, c, extent in moving)


class Mask:
    """A conjunction of conditions `index array >= 0`."""

    __slots__ = ("conditions",)

    def __init__(self, conditions: list[Any]) -> None:
        self.conditions = conditions

    def __and__(self, other: Any) -> Mask:
        if isinstance(other, Mask):
            return Mask(self.conditions + other.conditions)
        return NotImplemented

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        raise fail("a mask must leave a rectangle: conditions are joined by `&` only")

    __ror__ = __xor__ = __rxor__ = __or__

    def __invert__(self) -> Mask:
        if len(self.conditions) != 1:
            raise fail("only a mask of one condition can be inverted, to leave a rectangle")
        return Mask([-self.conditions[0] - 1])

    def __bool__(self) -> bool:
        raise fail("a comparison of index arrays is true in some places and false in others, so nothing can be decided by it", "give it as `mask=`")

    def slanted(self) -> set[int]:
        """The axes, counted from the last, along which conditions move that move along others too."""
        out: set[int] = set()
        for condition in self.conditions:
            if not isinstance(condition, int):
                moving, low = _moves(condition)
                if low < 0 and len(moving) > 1:
                    out |= {axis for axis, _, _ in moving}
        return out

    def at(self, axis: int, position: int) -> Mask:
        """What is left to hold at a position of an axis counted from the last; what holds everywhere goes."""
        left = []
        for condition in self.conditions:
            if isinstance(condition, IndexArray) and -axis <= condition.ndim and condition.extents[axis] > 1:
                k = axis + condition.ndim
                coefficients, extents = condition.coefficients, condition.extents
                condition = IndexArray(
                    condition.const + coefficients[k] * position, (*coefficients[:k], 0, *coefficients[k + 1 :]), (*extents[:k], 1, *extents[k + 1 :])
                )
            if isinstance(condition, int) or _moves(condition)[1] < 0:
                left.append(condition)
        return Mask(left)

    def rectangles(self, shape: tuple[int, ...], free: list[int]) -> list[tuple[Bounds, Bounds]]:
        """Runs of positions of the axes `free`, counted from the last, within which the mask leaves a rectangle, each with that rectangle."""
        slanted = self.slanted()
        axis = next((a for a in free if a in slanted), None)
        if axis is None:
            return [({}, self.bounds())]
        out = []
        begin, count = 0, shape[axis]
        here = self.at(axis, 0)
        for position in range(1, count + 1):
            there = self.at(axis, position) if position < count else None
            if there is None or there.key() != here.key():
                out += [({axis: (begin, position), **run}, part) for run, part in here.rectangles(shape, free)]
                begin, here = position, here if there is None else there
        return out

    def key(self) -> list[Any]:
        return [c if isinstance(c, int) else (c.const, c.coefficients, c.extents) for c in self.conditions]

    def bounds(self) -> Bounds:
        """What the mask leaves."""
        out: Bounds = {}
        for condition in self.conditions:
            if isinstance(condition, int):
                if condition < 0:
                    out[-1] = (0, 0)
                continue
            moving, low = _moves(condition)
            if not moving:
                if low < 0:
                    out[-1] = (0, 0)
                continue
            if low >= 0:
                continue  # true everywhere
            if len(moving) > 1:
                raise fail(
                    "a mask must leave a rectangle: each condition may move along one axis only",
                    "use `nisa.affine_select` for a slanted mask",
                )
            axis, c, extent = moving[0]
            lo, hi = out.get(axis, (0, None))
            if c > 0:  # c*i + const >= 0
                lo = max(lo, -(condition.const // c))
            else:
                end = condition.const // -c + 1
                hi = end if hi is None else min(hi, end)
            out[axis] = (lo, hi)
        return out


def arange(*args: int) -> IndexArray:
    """`nl.arange(stop)`, `nl.arange(start, stop[, step])`."""
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return IndexArray(start, (step,), (max(0, -(-(stop - start) // step)),))


class _Grid(tuple):  # type: ignore[type-arg]
    """The index arrays of `nl.mgrid[...]`, also as `.p`, `.x`, `.y`, `.z`."""

    __slots__ = ()
    p = property(lambda self: self[0])
    x = property(lambda self: self[1])
    y = property(lambda self: self[2])
    z = property(lambda self: self[3])
    w = property(lambda self: self[4])


class MGrid:
    """`nl.mgrid[0:128, 0:512]`. Each array has its own axis alone, as of `nl.arange`: kernels mix those of different grids."""

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        starts = [k.start or 0 for k in keys]
        steps = [k.step or 1 for k in keys]
        extents = tuple(max(0, -(-(k.stop - s) // step)) for k, s, step in zip(keys, starts, steps))
        arrays = []
        for axis, (start, step) in enumerate(zip(starts, steps)):
            coefficients = tuple(step if other == axis else 0 for other in range(len(keys)))
            own = tuple(n if other == axis else 1 for other, n in enumerate(extents))
            arrays.append(IndexArray(start, coefficients, own))
        return _Grid(arrays)
