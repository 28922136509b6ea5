#!/usr/bin/python3
"""fuzz.py - give the tools damaged input files, and hold each answer to what is promised.

    fuzz.py --format F[,F...]|all --out DIR [--count N] [--seed S] [--jobs J] [--first N]

Every format is a module of formats/: it makes small right files once, changes one of them in one or a few places with its
outer integrity kept, and says which command reads it. Each case is a process of its own with limits of time and memory.
A tool accepts the file or refuses it: it never dies by a signal, hangs, ends with an exit code that the documentation
lacks or with 70, says nothing, or lets a library speak. Files for which it did are kept in DIR/bad with the command, and
the exit code is 1. Equal seeds give equal files. Needs ds-opt and ds-run on PATH.
"""

import argparse
import concurrent.futures
import importlib
import os
import pkgutil
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter

import formats

EXITS = {0, 2, 3, 4, 5, 6, 7, 8, 9, 75}
MEMORY, SECONDS = 3 << 30, 30
LONGEST = 20000  # characters of a message
# What a library says when nobody caught it, or how C++ spells its own things.
FORBIDDEN = re.compile(r"internal error|terminate called|what\(\)|json\.exception|nlohmann|LLVM ERROR|PLEASE submit a bug|"
                       r"Stack dump|Assertion|Sanitizer|runtime error|basic_string|vector::_M|std::|llvm::|mlir::|"
                       r"bad_alloc|frame #\d|0x[0-9a-f]{9}|<unknown>:0|Aborted|libgomp")


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    os.setsid()


def judge(command, source=None):
    """(exit code, or "hang"; what is wrong with the answer, or None)."""
    stdin = open(source, "rb") if source else subprocess.DEVNULL
    child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit,
                             env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        printed, said = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return "hang", f"no end within {SECONDS} s"
    finally:
        if source:
            stdin.close()
    said, code = said.decode(errors="replace"), child.returncode
    if code not in EXITS:
        return code, said[-2000:] or "no message"
    if found := FORBIDDEN.search(said):
        return code, f"a message with {found.group(0)!r}: {said[-2000:]}"
    if len(said) > LONGEST:
        return code, f"{len(said)} characters of messages: {said[:500]}"
    if code != 0 and not re.search(r"\S", said):
        return code, "no message"
    return code, None


class Round:
    """The cases of one format."""

    def __init__(self, name, args):
        self.name, self.args = name, args
        self.folder = os.path.join(args.out, name)
        self.bad = os.path.join(args.out, "bad")
        for folder in (os.path.join(self.folder, "seeds"), self.bad):
            os.makedirs(folder, exist_ok=True)
        self.format = importlib.import_module(f"formats.{name}").make(os.path.join(self.folder, "seeds"))
        for path in sorted(set(self.format.seeds)):
            code, wrong = judge(*self.format.command(path))
            if code not in self.format.right or wrong:
                sys.exit(f"{name}: {path} as it is ends with {code}: {wrong}")

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
        command, source = self.format.command(path)
        code, wrong = judge(command, source)
        if wrong:
            kept = os.path.join(self.bad, f"{self.name}-{self.args.seed}-{number}-{os.path.basename(seed)}")
            shutil.copy(path, kept)
            said = " ".join(part.replace(path, kept) for part in command)
            wrong = f"{self.name} {number}: exit {code}: {said}\n  {wrong.strip()}"
        os.remove(path)
        return code, wrong


def parse():
    known = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", default="all", help=", ".join(known))
    parser.add_argument("--out", required=True)
    parser.add_argument("--count", type=int, default=60, help="cases of each format")
    parser.add_argument("--first", type=int, default=0, help="number of the first case: to see one again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.names = known if args.format == "all" else args.format.split(",")
    args.out = os.path.abspath(args.out)
    return args


def main():
    args, complaints = parse(), 0
    for name in args.names:
        work, counts = Round(name, args), Counter()
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for code, wrong in pool.map(work.run, range(args.first, args.first + args.count)):
                counts[str(code)] += 1
                if wrong:
                    complaints += 1
                    print(wrong, flush=True)
        print(f"{name}: {args.count} files: " + ", ".join(f"{counts[code]} x exit {code}" for code in sorted(counts)), flush=True)
    print(f"{complaints} answers that the tools must not give")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
