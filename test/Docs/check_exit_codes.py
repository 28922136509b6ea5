#!/usr/bin/python3
"""check_exit_codes.py ROOT - the table of docs/exit-codes.md has the codes of Error.h, and those that restarts try again."""

import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
header = (root / "include/ds/Support/Error.h").read_text()
names = dict(re.findall(r"^  (\w+) = (\d+),", header, re.MULTILINE))
policy = (root / "lib/Runtime/Training/Restarts.cpp").read_text()
again = {names[name] for name in re.findall(r"case ExitCode::(\w+):", policy)}
rows = {row[0]: row[-1] for row in ([cell.strip() for cell in line.strip("|").split("|")] for line in
                                    (root / "docs/exit-codes.md").read_text().splitlines()
                                    if re.match(r"\| \d+ \|", line))}
complaints = [f"no row for {code}" for code in names.values() if code not in rows]
complaints += [f"no such code: {code}" for code in rows if code not in names.values()]
complaints += [f"code {code}: restarts '{said}'" for code, said in rows.items() if (said == "yes") != (code in again)]
if complaints:
    sys.exit("\n".join(complaints))
print(f"{len(rows)} codes, each with its row")
