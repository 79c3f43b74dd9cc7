"""Every mistake is named at the kernel's own file and line, and leaves no file behind."""

import functools
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import bir_nki
import neuronxcc.nki as old_nki
import nki
import nki.language as nl

HEAD = "import numpy as np\nimport nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\n"
X = np.zeros((128, 512), np.float32)

# kernel body (the line with `# <-` is the one to be named), what the message must say
MISTAKES = {
    "too_many_partitions": (
        "t = nl.ndarray((256, 4), dtype=nl.float32, buffer=nl.sbuf)  # <-",
        "takes 256 partitions of `sbuf`, which has 128",
    ),
    "tile_larger_than_psum": (
        "t = nl.ndarray((128, 8192), dtype=nl.float32, buffer=nl.psum)  # <-",
        "takes 32768 bytes of each partition of `psum`, which has 16384 on trn2",
    ),
    "tiles_larger_than_sbuf": (
        """
        a = nl.ndarray((128, 30000), dtype=nl.float32, buffer=nl.sbuf)
        b = nl.ndarray((128, 30000), dtype=nl.float32, buffer=nl.sbuf)  # <-
        nisa.memset(dst=a, value=0.0)
        nisa.memset(dst=b, value=0.0)
        nisa.tensor_tensor(dst=b, data1=a, data2=b, op=nl.add)
        """,
        "`b` does not fit: 2 tiles that are alive here need 240000 bytes of each partition of `sbuf`, which has 229376 on trn2",
    ),
    "matmul_over_a_bank": (
        """
        a = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        b = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=a, value=0.0)
        nisa.memset(dst=b, value=0.0)
        p = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=p, stationary=a, moving=b)  # <-
        """,
        "operand `moving` of `matmult` must have at most 512 elements per partition",
    ),
    "wrong_engine": (
        """
        t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=t, value=0.0, engine=nisa.engine.scalar)  # <-
        """,
        "`memset` runs on dve or pool on `trn2`, found `act`",
    ),
    "wrong_dtype": (
        """
        t = nl.ndarray((128, 512), dtype=nl.int32, buffer=nl.sbuf)
        p = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.memset(dst=t, value=0)
        nisa.nc_matmul(dst=p, stationary=t[:, 0:128], moving=t[:, 0:128])  # <-
        """,
        "operand `stationary` of `matmult` must be of bf16, f16, f32",
    ),
    "compute_on_dram": (
        """
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=x)  # <-
        """,
        "operand `src` of `tensor_copy` must be in `psum` or `sbuf`, found `x` in `dram`",
    ),
    "dma_from_psum": (
        """
        p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.dma_copy(dst=out, src=p)  # <-
        """,
        "operand `src` of `dma_copy` must be in `dram` or `sbuf`, found `p` in `psum`",
    ),
    "uninitialised_read": (
        """
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)  # <-
        nisa.dma_copy(dst=out, src=t)
        """,
        "operand `src` of `tensor_scalar` reads `%t`, which nothing has written",
    ),
    "partly_initialised_read": (
        """
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=t[:, 0:500], value=0.0)
        nisa.dma_copy(dst=out, src=t)  # <-
        """,
        "500 to 511",
    ),
    "output_not_written": ("nisa.dma_copy(dst=out[0:64, :], src=x[0:64, :])", "`%out`"),
    "partition_start": (
        """
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=t, value=0.0)
        nisa.memset(dst=t[5:20, :], value=1.0)  # <-
        """,
        "partition",
    ),
    "unknown_instruction": ("nisa.tensor_tensr(dst=x, data1=x, data2=x, op=nl.add)  # <-", "`nki.isa.tensor_tensr` is not supported"),
    "unknown_function": ("nl.supermax(x)  # <-", "`nki.language.supermax` is not supported"),
    "unknown_argument": ("nisa.memset(dst=x, value=0.0, colour=1)  # <-", "`nisa.memset` has no argument `colour`"),
    "unknown_argument_of_a_function": ("nl.exp(nl.load(x), colour=1)  # <-", "unexpected keyword argument 'colour'"),
    "unknown_operation": (
        """
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        nisa.activation(dst=t, op="expp", data=t)  # <-
        """,
        "`expp` is no function of the activation engine",
    ),
    "missing_argument": ("nisa.dma_copy(dst=out)  # <-", "must be a tensor, found `None`"),
    "slice_outside": ("t = x[0:128, 500:600]  # <-", "slice `500:600` of dimension 1 ends outside its 512 elements"),
    "index_outside": ("t = x[128]  # <-", "index `128` of dimension 0 is outside `x`, which has 128 elements there"),
    "shapes_differ": ("nisa.dma_copy(dst=out, src=x[:, 0:4])  # <-", "a DMA writes as many elements as it reads"),
    "decided_by_a_tile": (
        """
        if x:  # <-
            pass
        """,
        "`x` has no value while the kernel is traced",
    ),
    "decided_by_a_register": (
        """
        r = nisa.register_alloc(3)
        if r > 2:  # <-
            pass
        """,
        "a register has no value while the kernel is traced",
    ),
    "break_out_of_a_dynamic_loop": (
        """
        for i in nl.dynamic_range(4):  # <-
            break
        """,
        "a dynamic loop cannot be left by `break`",
    ),
    "break_out_of_a_while": (
        """
        r = nisa.register_alloc(3)
        while r:  # <-
            break
        """,
        "a loop on a register cannot be left by `break`",
    ),
    "python_exception": ("y = [1, 2][5]  # <-", "IndexError: list index out of range"),
    "exception_below_a_call": ("nl.ndarray((128, 'x'), dtype=nl.float32)  # <-", "ValueError"),
    "returned_from_sbuf": (
        """
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)  # <-
        nisa.dma_copy(dst=t, src=x)
        return t
        """,
        "a kernel returns tensors in DRAM, found `t` in `sbuf`",
    ),
    "slanted_mask": (
        """
        i, j = nl.mgrid[0:128, 0:512]
        nl.load(x[i, j], mask=i >= j)  # <-
        """,
        "a mask must leave a rectangle",
    ),
    "static_assertion": ("nl.static_assert(x.shape[0] == 64, 'rows must be 64')  # <-", "static assertion failed: rows must be 64"),
    "assertion": ("assert x.shape[0] == 64, 'rows'  # <-", "AssertionError: rows"),
    "not_on_this_target": (
        """
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        nisa.exponential(dst=t, src=t)  # <-
        """,
        "trn2",
    ),
    "read_after_reshape_over_partitions_is_a_copy": (
        """
        t = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[:, 0:1])
        row = t.reshape((1, 128))
        nisa.memset(dst=row, value=0.0)  # <-
        """,
        "the result is a copy",
    ),
    "accumulate_in_two_loops": (
        """
        a = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=a, value=0.0)
        p = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.psum)
        for i in nl.dynamic_range(2):
            for j in nl.dynamic_range(2):
                nisa.nc_matmul(dst=p, stationary=a, moving=a)  # <-
        """,
        "zeroed outside of two dynamic loops",
    ),
}


