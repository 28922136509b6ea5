"""check_sizes.py ROOT - the sizes of docs/limits.md are those of the sources."""

import re
import sys
from pathlib import Path

ROW = re.compile(r"^\| [^|]+ \| ([^|]+) \| `([^`]+)`: `(\w+)` \|$", re.M)
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}


def written(text):
    """"2^31 - 1", "16 MiB" or "4096" as a number."""
    number, _, unit = text.partition(" ")
    if unit in UNITS:
        return int(number) * UNITS[unit]
    return eval(text.replace("^", "**"), {"__builtins__": {}})


def in_source(path, name):
    """The constant's value; None where it is not there. What C++ writes around the numbers goes."""
    found = re.search(rf"\b{name} = ([^;]+?)(?:;|, k[A-Z])", path.read_text()) if path.is_file() else None
    if not found:
        return None
    text = re.sub(r"//.*|\b(?:u?int\d+_t|size_t|off_t)\b|'", "", found.group(1)).replace("{", "(").replace("}", ")")
    text = re.sub(r"\((\d+)\)|(?<=\d)u\b", lambda part: part.group(1) or "", text)
    return eval(text, {"__builtins__": {}})


def main():
    root = Path(sys.argv[1])
    rows = ROW.findall((root / "docs/limits.md").read_text())
    faults = []
    for value, path, name in rows:
        found = in_source(root / path, name)
        if found != written(value):
            faults.append(f"{path}: {name} is {found}, the page says {value}")
    print("\n".join(faults) or f"{len(rows)} sizes are those of the sources")
    return 1 if faults or len(rows) < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
