"""The virtual environment of the test suite.

    python3 test/venv.py [DIR]      make or refresh it, print the path of its interpreter

DIR defaults to target/test-venv. It is made once from test/requirements.txt and, without their dependencies, the packages of
test/requirements-kernels.txt; it is made again when one of these files changes. Any number of processes may call this at once: one
works, the others wait.
"""

import fcntl
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
KERNELS = HERE / "requirements-kernels.txt"


def ensure(directory):
    """Make `directory` a virtual environment with all requirements; returns its interpreter."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    python = directory / "bin" / "python"
    # Written last, so that a half-made environment is made again.
    stamp = directory / "requirements.stamp"
    wanted = f"{sys.version}\n{REQUIREMENTS.read_text()}{KERNELS.read_text()}"
    with open(directory.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return python
        print(f"making {directory} from {REQUIREMENTS}", file=sys.stderr)
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run([sys.executable, "-I", "-m", "venv", directory], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--requirement", REQUIREMENTS], check=True, stdout=sys.stderr)
        subprocess.run([*install, "--no-deps", "--requirement", KERNELS], check=True, stdout=sys.stderr)
        stamp.write_text(wanted)
    return python


if __name__ == "__main__":
    default = HERE.parent / "target" / "test-venv"
    print(ensure(pathlib.Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else default))
