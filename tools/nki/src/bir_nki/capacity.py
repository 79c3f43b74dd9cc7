"""Whether a kernel's tiles fit on chip.

A lower bound, so it never refuses a kernel that fits: at every instruction the tiles that hold something still needed must fit together.
A tile of at most 32 (64) partitions counts a quarter (half) of its bytes, since others can lie beside it.
"""

from __future__ import annotations

from .errors import KernelError
from .record import Module, Recorder
from .storage import Storage


def _quarters(s: Storage) -> int:
    """Bytes of each partition, in quarters."""
    width = 1 if s.parts <= 32 else 2 if s.parts <= 64 else 4
    size = s.row * s.dtype.itemsize
    if s.space == "psum":
        size = -(-size // 2048) * 2048
    return int(width * size)


def check(recorder: Recorder, module: Module) -> None:
    """Raise where the tiles alive at some instruction need more than there is."""
    for space in ("sbuf", "psum"):
        limit = recorder.limits[f"{space}_bytes"] * 4
        tiles = [s for s in module.storages if s.space == space and s.first >= 0]
        sizes = [_quarters(s) for s in tiles]
        if sum(sizes) <= limit:
            continue
        events = sorted([(s.first, 1, n) for n, s in enumerate(tiles)] + [(s.last + 1, 0, n) for n, s in enumerate(tiles)])
        live: set[int] = set()
        used = 0
        for _, starts, n in events:
            if not starts:
                live.discard(n)
                used -= sizes[n]
                continue
            live.add(n)
            used += sizes[n]
            if used > limit:
                largest = sorted(live, key=lambda m: -sizes[m])[:3]
                shown = ", ".join(
                    f"`{tiles[m].name}` ({tiles[m].row * tiles[m].dtype.itemsize} bytes, line {(tiles[m].where or ('', 0))[1]})" for m in largest
                )
                file, line = tiles[n].where or (None, 0)
                raise KernelError(
                    f"`{tiles[n].name}` does not fit: {len(live)} tiles that are alive here need {-(-used // 4)} bytes of each partition of "
                    f"`{space}`, which has {limit // 4} on {recorder.target}",
                    file, line, f"the largest are {shown}",
                )  # fmt: skip
