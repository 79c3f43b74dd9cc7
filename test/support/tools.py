"""Where the programs of the suite are."""

import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]


def first(*candidates):
    """The path of the first candidate that exists, by name on PATH or as a file; None if there is none."""
    for candidate in candidates:
        found = shutil.which(str(candidate))
        if found:
            return found
    return None


def bir_opt():
    """$BIR_OPT, else bir-opt on PATH, else the newest build under target/."""
    if os.environ.get("BIR_OPT"):
        return first(os.environ["BIR_OPT"])
    builds = [path for path in ROOT.glob("target/*/bir-opt") if path.is_file()]
    builds.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return first("bir-opt", *builds)


def file_check(venv_bin):
    """$BIR_FILECHECK, else LLVM's FileCheck where there is one, else the Python one of the virtual environment."""
    if os.environ.get("BIR_FILECHECK"):
        return first(os.environ["BIR_FILECHECK"])
    return first("FileCheck", "FileCheck-19", "/usr/lib/llvm-19/bin/FileCheck", venv_bin / "filecheck", "filecheck")


def mlir_opt():
    """mlir-opt of any kind, best the version the suite was written against."""
    return first("mlir-opt-19", "/usr/lib/llvm-19/bin/mlir-opt", "mlir-opt")


def xdsl_opt(venv_bin):
    """xdsl-opt of the virtual environment, else on PATH."""
    return first(venv_bin / "xdsl-opt", "xdsl-opt")
