"""What else of `nki.language` and `nki.isa` kernels call now and then, each against numpy."""

import ml_dtypes
import numpy as np
import pytest

import bir_nki
import neuronxcc.nki as old_nki
import nki
import nki.collectives as cc
import nki.isa as nisa
import nki.language as nl
from conftest import close, f32
from instructions import loaded, sbuf, stored


def run(kernel, arrays, wanted, tolerance=0, **kwargs):
    traced = bir_nki.trace(kernel, *arrays, **kwargs)
    close(traced.simulate(), wanted, tolerance)
    return traced


def test_atomic_add_of_rows_and_of_rows_by_index(rng):
    def kernel(table, x, index):
        i, j = nl.mgrid[0:64, 0:32]
        tile = nl.load(x)
        nl.atomic_rmw(table[i, j], tile, np.add)
        nl.atomic_rmw(table[nl.load(index)[:, 0:1], nl.arange(32)[None, :]], tile, np.add)
        return table

    table, x, index = f32(rng, 100, 32), f32(rng, 64, 32), rng.permutation(100)[:64].astype(np.int32)[:, None]
    wanted = table.copy()
    wanted[:64] += x
    wanted[index[:, 0]] += x
    run(kernel, [table, x, index], wanted, 1e-6)


def test_random_numbers_are_uniform_and_follow_the_seed():
    def kernel(seed):
        nl.random_seed(seed)
        return stored(nl.rand((128, 64)))

    first, second, other = (bir_nki.simulate(kernel, np.array([[s]], np.uint32)) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    assert first.min() >= 0 and first.max() < 1 and abs(first.mean() - 0.5) < 0.02


def test_dropout_keeps_or_zeroes(rng):
    def kernel(x):
        return stored(nl.dropout(nl.load(x), 0.25))

    x = abs(f32(rng, 128, 64)) + 1
    out = bir_nki.simulate(kernel, x)
    kept = out != 0
    assert 0.7 < kept.mean() < 0.8
    np.testing.assert_array_equal(out[kept], x[kept])


def test_any_and_all(rng):
    def kernel(x):
        tile = nl.load(x)
        return stored(nl.any(tile, axis=1, keepdims=True, dtype=nl.float32), nl.all(tile, axis=1, keepdims=True, dtype=nl.float32))

    x = (f32(rng, 128, 3) > 0).astype(np.float32)
    run(kernel, [x], (x.any(1, keepdims=True).astype(np.float32), x.all(1, keepdims=True).astype(np.float32)))


def test_identity_from_memory_and_bits(rng):
    def kernel(x):
        identity = nl.load(nl.shared_identity_matrix(64))
        tile = nl.load(x)
        return stored(nl.copy(nl.matmul(tile, identity, transpose_x=True)), nl.bitwise_or(nl.copy(tile, dtype=nl.int32), 5))

    x = rng.integers(0, 100, (64, 32)).astype(np.float32)
    run(kernel, [x], (x.T, x.astype(np.int32) | 5))


def test_gather_along_rows(rng):
    def kernel(x, index):
        return stored(nl.gather_flattened(nl.load(x), nl.load(index)))

    x, index = f32(rng, 64, 40), rng.integers(0, 40, (64, 24)).astype(np.uint32)
    run(kernel, [x, index], np.take_along_axis(x, index.astype(int), 1))


def test_spellings_that_change_nothing(rng, capfd):
    """Dimensions of one, private memory, cores in a grid, order left as it is, printing."""

    @old_nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        kept = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.private_hbm)
        rows = nl.dslice(nl.program_id(0) * 64, 64)
        with nl.no_reorder():
            nl.store(kept, nl.load(x[rows, :]))
        wide = nl.expand_dims(nl.load(kept), 1)
        assert wide.shape == (64, 1, 32)
        nl.device_print("rows", wide[:, 0, :])
        nl.store(out[rows, :], wide[:, 0, :] + 1.0)
        return out

    x = f32(rng, 128, 32)
    traced = run(kernel, [x], x + 1, grid=nl.nc(1) * 2)
    assert traced.text.count("device_print") == 2
    run(kernel, [x], x + 1, grid=nl.spmd_dim(nl.nc(2), 1))


