"""Programs of a grid that exchange values by `nl.all_reduce`.

The programs of an old-style grid are recorded one after the other. One that needs values of those behind it cannot be: the trace starts
again, each program on a thread of its own. They run in turns, never two at a time, each until it meets the others; then what they ask for
is recorded, and they go on. Invariant: the recorder belongs to the one thread that has its turn.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import compute
from .errors import KernelError, fail
from .record import Site, recorder

if TYPE_CHECKING:
    from .record import Recorder
    from .tensor import Tensor


class Meet(BaseException):
    """A program needs values of others: the trace must start again with all of them at once."""


class _Leave(BaseException):
    """Another program failed: nobody waits for this one any more."""


@dataclasses.dataclass
class _Wish:
    """What a program brings to a meeting, and how it is combined."""

    tile: Tensor
    op: str
    axes: tuple[int, ...]
    dtype: Any
    site: Site


class _Program:
    """One program on its thread."""

    def __init__(self, place: tuple[int, ...], body: Callable[[], Any]) -> None:
        self.place = place
        self.turn = threading.Semaphore(0)
        self.back = threading.Semaphore(0)
        self.wish: _Wish | None = None
        self.answer: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.left = False
        self.shared_next = 0
        self.thread = threading.Thread(target=self._run, args=(body,), daemon=True)
        self.thread.start()

    def _run(self, body: Callable[[], Any]) -> None:
        self.turn.acquire()
        try:
            if not self.left:
                self.result = body()
        except _Leave:
            pass
        except BaseException as error:  # raised again where the trace is waited for
            self.error = error
        self.done = True
        self.back.release()

    def go(self, r: Recorder) -> None:
        """Let it run until it meets the others or ends."""
        r.program, r.shared_next = self.place, self.shared_next
        r.fresh = r.last_matmul = None
        self.turn.release()
        self.back.acquire()
        self.shared_next = r.shared_next
        r.here = r.taken = None
        if self.error is not None:
            raise self.error

    def meet(self, wish: _Wish) -> Any:
        """Wait for the others, on the program's own thread."""
        self.wish = wish
        self.back.release()
        self.turn.acquire()
        if self.left:
            raise _Leave
        return self.answer


class Programs:
    """All programs of a grid, in turns."""

    def __init__(self, r: Recorder, bodies: list[tuple[tuple[int, ...], Callable[[], Any]]]) -> None:
        self.recorder = r
        self.programs = [_Program(place, body) for place, body in bodies]

    def run(self) -> list[Any]:
        """Results of the programs."""
        self.recorder.programs = self
        try:
            while True:
                for program in self.programs:
                    program.go(self.recorder)
                waiting = [program for program in self.programs if not program.done]
                if not waiting:
                    return [program.result for program in self.programs]
                if len(waiting) < len(self.programs) or len({(id(p.wish.site), p.wish.axes) for p in waiting if p.wish}) > 1:
                    where = waiting[0].wish.site.where if waiting[0].wish else None
                    raise KernelError("not every program of the grid reaches this `nl.all_reduce`", *(where or (None, 0)))
                self._combine()
        finally:
            for program in self.programs:
                if not program.done:
                    program.left = True
                    program.turn.release()
                program.thread.join()

    def _combine(self) -> None:
        """Answer the wishes: programs that differ along the axes only share one."""
        r = self.recorder
        groups: dict[Any, list[_Program]] = {}
        for program in self.programs:
            assert program.wish is not None
            key = tuple(None if axis in program.wish.axes else at for axis, at in enumerate(program.place))
            groups.setdefault(key, []).append(program)
        for members in groups.values():
            wishes = [program.wish for program in members if program.wish is not None]
            r.here = wishes[0].site
            try:
                answers = _combined(wishes)
            except KernelError as error:
                error.file, error.line = wishes[0].site.where or (None, 0)
                raise
            for program, answer in zip(members, answers):
                program.answer = answer
        r.here = None


def _combined(wishes: list[_Wish]) -> list[Tensor]:
    """The tiles of a group combined, once for each of them: it may change its own."""
    total = compute.copy(wishes[0].tile, wishes[0].dtype)
    for wish in wishes[1:]:
        total = compute.binary(wish.op, total, wish.tile, total.dtype)
    return [total, *(compute.copy(total) for _ in wishes[1:])]


def all_reduce(tile: Tensor, op: str, axes: Any, dtype: Any = None, mask: Any = None) -> Any:
    """`tile` combined with those of the programs that differ along `axes` of the grid."""
    r = recorder()
    r.once()
    chosen = tuple(int(a) for a in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    for axis in chosen:
        if not 0 <= axis < max(1, len(r.grid)):
            raise fail(f"the grid has no axis {axis}: it is {list(r.grid)}")
    tile = compute.with_mask(compute.on_chip(tile), mask)
    if r.module.core is not None:
        raise fail("`nl.all_reduce` does not reach from one core to another", "exchange tiles by `nisa.sendrecv`")
    if r.loops:
        raise fail("`nl.all_reduce` cannot stand in a dynamic loop", "loop over `nl.affine_range`")
    if len(r.grid) == 0:
        return compute.copy(tile, dtype)
    if r.programs is None:
        raise Meet
    me = next(program for program in r.programs.programs if program.place == r.program)
    return me.meet(_Wish(tile, op, chosen, dtype, r.here or r.site()))
