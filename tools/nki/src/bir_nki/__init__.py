"""Traces unmodified NKI kernels into `.bir`, and runs them on the BIR tools.

    import bir_nki

    program = bir_nki.trace(kernel, x, w)          # .bir text, verified
    y = bir_nki.simulate(kernel, x, w)             # numpy arrays, from bir-sim
    fast = bir_nki.compile(kernel, x, w, pipeline="-O1")

Importing this package puts stand-ins for `nki` and `neuronxcc.nki` in place, unless a real Neuron SDK is installed; `install(force=True)`
puts them in front of one.
"""

from __future__ import annotations

from .errors import KernelError, Rejected, ToolError, UnknownApi
from .jit import Kernel
from .standin import install
from .trace import Spec, Trace, compile, simulate, trace

__version__ = "0.1.0"
__all__ = ["Kernel", "KernelError", "Rejected", "Spec", "ToolError", "Trace", "UnknownApi", "compile", "install", "simulate", "trace"]

install()
