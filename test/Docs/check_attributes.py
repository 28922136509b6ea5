"""check_attributes.py - attributes that no op declares are those of docs/architecture.md, and nothing is read by a string.

    check_attributes.py ROOT

A name such as "ds.phase" stands once in the compiler's sources, as a constant; docs/architecture.md has a row for each, and no more
than MOST. What an attribute holds is typed: it is an error to look for an entry of a dictionary by a string, or to set or get an
attribute by a string, or by anything but such a constant or what a dialect of MLIR calls its own.
"""

import pathlib
import re
import sys

MOST = 12
FOLDERS = ("include/ds/Analysis", "include/ds/Codegen", "include/ds/Dialect", "include/ds/Passes", "include/ds/Planner", "include/ds/Report",
           "lib/Analysis", "lib/Codegen", "lib/Dialect", "lib/Import/Hf", "lib/Passes", "lib/Planner", "lib/Report", "tools/ds-opt")
NAME = re.compile(r'"(ds\.[a-z_]+)"')
CONSTANT = re.compile(r'constexpr (?:llvm::)?StringLiteral k\w+ = "(ds\.[a-z_]+)";')
DECLARED = re.compile(r'constexpr (?:llvm::)?StringLiteral (k\w+) = "ds\.[a-z_]+";')
ROW = re.compile(r"^\| `(ds\.[a-z_]+)` \|", re.M)
BY_STRING = re.compile(r'\bgetAs<\w+>\(|\bgetNamed\(|(?:getAttrOfType|cast|cast_or_null|isa|getAsRange)<(?:mlir::)?DictionaryAttr>')
# Calls that take the name of an attribute, and which of their arguments it is.
ACCESS = re.compile(r"(?:->|\.)(?:(?:get|set|has|remove|getDiscardable|setDiscardable|hasDiscardable|removeDiscardable)Attr(?:OfType<[\w:]+>)?"
                    r"|(?P<second>(?:get|set|remove)(?:Arg|Result)Attr(?:OfType<[\w:]+>)?))\(")
OF_MLIR = re.compile(r"\w+(?:::\w+)*::get\w+AttrName\(\)")


def arguments_of(text, begin):
    """The arguments of the call whose opening bracket ends at `begin`."""
    depth, start, found = 1, begin, []
    for index in range(begin, len(text)):
        depth += (text[index] in "([{") - (text[index] in ")]}")
        if depth == 0 or (depth == 1 and text[index] == ","):
            found.append(" ".join(text[start:index].split()))
            start = index + 1
        if depth == 0:
            break
    return [argument for argument in found if argument]


def accesses_of(name, text, constants):
    """Complains of names of attributes that no constant declares."""
    for call in ACCESS.finditer(text):
        arguments = arguments_of(text, call.end())
        place = 1 if call.group("second") else 0
        if len(arguments) <= place or OF_MLIR.fullmatch(arguments[place]) or arguments[place].split("::")[-1] in constants:
            continue
        yield f"{name}:{text.count(chr(10), 0, call.start()) + 1}: {arguments[place]} names an attribute that no constant declares"


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
    listed, declared, faults = set(ROW.findall((root / "docs/architecture.md").read_text())), set(), []
    texts = {path.relative_to(root): path.read_text() for folder in FOLDERS for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".h", ".cpp", ".td")}
    constants = {constant for text in texts.values() for constant in DECLARED.findall(text)}
    for name, text in texts.items():
        faults += faults_of(name, text, declared)
        faults += accesses_of(name, text, constants)
    faults += [f"docs/architecture.md has no row for {name}" for name in sorted(declared - listed)]
    faults += [f"docs/architecture.md has a row for {name}, which nothing declares" for name in sorted(listed - declared)]
    if len(declared) > MOST:
        faults.append(f"{len(declared)} attributes that no op declares, but at most {MOST} may be")
    print("\n".join(map(str, faults)) if faults else f"{len(declared)} attributes of {len(texts)} files are all listed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
