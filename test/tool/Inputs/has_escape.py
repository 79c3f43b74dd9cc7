"""Succeeds if standard input holds a terminal escape."""

import sys

sys.exit("\x1b[" not in sys.stdin.read())