def test_loops_by_functions(rng):
    @nki.jit
    def kernel(x):
        tile = loaded(x)
        left = nisa.register_alloc(2)
        copies = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)

        def body(i):
            nisa.tensor_scalar(dst=tile[:, nl.ds(i * 8, 8)], data=tile[:, nl.ds(i * 8, 8)], op0=nl.add, operand0=1.0)

        def once_more(register):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
            return register - 1

        nl.fori_loop(0, 4, body)
        nl.while_loop(left, once_more)
        nisa.register_move(dst=left, src=7)
        nisa.register_store(dst=copies, src=left)
        return stored(tile, copies)

    x = f32(rng, 128, 32)
    run(kernel, [x], ((x + 1) * 4, np.array([[7]], np.int32)))


def test_columns_chosen_at_run_time_in_the_old_style(rng):
    def kernel(x, at):
        tile, first = nl.load(x), nl.load(at)
        out = sbuf((64, 32))
        nisa.memset(dst=out, value=0.0)
        part = nisa.tensor_copy_dynamic_src(tile[:, nl.ds(nisa.register_load(first), 8)])
        nisa.tensor_copy_dynamic_dst(out[:, nl.ds(nisa.register_load(first), 8)], part)
        return stored(out)

    x = f32(rng, 64, 32)
    wanted = np.zeros_like(x)
    wanted[:, 13:21] = x[:, 13:21]
    run(kernel, [x, np.array([[13]], np.int32)], wanted)


def test_largest_of_sixteen_partitions(rng):
    """Each group of 16 partitions is one row that runs down its columns; results are ascending."""

    def kernel(x):
        values, places = sbuf((32, 2), nl.bfloat16), sbuf((32, 2), nl.uint32)
        nisa.topk(dst=values, src=loaded(x), dst_idx=places, k=32)
        return stored(values, places)

    rows = rng.permuted(np.tile(np.arange(256), (2, 1)), axis=1)
    x = rows.reshape(2, 16, 16).transpose(0, 2, 1).reshape(32, 16).astype(ml_dtypes.bfloat16)
    order = np.argsort(rows, axis=1)[:, -32:]
    down = lambda a: a.reshape(2, 2, 16).transpose(0, 2, 1).reshape(32, 2)  # noqa: E731
    run(kernel, [x], (down(np.take_along_axis(rows, order, 1)).astype(x.dtype), down(order).astype(np.uint32)), target="trn3")


def test_random_state_is_read_and_set():
    def kernel(seeds):
        tiles = [sbuf((128, 16), nl.uint32) for _ in range(2)]
        state = loaded(seeds)
        for tile in tiles:
            nisa.rand_set_state(src_seeds=state, engine=nisa.engine.vector)
            nisa.rng(dst=tile, engine=nisa.engine.vector)
        uniform = sbuf((128, 16))
        nisa.rand2(dst=uniform, min=2.0, max=4.0)
        nisa.rand_get_state(dst=state, engine=nisa.engine.vector)
        return stored(*tiles, uniform, state)

    seeds = np.arange(128 * 24, dtype=np.uint32).reshape(128, 24)
    first, second, uniform, state = bir_nki.simulate(kernel, seeds, target="trn3")
    np.testing.assert_array_equal(first, second)
    assert (state != seeds).any()
    assert uniform.min() >= 2 and uniform.max() <= 4


@pytest.mark.parametrize("name", ["tensor", "vector", "scalar", "gpsimd", "sync", "unknown"])
def test_engines_have_two_names(name):
    assert getattr(nisa, f"{name}_engine") is nisa.engine[name]


