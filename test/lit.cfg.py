# The lit suite. Run by `cargo test`, or by hand with the interpreter that `python3 test/venv.py` prints:
#     target/test-venv/bin/lit -v test
# Where things are: test/README.md.

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "support"))

import birtest  # noqa: E402
import tools  # noqa: E402

venv_bin = pathlib.Path(sys.executable).parent
bir_opt = tools.bir_opt()
mlir_opt = tools.mlir_opt()
xdsl_opt = tools.xdsl_opt(venv_bin)
file_check = tools.file_check(venv_bin)

if bir_opt is None:
    lit_config.fatal("no bir-opt: build it (cargo build) or set BIR_OPT")
if file_check is None:
    lit_config.fatal("neither LLVM's FileCheck nor Python's filecheck is here")

config.name = "bir"
config.suffixes = [".bir", ".mlir", ".test"]
config.excludes = ["Inputs", "support"]
config.test_source_root = str(HERE)
config.test_exec_root = os.environ.get("BIR_TEST_OUT", str(tools.ROOT / "target" / "lit"))
config.test_format = birtest.BirTest(bir_opt, mlir_opt, xdsl_opt)


def validating(tool):
    """The tool; where BIR_VALIDATE is set (test/run-validated does), a script that runs it with that --validate
    (tests of a pass are often of programs that do not run)."""
    when = os.environ.get("BIR_VALIDATE")
    if not when:
        return tool
    script = pathlib.Path(config.test_exec_root) / "bir-opt-validated"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec {tool} --validate={when} --allow-unvalidated "$@"\n')
    script.chmod(0o755)
    return str(script)


# Plain output whatever the terminal.
config.environment["NO_COLOR"] = "1"
config.environment["PATH"] = os.pathsep.join([str(pathlib.Path(bir_opt).parent), os.environ.get("PATH", "")])

config.substitutions += [
    ("%bir-opt", validating(bir_opt)),
    # Whatever the mode: for what a test says of a command line without `--validate`.
    ("%plain-bir-opt", str(bir_opt)),
    ("%bir-sim", str(pathlib.Path(bir_opt).with_name("bir-sim"))),
    ("%bir-gen", str(pathlib.Path(bir_opt).with_name("bir-gen"))),
    ("%bir-pattern", str(pathlib.Path(bir_opt).with_name("bir-pattern"))),
    ("%bir-reduce", str(pathlib.Path(bir_opt).with_name("bir-reduce"))),
    ("%mlir-opt", f"{mlir_opt} --allow-unregistered-dialect"),
    ("%xdsl-opt", f"{xdsl_opt} --allow-unregistered-dialect"),
    ("%python", sys.executable),
    # `%exits N command`: the command must exit with status N; `not` would take a crash for an error.
    ("%exits", f"{sys.executable} {HERE / 'support' / 'exits.py'}"),
    (r"\bFileCheck\b", file_check),
]

# The peers are other makers' tools, so a test says `REQUIRES: mlir-opt` to be skipped where they are missing.
for feature, path in {"mlir-opt": mlir_opt, "xdsl-opt": xdsl_opt}.items():
    if path is not None:
        config.available_features.add(feature)
    elif os.environ.get("BIR_REQUIRE_PEERS") == "1":
        lit_config.fatal(f"BIR_REQUIRE_PEERS=1 and there is no {feature}")
    else:
        lit_config.note(f"there is no {feature}: its tests are skipped (apt-get install mlir-19-tools, pip install xdsl)")
if pathlib.Path(file_check).name == "filecheck":
    lit_config.note("using Python's filecheck; LLVM's FileCheck is faster (apt-get install llvm-19-tools)")
else:
    config.available_features.add("llvm-filecheck")
