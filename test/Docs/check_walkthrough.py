"""check_walkthrough.py - what docs/walkthrough.md shows is what ds-opt prints.

    check_walkthrough.py DS_OPT ROOT [--write]

Each excerpt of the page stands behind a line <!-- phase: P, from: TEXT, to: TEXT -->: the lines of the model in phase P
from the first that has the one text to the first after it that has the other. --write puts what is printed into the page.
"""

import pathlib
import re
import subprocess
import sys
import textwrap

# What a product's scratch memory takes is the processor's business, and with it where everything lies.
OF_THE_MACHINE = re.compile(r"\b(bytes|lower_bound|offset) \d+")
EXCERPT = re.compile(r"(<!-- phase: (\w+), from: (.+?), to: (.+?) -->\n```mlir\n)(.*?)(```\n)", re.S)


def print_phase(ds_opt, model, phase):
    """The lines of `model` in `phase`."""
    return subprocess.run([ds_opt, model, "--emit=ir", f"--phase={phase}", "--threads-per-rank", "1"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.splitlines()


def excerpt_of(lines, first, last):
    """What stands between two texts, both lines included, without its indentation; None where one is missing."""
    begin = next((index for index, line in enumerate(lines) if first in line), None)
    if begin is None:
        return None
    end = next((index for index, line in enumerate(lines[begin:], begin) if last in line), None)
    return None if end is None else textwrap.dedent("\n".join(lines[begin:end + 1]) + "\n")


def main():
    ds_opt, root = sys.argv[1], pathlib.Path(sys.argv[2])
    page, model = root / "docs/walkthrough.md", root / "test/Docs/Inputs/walkthrough.mlir"
    text, printed, faults = page.read_text(), {}, []

    def check(match):
        head, phase, first, last, shown, tail = match.groups()
        if phase not in printed:
            printed[phase] = print_phase(ds_opt, model, phase)
        found = excerpt_of(printed[phase], first, last)
        if found is None:
            faults.append(f"phase {phase} has no lines from '{first}' to '{last}'")
        elif OF_THE_MACHINE.sub(r"\1", found) != OF_THE_MACHINE.sub(r"\1", shown):
            faults.append(f"phase {phase}, from '{first}': the page shows\n{shown}and ds-opt prints\n{found}")
        return head + (found or shown) + tail

    rewritten = EXCERPT.sub(check, text)
    if "--write" in sys.argv:
        page.write_text(rewritten)
        return 0
    phases = set(printed)
    faults += [f"the page shows nothing of phase {phase}" for phase in
               ("model", "step", "sharded", "fused", "resident", "scheduled", "planned") if phase not in phases]
    print("\n".join(faults) or f"{len(EXCERPT.findall(text))} excerpts are what ds-opt prints")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
