"""sections.py FILE FOLDER: writes each part of the file between `#--- name` and `#--- end` to FOLDER/name."""

import pathlib
import sys

folder = pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
name, lines = None, []
for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines(keepends=True):
    if line.startswith("#--- "):
        if name:
            (folder / name).write_text("".join(lines), encoding="utf-8")
        name, lines = line.split()[1], []
        name = None if name == "end" else name
    elif name:
        lines.append(line)
