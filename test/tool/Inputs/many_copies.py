"""many_copies.py BIR_OPT FOLDER: 64 copies of the tool in one folder, writing the same files, with any number of threads."""

import pathlib
import shutil
import subprocess
import sys

bir_opt, folder = sys.argv[1], pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)

functions = [
    f"""bir.func @f{n} {{
    %x = alloc dram<{n + 2}x64xf32> {{kind = input}}
    %y = alloc dram<{n + 2}x64xf32> {{kind = output}}
    %r = register_move <- {n}
    loop %i = 0 to {n + 2} {{
      dma_copy %y[%i, :] <- %x[%i, :]
    }}
    loop %j = 0 to %r {{
      nop
    }}
  }}"""
    for n in range(24)
]
(folder / "in.bir").write_text("bir.module @m {\n  " + "\n  ".join(functions) + "\n}\n")

flags = ["in.bir", "--unroll", "--canonicalize-names", "--print-stats", "--print-memory-map=file=map.txt", "-o", "out.bir"]
copies = [
    subprocess.Popen(
        [bir_opt, *flags, f"--threads={n % 8 + 1}"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )
    for n in range(64)
]
results = {(copy.communicate(), copy.returncode) for copy in copies}
if len(results) != 1:
    sys.exit("the copies differ: " + "\n---\n".join(map(repr, results)))
((_, reports), status), = results
if status != 0:
    sys.exit(f"exit status {status}\n{reports}")

alone = subprocess.run([bir_opt, *flags[:-1], "-", "--threads=1"], cwd=folder, capture_output=True, encoding="utf-8")
if alone.stdout != (folder / "out.bir").read_text():
    sys.exit("what the copies left is not what one of them alone prints")
left = sorted(path.name for path in folder.iterdir())
wanted = sorted(["in.bir", "out.bir"] + [f"map.f{n}.txt" for n in range(24)])
if left != wanted:
    sys.exit(f"files are left over: {left}")
