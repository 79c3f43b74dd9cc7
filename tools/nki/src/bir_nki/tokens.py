"""`nl.add`, `nl.exp` and their like: tokens that name an operation of an instruction, and functions that compute with it.

A kernel may pass numpy's functions (`np.add`) or names instead; all of them are looked up here.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import record, replay
from .errors import fail, nearest
from .table import table


class Token:
    """An operation. `alu` and `activation` are its words in the op table, where it has them."""

    __slots__ = ("name", "alu", "activation", "call")

    def __init__(self, name: str, alu: str | None, activation: str | None, call: Callable[..., Any] | None = None) -> None:
        self.name = name
        self.alu = alu
        self.activation = activation
        self.call = call

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.call
        if call is None:
            raise fail(f"`nl.{self.name}` names an operation of an instruction and computes nothing by itself")
        r = record.current()
        if r is None:
            return call(*args, **kwargs)
        return replay.run(r, call, args, kwargs, sys._getframe(1))

    def __repr__(self) -> str:
        return f"nl.{self.name}"


replay.plain(Token)


# Spellings that differ between NKI (or numpy) and the op table.
_ALU_WORDS = {
    "maximum": "max", "minimum": "min", "amax": "max", "amin": "min", "sum": "add", "prod": "multiply", "mult": "multiply",
    "mul": "multiply", "sub": "subtract", "pow": "power", "absolute": "abs", "true_divide": "divide", "floor_divide": "divide_int",
    "fmod": "mod", "remainder": "mod", "bitwise_not": "invert", "logical_shift_left": "left_shift", "logical_shift_right": "right_shift",
    "is_equal": "equal", "is_gt": "greater", "is_ge": "greater_equal", "is_lt": "less", "is_le": "less_equal", "all": "logical_and",
    "any": "logical_or", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "mean": "average", "arith_shift_left": "left_shift",
}  # fmt: skip
_FUNC_WORDS = {
    "absolute": "abs", "ln": "log", "gelu_tanh": "gelu_apprx_tanh", "silu_apprx": "silu", "swish": "silu", "arctan": "arctan",
    "none": "copy",
}  # fmt: skip


@functools.lru_cache(maxsize=None)
def alu_words() -> frozenset[str]:
    return frozenset(table().enums["alu_op"])


@functools.lru_cache(maxsize=None)
def activation_words() -> frozenset[str]:
    return frozenset(table().enums["activation_func"])


def _name(op: Any) -> str:
    if isinstance(op, str):
        return op
    name = getattr(op, "__name__", None) or getattr(op, "name", None)
    if not isinstance(name, str):
        raise fail(f"`{op!r}` is no operation", "pass a token such as `nl.add`")
    return name


_alu_cache: dict[Any, str] = {}
_func_cache: dict[Any, str] = {}


def alu(op: Any) -> str:
    """The op table's word for an ALU operation."""
    word = _alu_cache.get(op)
    if word is None:
        name = _name(op)
        word = _ALU_WORDS.get(name, name)
        if word not in alu_words():
            raise fail(f"`{name}` is no operation of the vector engines", nearest(name, alu_words() | set(_ALU_WORDS)))
        _alu_cache[op] = word
    return word


def activation(op: Any) -> str:
    """The op table's word for an activation function."""
    word = _func_cache.get(op)
    if word is None:
        name = _name(op)
        word = _FUNC_WORDS.get(name, name)
        if word not in activation_words():
            raise fail(f"`{name}` is no function of the activation engine", nearest(name, activation_words()))
        _func_cache[op] = word
    return word


#: numpy's function for operations on two plain numbers.
NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide, "max": np.maximum, "min": np.minimum,
    "power": np.power, "mod": np.mod, "fmod": np.fmod, "divide_int": np.floor_divide, "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "less": np.less, "less_equal": np.less_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "left_shift": np.left_shift, "right_shift": np.right_shift,
}  # fmt: skip
COMPARISONS = frozenset({"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"})
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor"})
COMMUTATIVE = frozenset(
    {"add", "multiply", "max", "min", "equal", "not_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"}
)
#: Operations on one value; where a call gives them a second, it means nothing.
UNARY = frozenset({"abs", "square", "relu", "rsqrt", "reciprocal", "invert"})
