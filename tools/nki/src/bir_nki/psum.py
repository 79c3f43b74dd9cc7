"""Which words of a PSUM tile hold what, so that no `accumulate = None` and no zero fill reaches the IR.

PE can only add to what PE wrote. Kernels zero a tile and then accumulate into it, or leave open whether a matmul overwrites: both mean
that the first write of a region overwrites and later ones add. A zero fill is therefore held back; it becomes a `memset` only where
something else looks at the tile before a matmul has filled it.
"""

from __future__ import annotations

from typing import Any

from .errors import fail

Region = tuple[Any, ...]


class State:
    """A PSUM location's words."""

    __slots__ = ("zeroed", "pending", "regions", "depth", "line", "at")

    def __init__(self, depth: int) -> None:
        #: A zero fill was asked for since the last reset.
        self.zeroed = False
        #: It was not emitted yet.
        self.pending = False
        #: Regions PE wrote, by access.
        self.regions: dict[Region, int] = {}
        #: How many loops of the IR the tile (or its zero fill) lies in.
        self.depth = depth
        #: The zero fill that was held back, and where it belongs among the instructions.
        self.line = ""
        self.at = 0


def _region(dst: Any) -> Region:
    offset, p0 = dst.offset, dst.p0
    # what moves with a loop is known by how it reads
    return (offset if type(offset) is int else str(offset), p0 if type(p0) is int else str(p0), dst.partitions, dst.free_dims())


def _extent(region: Region) -> tuple[int, int, int, int] | None:
    """First and last partition, first and last element; None where they move with a loop."""
    offset, p0, parts, dims = region
    if type(offset) is not int or type(p0) is not int:
        return None
    low = high = offset
    for step, count in dims:
        if step >= 0:
            high += step * (count - 1)
        else:
            low += step * (count - 1)
    return p0, p0 + parts - 1, low, high


def _apart(a: Region, b: Region) -> bool:
    ea, eb = _extent(a), _extent(b)
    if ea is None or eb is None:
        return True
    return ea[1] < eb[0] or eb[1] < ea[0] or ea[3] < eb[2] or eb[3] < ea[2]


def zero(recorder: Any, dst: Any) -> bool:
    """Note a zero fill of `dst`; False where it must be emitted at once."""
    state = dst.storage.psum
    if state is None or dst.partitions != dst.storage.parts or dst.size != dst.storage.row * dst.storage.parts:
        return False
    recorder.once()
    state.zeroed = state.pending = True
    state.regions.clear()
    state.depth = len(recorder.loops)
    value = "0" if dst.storage.dtype.is_int else "0.0"
    state.line = f"{recorder.indent}memset %{dst.storage.name} <- {value}{(recorder.here or recorder.site()).text}"
    state.at = len(recorder.module.lines)
    if state not in recorder.held_back:
        recorder.held_back.append(state)
    return True


def accumulation(recorder: Any, dst: Any, accumulate: bool | None) -> Any:
    """The `accumulate` attribute of a matmul into `dst`: None overwrites, True adds, or `unless_first(%loop)`."""
    state = dst.storage.psum
    if state is None:
        return True if accumulate else None
    region = _region(dst)
    depth = len(recorder.loops)
    if accumulate is False:
        state.regions[region] = depth
        return None
    if region in state.regions:
        return True
    for other in state.regions:
        if not _apart(region, other):
            if accumulate:
                return True
            raise fail(
                "this matmul overlaps a region of its PSUM tile that an earlier one wrote in another shape",
                "say `accumulate=True` or `accumulate=False`",
            )
    if accumulate and not state.zeroed:
        return True  # the kernel's word; the verifier answers if nothing was there
    state.regions[region] = depth
    inner = depth - state.depth
    if inner == 0:
        return None
    if inner > 1:
        raise fail(
            "a PSUM tile that is zeroed outside of two dynamic loops cannot be accumulated in the inner one",
            "zero it inside the outer loop",
        )
    return f"unless_first({recorder.loops[-1]})"


def touch(recorder: Any, view: Any, write: bool) -> None:
    """Another engine reads or writes `view`: a zero fill held back must have happened, unless the tile was filled since."""
    storage = view.storage
    state = storage.psum
    size = storage.row * storage.parts
    if state.pending:
        whole = view.partitions == storage.parts and view.size == size
        if write and whole:
            release(recorder, state)
        elif not write and _region(view) not in state.regions and _covered(state) < size:
            emit_zero(recorder, storage)
        elif write:
            # one more part that no longer needs the zeros
            state.regions[_region(view)] = len(recorder.loops)
            return
    if write:
        state.regions.clear()
        state.zeroed = False


def _covered(state: State) -> int:
    """Elements in the regions written."""
    total = 0
    for _, _, elements, dims in state.regions:
        for _, count in dims:
            elements *= count
        total += elements
    return total


def release(recorder: Any, state: State) -> None:
    """The zero fill is not needed any more."""
    state.pending = False
    recorder.held_back.remove(state)


def emit_zero(recorder: Any, storage: Any) -> None:
    """Put the `memset` that was held back where it belongs."""
    state = storage.psum
    release(recorder, state)
    recorder.module.lines.insert(state.at, state.line)
    for other in recorder.held_back:
        if other.at >= state.at:
            other.at += 1
    storage.written = True
    storage.first = state.at if storage.first < 0 else min(storage.first, state.at)
