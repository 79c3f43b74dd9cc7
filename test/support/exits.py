"""exits.py STATUS COMMAND...: run the command with our streams; succeed if it exits with exactly that status."""

import subprocess
import sys

wanted, command = int(sys.argv[1]), sys.argv[2:]
status = subprocess.run(command).returncode
if status != wanted:
    sys.exit(f"error: exit status {status}, expected {wanted}, of: {' '.join(command)}")
