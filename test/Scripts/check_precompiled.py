"""check_precompiled.py - a build with precompiled headers means what one without them means.

    check_precompiled.py ROOT

With DS_PRECOMPILE every file, of tests too, sees the headers of DS_MLIR_HEADERS (cmake/DsTargets.cmake), also those
that it does not include. A file's own `static` helper of the same name as one of their functions is then passed over:
within a member of mlir::ds the name is found in mlir::ds first, and an argument that converts makes it another call,
without a warning. A function of a namespace that the file neither opens nor uses is not found there, and beside one of
the helper's own namespace the helper is an overload.
Names each such helper.
"""

import pathlib
import re
import sys

# Functions begin at a line's begin, in headers and in files alike (.clang-format).
DECLARED = re.compile(r"^[A-Za-z_][\w:<>,&* ]*[ &*](\w+)\(", re.M)
NAMESPACE = re.compile(r"^(?:namespace ([\w:]+) \{|\} // namespace ([\w:]+))$", re.M)
STATIC = re.compile(r"^(?:template <[^\n]*>\s*)?static [^;={(]*?[ &*](\w+)\(", re.M)


def find_headers(root):
    """The headers of this project that are precompiled, with those that they include."""
    listed = re.search(r"set\(DS_MLIR_HEADERS ([^)]*)\)", (root / "cmake/DsTargets.cmake").read_text())
    waiting = re.findall(r"<(ds/[^>]+)>", listed.group(1))
    found = {}
    while waiting:
        header = waiting.pop()
        path = root / "include" / header
        if header not in found and path.is_file():
            found[header] = path.read_text()
            waiting += re.findall(r'^#include "(ds/[^"]+)"', found[header], re.M)
    return found


def namespace_at(text, place):
    """The named namespace that is open at `place`; empty outside of all."""
    opened = ""
    for match in NAMESPACE.finditer(text, 0, place):
        opened = match.group(1) or ""
    return opened


def find_functions(root):
    """Name to the (header, namespace) of each function of that name."""
    declared = {}
    for header, text in find_headers(root).items():
        for match in DECLARED.finditer(text):
            declared.setdefault(match.group(1), []).append((header, namespace_at(text, match.start())))
    return declared


def main():
    root = pathlib.Path(sys.argv[1])
    declared = find_functions(root)
    faults = []
    for path in sorted([*(root / "lib").rglob("*.cpp"), *(root / "unittests").rglob("*.cpp")]):
        text = path.read_text()
        for match in STATIC.finditer(text):
            own = namespace_at(text, match.start())
            for header, namespace in declared.get(match.group(1), []):
                if namespace != own and re.search(rf"^(?:using )?namespace {namespace}(?:;| \{{)", text, re.M):
                    faults.append(f"{path.relative_to(root)}: {match.group(1)} is also in {header}, which may be precompiled")
    print("\n".join(faults) or f"no helper has one of {len(declared)} precompiled names")
    return 1 if faults else 0


sys.exit(main())
