"""check_includes.py - a room includes what docs/architecture.md lets it include.

    check_includes.py ROOT

Reads the table there and every #include of include/, lib/ and tools/. Names each include that is not allowed, each
room that the table lacks, and each that it has and the tree has not.
"""

import pathlib
import re
import sys

EVERYWHERE = {"Support"}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def room_of(path):
    """The room of a path below ROOT: "Passes/Model" of lib/Passes/Model/SinkLoss.cpp; None outside of all."""
    parts = path.parts
    if parts[0] == "include":
        return parts[2] if len(parts) > 3 else None
    if parts[0] == "tools":
        return "/".join(parts[:2]) if len(parts) > 2 else None
    if parts[0] != "lib":
        return None
    nested = parts[1] in ("Passes", "Import") and len(parts) > 3
    return "/".join(parts[1:3]) if nested else parts[1]


def read_table(root):
    """Room to the set of rooms that it may include."""
    text = (root / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| ([A-Z]\w*(?:/\w+)?|tools/[\w-]+) \| [^|]+ \| ?([^|]*) ?\|$", text, re.M)
    return {room: {name.strip() for name in names.split(",") if name.strip()} for room, names in rows}


def target_of(root, path, name):
    """The room that #include "name" in the file `path` leads to; None for headers of others."""
    if name.startswith("ds/"):
        return room_of(pathlib.Path("include") / name)
    for folder in (path.parent, *(root / "lib" / room for room in ("Passes", "Runtime", "Codegen"))):
        found = (folder / name).resolve()
        if found.is_file() and found.is_relative_to(root):
            return room_of(found.relative_to(root))
    return None


def faults_of(root, path, table):
    room = room_of(path.relative_to(root))
    if room is None:
        return
    if room not in table:
        yield f"{path.relative_to(root)}: docs/architecture.md has no room {room}"
        return
    allowed = table[room] | EVERYWHERE | {room}
    if room.startswith("Passes/"):
        allowed |= {"Passes", "Passes/Support"}
    for name in INCLUDE.findall(path.read_text()):
        target = target_of(root, path, name)
        if target and target not in allowed:
            yield f"{path.relative_to(root)}: {room} may not include {target} ({name})"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    table = read_table(root)
    files = [path for folder in ("include", "lib", "tools") for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".cpp", ".h") and path.is_file()]
    faults = [fault for path in files for fault in faults_of(root, path, table)]
    rooms = {room_of(path.relative_to(root)) for path in files}
    faults += [f"docs/architecture.md has a room {room} that the tree has not" for room in sorted(set(table) - rooms)]
    print("\n".join(faults) or f"{len(files)} files include only what they may")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
