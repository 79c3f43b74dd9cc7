"""`nki.jit` and its relatives."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import record
from .trace import Spec
from .trace import trace as _trace
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
        return _run(self, *args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Trace and simulate; arguments the kernel writes are written in the caller's arrays, and those without data are made up."""
    rng = np.random.default_rng(0)
    given = [value.random(rng) if isinstance(value, Spec) else value for value in args]
    named: dict[str, Any] = {name: value.random(rng) if isinstance(value, Spec) else value for name, value in kwargs.items()}
    return _trace(kernel, *given, **named).simulate(in_place=True)


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
    return lambda *args, **kwargs: _run(kernel, *args, **kwargs)


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """`nki.simulate_kernel(kernel, *arrays)`, the old spelling."""
    return _run(kernel, *args, **kwargs)
