"""Loading a kernel out of a file, with its package if it lies in one."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
from collections.abc import Iterable
from typing import Any

from .errors import KernelError, ToolError, nearest
from .trace import innermost


class _StubMeta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        # a decorator leaves the kernel as it is
        return args[0] if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType) else super().__call__(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _stub_class(name)


def _stub_class(name: str) -> Any:
    return _StubMeta(name, (), {"__init__": lambda self, *a, **k: None, "__call__": lambda self, f=None, *a, **k: f, "__getattr__": lambda self, n: _stub_class(n)})


class _Stub(types.ModuleType):
    """A module that is not there: any name is a class that does nothing."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _stub_class(name)


class _StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, roots: Iterable[str]) -> None:
        self.roots = set(roots)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] in self.roots:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def stub(modules: Iterable[str]) -> None:
    """Let imports of these modules (a kernel file's host side, say `torch`) succeed with nothing behind them."""
    sys.meta_path.insert(0, _StubFinder(modules))


def installed(module: str) -> pathlib.Path:
    """The file of an installed module, `trnblas.nki.dispatch`, found without importing it."""
    root, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise ToolError(f"there is neither a file nor a module `{module}`")
    path = pathlib.Path(next(iter(spec.submodule_search_locations or []), spec.origin or ""), *rest)
    return path / "__init__.py" if path.is_dir() else path if path.is_file() else path.with_suffix(".py")


def load_module(path: pathlib.Path) -> types.ModuleType:
    """Import a file, under its package's name where `__init__.py` files say it has one."""
    path = path.resolve()
    if not path.is_file():
        raise ToolError(f"there is no file `{path}`")
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    name = ".".join(parts)
    try:
        if len(parts) > 1:
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(f"bir_nki_kernel_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except KernelError:
        raise
    except SyntaxError as error:
        raise KernelError(f"SyntaxError: {error.msg}", error.filename, error.lineno or 0) from None
    except Exception as error:
        file, line = innermost(error)
        if file is None or file.startswith("<frozen"):
            file = str(path)
        missing = getattr(error, "name", None)
        help = f"if the kernel itself does not need it, add `--stub {missing}`" if isinstance(error, ModuleNotFoundError) and missing else None
        raise KernelError(f"{type(error).__name__}: {error}", file, line, help) from error


def load_kernel(reference: str) -> Any:
    """The kernel that `FILE.py:NAME`, or `installed.module:NAME`, names."""
    file, colon, name = reference.rpartition(":")
    if not colon or not file:
        raise ToolError(f"`{reference}` does not name a kernel as FILE.py:KERNEL does")
    is_file = file.endswith(".py") or "/" in file or pathlib.Path(file).exists()
    module = load_module(pathlib.Path(file) if is_file else installed(file))
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            known = [n for n in dir(value) if callable(getattr(value, n, None)) and not n.startswith("__")]
            raise KernelError(f"there is no kernel `{name}`", file, 1, nearest(part, known)) from None
    return value
