"""Arrays of tiles: on chip, dimensions in front of the one on partitions count tiles.

An array that is placed by hand (`ncc.sbuf.mod_alloc`) or that no partition could hold is one location per tile, made when the tile is first
used: so each lives from its first write to its last read, which is what lets hand-placed tiles share their memory. Invariant: tiles are
chosen by plain numbers; an array that is indexed in another way before any tile was made is one location after all.
"""

from __future__ import annotations

from typing import Any

from .dtypes import DType
from .errors import fail
from .operators import Operators
from .record import Site, recorder
from .tensor import Tensor


class Blocks(Operators):
    """An array of tiles, indexed like a tensor."""

    __array_priority__ = 1000
    __array_ufunc__ = None
    #: Nothing of the array itself is masked; its tiles may be.
    valid = None

    def __init__(self, shape: tuple[int, ...], dtype: DType, space: str, pdim: int, name: str | None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.space = space
        self.pdim = pdim
        r = recorder()
        self._name = name or r.assigned_name() or "t"
        self._site: Site = r.here or r.site()
        self._tiles: dict[tuple[int, ...], Tensor] = {}
        self._whole: Tensor | None = None
        #: What fills the array, and in how many loops of the IR that was said.
        self._fill: tuple[Any, int] | None = None

    __hash__ = object.__hash__

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        for position in range(self.shape[0]):
            yield self[position]

    def __repr__(self) -> str:
        return f"<{self.space} {self._name} {'x'.join(map(str, self.shape))} {self.dtype}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.as_one(), name)

    def __getitem__(self, key: Any) -> Any:
        tile, rest = self.chosen(key)
        return tile if rest is Ellipsis else tile[rest]

    def chosen(self, key: Any) -> tuple[Tensor, Any]:
        """The location an index is in, and the index within it."""
        keys = key if type(key) is tuple else (key,)
        if self._whole is None:
            places = self._places(keys)
            if places is not None:
                tile = self._tiles.get(places)
                if tile is None:
                    tile = self._tiles[places] = self._made(self.shape[self.pdim :], 0)
                return tile, keys[self.pdim :] or Ellipsis
        return self.as_one(), keys

    def _places(self, keys: tuple[Any, ...]) -> tuple[int, ...] | None:
        """Which tile is meant; None where that is not said by plain numbers."""
        if len(keys) < self.pdim:
            return None
        out = []
        for axis in range(self.pdim):
            try:
                at = keys[axis].__index__()
            except (AttributeError, TypeError):
                return None
            count = self.shape[axis]
            if not -count <= at < count:
                raise fail(f"index `{at}` of dimension {axis} is outside `{self._name}`, which has {count} elements there")
            out.append(at % count)
        return tuple(out)

    def _made(self, shape: tuple[int, ...], pdim: int) -> Tensor:
        from . import compute

        r = recorder()
        if self._fill is not None and len(r.loops) != self._fill[1]:
            raise fail(f"a tile of `{self._name}` is filled when it is first used, which is inside of a loop", "fill the array inside the loop")
        here, r.here = r.here, self._site
        try:
            tile = compute.new_tile(shape, self.dtype, self.space, pdim, self._name)
            if self._fill is not None:
                compute.memset(tile, self._fill[0])
            return tile
        finally:
            r.here = here

    def filled(self, value: Any) -> Blocks:
        """The array holding `value` all over: each tile is filled when it is first used, so that none lives longer than it must."""
        self._fill = (value, len(recorder().loops))
        return self

    def as_one(self) -> Tensor:
        """The array as one location."""
        if self._whole is None:
            if self._tiles:
                raise fail(
                    f"the tiles of `{self._name}` were chosen by plain numbers before, and are apart from each other",
                    "choose each tile by a number, or place the array without `mod_alloc`",
                )
            self._whole = self._made(self.shape, self.pdim)
        return self._whole
