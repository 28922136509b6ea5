"""check_attributes.py - attributes that no op declares are those of docs/architecture.md, and no dictionary is read by a string.

    check_attributes.py ROOT

A name such as "ds.phase" stands once in the compiler's sources, as a constant; docs/architecture.md has a row for each, and no more
than 13. What an attribute holds is typed: it is an error to look for an entry of a dictionary by a string, or to set or get an
attribute by one that begins with "ds.".
"""

import pathlib
import re
import sys

MOST = 13
FOLDERS = ("include/ds/Dialect", "include/ds/Passes", "include/ds/Planner", "lib/Dialect", "lib/Passes", "lib/Planner", "lib/Import/Hf",
           "lib/Codegen", "tools/ds-opt")
NAME = re.compile(r'"(ds\.[a-z_]+)"')
CONSTANT = re.compile(r'constexpr (?:llvm::)?StringLiteral k\w+ = "(ds\.[a-z_]+)";')
ROW = re.compile(r"^\| `(ds\.[a-z_]+)` \|", re.M)
BY_STRING = re.compile(r'\bgetAs<\w+>\("|\bgetNamed\("|(?:getAttrOfType|cast|cast_or_null|isa|getAsRange)<(?:mlir::)?DictionaryAttr>')


def faults_of(name, text, declared):
    for number, line in enumerate(text.splitlines(), 1):
        constant = CONSTANT.search(line)
        if constant:
            if constant.group(1) in declared:
                yield f"{name}:{number}: {constant.group(1)} is declared twice"
            declared.add(constant.group(1))
        elif NAME.search(line):
            yield f"{name}:{number}: {NAME.search(line).group(1)} is spelled beside its constant"
        if BY_STRING.search(line):
            yield f"{name}:{number}: reads a dictionary by a string"


def main():
    root = pathlib.Path(sys.argv[1])
    listed, declared, faults, count = set(ROW.findall((root / "docs/architecture.md").read_text())), set(), [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".td"):
                faults += faults_of(path.relative_to(root), path.read_text(), declared)
                count += 1
    faults += [f"docs/architecture.md has no row for {name}" for name in sorted(declared - listed)]
    faults += [f"docs/architecture.md has a row for {name}, which nothing declares" for name in sorted(listed - declared)]
    if len(declared) > MOST:
        faults.append(f"{len(declared)} attributes that no op declares, but at most {MOST} may be")
    print("\n".join(map(str, faults)) if faults else f"{len(declared)} attributes of {count} files are all listed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
