#!/usr/bin/python3
"""fuzz.py - give the tools damaged input files, and hold each answer to what is promised.

    fuzz.py --format F[=COUNT][,F...]|all --out DIR [--count N] [--seed S] [--jobs J] [--first N]

Every format is a module of formats/: it makes small right files once, changes one of them in one or a few places with its
outer integrity kept, and says which command reads it. Each case is a process of its own with limits of time and memory.
A tool accepts the file or refuses it: it never dies by a signal, hangs, ends with an exit code that the documentation
lacks or with 70, says nothing, or lets a library speak. Files for which it did are kept in DIR/bad with the command, and
the exit code is 1. Equal seeds give equal files. Needs ds-opt and ds-run on PATH.

Examples: fuzz.py --format mlir_text=3000 --out DIR --seed 7           many, which nobody has seen before
          fuzz.py --format mlir_text=1 --first 612 --out DIR --seed 7  one of them again
"""

import argparse
import concurrent.futures
import importlib
import os
import pkgutil
import random
import re
import shutil
import sys
from collections import Counter

import formats
from served import Tools

EXITS = {0, 2, 3, 4, 5, 6, 7, 8, 9, 75}
MEMORY, SECONDS = 3 << 30, 30
LONGEST = 20000  # characters of a message
# What a library says when nobody caught it, or how C++ spells its own things.
FORBIDDEN = re.compile(r"internal error|terminate called|what\(\)|json\.exception|nlohmann|LLVM ERROR|PLEASE submit a bug|"
                       r"Stack dump|Assertion|Sanitizer|runtime error|basic_string|vector::_M|std::|llvm::|mlir::|"
                       r"bad_alloc|frame #\d|0x[0-9a-f]{9}|<unknown>:0|Aborted|libgomp")


def judge(answer):
    """What is wrong with an answer, or None."""
    code, said = answer.code, answer.said
    if code == "hang":
        return f"no end within {SECONDS} s"
    if code not in EXITS:
        return said[-2000:] or "no message"
    if found := FORBIDDEN.search(said):
        return f"a message with {found.group(0)!r}: {said[-2000:]}"
    if len(said) > LONGEST:
        return f"{len(said)} characters of messages: {said[:500]}"
    if code != 0 and not re.search(r"\S", said):
        return "no message"
    return None


class Round:
    """The cases of one format."""

    def __init__(self, name, args, tools):
        self.name, self.args, self.tools = name, args, tools
        self.folder = os.path.join(args.out, name)
        self.bad = os.path.join(args.out, "bad")
        for folder in (os.path.join(self.folder, "seeds"), self.bad):
            os.makedirs(folder, exist_ok=True)
        self.format = importlib.import_module(f"formats.{name}").make(os.path.join(self.folder, "seeds"))
        for path in sorted(set(self.format.seeds)):
            answer = self.ask(path)
            if answer.code not in self.format.right or judge(answer):
                sys.exit(f"{name}: {path} as it is ends with {answer.code}: {judge(answer) or answer.said}")

    def ask(self, path):
        command, source = self.format.command(path)
        return self.tools.run(command, SECONDS, source=source, memory=MEMORY)

    def run(self, number):
        """(exit code, complaint or None) of case `number`."""
        draw = random.Random(f"{self.name} {self.args.seed} {number}")
        seed = draw.choice(self.format.seeds)
        with open(seed, "rb") as file:
            data = file.read()
        changed = self.format.change(draw, data, seed)
        path = os.path.join(self.folder, f"case-{number}-{os.path.basename(seed)}")
        with open(path, "wb") as file:
            file.write(changed)
        answer = self.ask(path)
        wrong = judge(answer)
        if wrong:
            kept = os.path.join(self.bad, f"{self.name}-{self.args.seed}-{number}-{os.path.basename(seed)}")
            shutil.copy(path, kept)
            said = " ".join(part.replace(path, kept) for part in self.format.command(path)[0])
            wrong = f"{self.name} {number}: exit {answer.code}: {said}\n  {wrong.strip()}"
        os.remove(path)
        return answer.code, wrong


def parse():
    known = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    known = [name for name in known if hasattr(importlib.import_module(f"formats.{name}"), "make")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", default="all", help=", ".join(known))
    parser.add_argument("--out", required=True)
    parser.add_argument("--count", type=int, default=60, help="cases of each format for which --format says no other number")
    parser.add_argument("--first", type=int, default=0, help="number of the first case: to see one again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-server", dest="served", action="store_false", help="load the tools anew for each file")
    args = parser.parse_args()
    args.counts = {}
    for part in args.format.split(","):
        name, _, count = part.partition("=")
        args.counts.update({each: int(count or args.count) for each in (known if name == "all" else [name])})
    args.out = os.path.abspath(args.out)
    return args


def main():
    args, complaints = parse(), 0
    os.makedirs(args.out, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"  # read before main, so by a server too
    tools = Tools(args.out, args.served)
    for name, count in args.counts.items():
        work, counts = Round(name, args, tools), Counter()
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for code, wrong in pool.map(work.run, range(args.first, args.first + count)):
                counts[str(code)] += 1
                if wrong:
                    complaints += 1
                    print(wrong, flush=True)
        print(f"{name}: {count} files: " + ", ".join(f"{counts[code]} x exit {code}" for code in sorted(counts)), flush=True)
    tools.close()
    print(f"{complaints} answers that the tools must not give")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