# the same for kernels of the old style
OLD_MISTAKES = {
    "load_of_too_many_rows": ("t = nl.load(nl.ndarray((256, 4), dtype=nl.float32, buffer=nl.hbm))  # <-", "takes 256 partitions, and there are 128"),
    "load_of_a_number": ("t = nl.load(3)  # <-", "`nl.load` reads a tensor, found `3`"),
    "store_to_a_number": ("nl.store(3, nl.load(x))  # <-", "`nl.store` writes a tensor, found `3`"),
    "store_of_another_shape": ("nl.store(out, nl.load(x)[:, 0:100])  # <-", "cannot broadcast [128, 100] to [128, 512]"),
    "store_of_a_string": ("nl.store(out, 'x')  # <-", "`'x'` cannot be stored in a tensor"),
    "shapes_do_not_broadcast": (
        """
        t = nl.load(x)
        u = t[:, 0:100] + t  # <-
        """,
        "shapes [128, 100] and [128, 512] do not broadcast",
    ),
    "uninitialised_read": (
        """
        t = nl.ndarray((nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
        nl.store(out, nl.exp(t))  # <-
        """,
        "reads `%t`, which nothing has written",
    ),
    "rows_the_mask_left_out": (
        """
        i, j = nl.mgrid[0:128, 0:512]
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        t[i, j] = nl.load(x[i, j], mask=i < 100)
        nl.store(out, t)  # <-
        """,
        "100 to 127",
    ),
    "index_array_outside": (
        """
        i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
        nl.store(out, nl.load(x[i, j + 100]))  # <-
        """,
        "index arrays run from 100 to 611 along dimension 1 of `x`, which has 512 elements there",
    ),
    "index_array_outside_in_spite_of_its_mask": (
        """
        i, j = nl.mgrid[0:128, 0:512]
        t = nl.load(x[i, j + 100], mask=j < 500)  # <-
        """,
        "index arrays run from 100 to 599 along dimension 1 of `x`",
    ),
    "index_array_outside_a_tile": (
        """
        i, j = nl.mgrid[0:128, 0:512]
        t = nl.load(x)
        t[i, 2 * j] = 0.0  # <-
        """,
        "index arrays run from 0 to 1022 along dimension 1 of `t`",
    ),
    "index_array_outside_once_more": (
        """
        i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
        for shift in (0, 0, 0, -1):
            t = nl.load(x[i, j + shift])  # <-
        """,
        "index arrays run from -1 to 510 along dimension 1 of `x`",
    ),
    "position_outside_beside_index_arrays": ("t = nl.load(x[nl.arange(128)[:, None], 512])  # <-", "index `512` of dimension 1 is outside `x`"),
    "mask_that_decides": (
        """
        if nl.arange(128)[:, None] < 100:  # <-
            pass
        """,
        "nothing can be decided by it",
    ),
    "mask_of_alternatives": (
        """
        i, j = nl.mgrid[0:128, 0:512]
        t = nl.load(x[i, j], mask=(i < 10) | (i > 20))  # <-
        """,
        "conditions are joined by `&` only",
    ),
    "mask_of_a_tile": (
        """
        t = nl.load(x)
        u = nl.exp(t, mask=t > 0)  # <-
        """,
        "`mask` must be a comparison of index arrays",
    ),
    "index_that_is_not_affine": ("i = nl.arange(128)[:, None] // 2  # <-", "an index array stays affine"),
    "partitions_that_are_strided": ("t = nl.load(x)[0:128:2, :]  # <-", "partitions cannot be strided"),
    "no_axis": ("nl.max(nl.load(x))  # <-", "`nl.max` needs argument `axis`"),
    "matmul_of_too_many_rows": ("p = nl.matmul(nl.load(x), nl.load(x))  # <-", "takes at most 128 x 128, found 128 x 512"),
    "moving_over_a_bank": (
        """
        a, b = nl.load(x), nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
        b[...] = 0.0
        p = nisa.nc_matmul(a[:, 0:128], b)  # <-
        """,
        "operand `moving` of `matmult` must have at most 512 elements per partition",
    ),
    "more_psum_than_there_is": (
        """
        a = nl.load(x)
        kept = []
        for i in nl.affine_range(9):
            kept.append(nl.matmul(a[:, 0:128], a, transpose_x=True))  # <-
        for p in kept:
            nl.store(out, p)
        """,
        "of each partition of `psum`, which has 16384 on trn2",
    ),
    "unknown_function": ("nl.softmaxx(nl.load(x))  # <-", "`nki.language.softmaxx` is not supported"),
    "unknown_argument": ("nisa.tensor_scalar(nl.load(x), np.add, 1.0, colour=1)  # <-", "`nisa.tensor_scalar` has no argument `colour`"),
    "wrong_engine": ("nisa.nc_transpose(nl.load(x)[:, 0:128], engine=nisa.scalar_engine)  # <-", "`transpose` runs on"),
    "wrong_dtype": (
        """
        t = nl.load(x, dtype=nl.int32)
        p = nisa.nc_matmul(t[:, 0:128], t)  # <-
        """,
        "operand `stationary` of `matmult` must be of bf16",
    ),
    "index_tile_on_chip": (
        """
        index, t = nl.load(x, dtype=nl.int32), nl.load(x)
        u = t[index[:, 0:1], nl.arange(512)[None, :]]  # <-
        """,
        "an index tile chooses from tensors in DRAM",
    ),
    "index_tile_of_many_columns": ("t = nl.load(x[nl.load(x, dtype=nl.int32), nl.arange(512)[None, :]])  # <-", "an index tile holds one number in each partition"),
    "loop_reduce_of_a_dynamic_loop": (
        """
        for i in nl.dynamic_range(4):
            t = nl.loop_reduce(nl.load(x), op=np.add, loop_indices=[i])  # <-
        """,
        "`nl.loop_reduce` runs over loops that are unrolled",
    ),
    "all_reduce_along_no_axis": ("t = nl.all_reduce(nl.load(x), op=np.add, program_axes=[2])  # <-", "the grid has no axis 2"),
    "all_reduce_in_a_dynamic_loop": (
        """
        for i in nl.dynamic_range(4):
            t = nl.all_reduce(nl.load(x), op=np.add, program_axes=[0])  # <-
        """,
        "`nl.all_reduce` cannot stand in a dynamic loop",
    ),
    "product_of_unequal_depths": ("t = nl.matmul(nl.load(x)[:, 0:64], nl.zeros((65, 4), nl.float32))  # <-", "a product sums over as many rows as there are columns: 64 and 65"),
    "run_past_the_end": ("t = nl.load(x[:, nl.ds(500, 20)])  # <-", "index `500 +: 20` of dimension 1 is outside `x`, which has 512 elements there"),
    "run_masked_too_little": (
        """
        i, j = nl.mgrid[0:128, 0:20]
        t = nl.load(x[:, nl.ds(500, 20)], mask=j < 13)  # <-
        """,
        "index `500 +: 20` of dimension 1 is outside `x`, which has 512 elements there",
    ),
    "empty_run": ("t = nl.load(x[:, nl.ds(500, 0)])  # <-", "index `"),
    "sum_along_no_dimension": ("t = nl.sum(nl.load(x), axis=5)  # <-", "there is no dimension 5 among 2"),
    "squeeze_of_no_dimension": ("t = nl.load(x).expand_dims(7)  # <-", "there is no dimension 7 among 3"),
    "argument_left_out": ("t = nl.add(nl.load(x))  # <-", "TypeError: nl.add() missing 1 required positional argument: 'y'"),
    "exit": ("raise SystemExit(3)  # <-", "SystemExit: 3"),
    "exception_in_a_function_it_calls": ("(lambda t: t['a'])(x)  # <-", "`'a'` is no index"),
}


