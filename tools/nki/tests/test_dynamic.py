"""What is known at run time only: indirect DMA, registers, loops of the IR; and what goes with it."""

import numpy as np
import pytest

import bir_nki
import nki.isa as nisa
import nki.language as nl
from conftest import f32
from instructions import check, loaded, registry, sbuf, stored

CASES, case = registry()


@case(tolerance=0)
def gather_rows_by_vector_offset(rng):
    def kernel(table, rows):
        t = sbuf((64, 32))
        nisa.dma_copy(dst=t, src=table.ap(pattern=[[32, 64], [1, 32]], offset=0, vector_offset=loaded(rows), indirect_dim=0))
        return stored(t)

    table, rows = f32(rng, 200, 32), rng.integers(0, 200, (64, 1)).astype(np.int32)
    return kernel, [table, rows], table[rows[:, 0]]


@case(tolerance=0)
def gather_skips_rows_outside(rng):
    def kernel(table, rows):
        t = sbuf((64, 16))
        nisa.memset(dst=t, value=7.0)
        source = table.ap(pattern=[[32, 64], [1, 16]], offset=8, vector_offset=loaded(rows), indirect_dim=0)
        nisa.dma_copy(dst=t, src=source, oob_mode=nisa.oob_mode.skip)
        return stored(t)

    table, rows = f32(rng, 200, 32), rng.integers(0, 200, (64, 1)).astype(np.int32)
    rows[::3] = 500
    want = np.where(rows < 200, table[np.minimum(rows[:, 0], 199)][:, 8:24], np.float32(7))
    return kernel, [table, rows], want


@case(tolerance=0)
def scatter_rows_by_vector_offset(rng):
    def kernel(x, rows):
        out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        nisa.dma_copy(dst=out.ap(pattern=[[32, 64], [1, 32]], offset=0, vector_offset=loaded(rows), indirect_dim=0), src=loaded(x))
        return out

    x, rows = f32(rng, 64, 32), rng.permutation(64).astype(np.int32)[:, None]
    want = np.zeros_like(x)
    want[rows[:, 0]] = x
    return kernel, [x, rows], want


@case(tolerance=0)
def rows_by_scalar_offset(rng):
    def kernel(table, start):
        t = sbuf((16, 32))
        first = nisa.register_alloc(loaded(start))
        nisa.dma_copy(dst=t, src=table.ap(pattern=[[32, 16], [1, 32]], offset=0, scalar_offset=first, indirect_dim=0))
        return stored(t)

    table, start = f32(rng, 200, 32), np.array([[37]], np.int32)
    return kernel, [table, start], table[37:53]


@case(tolerance=0)
def groups_of_a_reshaped_table_by_scalar_offset(rng):
    """An index counts in the shape that the table is seen in, of rows in DRAM as of columns on chip."""

    def kernel(table, group):
        t, column = sbuf((16, 32)), sbuf((16, 8))
        index = loaded(group)
        nisa.dma_copy(dst=t, src=table.reshape((4, 16, 32)).ap(pattern=[[32, 16], [1, 32]], offset=0, scalar_offset=index, indirect_dim=0))
        nisa.tensor_copy(dst=column, src=t.reshape((16, 4, 8)).ap(pattern=[[32, 16], [1, 8]], offset=0, scalar_offset=index, indirect_dim=1))
        return stored(t, column)

    table, group = f32(rng, 64, 32), np.array([[3]], np.int32)
    return kernel, [table, group], (table[48:], table[48:, 24:])


@case(tolerance=0)
def rows_of_one_group_by_vector_offset(rng):
    """`offset` chooses a part of the table, the step of the pattern says what the index counts in it."""

    def kernel(table, rows):
        t = sbuf((8, 32))
        nisa.dma_copy(dst=t, src=table.ap(pattern=[[32, 8], [1, 32]], offset=2 * 16 * 32, vector_offset=loaded(rows), indirect_dim=0))
        return stored(t)

    table, rows = f32(rng, 4, 16, 32), rng.permutation(16)[:8].astype(np.int32)[:, None]
    return kernel, [table, rows], table[2, rows[:, 0]]


