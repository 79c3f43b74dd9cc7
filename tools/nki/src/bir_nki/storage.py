"""Storages: the locations of the IR that tensors are views of."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .dtypes import DType


class Storage:
    """A location: what an `alloc` declares."""

    __slots__ = ("name", "space", "shape", "dtype", "code", "row", "parts", "loc", "where", "first", "last", "written", "psum", "__dict__")

    # What few storages have is kept in the dictionary of those.
    kind = "internal"
    attrs: Mapping[str, str] = MappingProxyType({})
    #: Where it is placed, as text.
    at = ""
    #: Data of a constant.
    value: Any = None
    #: The kernel's line that stored a value which a mask had left undefined in part.
    cut: tuple[str, int] | None = None
    #: Elements of a row, where index tiles choose rows of another size than its shape says.
    index_row: int | None = None
    #: Why nothing may be written here, if nothing may.
    frozen: str | None = None

    def __init__(self, name: str, space: str, shape: tuple[int, ...], dtype: DType) -> None:
        self.name = name
        self.space = space
        self.shape = shape
        self.dtype = dtype
        #: Space and dtype, by which instructions of one shape are known.
        self.code = f"{space} {dtype.bir}"
        size = 1
        for extent in shape if space == "dram" else shape[1:]:
            size *= extent
        #: Elements, per partition on chip.
        self.row = size
        self.parts = 1 if space == "dram" else shape[0]
        self.loc = ""
        self.where: tuple[str, int] | None = None
        self.first = self.last = -1
        self.written = False
        #: What is known of a PSUM location's words; see psum.py.
        self.psum: Any = None

    @property
    def declared(self) -> tuple[int, ...]:
        """The shape to declare: its first dimension is what index tiles number."""
        return self.shape if self.index_row is None else (self.row // self.index_row, self.index_row)

    @property
    def is_special(self) -> bool:
        """Whether there is more to it than memory, shape and dtype."""
        return bool(self.__dict__)

    def twin(self, name: str, site: Any) -> Storage:
        """A new storage of the same memory, shape and dtype."""
        out: Storage = Storage.__new__(Storage)
        out.name = name
        out.space = self.space
        out.shape = self.shape
        out.dtype = self.dtype
        out.code = self.code
        out.row = self.row
        out.parts = self.parts
        out.loc = site.text
        out.where = site.where
        out.first = out.last = -1
        out.written = False
        out.psum = None
        return out
