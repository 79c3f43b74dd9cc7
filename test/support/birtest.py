"""The test format of this suite: RUN lines as in LLVM, and modes.

A mode is a check that every well-formed `.bir` file must pass, whatever it is a test of, so no file has to ask for it:

    roundtrip   what bir-opt prints reads back and prints the same, comments included
    generic     the same through the generic form
    mlir-opt    the generic form through mlir-opt, in its default and in its generic printing, and back
    xdsl-opt    the generic form through xdsl-opt and back

A mode shows up as a test of its own, below the file: `kernels/softmax.bir/generic`. Files that are tests of errors take no part
(they mention `expected-error` or `%exits`, or say `// MODES: none`). The two peers' modes run for the kernels and for files that
say `// MODES: peers`.
"""

import difflib
import re
import subprocess

import lit.formats
import lit.Test

REBLESS = "python3 test/update_checks.py"
MARKER = "CHECK lines by test/update_checks.py"

LABEL = re.compile(r"\^[\w$.]+")


class ModeFailed(Exception):
    """The check does not hold; the text says how."""


class Skipped(Exception):
    """The check needs a program that is not here."""


def modes_of(text, is_kernel):
    """Names of the modes that a file of this text takes part in."""
    if re.search(r"expected-(error|warning|note|remark)|%exits|MODES: none", text):
        return []
    peers = is_kernel or "MODES: peers" in text
    return ["roundtrip", "generic"] + (["mlir-opt", "xdsl-opt"] if peers else [])


def same_labels(text):
    """`text` with its block labels numbered in order of appearance: mlir-opt does not keep their names."""
    numbers = {}
    return LABEL.sub(lambda match: f"^{numbers.setdefault(match[0], len(numbers))}", text)


class BirTest(lit.formats.ShTest):
    """See the module's doc."""

    def __init__(self, bir_opt, mlir_opt, xdsl_opt):
        super().__init__()
        self.bir_opt, self.mlir_opt, self.xdsl_opt = bir_opt, mlir_opt, xdsl_opt

    def getTestsForPath(self, testSuite, path_in_suite, litConfig, localConfig):
        for test in super().getTestsForPath(testSuite, path_in_suite, litConfig, localConfig):
            with open(test.getSourcePath(), encoding="utf-8", errors="replace") as file:
                text = file.read()
            if "RUN:" in text:
                test.mode = None
                yield test
            if not path_in_suite[-1].endswith(".bir"):
                continue
            flags = [f for f in ("--split-input-file", "--allow-unregistered-dialect") if f in text]
            for mode in modes_of(text, path_in_suite[0] == "kernels"):
                test = lit.Test.Test(testSuite, path_in_suite + (mode,), localConfig)
                test.mode, test.flags, test.file = mode, flags, testSuite.getSourcePath(path_in_suite)
                yield test

    def execute(self, test, litConfig):
        if test.mode is None:
            result = super().execute(test, litConfig)
            if result.code.isFailure:
                with open(test.getSourcePath(), encoding="utf-8", errors="replace") as file:
                    if MARKER in file.read():
                        result.output += f"\nIf the new output is right: {REBLESS} {test.getSourcePath()}\n"
            return result
        try:
            getattr(self, "mode_" + test.mode.replace("-", "_"))(test.file, test.flags)
        except ModeFailed as failure:
            return lit.Test.Result(lit.Test.FAIL, str(failure))
        except Skipped as reason:
            return lit.Test.Result(lit.Test.UNSUPPORTED, str(reason))
        return lit.Test.Result(lit.Test.PASS, "")

    # -- the modes ------------------------------------------------------------------------------------------------------------

    def mode_roundtrip(self, file, flags):
        once = self.run([self.bir_opt, *flags, file])
        twice = self.run([self.bir_opt, *flags, "-"], once)
        self.equal(once, twice, "printed once", "read back and printed again")

    def mode_generic(self, file, flags):
        wanted = self.run([self.bir_opt, *flags, "--strip-comments", file])
        generic = self.run([self.bir_opt, *flags, "--print-op-generic", file])
        again = self.run([self.bir_opt, *flags, "--print-op-generic", "-"], generic)
        self.equal(generic, again, "generic form", "generic form read back and printed again")
        found = self.run([self.bir_opt, *flags, "--strip-comments", "-"], generic)
        self.equal(wanted, found, "the file", "the file through its generic form")

    def mode_mlir_opt(self, file, flags):
        if not self.mlir_opt:
            raise Skipped("there is no mlir-opt")
        for printing in ([], ["--mlir-print-op-generic"], ["--mlir-print-debuginfo"]):
            self.through_peer([self.mlir_opt, *printing], file, flags)

    def mode_xdsl_opt(self, file, flags):
        if not self.xdsl_opt:
            raise Skipped("there is no xdsl-opt")
        for printing in ([], ["--print-op-generic"]):
            self.through_peer([self.xdsl_opt, *printing], file, flags)

    # -- their parts ----------------------------------------------------------------------------------------------------------

    def through_peer(self, peer, file, flags):
        peer = [*peer, "--allow-unregistered-dialect", *(["--split-input-file"] if "--split-input-file" in flags else [])]
        wanted = self.run([self.bir_opt, *flags, "--strip-comments", file])
        generic = self.run([self.bir_opt, *flags, "--strip-comments", "--print-op-generic", file])
        theirs = self.run(peer, generic)
        found = self.run([self.bir_opt, *flags, "--strip-comments", "-"], theirs)
        self.equal(same_labels(wanted), same_labels(found), "the file", f"the file through {' '.join(peer)}")

    def run(self, command, text=None):
        done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", errors="replace", timeout=300)
        if done.returncode != 0:
            # The text that failed may come from a pipe: show enough of it to see what was read.
            shown = "" if text is None else "\n--- its input began\n" + "\n".join(text.splitlines()[:40])
            raise ModeFailed(f"exit status {done.returncode} of {' '.join(command)}\n{done.stderr}{shown}")
        return done.stdout

    def equal(self, wanted, found, wanted_name, found_name):
        if wanted != found:
            lines = difflib.unified_diff(wanted.splitlines(), found.splitlines(), wanted_name, found_name, lineterm="")
            raise ModeFailed("\n".join(lines))
