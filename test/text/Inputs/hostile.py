"""hostile.py KIND [N]: a text that tries a parser's limits, on standard output."""

import sys

LOCATIONS = "    %x = alloc dram<128x512xf32> {kind = input}\n    %t = alloc sbuf<128x512xf32>\n"


def module(body):
    return f"bir.module @hostile {{\n  bir.func @main {{\n{LOCATIONS}{body}  }}\n}}\n"


def brackets(n):
    """n nested brackets in one statement."""
    return module(f"    iota %t {{pattern = {'[' * n}{']' * n}}}\n")


def open_brackets(n):
    """n brackets that never close."""
    return module(f"    iota %t {{pattern = {'[' * n}\n")


def loops(n):
    """n loops inside each other."""
    heads = "".join(f"    loop %i{i} = 0 to 2 {{\n" for i in range(n))
    return module(f"{heads}    load %t <- %x\n" + "    }\n" * n)


def unclosed_loops(n):
    """n loops, none of which ends, and then the end of the file."""
    return "bir.module @hostile {\n  bir.func @main {\n" + "".join(f"    loop %i{i} = 0 to 2 {{\n" for i in range(n))


def regions(n):
    """n generic regions inside each other."""
    return '"t.a"() ({\n' * n + '"t.b"() : () -> ()\n' + "}) : () -> ()\n" * n


def blocks(n):
    """n blocks, each branching to the next."""
    return module("".join(f"    br ^b{i}\n  ^b{i}:\n" for i in range(n)) + "    load %t <- %x\n")


def long_name(n):
    """A name of n letters."""
    return module(f"    %{'n' * n} = register_move <- 1\n")


def long_line(n):
    """A comment of n letters, then a mistake."""
    return module(f"    load %t <- %x // {'c' * n}\n    load %t <- %y\n")


def long_string(n):
    """A string of n letters."""
    return module(f'    load %t <- %x {{x.note = "{"s" * n}"}}\n')


def long_list(n):
    """A list of n numbers."""
    return module(f"    load %t <- %x {{x.list = [{', '.join(map(str, range(n)))}]}}\n")


def digits(n):
    """A number of n digits."""
    return module(f"    memset %t <- {'9' * n}.0\n")


def operands(n):
    """A statement with n operands."""
    return module(f"    load %t <- {', '.join(['%x'] * n)}\n")


def errors(n):
    """n statements, each wrong in its own way."""
    return module("".join(f"    load %t <- %missing{i}\n" for i in range(n)))


if __name__ == "__main__":
    kinds = {name: it for name, it in globals().items() if callable(it) and name != "module"}
    sys.stdout.write(kinds[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 0))
