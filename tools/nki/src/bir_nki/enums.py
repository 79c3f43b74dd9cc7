"""Hardware enumerations of `nki.isa`; kernels may pass their numbers as well."""

from __future__ import annotations

import enum
from typing import Any

from .errors import fail


class engine(enum.IntEnum):
    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


class reduce_cmd(enum.IntEnum):
    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(enum.IntEnum):
    unknown = 0
    none = 1
    swdge = 2
    hwdge = 3


class oob_mode(enum.IntEnum):
    error = 0
    skip = 1


class matmul_perf_mode(enum.IntEnum):
    none = 0
    double_row = 1
    double_row_gen3 = 1
    double_column = 2
    double_pixel = 3


class dma_engine(enum.IntEnum):
    dma = 0
    gpsimd_dma = 1


class nc_version(enum.IntEnum):
    gen2 = 2
    gen3 = 3
    gen4 = 4


ENGINES = {engine.tensor: "pe", engine.scalar: "act", engine.gpsimd: "pool", engine.dma: "dma", engine.vector: "dve", engine.sync: "sp"}
REDUCE_CMDS = {
    reduce_cmd.idle: "idle",
    reduce_cmd.reset: "clear",
    reduce_cmd.reduce: "accumulate",
    reduce_cmd.reset_reduce: "reset",
    reduce_cmd.load_reduce: "load",
}


def member(kind: Any, value: Any) -> Any:
    """The member of an enumeration that a member, number or name means; None is its first."""
    if value is None:
        return kind(0)
    try:
        return kind[value] if isinstance(value, str) else kind(value)
    except (KeyError, ValueError):
        raise fail(f"`{value!r}` is no {kind.__name__}, expected one of {', '.join(m.name for m in kind)}") from None


def engine_word(value: Any) -> str | None:
    """The op table's word; None where the choice is left open."""
    if value is None or value is engine.unknown:
        return None
    return ENGINES.get(member(engine, value))
