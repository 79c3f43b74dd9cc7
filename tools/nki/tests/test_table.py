"""The front end against the op table it reads: nothing it says about instructions may drift."""

import pathlib
import re

import pytest

import bir_nki
import nki.isa as nisa
import nki.language as nl
from bir_nki import dtypes, tokens
from bir_nki.errors import ToolError
from bir_nki.table import Table, table

SOURCES = "\n".join(path.read_text() for path in sorted(pathlib.Path(bir_nki.__file__).parent.glob("*.py")))

# What NKI has no call for: structure, other spellings of the same instruction, the compiler's own, and silicon without an API.
NOT_OF_NKI = {
    "module", "func", "alloc", "loop", "while", "br", "cond_br", "depset", "return", "yield",
    "generic_copy", "tensor_scalar_ptr", "tensor_scalar_cache", "tensor_scalar_addr", "read_activation_accumulator", "permute_implicit_reduce_add",
    "matmult_sparse", "gpsimd_sb2sb", "all_gather_v", "all_to_all_v",
    "core_id", "event_semaphore", "semaphore_range_clear", "all_engine_barrier", "drain", "halt", "nop", "notify",
    "dma_trigger", "set_ordering_mode", "modify_pool_config", "load_activation_table", "custom_op", "inline_asm",
}  # fmt: skip


def test_every_instruction_is_recorded_by_some_call():
    recorded = set(re.findall(r'"([a-z0-9_]+)"', SOURCES)) | {"tensor_copy_dynamic_src", "tensor_copy_dynamic_dst"}
    assert set(table().ops) - recorded - NOT_OF_NKI == set()
    assert NOT_OF_NKI - set(table().ops) == set()


def test_every_instruction_named_in_the_source_is_in_the_table():
    named = set(re.findall(r'\.emit\(\s*"([a-z0-9_]+)"', SOURCES)) | set(re.findall(r'\.register\(\s*"([a-z0-9_]+)"', SOURCES))
    assert len(named) > 40
    assert named - set(table().ops) == set()


def test_every_dtype_is_there_under_its_name():
    names = {kind["name"] for kind in table_data()["dtypes"]}
    assert {d.bir for d in dtypes.ALL} == names
    for kind in table_data()["dtypes"]:
        assert dtypes.as_dtype(kind["name"]).itemsize == kind["bytes"]
        assert hasattr(nl, dtypes.as_dtype(kind["name"]).name)


def table_data():
    import json
    import subprocess

    from bir_nki.table import tool

    return json.loads(subprocess.run([tool("bir-opt"), "--show-dialect", "--format=json"], capture_output=True, check=True).stdout)


@pytest.mark.parametrize("word", sorted(table().enums["activation_func"]))
def test_every_function_has_a_token(word):
    token = getattr(nl, word)
    assert tokens.activation(token) == tokens.activation(word) == word


@pytest.mark.parametrize("word", sorted(set(table().enums["alu_op"]) - {"divide_int", "mod_int"}))
def test_every_operation_has_a_token(word):
    assert tokens.alu(getattr(nl, word)) == tokens.alu(word) == word


def test_another_format_of_the_table_is_refused():
    with pytest.raises(ToolError, match="describes its dialect in format 2, this package reads 1"):
        Table({**table_data(), "format": 2})


def test_the_stand_in_has_what_kernels_look_for():
    assert hasattr(nisa, "nc_matmul") and not hasattr(nisa, "nc_matmull")
    assert nisa.reduce_cmd.reset_reduce == 3 and nisa.engine.vector is nisa.vector_engine
    assert nisa.constants.oob_mode.skip is nisa.oob_mode.skip
