"""bir-sim beside numpy and ml_dtypes, in one run: the simulator rows of the performance budget.

    python3 test/venv.py && cargo build --release
    target/test-venv/bin/python sim/benches/peers.py [--bir-sim target/release/bir-sim] [--repeat 5] [--inner 3] [--only REGEX] [--check]

Each row runs one instruction in a loop inside one bir-sim process, on the numbers numpy has too, long and short, and takes the difference in cpu time: start,
reading and writing do not count. numpy runs in one thread. A round is `--inner` measurements of bir-sim with one of numpy on either side, and keeps the
least time of each: what else the machine does only ever adds to a time, and adds to both sides alike. Of `--repeat` rounds the table has
the median times, their ratio, the ratio of the worst round, and the worst ratio of numpy to itself, before and behind.

`--check` fails where the worst is below what must be reached: no more than that may be claimed. Where that is 1, equal times, it fails where the worst is
further from 1 than numpy was from itself, for what differs no more than a program from itself is equal. Use the release profile: without its link-time
optimisation the kernels' pieces are calls.

numpy has no erf: the row "gelu (erf)" is beside its tanh form too, which costs less.
"""

import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

P, N = 128, 2048


def kernel(dtype, body, trips, out="%t", shape=f"{P}x{N}"):
    return f"""bir.module @bench {{target = "trn2"}} {{
  bir.func @main {{
    %x = alloc dram<{shape}x{dtype}> {{kind = input}}
    %y = alloc dram<{shape}x{dtype}> {{kind = output}}
    %a = alloc sbuf<{shape}x{dtype}>
    %b = alloc sbuf<{shape}x{dtype}>
    %t = alloc sbuf<{shape}x{dtype}>
    %mask = alloc sbuf<{shape}xu8>
    %zero = alloc sbuf<{shape}x{dtype}>
    %one = alloc sbuf<{shape}x{dtype}>
    %w = alloc sbuf<128x128x{dtype}>
    %m = alloc sbuf<128x512x{dtype}>
    %p = alloc psum<128x512xf32>
    %c = alloc sbuf<1x1xf32>
    load %a <- %x
    load %b <- %x
    memset %zero <- 0.0
    memset %one <- 1.0
    memset %w <- 0.5
    memset %m <- 0.5
    memset %c <- 1.0
    tensor_scalar greater %mask <- %a, 0.0
    tensor_copy %t <- %a
    loop %i = 0 to {trips} {{
      {body}
    }}
    save %y <- {out}
  }}
}}
"""


def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def simulated(tool, folder, dtype, body, trips):
    """Seconds of a run of one trip, and of one of so many more."""
    times = []
    for count in (1, trips + 1):
        path = folder / f"bench{count}.bir"
        path.write_text(kernel(dtype, body, count))
        times.append(cpu([tool, path, "--input", f"x={folder / dtype}.npy"]))
    return times


def measured(function, trips):
    function()
    start = time.process_time()
    for _ in range(trips):
        function()
    return (time.process_time() - start) / trips


def round_of(inner, trips, ours, theirs):
    """The least seconds of a trip on either side, measured in turn, and the ratio of numpy to itself."""
    short, long, before, behind = [], [], [], []
    for _ in range(inner):
        before.append(theirs())
        once, many = ours()
        short.append(once)
        long.append(many)
        behind.append(theirs())
    # Each least by itself: the least difference would be that of a slow start.
    itself = min(before) / min(behind)
    return (min(long) - min(short)) / trips, min(before + behind), min(itself, 1 / itself)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def values(dtype):
    """What both sides compute on."""
    return np.random.default_rng(0).standard_normal((P, N)).astype(dtype)


def rows():
    x = values(np.float32)
    y, out = x.copy(), np.empty_like(x)
    h = values(ml_dtypes.bfloat16)
    w, m = np.full((128, 128), 0.5, np.float32), np.full((128, 512), 0.5, np.float32)
    product = np.empty((128, 512), np.float32)
    mask = x > 0
    c = np.ones((1, 1), np.float32)
    return [
        ("f32 add", "f32", "tensor_tensor add %t <- %a, %b", lambda: np.add(x, y, out=out), 1),
        ("f32 mul", "f32", "tensor_tensor multiply %t <- %a, %b", lambda: np.multiply(x, y, out=out), 1),
        ("f32 max", "f32", "tensor_tensor max %t <- %a, %b", lambda: np.maximum(x, y, out=out), 1),
        ("f32 copy", "f32", "tensor_copy %t <- %a", lambda: np.copyto(out, x), 1),
        ("f32 exp", "f32", "activation exp %t <- %a", lambda: np.exp(x, out=out), 1),
        ("f32 tanh", "f32", "activation tanh %t <- %a", lambda: np.tanh(x, out=out), 1),
        ("f32 gelu", "f32", "activation gelu_apprx_tanh %t <- %a", lambda: gelu(x), 4),
        ("f32 gelu (erf)", "f32", "activation gelu %t <- %a", lambda: gelu(x), 1),
        ("f32 sigmoid", "f32", "activation sigmoid %t <- %a", lambda: sigmoid(x), 4),
        ("f32 select", "f32", "select %t <- %mask, %a, 0.0", lambda: np.where(mask, x, np.float32(0)), 4),
        ("f32 cumsum", "f32", "tensor_tensor_scan multiply add %t <- %one, %a, initial 0.0", lambda: np.cumsum(x, axis=1, out=out), 4),
        ("bf16 add", "bf16", "tensor_tensor add %t <- %a, %b", lambda: h + h, 5),
        ("bf16 exp", "bf16", "activation exp %t <- %a", lambda: np.exp(h), 5),
        ("matmul 128x128x512", "f32", "matmult %p <- stationary %w, moving %m", lambda: np.matmul(w.T, m, out=product), 0.7),
        ("dispatch", "f32", "tensor_scalar add %c <- %c, 1.0", lambda: np.add(c, c, out=c), 1),
    ]


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bir-sim", default=root / "target/release/bir-sim", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=5, help="rounds")
    parser.add_argument("--inner", type=int, default=3, help="measurements in a round, of which the least counts")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose name matches")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a round is below what it must reach")
    args = parser.parse_args()
    print(f"{'row':<22}{'bir-sim':>12}{'numpy':>12}{'ratio':>8}{'worst':>8}{'itself':>8}{'must':>7}")
    low = []
    with tempfile.TemporaryDirectory() as folder:
        for dtype, kind in (("f32", np.float32), ("bf16", ml_dtypes.bfloat16)):
            np.save(f"{folder}/{dtype}.npy", values(kind))
        for name, dtype, body, function, must in rows():
            if not re.search(args.only, name):
                continue
            trips = 1_000_000 if name == "dispatch" else 1000
            rounds = [
                round_of(
                    args.inner,
                    trips,
                    lambda: simulated(args.bir_sim, pathlib.Path(folder), dtype, body, trips),
                    lambda: measured(function, min(trips, 100_000) // (2 * args.inner)),
                )
                for _ in range(args.repeat)
            ]
            ours, theirs, itself = zip(*rounds, strict=True)
            a, b = statistics.median(ours), statistics.median(theirs)
            worst = min(b / a for a, b in zip(ours, theirs, strict=True))
            if worst < must * (min(itself) if must == 1 else 1):
                low.append(name)
            print(
                f"{name:<22}{a * 1e6:>9.2f} us{b * 1e6:>9.2f} us{b / a:>8.2f}{worst:>8.2f}{min(itself):>8.2f}{must:>7}", flush=True
            )
    if args.check and low:
        sys.exit(f"below what it must reach: {', '.join(low)}")


if __name__ == "__main__":
    main()