@case(tolerance=0)
def elements_of_a_flat_table_by_vector_select(rng):
    """The rows that an index tile numbers are those of the shape that the table is seen in."""

    def kernel(table, x, places):
        out = nl.ndarray((8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        picked, index, whole = sbuf((8, 1)), loaded(places), loaded(table)
        nisa.dma_copy(dst=picked, src=table.reshape((16 * 8, 1)).vector_select(0, index))
        nisa.tensor_tensor(dst=picked, data1=picked, data2=whole[0:8, 0:1], op=nl.add)
        nisa.dma_copy(dst=out, src=x)
        nisa.dma_copy(dst=out.reshape((8 * 16, 1)).vector_select(0, index), src=picked)
        return out

    table, x, places = f32(rng, 16, 8), f32(rng, 8, 16), rng.permutation(128)[:8].astype(np.int32)[:, None]
    want = x.copy()
    want.reshape(-1)[places[:, 0]] = table.reshape(-1)[places[:, 0]] + table[:8, 0]
    return kernel, [table, x, places], want


@pytest.mark.parametrize("wide_first", [True, False])
def test_rows_of_two_sizes(wide_first):
    def kernel(table, places):
        out = nl.ndarray((8, 8), dtype=table.dtype, buffer=nl.shared_hbm)
        index, row, element = loaded(places), sbuf((8, 8)), sbuf((8, 1))
        for wide in (wide_first, not wide_first):
            if wide:
                nisa.dma_copy(dst=row, src=table.vector_select(0, index))
            else:
                nisa.dma_copy(dst=element, src=table.reshape((128, 1)).vector_select(0, index))
        nisa.dma_copy(dst=out, src=row)
        return out

    sizes = (1, 8) if wide_first else (8, 1)
    with pytest.raises(bir_nki.KernelError, match=f"rows of {sizes[0]} elements of `table`, which has 128, and others rows of {sizes[1]}"):
        bir_nki.trace(kernel, np.zeros((16, 8), np.float32), np.zeros((8, 1), np.int32))


@case(tolerance=0)
def columns_by_register(rng):
    def kernel(x, start):
        t, first = sbuf((128, 8)), nisa.register_alloc()
        nisa.register_load(dst=first, src=loaded(start))
        nisa.tensor_copy(dst=t, src=loaded(x)[:, nl.ds(first, 8)])
        return stored(t)

    x, start = f32(rng, 128, 32), np.array([[5]], np.int32)
    return kernel, [x, start], x[:, 5:13]


@case()
def dynamic_loop_of_register_trips(rng):
    def kernel(x, n):
        t, trips = loaded(x), nisa.register_alloc(loaded(n))
        for _ in nl.dynamic_range(trips):
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
        return stored(t)

    x = f32(rng, 128, 8)
    return kernel, [x, np.array([[5]], np.int32)], x + 5


@case(tolerance=0)
def dynamic_loop_index_moves_views(rng):
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.dynamic_range(4):
            t = sbuf((32, 16))
            nisa.dma_copy(dst=t, src=x[nl.ds(i * 32, 32), :])
            nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=out[i * 32 : (i + 1) * 32, :], src=t)
        return out

    x = f32(rng, 128, 16)
    return kernel, [x], 2 * x


@case(tolerance=1e-4)
def matmul_accumulates_over_a_dynamic_loop(rng):
    def kernel(x, y):
        p, c = nl.zeros((128, 64), dtype=nl.float32, buffer=nl.psum), sbuf((128, 64))
        for k in nl.dynamic_range(3):
            a, b = sbuf((128, 128)), sbuf((128, 64))
            nisa.dma_copy(dst=a, src=x[nl.ds(k * 128, 128), :])
            nisa.dma_copy(dst=b, src=y[nl.ds(k * 128, 128), :])
            nisa.nc_matmul(dst=p, stationary=a, moving=b)
        nisa.tensor_copy(dst=c, src=p)
        return stored(c)

    x, y = f32(rng, 384, 128), f32(rng, 384, 64)
    return kernel, [x, y], x.T @ y


@case()
def while_loop_counts_down(rng):
    def kernel(x, n):
        t, left = loaded(x), nisa.register_alloc(loaded(n))

        def body(left):
            nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
            return left - 1

        nisa.while_loop(left, body)
        return stored(t)

    x = f32(rng, 128, 8)
    return kernel, [x, np.array([[3]], np.int32)], 8 * x


@case()
def while_statement_on_a_register(rng):
    def kernel(x, n):
        t, left = loaded(x), nisa.register_alloc(None)
        count = loaded(n)
        nisa.register_load(dst=left, src=count)
        while left:
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=3.0)
            nisa.tensor_scalar(dst=count, data=count, op0=nl.subtract, operand0=1)
            nisa.register_load(dst=left, src=count)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        return stored(t)

    x = f32(rng, 128, 8)
    return kernel, [x, np.array([[4]], np.int32)], 2 * (x + 12)


@case(tolerance=0)
def sequence_bounds(rng):
    def kernel(x):
        t = sbuf((1, 2, 9), nl.int32)
        nisa.sequence_bounds(dst=t, segment_ids=loaded(x))
        return stored(t)

    x = np.array([[0, 1, 1, 2, 2, 2, 0, 3, 3]], np.int32)
    return kernel, [x], np.array([[[9, 1, 1, 3, 3, 3, 9, 7, 7], [-1, 3, 3, 6, 6, 6, -1, 9, 9]]], np.int32)


@case(tolerance=0)
def columns_of_each_sixteen_partitions(rng):
    """Every 16 partitions by numbers of their own, in a snake down the partitions."""

    def kernel(x, columns):
        t = sbuf((64, 32))
        nisa.tensor_copy(t, loaded(x).indirect(loaded(columns), num_elem=32))
        return stored(t)

    x, columns = f32(rng, 64, 50), rng.integers(0, 50, (64, 2)).astype(np.uint16)
    rows = [x[p][columns[p // 16 * 16 : p // 16 * 16 + 16].T.reshape(-1)] for p in range(64)]
    return kernel, [x, columns], np.stack(rows)


@case(tolerance=0)
def scatter_add_and_gather_add(rng):
    def kernel(x, y, rows):
        out = nl.ndarray((64, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        index = loaded(rows)
        target = out.ap(pattern=[[16, 64], [1, 16]], offset=0, vector_offset=index, indirect_dim=0)
        tile = loaded(y)
        nisa.dma_compute(dst=target, srcs=[target, tile], reduce_op=nl.add)
        nisa.dma_compute(dst=tile, srcs=[x.ap(pattern=[[16, 64], [1, 16]], vector_offset=index, indirect_dim=0), tile], reduce_op=nl.add)
        return out, stored(tile)

    x, y, rows = f32(rng, 64, 16), f32(rng, 64, 16), rng.permutation(64).astype(np.int32)[:, None]
    want = x.copy()
    want[rows[:, 0]] += y
    return kernel, [x, y, rows], (want, y + x[rows[:, 0]])


@pytest.mark.parametrize("make, target, tolerance", CASES)
def test_instruction(make, target, tolerance, rng):
    check(make, target, tolerance, rng)
