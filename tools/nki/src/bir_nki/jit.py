"""`nki.jit` and its relatives."""

from __future__ import annotations

import functools
from typing import Any

from . import record
from .trace import simulate as _simulate
from .trace import unwrapped


class Kernel:
    """A kernel: called while another is traced it is inlined; called on arrays it is traced and simulated."""

    def __init__(self, function: Any, grid: Any = None, *, one_core: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.grid = grid
        #: Whether the programs of its grid are run one after the other, as in old-style NKI, and never on two cores.
        self.one_core = one_core

    @property
    def func(self) -> Any:
        return unwrapped(self)

    def __getitem__(self, grid: Any) -> Kernel:
        return Kernel(self.__wrapped__, grid, one_core=self.one_core)  # type: ignore[attr-defined]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if record.is_tracing():
            return unwrapped(self)(*args, **kwargs)
        return _simulate(self, *args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def jit(function: Any = None, **_: Any) -> Any:
    """Mark a kernel; also `@nki.jit(mode=…)`, `platform_target=…` and the like, which change nothing here."""
    if function is None:
        return lambda f: Kernel(f)
    return function if isinstance(function, Kernel) else Kernel(function)


def old_jit(function: Any = None, **_: Any) -> Any:
    """`neuronxcc.nki.jit`."""
    if function is None:
        return old_jit
    return function if isinstance(function, Kernel) else Kernel(function, one_core=True)


trace = baremetal = benchmark = profile = old_jit


def simulate(kernel: Any) -> Any:
    """`nki.simulate(kernel)(*arrays)`."""
    return lambda *args, **kwargs: _simulate(kernel, *args, **kwargs)


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """`nki.simulate_kernel(kernel, *arrays)`, the old spelling."""
    return _simulate(kernel, *args, **kwargs)
