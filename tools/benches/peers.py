"""bir-opt beside mlir-opt on the same modules: cpu time, peak memory, executed instructions.

    cargo build --release
    python3 tools/benches/peers.py                          10^3 to 10^6 ops, 5 repetitions
    python3 tools/benches/peers.py --sizes 1000 10000 --repetitions 9 --instructions

Two profiles of a kernel-like function without loops, as unrolling leaves them:

    repetitive   the same eighty statements over and over
    distinct     every statement with an id, dependences and offsets of its own

Three runs of each, interleaved in every repetition so that a noisy machine hits them alike:

    custom       bir-opt reads, verifies and prints the custom form
    generic      bir-opt the generic form
    mlir-opt     mlir-opt --allow-unregistered-dialect the same generic form, on one thread

The ratio of a repetition is mlir-opt's cpu time over that run's; the table shows the median and the worst. Memory per op is
what a run takes beyond a run of 1,000 ops and beyond the bytes of its text. The exponent compares a size with the one before,
start-up taken off. Instructions are counted by valgrind (cachegrind without its cache simulation).
"""

import argparse
import json
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "support"))

import tools  # noqa: E402

BUFFERS = 8
OPS_PER_BLOCK = 10

# A child's peak memory starts at that of the process that spawned it, so a process that imported nothing else does it.
MEASURE = """
import os, sys
null = os.open(os.devnull, os.O_RDWR)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                     file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def block(number, is_distinct):
    """The statements of block `number`: a softmax of a tile, then a matmult with a residual."""
    j = number % BUFFERS
    row = 128 * (number if is_distinct else j)
    # Columns of coprime periods, so that accesses differ as they do in traced kernels.
    first, last = (number * 7 % 61, 512 - number * 11 % 67) if is_distinct else (0, 512)
    columns = f"[0:128, {first}:{last}]"
    statements = [
        f"load %t{j} <- %x[{row}:{row + 128}, 0:512]",
        f"tensor_reduce max %m{j} <- %t{j}{columns} {{axes = [1], negate}}",
        f"activation exp %e{j}{columns}, reduce add reset %s{j} <- %t{j}{columns}, scale 1.0, bias %m{j}",
        f"reciprocal %s{j} <- %s{j}",
        f"tensor_scalar multiply %e{j}{columns} <- %e{j}{columns}, %s{j}",
        f"matmult %p{j}{columns} <- stationary %w[0:128, 0:128], moving %e{j}{columns}",
        f"tensor_copy %o{j}{columns} <- %p{j}{columns}",
        f"tensor_tensor add %o{j}{columns} <- %o{j}{columns}, %t{j}{columns}",
        f"tensor_scalar multiply add %o{j}{columns} <- %o{j}{columns}, 2.0, %m{j}",
        f"save %y[{row}:{row + 128}, 0:512] <- %o{j}",
    ]
    if not is_distinct:
        return statements
    numbered = []
    for i, statement in enumerate(statements):
        own = OPS_PER_BLOCK * number + i
        deps = [f"flow {own - 1}"] * (own > 0) + [f"anti {own - 77}"] * (own > 77)
        attrs = f"id = {own}, deps = [{', '.join(deps)}]" if deps else f"id = {own}"
        if statement.endswith("}"):
            numbered.append(f"{statement[:-1]}, {attrs}}}")
        else:
            numbered.append(f"{statement} {{{attrs}}}")
    return numbered


def write_module(path, ops, is_distinct):
    """A module of `ops` instructions in custom form."""
    blocks = max(1, ops // OPS_PER_BLOCK)
    rows = 128 * (blocks if is_distinct else BUFFERS)
    with open(path, "w") as file:
        file.write('bir.module @bench {target = "trn2"} {\n  bir.func @main {\n')
        file.write(f"    %x = alloc dram<{rows}x512xf32> {{kind = input}}\n")
        file.write(f"    %y = alloc dram<{rows}x512xf32> {{kind = output}}\n")
        file.write("    %w = alloc sbuf<128x128xf32>\n")
        for j in range(BUFFERS):
            for name in "teo":
                file.write(f"    %{name}{j} = alloc sbuf<128x512xf32>\n")
            for name in "ms":
                file.write(f"    %{name}{j} = alloc sbuf<128x1xf32>\n")
            file.write(f"    %p{j} = alloc psum<128x512xf32>\n")
        file.write("    memset %w <- 1.0\n")
        for j in range(BUFFERS):
            for name in "eo":
                file.write(f"    memset %{name}{j} <- 0.0\n")
        for number in range(blocks):
            for statement in block(number, is_distinct):
                file.write(f"    {statement}\n")
        file.write("  }\n}\n")


def run(command):
    """One run: (cpu seconds, peak KiB)."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, *map(str, command)], capture_output=True, text=True)
    status, cpu, rss = done.stdout.split() if done.returncode == 0 else ("?", "0", "0")
    if status != "0":
        sys.exit(f"error: exit status {status} of {' '.join(map(str, command))}\n{done.stderr}")
    return float(cpu), int(rss)


