"""What goes wrong while a kernel is traced, and where in the kernel it happened."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

# By id, since a code object hashes all it holds; the objects are kept, so that no id is used again.
OURS: dict[int, bool] = {}
_kept: list[CodeType] = []


def is_ours(code: CodeType) -> bool:
    """Whether a code object belongs to this package, and so is no line of a kernel."""
    known = OURS.get(id(code))
    if known is None:
        known = OURS[id(code)] = code.co_filename.startswith((PACKAGE, "<frozen"))
        _kept.append(code)
    return known


def kernel_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame at or above `frame` that is not of this package."""
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return frame


class KernelError(Exception):
    """A kernel asks for what the hardware or this front end cannot do.

    `file` and `line` name the kernel's own line; `help` says what would be right.
    """

    def __init__(self, message: str, file: str | None = None, line: int = 0, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.help = help
        #: The kernel's line, if the error is in a function that it calls.
        self.called_from: tuple[str, int] | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        tail = f"\n  help: {self.help}" if self.help else ""
        if self.called_from:
            tail += f"\n  called from {self.called_from[0]}:{self.called_from[1]}"
        return f"{place}error: {self.message}{tail}"


class UnknownApi(KernelError, AttributeError):
    """A name the stand-in modules do not have; an AttributeError, so that `hasattr` answers."""


class Rejected(KernelError):
    """Findings of `bir-opt` or `bir-sim`, each at the Python line its instruction came from."""

    def __init__(self, findings: list[KernelError]) -> None:
        first = findings[0]
        super().__init__(first.message, first.file, first.line, first.help)
        self.findings = findings

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self.findings)


class ToolError(Exception):
    """A tool of the workspace is missing or failed in a way no kernel explains."""


def fail(message: str, help: str | None = None) -> KernelError:
    """The error for the kernel line that is being executed; raise what this returns."""
    frame = kernel_frame(sys._getframe(1))
    if frame is None:
        return KernelError(message, help=help)
    return KernelError(message, frame.f_code.co_filename, frame.f_lineno, help)


def axis_at(axis: Any, rank: int) -> int:
    """The dimension that `axis` names among `rank`; a negative one counts from the end."""
    at = int(axis)
    if not -rank <= at < rank:
        raise fail(f"there is no dimension {at} among {rank}")
    return at % rank


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A help line with the known name closest to `name`, if one is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean `{close[0]}`?" if close else None


def unknown(module: str, name: str, known: Iterable[str]) -> UnknownApi:
    """The error for `module.name`, which the stand-in does not have."""
    frame = kernel_frame(sys._getframe(1))
    return UnknownApi(
        f"`{module}.{name}` is not supported",
        frame.f_code.co_filename if frame else None,
        frame.f_lineno if frame else 0,
        nearest(name, known),
    )
