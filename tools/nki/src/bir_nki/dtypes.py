"""Element types: the names NKI, BIR and numpy have for each."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .errors import fail, nearest


class DType:
    """An element type. Compares equal to its other names and to numpy's dtype, and prints as NKI's name."""

    __slots__ = ("name", "bir", "dtype", "itemsize", "kind", "packed")

    def __init__(self, name: str, bir: str, dtype: Any, kind: str, packed: int = 1) -> None:
        self.name = name
        self.bir = bir
        #: numpy's dtype: `np.dtype(nl.float32)` finds it here.
        self.dtype = np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        #: `f` float, `i` signed, `u` unsigned, `b` bool, `x` packed MX data.
        self.kind = kind
        self.packed = packed

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        if other is None:
            return False
        try:
            return as_dtype(other) is self
        except Exception:  # whatever cannot name a dtype is not this one
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    def __call__(self, value: Any) -> Any:
        """`nl.float32(3)`: a scalar of this type."""
        return self.dtype.type(value)

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_int(self) -> bool:
        return self.kind in "iub"


float32 = DType("float32", "f32", np.float32, "f")
tfloat32 = DType("tfloat32", "tf32", np.float32, "f")
bfloat16 = DType("bfloat16", "bf16", ml_dtypes.bfloat16, "f")
float16 = DType("float16", "f16", np.float16, "f")
float8_e5m2 = DType("float8_e5m2", "f8e5m2", ml_dtypes.float8_e5m2, "f")
float8_e4m3 = DType("float8_e4m3", "f8e4m3", ml_dtypes.float8_e4m3, "f")
float8_e4m3fn = DType("float8_e4m3fn", "f8e4m3fn", ml_dtypes.float8_e4m3fn, "f")
float8_e8m0fnu = DType("float8_e8m0fnu", "f8e8m0fnu", ml_dtypes.float8_e8m0fnu, "f")
float8_e5m2_x4 = DType("float8_e5m2_x4", "f8e5m2_x4", np.uint32, "x", 4)
float8_e4m3fn_x4 = DType("float8_e4m3fn_x4", "f8e4m3fn_x4", np.uint32, "x", 4)
float4_e2m1fn_x4 = DType("float4_e2m1fn_x4", "f4e2m1fn_x4", np.uint16, "x", 4)
int8 = DType("int8", "i8", np.int8, "i")
int16 = DType("int16", "i16", np.int16, "i")
int32 = DType("int32", "i32", np.int32, "i")
int64 = DType("int64", "i64", np.int64, "i")
uint8 = DType("uint8", "u8", np.uint8, "u")
uint16 = DType("uint16", "u16", np.uint16, "u")
uint32 = DType("uint32", "u32", np.uint32, "u")
uint64 = DType("uint64", "u64", np.uint64, "u")
bool_ = DType("bool_", "bool", np.bool_, "b")

ALL: tuple[DType, ...] = tuple(value for value in globals().values() if isinstance(value, DType))

_BY_NAME: dict[str, DType] = {}
for _dtype in ALL:
    _BY_NAME[_dtype.name] = _dtype
    _BY_NAME[_dtype.bir] = _dtype
_BY_NAME |= {"bool": bool_, "fp32": float32, "fp16": float16, "bfloat16": bfloat16, "float": float32, "int": int32}
# Two dtypes share numpy's float32, uint32 and uint16; arrays of those are the plain ones.
_BY_NUMPY: dict[np.dtype, DType] = {d.dtype: d for d in ALL if d is not tfloat32 and d.kind != "x"}
_KNOWN: dict[Any, DType] = {bool: bool_, float: float32, int: int32}


def as_dtype(value: Any) -> DType:
    """The element type that `value` names: a `DType`, a name, a numpy dtype or scalar type."""
    if type(value) is DType:
        return value
    try:
        found = _KNOWN.get(value)
    except TypeError:
        found = None
    if found is None:
        if isinstance(value, str) and value in _BY_NAME:
            found = _BY_NAME[value]
        else:
            try:
                found = _BY_NUMPY.get(np.dtype(value))
            except TypeError:
                # torch.float32 and its like say their name after a dot
                found = _BY_NAME.get(str(value).rpartition(".")[2])
        if found is None:
            raise fail(f"`{value}` is no element type of this hardware", nearest(str(value), _BY_NAME))
        try:
            _KNOWN[value] = found
        except TypeError:
            pass
    return found


def promote(a: DType, b: DType) -> DType:
    """The type of a value computed from two: the float, then the wider, of them."""
    if a is b:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.itemsize != b.itemsize:
        return a if a.itemsize > b.itemsize else b
    if a.is_float:
        return float32 if a.itemsize < 4 else a
    return a if a.kind != "b" else b
