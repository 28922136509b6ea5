#!/usr/bin/python3
"""list_operators.py - write docs/operators.md: what ds-import reads, what of it has a gradient, and where it is tested.

    list_operators.py IMPORTER > docs/operators.md

An operator is tested by the families of check_operators.py whose traces have it, by scripted code, or by the table of
edges. How much of core ATen that is, is counted by names: one of several overloads counts as all of them, and what only
makes gradients, which compiling does itself, is left out.
"""

import os
import subprocess
import sys
import tempfile
import warnings

import check_edges
import check_operators

HEAD = """# Operators of TorchScript

Generated: `test/Import/list_operators.py ds-import > docs/operators.md`. In-place forms (`add_`) count as well, and what is known at
the import (sizes, masks, position tables) may be made by any operator of LibTorch.

**Core ATen: {covered} of {total} names ({percent} %)**, without those that only make gradients. Missing: {missing}.

| operator | gradient | tested by |
|---|---|---|"""


def families_of(folder):
    """{operator: the families whose traces have it}"""
    found = {}
    for family, cases in check_operators.CASES.items():
        for node in check_operators.save(cases, folder)[1].inlined_graph.nodes():
            name = node.kind()
            found.setdefault(name[:-1] if name.endswith("_") and not name.endswith("__") else name, set()).add(family)
    return found


def main():
    importer, = sys.argv[1:]
    warnings.simplefilter("ignore")
    listed = subprocess.run([importer, "--list-operators"], stdout=subprocess.PIPE, check=True).stdout.decode().split()
    listed = [name for name in listed if name.startswith("aten::")]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "core_aten.txt")) as file:
        core = file.read().split()
    missing = [name for name in core if f"aten::{name}" not in listed]
    print(HEAD.format(covered=len(core) - len(missing), total=len(core), percent=round(100 * (1 - len(missing) / len(core))),
                      missing=", ".join(f"`{name}`" for name in missing)))
    with tempfile.TemporaryDirectory() as folder:
        families = families_of(folder)
    for name in listed:
        tested = sorted(families.get(name, set())) + (["scripted"] if name in check_operators.SCRIPTED else [])
        gradient = "none" if name in check_edges.WITHOUT_GRADIENT else "yes"
        print(f"| `{name[len('aten::'):]}` | {gradient} | {', '.join(tested)} |")


if __name__ == "__main__":
    main()