def instructions(command):
    """Executed instructions of one run."""
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run([*valgrind, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    match = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or not match:
        sys.exit(f"error: valgrind failed on {' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return int(match[1].replace(",", ""))


def measured(profile, size, folder, args):
    """All runs of one profile and size."""
    custom, generic = folder / f"{profile}-{size}.bir", folder / f"{profile}-{size}.mlir"
    write_module(custom, size, profile == "distinct")
    with open(generic, "w") as file:
        subprocess.run([args.bir_opt, "--print-op-generic", custom], stdout=file, check=True)
    commands = {"custom": [args.bir_opt, custom], "generic": [args.bir_opt, "--print-op-generic", generic]}
    if args.mlir_opt:
        commands["mlir-opt"] = [args.mlir_opt, "--allow-unregistered-dialect", "--mlir-disable-threading", generic]
    runs = {name: [] for name in commands}
    for _ in range(args.repetitions):
        for name, command in commands.items():
            runs[name].append(run(command))
    counts = {}
    if args.instructions and size <= args.instructions_up_to:
        counts = {name: instructions(command) for name, command in commands.items()}
    text = {"custom": custom.stat().st_size, "generic": generic.stat().st_size}
    text["mlir-opt"] = text["generic"]
    custom.unlink()
    generic.unlink()
    return {
        name: {
            "cpu": [cpu for cpu, _ in runs[name]],
            "rss": statistics.median(rss for _, rss in runs[name]) * 1024,
            "text": text[name],
            "instructions": counts.get(name),
        }
        for name in commands
    }


def table(profile, results):
    """The markdown table of one profile."""
    sizes = sorted(results)
    start = results[sizes[0]]
    head = ["ops", "run", "cpu", "per op", "exponent", "peak", "B/op beside text", "instr/op", "mlir-opt / it, median (worst)"]
    print(f"\n### {profile}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for size in sizes:
        for name, it in results[size].items():
            cpu = statistics.median(it["cpu"])
            exponent = bytes_per_op = ratio = ""
            if size > sizes[0]:
                smaller = sizes[sizes.index(size) - 1]
                base = statistics.median(start[name]["cpu"])
                before = statistics.median(results[smaller][name]["cpu"]) - base
                if smaller > sizes[0] and before > 0 and cpu > base:
                    exponent = f"{math.log((cpu - base) / before) / math.log(size / smaller):.2f}"
                beyond = it["rss"] - it["text"] - start[name]["rss"] + start[name]["text"]
                bytes_per_op = f"{beyond / (size - sizes[0]):.0f}"
            if name != "mlir-opt" and "mlir-opt" in results[size]:
                ratios = [theirs / ours for theirs, ours in zip(results[size]["mlir-opt"]["cpu"], it["cpu"])]
                ratio = f"{statistics.median(ratios):.1f} ({min(ratios):.1f})"
            count = f"{it['instructions'] / size:,.0f}" if it["instructions"] else ""
            cells = [f"{size:,}", name, f"{cpu * 1e3:.1f} ms", f"{cpu / size * 1e6:.2f} µs", exponent]
            cells += [f"{it['rss'] / 1e6:.1f} MB", bytes_per_op, count, ratio]
            print(f"| {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[10**3, 10**4, 10**5, 10**6], metavar="OPS")
    parser.add_argument("--profiles", nargs="+", choices=["repetitive", "distinct"], default=["repetitive", "distinct"])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--instructions", action="store_true", help="count instructions too (slow)")
    parser.add_argument("--instructions-up-to", type=int, default=10**5, metavar="OPS")
    parser.add_argument("--bir-opt", default=ROOT / "target" / "release" / "bir-opt", type=pathlib.Path)
    parser.add_argument("--mlir-opt", default=tools.mlir_opt())
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there too")
    parser.add_argument("--write", type=pathlib.Path, metavar="DIR", help="only write the modules there, in custom form")
    args = parser.parse_args()
    if args.write:
        args.write.mkdir(parents=True, exist_ok=True)
        for profile in args.profiles:
            for size in args.sizes:
                write_module(args.write / f"{profile}-{size}.bir", size, profile == "distinct")
        return
    if not args.bir_opt.exists():
        sys.exit(f"error: there is no {args.bir_opt}: cargo build --release")
    if args.instructions and not shutil.which("valgrind"):
        sys.exit("error: --instructions needs valgrind")
    if not args.mlir_opt:
        print("there is no mlir-opt: bir-opt alone (apt-get install mlir-19-tools)", file=sys.stderr)
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for profile in args.profiles:
            figures[profile] = {size: measured(profile, size, pathlib.Path(folder), args) for size in sorted(args.sizes)}
            table(profile, figures[profile])
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
