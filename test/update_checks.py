"""Write or refresh the CHECK lines of lit tests from what the tool prints now.

    python3 test/update_checks.py FILE...          files or folders
    python3 test/update_checks.py --check FILE...  change nothing; exit 1 if something would change

A file takes part if it has the line

    // CHECK lines by test/update_checks.py

or is named itself (a folder only yields files that have it). The CHECK lines follow that line, at the end of the file, so that
they move no line that a diagnostic names. For each RUN line that ends in `| FileCheck %s`, with or without `--check-prefix=X`,
the command before the pipe is run and every line of its output becomes one CHECK line. Read the diff before you commit it.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "support"))

import tools  # noqa: E402

MARKER = "// CHECK lines by test/update_checks.py"
RUN = re.compile(r"^\s*//\s*RUN:\s*(.*)$")
PIPE = re.compile(r"^(?P<command>.*?)\|\s*FileCheck\s+%s(?P<options>[^|]*)$", re.DOTALL)
PREFIX = re.compile(r"--check-prefix[= ](\S+)")


def run_lines(text):
    """The RUN lines, continuations joined."""
    joined = ""
    for line in text.splitlines():
        match = RUN.match(line)
        if not match:
            continue
        joined += match[1].rstrip()
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        yield joined
        joined = ""


def substituted(command, path, bir_opt, temporary):
    """The command with lit's and this suite's substitutions made."""
    venv_bin = HERE.parent / "target" / "test-venv" / "bin"
    for name, value in {
        "%bir-opt": bir_opt,
        "%mlir-opt": f"{tools.mlir_opt()} --allow-unregistered-dialect",
        "%xdsl-opt": f"{tools.xdsl_opt(venv_bin)} --allow-unregistered-dialect",
        "%python": sys.executable,
        "%exits": f"{sys.executable} {HERE / 'support' / 'exits.py'}",
        "%S": path.parent,
        "%s": path,
        "%t": temporary / path.stem,
    }.items():
        command = command.replace(name, str(value))
    return command


def pattern(line, path):
    """One line of output as a FileCheck pattern that matches it and little else."""
    line = line.rstrip()
    # Folders differ from machine to machine; names of files do not.
    line = line.replace(f"{path.parent}{os.sep}", "\0")
    line = re.sub(r"\{\{|\[\[", lambda match: "{{" + "".join("\\" + c for c in match[0]) + "}}", line)
    return line.replace("\0", "{{.*}}")


def check_lines(text, path, bir_opt):
    """The CHECK lines for all RUN lines of a test."""
    lines = []
    for run in run_lines(text):
        match = PIPE.match(run)
        if not match:
            continue
        prefix = PREFIX.search(match["options"])
        prefix = prefix[1] if prefix else "CHECK"
        with tempfile.TemporaryDirectory() as temporary:
            command = substituted(match["command"], path, bir_opt, pathlib.Path(temporary))
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                capture_output=True,
                encoding="utf-8",
                env={**os.environ, "NO_COLOR": "1"},
                cwd=temporary,
            )
        if done.returncode != 0:
            sys.exit(f"error: {path}: exit status {done.returncode} of: {command}\n{done.stderr}")
        output = done.stdout.splitlines()
        while output and not output[-1].strip():
            output.pop()
        if lines:
            lines.append("")
        is_first = True
        for line in output:
            if not line.strip():
                # An empty line before anything matched needs no check.
                lines += [] if is_first else [f"// {prefix}-EMPTY:"]
                continue
            lines.append(f"// {prefix}{'' if is_first else '-NEXT'}: {pattern(line, path)}")
            is_first = False
    return lines


def updated(text, path, bir_opt):
    """The text of the test with fresh CHECK lines."""
    head = text.split(MARKER)[0] if MARKER in text else text.rstrip("\n") + "\n\n"
    lines = check_lines(text, path, bir_opt)
    if not lines:
        sys.exit(f"error: {path}: no RUN line ends in `| FileCheck %s`")
    return head + "\n".join([MARKER, *lines]) + "\n"


def tests(paths):
    """The files to refresh: what was named, and what in named folders has the marker."""
    for path in paths:
        path = path.resolve()
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.suffix in (".bir", ".mlir", ".test") and MARKER in file.read_text(errors="replace"):
                    yield file
        elif path.is_file():
            yield path
        else:
            sys.exit(f"error: there is no {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--bir-opt", help="the tool to ask; else $BIR_OPT, PATH, or the newest build under target/")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if something would change")
    args = parser.parse_args()
    bir_opt = args.bir_opt or tools.bir_opt()
    if bir_opt is None:
        sys.exit("error: no bir-opt: build it (cargo build) or set BIR_OPT")
    changed = []
    for path in tests(args.paths):
        old = path.read_text()
        new = updated(old, path, bir_opt)
        if new != old:
            changed.append(path)
            if not args.check:
                path.write_text(new)
    for path in changed:
        print(f"{'stale' if args.check else 'updated'}: {path}")
    return 1 if args.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