def write(path: pathlib.Path, body: str, head: str = HEAD) -> int:
    """A kernel file; the line that must be named, or 0."""
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    text = head + f"def kernel(x):\n    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n{body}\n    return out\n"
    path.write_text(text)
    return next((number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# <-")), 0)


def bir_nki_command(*arguments, **kwargs):
    return subprocess.run([sys.executable, "-m", "bir_nki", *map(str, arguments)], capture_output=True, text=True, **kwargs)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_named_at_its_line(name, tmp_path):
    body, message = MISTAKES[name]
    path, target = tmp_path / f"{name}.py", tmp_path / "out.bir"
    line = write(path, body)
    with pytest.raises(bir_nki.KernelError) as caught:
        bir_nki.trace(bir_nki_load(path), X)
    text = str(caught.value)
    assert message in text
    if line:
        assert text.startswith(f"{path}:{line}: error: ")
    assert not target.exists()


@pytest.mark.parametrize("name", OLD_MISTAKES)
def test_mistake_of_the_old_style_is_named_at_its_line(name, tmp_path):
    body, message = OLD_MISTAKES[name]
    path = tmp_path / f"{name}.py"
    line = write(path, body, HEAD.replace("import nki", "import neuronxcc.nki").replace("neuronxcc.nki\n", "neuronxcc.nki as nki\n", 1))
    with pytest.raises(bir_nki.KernelError) as caught:
        bir_nki.trace(bir_nki_load(path), X)
    text = str(caught.value)
    assert message in text
    assert text.startswith(f"{path}:{line}: error: ")


def test_program_that_others_wait_for_in_vain():
    @old_nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        if nl.program_id(0) > 0:
            tile = nl.all_reduce(tile, op=np.add, program_axes=[0])
        nl.store(out, tile)
        return out

    with pytest.raises(bir_nki.KernelError, match="not every program of the grid reaches this `nl.all_reduce`") as caught:
        bir_nki.trace(kernel, X, grid=3)
    assert caught.value.line == kernel.func.__code__.co_firstlineno + 5


def test_exception_in_one_of_programs_in_turns():
    @old_nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.all_reduce(nl.load(x), op=np.add, program_axes=[0])
        assert nl.program_id(0) < 2, "two are enough"
        nl.store(out, total)
        return out

    with pytest.raises(bir_nki.KernelError, match="AssertionError: two are enough") as caught:
        bir_nki.trace(kernel, X, grid=3)
    assert caught.value.line == kernel.func.__code__.co_firstlineno + 4


def test_two_cores_do_not_reduce_by_programs():
    @nki.jit
    def kernel(x):
        return nl.all_reduce(nl.load(x), op=np.add, program_axes=[0])

    with pytest.raises(bir_nki.KernelError, match="does not reach from one core to another"):
        bir_nki.trace(kernel, X, grid=2)


def bir_nki_load(path):
    from bir_nki import load

    return load.load_kernel(f"{path}:kernel")


@pytest.mark.parametrize("name", ["tiles_larger_than_sbuf", "uninitialised_read", "python_exception"])
def test_command_reports_and_writes_nothing(name, tmp_path):
    body, message = MISTAKES[name]
    path, target = tmp_path / "k.py", tmp_path / "k.bir"
    line = write(path, body)
    run = bir_nki_command("trace", f"{path}:kernel", "--arg", "x=f32[128,512]", "-o", target)
    assert run.returncode == 1
    assert run.stderr.startswith(f"{path}:{line}: error: ")
    assert message in run.stderr
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == ["k.py"]


def test_an_older_file_survives_a_mistake(tmp_path):
    path, target = tmp_path / "k.py", tmp_path / "k.bir"
    write(path, MISTAKES["index_outside"][0])
    target.write_text("older")
    assert bir_nki_command("trace", f"{path}:kernel", "--arg", "x=f32[128,512]", "-o", target).returncode == 1
    assert target.read_text() == "older"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["trace", "nowhere.py:kernel"], "error: there is no file"),
        (["trace", "kernel"], "error: `kernel` does not name a kernel"),
        (["trace", "{file}:kernal"], "did you mean `kernel`?"),
        (["trace", "{file}:kernel"], "missing a required argument: 'x'"),
        (["trace", "{file}:kernel", "--arg", "x=f32[1]", "--arg", "y=f32[1]"], "unexpected keyword argument 'y'"),
        (["trace", "{file}:kernel", "--arg", "x=f32[128,512]", "--target", "trn9"], "`trn9` is no target, expected one of trn1, trn2, trn3"),
        (["trace", "{file}:kernel", "--inputs", "no.npz"], "error: cannot read `no.npz`"),
        (["trace", "{file}:kernel", "--arg", "x=f32[128,512]", "-o", "no/such/folder/k.bir"], "No such file or directory"),
        (["simulate", "{file}:kernel", "--arg", "x=f32[128,512]"], "error: there is no data for x"),
    ],
)
def test_mistake_of_the_command(arguments, message, tmp_path):
    path = tmp_path / "k.py"
    write(path, "nisa.dma_copy(dst=out, src=x)")
    run = bir_nki_command(*[a.format(file=path) for a in arguments], cwd=tmp_path)
    assert run.returncode == 1, run.stderr
    assert message in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("argument, message", [("x", "is not NAME=VALUE"), ("x=f32[3", "`f32[3` is no tensor such as"), ("x=f33[1]", "`f33` is no element type of this hardware")])
