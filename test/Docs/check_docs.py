#!/usr/bin/python3
"""check_docs.py - what the descriptions of ops and passes show must be what the tests show.

Ops: the example of each description is a line, or lines, that ds-opt prints for the *ops.mlir of test/Dialect; white
space and the names of values do not count.  Passes: each has a description with Requires, Ensures and an example (a
verifier only Requires), and a test of its own name that runs it.  Epilogues of products: each has a row in the
description of ds.matmul, and a product that is printed.

    check_docs.py ROOT < what ds-opt prints for them
"""

import pathlib
import re
import sys


def canonical(text):
    """Without white space, and with values numbered in order of appearance."""
    names = {}
    text = re.sub(r"%[\w#]+(?::\d+)?", lambda found: names.setdefault(found.group(0), f"%{len(names)}"), text)
    return re.sub(r"\s+", "", text)


def definitions(folder, pattern):
    """(name, body) of each TableGen definition that `pattern` matches."""
    for path in sorted(folder.glob("*.td")):
        parts = re.split(r"(?m)^def ", path.read_text())[1:]
        for part in parts:
            found = re.match(pattern, part)
            if found:
                yield found.group(1), part


def example_of(body):
    """The example of an op's description, or None."""
    found = re.search(r"Example:\s*(?:```\n(.*?)```|`(.*?)`)", body, re.S)
    return found and (found.group(1) or found.group(2))


def check_ops(root, printed):
    lines = [line for line in printed.splitlines() if line.strip()]
    for name, body in definitions(root / "include/ds/Dialect", r'\w+ : Ds_\w*Op<"(\w+)"'):
        example = example_of(body)
        if not example:
            yield f"ds.{name}: the description has no example"
            continue
        length = len([line for line in example.splitlines() if line.strip()])
        shown = (canonical("\n".join(lines[start:start + length])) for start in range(len(lines)))
        if canonical(example) not in shown:
            yield f"ds.{name}: ds-opt prints nothing like the example of the description:\n    {example.strip()}"


def check_epilogues(root, printed):
    dialect = root / "include/ds/Dialect"
    words = re.findall(r'EnumAttrCase<"\w+", \d+, "(\w+)">', dict(definitions(dialect, r"(Ds_Epilogue) :"))["Ds_Epilogue"])
    matmul = dict(definitions(dialect, r"(Ds_MatmulOp) :"))["Ds_MatmulOp"]
    for word in words:
        if f"| `{word}`" not in matmul:
            yield f"epilogue({word}): the description of ds.matmul has no row for it"
        if word != "none" and f"epilogue({word})" not in printed:
            yield f"epilogue({word}): ds-opt prints no product with it"


def check_passes(root):
    for name, body in definitions(root / "include/ds/Passes", r'\w+ : Pass<"ds-([\w-]+)"'):
        sections = ("Requires:",) if name.startswith("verify-") else ("Requires:", "Ensures:", "```")
        for section in sections:
            if section not in body:
                yield f"ds-{name}: the description has no {section}"
        tests = list((root / "test/Passes").glob(f"*/{name}.mlir"))
        if not any(re.search(rf"RUN:.*\bds-{name}\b", test.read_text()) for test in tests):
            yield f"ds-{name}: test/Passes/PHASE/{name}.mlir is missing or does not run it"


def main():
    root = pathlib.Path(sys.argv[1])
    printed = sys.stdin.read()
    faults = [*check_ops(root, printed), *check_epilogues(root, printed), *check_passes(root)]
    print("\n".join(faults) or "every op and every pass is shown")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