def test_collectives_of_two_cores(rng):
    @nki.jit
    def kernel(x):
        me, pair = nl.program_id(0), cc.ReplicaGroup([[0, 1]])

        def memory(*shape):
            return nl.ndarray(shape, dtype=x.dtype, buffer=nl.private_hbm)

        mine, total, both, half, turned, other = memory(64, 32), memory(64, 32), memory(128, 32), memory(32, 32), memory(64, 32), memory(64, 32)
        nisa.dma_copy(dst=mine, src=x[me])
        cc.all_reduce(dsts=[total], srcs=[mine], op=nl.add, replica_group=pair)
        cc.all_gather(dsts=[both], srcs=[mine], replica_group=pair, collective_dim=0)
        cc.reduce_scatter(dsts=[half], srcs=[mine], op=np.maximum, replica_group=pair)
        cc.all_to_all(dsts=[turned], srcs=[mine], replica_group=[[0, 1]])
        cc.collective_permute(dst=other, src=mine, source_target_pairs=[[0, 1], [1, 0]])
        rank = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.register_store(dst=rank, src=cc.rank_id())
        results = []
        for tensor in (total, both, half, turned, other, rank):
            out = nl.ndarray((2, *tensor.shape), dtype=tensor.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out[me], src=tensor)
            results.append(out)
        return tuple(results)

    x = f32(rng, 2, 64, 32)
    twice = lambda a: np.stack([a, a])  # noqa: E731
    halves = x.reshape(2, 2, 32, 32)
    wanted = (
        twice(x.sum(0)), twice(x.reshape(128, 32)), halves.max(0), halves.transpose(1, 0, 2, 3).reshape(2, 64, 32), x[::-1],
        np.array([[[0]], [[1]]], np.int32),
    )  # fmt: skip
    run(kernel, [x], wanted, 1e-6, grid=2)


def test_ring_of_two_cores(rng):
    """Sources come before destinations, and a ring brings the ranks before."""

    @nki.jit
    def kernel(x):
        me, pair = nl.program_id(0), cc.ReplicaGroup.from_partition_op(2, cc.rg_partition_op.div, 2)
        here, there, summed, both = (nl.ndarray((n, 32), dtype=x.dtype, buffer=nl.private_hbm) for n in (64, 64, 64, 128))
        nisa.dma_copy(dst=here, src=x[me])
        cc.collective_permute_implicit(srcs_by_channel=[[here]], dsts_by_channel=[[there]], replica_group=pair)
        cc.collective_permute_implicit_reduce([[here]], [[here]], [[summed]], pair, nl.add)
        cc.all_gather([here], [both], pair, 0)
        out = nl.ndarray((4, 64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        for step, buffer in enumerate((here, there)):
            rank = cc.collective_permute_implicit_current_processing_rank_id(iteration_id=step, replica_group=pair)
            nisa.dma_copy(dst=out.ap(pattern=[[32, 64], [1, 32]], offset=me * 2 * 64 * 32, scalar_offset=rank, indirect_dim=0), src=buffer)
        rest = nl.ndarray((2, 3, 64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=rest[me, 0], src=summed)
        nisa.dma_copy(dst=rest[me, 1:3], src=both)
        return out, rest

    x = f32(rng, 2, 64, 32)
    run(kernel, [x], (np.concatenate([x, x]), np.stack([np.stack([2 * x[1 - i], x[0], x[1]]) for i in range(2)])), 1e-6, grid=2)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: cc.all_gather([x], [x, x], [[0, 1]], 0), "as many destinations as sources, found 2 and 1"),
        (lambda x: cc.reduce_scatter([x], [x], [[0, 1]], 1, nl.add), "`reduce_scatter` works along dimension 0, found 1"),
        (lambda x: cc.collective_permute_implicit([[x, x]], [[x]], [[0, 1]]), "a channel of a ring carries one tensor"),
        (lambda x: cc.all_to_all([x], [x]), "a collective needs a `replica_group`"),
    ],
)
def test_mistakes_of_collectives(call, message):
    def kernel(x):
        call(x)

    with pytest.raises(bir_nki.KernelError, match=message):
        bir_nki.trace(kernel, np.zeros((128, 4), np.float32))


def test_collective_nobody_has():
    with pytest.raises(bir_nki.KernelError, match="`nki.collectives.all_reduc` is not supported") as caught:
        cc.all_reduc
    assert caught.value.help == "did you mean `all_reduce`?"
