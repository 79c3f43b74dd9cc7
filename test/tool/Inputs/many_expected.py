"""many_expected.py N: a file with N errors, all expected."""

import sys

print("bir.module @many {\n  bir.func @main {")
for i in range(int(sys.argv[1])):
    print(f"    memset %missing{i} <- 1.0 // expected-error {{{{unknown value `%missing{i}`}}}}")
print("  }\n}")
