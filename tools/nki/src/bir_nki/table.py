"""The op table, as `bir-opt --show-dialect --format=json` prints it: the one source of operand roles, dtypes, spaces, engines, defaults."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from .errors import ToolError

_FORMAT = 1


@functools.lru_cache(maxsize=None)
def tool(name: str) -> str:
    """Path of `bir-opt` or `bir-sim`: $BIR_OPT and its folder, else PATH, else this checkout's target/."""
    named = os.environ.get("BIR_OPT")
    if named:
        path = pathlib.Path(named).with_name(name)
        if path.exists():
            return str(path)
    found = shutil.which(name)
    if found:
        return found
    for parent in pathlib.Path(__file__).resolve().parents:
        for build in ("release", "debug"):
            path = parent / "target" / build / name
            if path.exists():
                return str(path)
    raise ToolError(f"`{name}` is neither on PATH nor named by $BIR_OPT: build it with `cargo build --release`")


class Role:
    """An operand of an op."""

    __slots__ = ("name", "kind", "keyword", "words", "spaces", "dtypes", "literal", "optional", "variadic", "out", "prefix")

    def __init__(self, data: dict[str, Any]) -> None:
        self.name: str = data["name"]
        self.kind: str = data["kind"]
        self.keyword: str | None = data["keyword"]
        self.words: list[str] = data["words"]
        self.spaces = frozenset(data["spaces"])
        self.dtypes = frozenset(data["dtypes"])
        self.literal: str | None = data["literal"]
        self.optional: bool = data["optional"]
        self.variadic: bool = data["variadic"]
        self.out = self.kind in ("out", "inout", "reg_out")
        self.prefix = f"{self.keyword} " if self.keyword else ""


class Op:
    """An instruction of the op table."""

    __slots__ = ("name", "roles", "outs", "ins", "words", "attrs", "engines", "names", "role")

    def __init__(self, data: dict[str, Any]) -> None:
        self.name: str = data["name"]
        self.roles = [Role(role) for role in data["operands"]]
        self.outs = [role for role in self.roles if role.out]
        self.ins = [role for role in self.roles if not role.out]
        self.words: list[str] = data["words"]
        self.attrs: dict[str, dict[str, Any]] = {attr["name"]: attr for attr in data["attrs"]}
        self.engines: dict[str, dict[str, Any] | None] = data["engines"] or {}
        self.names = frozenset(role.name for role in self.roles)
        self.role = {role.name: role for role in self.roles}


class Table:
    """All of the dialect."""

    def __init__(self, data: dict[str, Any]) -> None:
        if data["format"] != _FORMAT:
            raise ToolError(f"`bir-opt` describes its dialect in format {data['format']}, this package reads {_FORMAT}")
        self.ops = {op["name"]: Op(op) for op in data["ops"]}
        self.enums: dict[str, list[str]] = data["enums"]
        self.common = {attr["name"]: attr for attr in data["attrs"]}
        self.targets = {target["name"]: target for target in data["targets"]}


@functools.lru_cache(maxsize=None)
def table() -> Table:
    """The table of the `bir-opt` in use."""
    run = subprocess.run([tool("bir-opt"), "--show-dialect", "--format=json"], capture_output=True, text=True)
    if run.returncode:
        raise ToolError(f"`bir-opt --show-dialect` failed: {run.stderr.strip()}")
    return Table(json.loads(run.stdout))
