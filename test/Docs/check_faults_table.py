#!/usr/bin/python3
"""check_faults_table.py - docs/faults.md has all rows, and the tests that it names exist.

    check_faults_table.py ROOT
"""

import pathlib
import re
import sys

ROWS, COLUMNS = 32, 6
STATES = ("checked", "partly", "not yet", "see checkpoints")


def complaints_of(number, cells, root):
    """What is wrong with the row that should have `number`."""
    if len(cells) != COLUMNS:
        return [f"row {number} has {len(cells)} columns, not {COLUMNS}"]
    found = [] if cells[0] == str(number) else [f"row {cells[0]} stands where {number} should"]
    tests, state = cells[4], cells[5]
    names = re.findall(r"`([^`]+)`", tests)
    found += [f"row {number} names {name}, which does not exist" for name in names if not (root / name).is_file()]
    found += [f"row {number} names {name}, which is no test" for name in names if not name.startswith(("test/", "unittests/"))]
    if re.sub(r"`[^`]+`", "", tests).strip():
        found.append(f"row {number} has more than names among its tests")
    if not state.startswith(STATES):
        found.append(f"row {number} is '{state}', which is none of: {', '.join(STATES)}")
    if state.startswith(("checked", "partly")) and not names:
        found.append(f"row {number} is {state}, but no test shows it")
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    text = (root / "docs/faults.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if re.match(r"\| *\d", line)]
    complaints = [] if len(rows) == ROWS else [f"{len(rows)} rows, not {ROWS}"]
    for number, cells in enumerate(rows, 1):
        complaints += complaints_of(number, cells, root)
    print("\n".join(complaints) if complaints else f"{len(rows)} faults, and every test that they name is there")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
