"""How fast kernels are traced: python tools/nki/bench.py [INSTRUCTIONS]

Prints instructions per second of CPU time, seconds in all and peak memory, for a new-style and an old-style kernel; with bir-opt's share
apart. Nothing here is a test: machines differ.
"""

import resource
import sys
import time

import bir_nki
import nki
import nki.isa as nisa
import nki.language as nl

X = bir_nki.Spec((1024, 512), nl.float32)


@nki.jit
def new_style(x, rounds):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(rounds):
        row = i % 8 * 128
        a, b = (nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf) for _ in range(2))
        p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.dma_copy(dst=a, src=x[row : row + 128, 0:512])
        for k in range(4):
            part = slice(k * 128, (k + 1) * 128)
            nisa.tensor_scalar(dst=b[:, part], data=a[:, part], op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1.0)
        nisa.tensor_tensor(dst=b, data1=a, data2=b, op=nl.add)
        nisa.activation(dst=a, op=nl.exp, data=b, scale=0.5)
        nisa.nc_matmul(dst=p, stationary=a[:, 0:128], moving=b)
        nisa.tensor_copy(dst=b, src=p)
        nisa.dma_copy(dst=out[row : row + 128, :], src=b)
    return out


@nki.jit
def old_style(x, rounds):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.arange(128)[:, None], nl.arange(512)[None, :]
    for i in nl.affine_range(rounds):
        tile = nl.load(x[i % 8 * 128 + i_p, i_f])
        e = nl.exp(tile - nl.max(tile, axis=1, keepdims=True))
        nl.store(out[i % 8 * 128 + i_p, i_f], e / nl.sum(e, axis=1, keepdims=True))
    return out


def main():
    instructions = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for kernel, per_round in ((new_style, 10), (old_style, 8)):
        cpu, wall = time.process_time(), time.perf_counter()
        traced = bir_nki.trace(kernel, X, instructions // per_round, verify=False)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        start = time.perf_counter()
        traced.verified()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rate = traced.instructions / cpu
        print(
            f"{kernel.__name__}: {traced.instructions} instructions, {rate:,.0f} per second, {wall:.2f} s, peak {peak:.0f} MiB; "
            f"bir-opt {time.perf_counter() - start:.2f} s"
        )


if __name__ == "__main__":
    main()
