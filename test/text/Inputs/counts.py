"""counts.py KIND: a text that asks for too much, or spells something oddly."""

import sys

TEXTS = {
    "operands": '%v = "o.d"() : () -> i32\n"o.u"(' + ", ".join(["%v"] * 70000) + ") : (" + ", ".join(["i32"] * 70000) + ") -> ()\n",
    "results": '%v:70000 = "o.d"() : () -> (' + ", ".join(["i32"] * 70000) + ")\n",
    "negative": '%v:-1 = "o.d"() : () -> ()\n',
    "aliases": "#a0 = [1]\n" + "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(15)) + '"o.u"() {a = #a15} : () -> ()\n',
    "twice": "#a = 1\n#a = 2\n",
    "mark": "\ufeffbir.module @m {\n}\n",
    "bytes": '"o.u"() {a = "\\FF\\00"} : () -> ()\n',
    "name": '"bir.module"() ({\n"bir.func"() ({\n%0 = "bir.alloc"() {sym_name = "a b"} : () -> !bir.mem<sbuf, 1x1xf32>\n'
    '"bir.return"() : () -> ()\n}) {sym_name = "f"} : () -> ()\n}) {sym_name = "m"} : () -> ()\n',
}

sys.stdout.buffer.write(TEXTS[sys.argv[1]].encode())
