"""The stand-in modules: `nki`, `nki.isa`, `nki.language`, … and `neuronxcc.nki.*`.

They are put into `sys.modules`, so a kernel's own imports find them. A real Neuron SDK that is installed wins, unless `force` is given.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import numpy as np

from . import dtypes, enums, isa, jit, language
from .errors import unknown
from .trace import Spec


class _Meta(type):
    """Collects the fields of NKIObject classes, annotated or not, so that they can be given by keyword."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        annotations = dict(body.get("__annotations__", {}))
        for key, value in body.items():
            plain = not key.startswith("_") and not callable(value) and not isinstance(value, (property, staticmethod, classmethod))
            if plain and key not in annotations:
                annotations[key] = Any
        body["__annotations__"] = annotations
        return super().__new__(mcs, name, bases, body)


class NKIObject(metaclass=_Meta):
    """Base of the classes kernels pass around."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for key, value in kwargs.items():
            setattr(self, key, value)


class _Placed:
    """`ncc.sbuf` / `ncc.psum` of old-style NKI: where its tiles lie is left to the allocator."""

    def __init__(self, buffer: Any) -> None:
        self.placed = (buffer, None)
        self._buffer = buffer

    def alloc(self, *_: Any, **__: Any) -> Any:
        return language.ByHand(self._buffer)

    mod_alloc = alloc

    def auto_alloc(self, *_: Any, **__: Any) -> Any:
        return self._buffer

    __call__ = auto_alloc


def _passing(function: Any = None, **_: Any) -> Any:
    """A decorator that changes nothing."""
    return (lambda f: f) if function is None or not callable(function) else function


def _module(name: str, package: bool = False, **contents: Any) -> types.ModuleType:
    module = types.ModuleType(name, f"Stand-in for `{name}`, recording what kernels do.")
    module.__dict__.update(contents)
    if package:
        module.__path__ = []

    def missing(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise unknown(name, attribute, [n for n in module.__dict__ if not n.startswith("_")])

    module.__getattr__ = missing  # type: ignore[method-assign]
    return module


def _array_maker(name: str) -> Any:
    make = getattr(np, name)

    def call(*args: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Any:
        return make(*args, dtype=dtypes.as_dtype(dtype).dtype, **kwargs)

    return call


class _Typing(types.ModuleType):
    """Annotations: any name, subscripted as one likes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Annotation


class _Annotation:
    def __class_getitem__(cls, given: Any) -> Any:
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], (tuple, list)):
            # `tensor[[250, 512], nl.float32]`: an argument without data
            return Spec(tuple(int(n) for n in given[0]), dtypes.as_dtype(given[1]))
        return cls


def _modules() -> dict[str, types.ModuleType]:
    typing = _Typing("nki.typing")
    types_of = {d.name: d for d in dtypes.ALL}
    dtype = _module("nki.dtype", False, **types_of)
    constants = _module(
        "nki.isa.constants",
        **{n: getattr(enums, n) for n in ("engine", "reduce_cmd", "dge_mode", "oob_mode", "matmul_perf_mode", "dma_engine", "nc_version")},
    )
    sizes = _module("nki.language.constants", False, sizeinbytes=language.sizeinbytes, **{n: getattr(language.constants, n) for n in ("pmax", "psum_fmax")})
    compiler = _module(
        "nki.compiler", package=True, sbuf=_Placed(language.sbuf), psum=_Placed(language.psum), enable_stack_allocator=_passing,
        skip_middle_end_transformations=_passing, force_auto_alloc=_passing, under_development=_passing,
    )  # fmt: skip
    from . import collectives

    # arrays made while tracing, for `nl.shared_constant`
    arrays = _module(
        "nki.tensor", False, Tensor=language.NkiTensor, identity=lambda n, dtype=dtypes.float32: np.eye(int(n), dtype=dtypes.as_dtype(dtype).dtype),
        **{name: _array_maker(name) for name in ("zeros", "ones", "full", "arange", "eye")},
    )  # fmt: skip

    shared: dict[str, Any] = {
        "isa": isa, "language": language, "typing": typing, "dtype": dtype, "compiler": compiler, "collectives": collectives, "jit": jit.jit,
        "trace": jit.trace, "baremetal": jit.baremetal, "benchmark": jit.benchmark, "profile": jit.profile, "simulate": jit.simulate,
        "simulate_kernel": jit.simulate_kernel, "NKIObject": NKIObject, "tensor": arrays,
    }  # fmt: skip
    out: dict[str, types.ModuleType] = {}
    for root, mark in (("nki", jit.jit), ("neuronxcc.nki", jit.old_jit)):
        out[root] = _module(root, package=True, **{**shared, "jit": mark})
        out[f"{root}.isa"] = isa
        out[f"{root}.language"] = language
        out[f"{root}.language.constants"] = sizes
        # what became `nki.isa` later
        out[f"{root}._private"] = _module(f"{root}._private", package=True)
        out[f"{root}._private.private_api"] = _module(f"{root}._private.private_api", core_barrier=isa.core_barrier, sendrecv=isa.sendrecv)
        out[f"{root}.isa.constants"] = constants
        out[f"{root}.isa.neuron_isa"] = isa
        out[f"{root}.typing"] = typing
        out[f"{root}.dtype"] = dtype
        out[f"{root}.dtypes"] = dtype
        out[f"{root}.compiler"] = compiler
        out[f"{root}.collectives"] = collectives
        out[f"{root}.tensor"] = arrays
        out[f"{root}.simulator"] = _module(f"{root}.simulator", False, simulate=jit.simulate, simulate_kernel=jit.simulate_kernel)
    language.NKIObject = NKIObject
    isa.constants = constants
    for name in ("neuronxcc.starfish", "neuronxcc.starfish.support"):
        out[name] = _module(name, package=True)
    out["neuronxcc.starfish.support.dtype"] = _module("neuronxcc.starfish.support.dtype", False, **types_of)
    out["neuronxcc"] = _module("neuronxcc", package=True, nki=out["neuronxcc.nki"], __version__="0.0.0")
    return out


def has_sdk(root: str) -> bool:
    """Whether a real SDK is there: PyPI's `nki` is an empty placeholder and does not count."""
    try:
        return importlib.util.find_spec(f"{root}.isa") is not None
    except (ImportError, AttributeError, ValueError):
        return False


def is_installed() -> bool:
    """Whether `import nki` finds the stand-in."""
    return getattr(sys.modules.get("nki"), "isa", None) is isa


def install(force: bool = False) -> bool:
    """Put the stand-ins in place; False where a real SDK was found and left alone."""
    if is_installed():
        return True
    if not force and (has_sdk("nki") or has_sdk("neuronxcc.nki")):
        return False
    for name in [n for n in sys.modules if n.split(".")[0] in ("nki", "neuronxcc")]:
        del sys.modules[name]
    sys.modules.update(_modules())
    return True
