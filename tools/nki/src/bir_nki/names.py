"""Names and source positions of calls, read off the byte code of the kernel once per call site."""

from __future__ import annotations

import bisect
import dis
from types import CodeType, FrameType
from typing import Any

_tables: dict[CodeType, tuple[list[Any], list[int]]] = {}
_SKIPPED = {"CACHE", "COPY", "DUP_TOP", "EXTENDED_ARG", "PRECALL", "NOP", "RESUME"}


def assigned(frame: FrameType) -> str | None:
    """The variable or attribute that the call a frame is in will be assigned to, if it is the next thing that happens."""
    code = frame.f_code
    table = _tables.get(code)
    if table is None:
        instructions = list(dis.get_instructions(code))
        table = _tables[code] = (instructions, [ins.offset for ins in instructions])
    instructions, positions = table
    # while a call runs, `f_lasti` may point at the call's inline caches, which lie behind it
    at = bisect.bisect_right(positions, frame.f_lasti) - 1
    for ins in instructions[at + 1 :]:
        if ins.opname in _SKIPPED:
            continue
        if ins.opname.startswith("STORE_FAST") or ins.opname in ("STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"):
            value = ins.argval
            return str(value[0] if isinstance(value, tuple) else value)
        if ins.opname.startswith(("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF")):
            # `self.x = call()`: the object, then STORE_ATTR
            continue
        if ins.opname == "STORE_ATTR":
            return str(ins.argval)
        return None
    return None


def column(frame: FrameType) -> int:
    """Column of the call a frame is in, from 1; 1 where Python does not say (before 3.11)."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return 1
    for at, (_, _, start, _) in enumerate(positions()):
        if at * 2 == frame.f_lasti:
            return (start or 0) + 1
    return 1
