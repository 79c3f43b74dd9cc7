"""`bir-nki`: from a file to `.bir`, and to numbers."""

import pathlib
import subprocess
import sys

import numpy as np

from bir_nki.table import tool

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scaled_softmax(x, scale, rows_first=True):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[0] // 128):
        rows = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=x[i * 128 : (i + 1) * 128, :])
        nisa.activation(dst=rows, op=nl.exp, data=rows, scale=scale, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=rows, data=rows, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=rows)
    return out


def written_in_place(x):
    t = nl.load(x)
    nl.store(x, t + 1.0)
"""


def command(*arguments, cwd):
    return subprocess.run([sys.executable, "-m", "bir_nki", *map(str, arguments)], capture_output=True, text=True, cwd=cwd)


def expected(x, scale):
    e = np.exp(x.astype(np.float64) * scale)
    return (e / e.sum(1, keepdims=True)).astype(np.float32)


def test_from_a_file_to_an_optimised_and_simulated_result(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    x = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    np.savez(tmp_path / "expected.npz", out=expected(x, 0.5))
    run = command("trace", "kernel.py:scaled_softmax", "--arg", "x=f32[256,64]", "--arg", "scale=0.5", "-o", "k.bir", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "k.bir").read_text()
    assert text.startswith('bir.module @scaled_softmax {target = "trn2"} {')
    line = next(number for number, line in enumerate(KERNEL.splitlines(), 1) if "nisa.activation" in line)
    assert f'activation exp %rows, reduce add reset %total <- %rows, scale 0.5 loc("kernel.py":{line}:' in text
    for tool_arguments in (
        [tool("bir-opt"), "k.bir", "--pass-pipeline=canonicalize-names", "--validate=each", "-o", "k.opt.bir"],
        [tool("bir-sim"), "k.opt.bir", "--inputs", "in.npz", "--expect-all", "expected.npz", "--rtol", "1e-5", "--atol", "1e-6"],
    ):
        run = subprocess.run(tool_arguments, capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == 0, run.stderr


def test_simulate_reads_and_writes_arrays(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    x = np.random.default_rng(0).standard_normal((128, 16)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    run = command("simulate", "kernel.py:scaled_softmax", "--inputs", "in.npz", "--arg", "scale=2", "-o", "out.npz", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["out"], expected(x, 2), rtol=1e-5)


def test_made_up_data_is_the_same_each_time(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    arguments = ("simulate", "kernel.py:scaled_softmax", "--arg", "x=bf16[128,16]", "--arg", "scale=1.0", "--random")
    first, again, other = (command(*arguments, seed, cwd=tmp_path) for seed in (1, 1, 2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout != other.stdout
    assert first.stdout.startswith("out: bf16[128, 16]\n")


def test_kernel_without_decorator_that_writes_its_argument(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    run = command("trace", "kernel.py:written_in_place", "--arg", "x=f32[128,4]", "--write-inputs", "in.npz", "--random", 3, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "%x = alloc dram<128x4xf32> {kind = inout}" in run.stdout
    assert np.load(tmp_path / "in.npz")["x"].shape == (128, 4)


def test_two_runs_write_the_same_bytes(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    for name in ("a.bir", "b.bir"):
        assert command("trace", "kernel.py:scaled_softmax", "--arg", "x=f32[256,64]", "--arg", "scale=0.5", "-o", name, cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.bir").read_bytes() == (tmp_path / "b.bir").read_bytes()


def test_pipeline_and_target(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    run = command(
        "trace", "kernel.py:scaled_softmax", "--arg", "x=f32[128,16]", "--arg", "scale=0.5", "--pipeline", "canonicalize-names", "--target", "trn3",
        cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert 'target = "trn3"' in run.stdout and "%sbuf0" in run.stdout


def test_file_inside_a_package_with_relative_imports(tmp_path):
    package = tmp_path / "mine" / "kernels"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package.parent / "sizes.py").write_text("ROWS = 128\n")
    (package / "copy.py").write_text(
        "import torch\nimport nki, nki.isa as nisa, nki.language as nl\nfrom nki._private.private_api import sendrecv\n"
        "from ..sizes import ROWS\n\n\nclass Host(torch.nn.Module):\n    pass\n\n\n@torch.compile\ndef kernel(x):\n    out = nl.ndarray((ROWS, 4), dtype=x.dtype, buffer=nl.shared_hbm)\n    nisa.dma_copy(dst=out, src=x)\n    return out\n"
    )
    run = command("trace", "mine/kernels/copy.py:kernel", "--arg", "x=f32[128,4]", "--stub", "torch", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert 'dma_copy %out <- %x loc("copy.py":14:' in run.stdout


def test_kernel_of_an_installed_package(tmp_path):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((128, 128), (128, 512)))
    np.savez(tmp_path / "in.npz", a=a, b=b)
    np.savez(tmp_path / "expected.npz", c=a @ b)
    kernel = "trnblas.nki.dispatch:_gemm_kernel_128_128_512"
    run = command("trace", kernel, "--arg", "a=f32[128,128]", "--arg", "b=f32[128,512]", "--stub", "torch", "-o", "gemm.bir", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    run = subprocess.run(
        [tool("bir-sim"), "gemm.bir", "--inputs", "in.npz", "--expect-all", "expected.npz", "--rtol", "1e-4", "--atol", "1e-4"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    run = command("trace", "no_such_package.kernels:gemm", cwd=tmp_path)
    assert run.returncode == 1 and "there is neither a file nor a module `no_such_package.kernels`" in run.stderr


def test_a_real_sdk_wins_unless_asked(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    sdk = tmp_path / "sdk" / "nki"
    sdk.mkdir(parents=True)
    for name in ("__init__.py", "isa.py", "language.py"):
        (sdk / name).write_text("def jit(f):\n    return f\n")
    code = "import bir_nki, nki; print(nki.__file__ if hasattr(nki, '__file__') else 'stand-in'); print(bir_nki.install(force=True))"
    environment = {**__import__("os").environ, "PYTHONPATH": f"{sdk.parent}:{pathlib.Path(__import__('bir_nki').__file__).parents[1]}"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert run.stdout.splitlines() == [str(sdk / "__init__.py"), "True"], run.stderr
    arguments = [sys.executable, "-m", "bir_nki", "trace", "kernel.py:scaled_softmax", "--arg", "x=f32[128,4]", "--arg", "scale=1.0"]
    run = subprocess.run(arguments, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert run.returncode == 1 and "use --force" in run.stderr
    assert subprocess.run([*arguments, "--force"], capture_output=True, env=environment, cwd=tmp_path).returncode == 0
