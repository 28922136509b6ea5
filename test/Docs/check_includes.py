"""check_includes.py - a room includes what docs/architecture.md lets it include.

    check_includes.py ROOT

Reads the table there and every #include of include/, kernels/, lib/ and tools/. Each folder with sources is a room: lib/X
and include/ds/X are X, kernels/ and include/ds/Kernels are kernels. Names each include that is not allowed, each room that
the table lacks, each that it has and the tree has not, and a circle of rooms that the table would allow.
"""

import pathlib
import re
import sys

EVERYWHERE = {"Support"}
INCLUDE = re.compile(r'^#\s*include "([^"]+)"', re.M)
ROW = re.compile(r"^\| ((?:[A-Z]\w*|kernels|tools)(?:/[\w-]+)*) \| [^|]+ \| ?([^|]*) ?\|$", re.M)
SEARCHED = ("lib/Passes", "lib/Runtime", "lib/Codegen", "lib/Analysis", "tools/ds-opt")  # where targets look, beside their folder


def room_of(path):
    """The room of a path below ROOT: "Passes/Model" of lib/Passes/Model/SinkLoss.cpp; None outside of all."""
    parts = path.parent.parts
    if not parts or parts == ("include", "ds"):
        return None
    room = {"include": parts[2:], "lib": parts[1:], "kernels": parts, "tools": parts}.get(parts[0])
    return "/".join(room).replace("Kernels", "kernels") if room else None


def read_table(root):
    """Room to the set of rooms that it may include."""
    rows = ROW.findall((root / "docs/architecture.md").read_text())
    table = {room: {name.strip() for name in names.split(",") if name.strip()} for room, names in rows}
    for room, names in table.items():
        names |= EVERYWHERE - {room}
        if room.startswith("Passes/"):
            names |= {"Passes", "Passes/Support"} - {room}
    return table


def target_of(root, path, name):
    """The room that #include "name" in the file `path` leads to; None for headers of others."""
    if name.startswith("ds/"):
        return room_of(pathlib.Path("include") / name)
    for folder in (path.parent, *(root / room for room in SEARCHED)):
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
    for name in INCLUDE.findall(path.read_text()):
        target = target_of(root, path, name)
        if target and target != room and target not in table[room]:
            yield f"{path.relative_to(root)}: {room} may not include {target} ({name})"


def find_circle(table):
    """Rooms of which each may include the next, and the last the first; empty where there is none."""
    done = set()

    def walk(room, above):
        if room in above:
            return [*above[above.index(room):], room]
        if room in done:
            return []
        for name in sorted(table.get(room, ())):
            circle = walk(name, [*above, room])
            if circle:
                return circle
        done.add(room)
        return []

    return next(filter(None, (walk(room, []) for room in sorted(table))), [])


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    table = read_table(root)
    files = [path for folder in ("include", "kernels", "lib", "tools") for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".cpp", ".h", ".cu") and path.is_file()]
    faults = [fault for path in files for fault in faults_of(root, path, table)]
    rooms = {room_of(path.relative_to(root)) for path in files}
    faults += [f"docs/architecture.md has a room {room} that the tree has not" for room in sorted(set(table) - rooms)]
    circle = find_circle(table)
    if circle:
        faults.append(f"docs/architecture.md allows a circle of rooms: {' -> '.join(circle)}")
    print("\n".join(faults) or f"{len(files)} files include only what they may")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