def test_mistake_of_an_argument(argument, message, tmp_path):
    run = bir_nki_command("trace", "k.py:kernel", "--arg", argument, cwd=tmp_path)
    assert run.returncode == 2
    assert message in run.stderr


def test_import_that_fails_is_named(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("import nki\n\nimport no_such_module\n")
    run = bir_nki_command("trace", f"{path}:kernel")
    assert run.returncode == 1
    assert run.stderr.startswith(f"{path}:3: error: ModuleNotFoundError")
    assert "--stub no_such_module" in run.stderr


def test_syntax_error_is_named(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("import nki\ndef kernel(x:\n")
    run = bir_nki_command("trace", f"{path}:kernel")
    assert run.returncode == 1
    assert run.stderr.startswith(f"{path}:2: error: SyntaxError")


def result_of_nothing(x):
    pass


def result_of_a_number(x):
    return 3


def takes_a_part(x):
    return x[0:200]


def calls_another(x):
    return takes_a_part(x)


@pytest.mark.parametrize(
    "kernel, array, place, message",
    [
        (result_of_nothing, X, result_of_nothing, "the kernel returns nothing and writes none of its arguments"),
        (result_of_a_number, X, result_of_a_number, "a kernel returns tensors, found `3`"),
        (functools.partial(result_of_a_number), X, result_of_a_number, "a kernel returns tensors, found `3`"),
        (calls_another, X, takes_a_part, f"ends outside its 128 elements\n  called from {__file__}:{calls_another.__code__.co_firstlineno + 1}"),
    ],
)
def test_place_of_a_mistake(kernel, array, place, message):
    with pytest.raises(bir_nki.KernelError) as caught:
        bir_nki.trace(kernel, array)
    text = str(caught.value)
    line = place.__code__.co_firstlineno
    assert text.startswith((f"{__file__}:{line}: error: ", f"{__file__}:{line + 1}: error: "))
    assert text.endswith(message) or message in text.splitlines()[0]


def test_specs_name_dtypes_as_kernels_do():
    assert bir_nki.Spec((4, 4), "float32") == bir_nki.Spec((4, 4), np.float32)
    with pytest.raises(bir_nki.KernelError, match=r"argument `x` of shape \[0, 4\] has no elements"):
        bir_nki.trace(result_of_a_number, bir_nki.Spec((0, 4), "bf16"))


def test_dtype_no_hardware_has():
    def kernel(x):
        return x

    with pytest.raises(bir_nki.KernelError, match="argument `x`: `float64` is no element type"):
        bir_nki.trace(kernel, np.zeros((128, 4)))


def test_instructions_outside_of_a_kernel():
    import nki.isa as nisa

    with pytest.raises(bir_nki.KernelError, match="recorded only while a kernel is traced"):
        nisa.register_alloc(3)


def test_all_findings_are_reported(tmp_path):
    path = tmp_path / "k.py"
    write(path, "a = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)\nnisa.memset(dst=a[5:20], value=0.0)\nnisa.memset(dst=a[5:21], value=0.0)\nnisa.dma_copy(dst=out, src=x)")
    with pytest.raises(bir_nki.Rejected) as caught:
        bir_nki.trace(bir_nki_load(path), X)
    assert [finding.line for finding in caught.value.findings][:2] == [10, 11]


def test_fault_of_a_run_is_named_at_its_line(tmp_path):
    path = tmp_path / "k.py"
    line = write(
        path,
        """
        rows = nl.ndarray((16, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.iota(dst=rows, pattern=[[0, 1]], offset=200, channel_multiplier=1)
        t = nl.ndarray((16, 512), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=out, src=x)
        nisa.tensor_copy(dst=rows, src=rows)
        nisa.dma_copy(dst=t, src=x.ap(pattern=[[512, 16], [1, 512]], vector_offset=rows, indirect_dim=0))  # <-
        nisa.dma_copy(dst=out[0:16, :], src=t)
        """,
    )
    with pytest.raises(bir_nki.Rejected) as caught:
        bir_nki.simulate(bir_nki_load(path), X)
    assert str(caught.value).startswith(f"{path}:{line}: error: ")
    assert "index 200" in str(caught.value)


def test_pass_that_is_not_there():
    def kernel(x):
        nisa.dma_copy(dst=x, src=x)

    import nki.isa as nisa

    with pytest.raises(bir_nki.ToolError, match="no_such_pass"):
        bir_nki.compile(kernel, X, pipeline="no_such_pass")
