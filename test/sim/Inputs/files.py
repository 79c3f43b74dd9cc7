"""Arrays that are wrong in every way, for inputs-invalid.test; and good ones: files.py DIR"""

import pathlib
import sys
import zipfile

import numpy as np

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
good = np.arange(32, dtype=np.float32).reshape(4, 8)
np.save(out / "good.npy", good)
np.save(out / "fortran.npy", np.asfortranarray(good))
np.save(out / "shape.npy", good.reshape(8, 4))
np.save(out / "dtype.npy", good.astype(np.float64))
np.save(out / "int.npy", good.astype(np.int32))
np.save(out / "big-endian.npy", good.astype(">f4"))
np.save(out / "strings.npy", np.array(["a"]))
(out / "truncated.npy").write_bytes((out / "good.npy").read_bytes()[:-5])
(out / "header.npy").write_bytes((out / "good.npy").read_bytes()[:20])
(out / "text.npy").write_text("hello")
np.savez(out / "good.npz", x=good)
np.savez(out / "unknown.npz", z=good)
rows = np.arange(31, -1, -1, dtype=np.int32).reshape(32, 1) % 16
np.save(out / "rows.npy", rows)
# Powers of two as f8e8m0fnu has them: 2^1, 2^0 and 2^-127.
np.save(out / "two.npy", np.full((1, 4), 0x80, np.uint8))
np.save(out / "one.npy", np.full((1, 4), 0x7F, np.uint8))
np.save(out / "least.npy", np.full((1, 4), 0x00, np.uint8))
np.savez(out / "rows.npz", rows=rows)
huge = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 8), }".ljust(117) + b"\n"
(out / "huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(huge).to_bytes(2, "little") + huge)
# A header that claims 4 GiB, and one that is all brackets.
(out / "header-size.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{")
(out / "brackets.npy").write_bytes(b"\x93NUMPY\x01\x00" + (60000).to_bytes(2, "little") + b"(" * 60000)
(out / "long.npy").write_bytes(b"\x93NUMPY\x01\x00" + (6000).to_bytes(2, "little") + b"x" * 6000)
nested = (b"{'descr': " + b"[" * 30 + b"]" * 30 + b", 'fortran_order': False, 'shape': (4, 8), }").ljust(117) + b"\n"
(out / "nested.npy").write_bytes(b"\x93NUMPY\x02\x00" + len(nested).to_bytes(4, "little") + nested)
with zipfile.ZipFile(out / "percent.npz", "w") as archive:
    archive.writestr("%x.npy", (out / "good.npy").read_bytes())
(out / "cut.npz").write_bytes((out / "good.npz").read_bytes()[:-30])
# For narrow.bir.
np.save(out / "f16.npy", good.astype(np.float16))
np.save(out / "u16.npy", good.astype(np.uint16))
np.save(out / "bytes.npy", good.astype(np.uint8))
np.save(out / "truth.npy", good != 0)
# What double.bir makes of them is one unit away, and a NaN of other bits.
np.save(out / "near.npy", np.nextafter(good + good, np.float32(np.inf)))
np.save(out / "nan.npy", np.full((4, 8), np.nan, np.float32))
np.save(out / "payload.npy", np.full((4, 8), 0x7FC12345, np.uint32).view(np.float32))
