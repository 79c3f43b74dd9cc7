"""json_lines.py N: standard input is N lines, each a JSON object of a finding with a message and a place."""

import json
import sys

findings = [json.loads(line) for line in sys.stdin]
for finding in findings:
    assert finding["severity"] in ("error", "warning", "remark"), finding
    assert finding["message"] and "\n" not in finding["message"], finding
    assert finding["line"] >= 1 and finding["column"] >= 1 and finding["length"] >= 0, finding
sys.exit(0 if len(findings) == int(sys.argv[1]) else f"error: {len(findings)} findings")
