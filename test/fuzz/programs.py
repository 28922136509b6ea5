#!/usr/bin/python3
"""programs.py - give ds-run program files that are changed and of which the checksum is right.

    programs.py --out DIR [--seeds NAME,...] [--fields PATTERN] [--count N] [--seed S] [--jobs N] [--fake LIBRARY]

Compiles small programs (once: DIR/seeds is kept), and runs one step of each mutation of them in a process of its own, with
limits of time and memory. Half of the mutations are of one field. The fields come from lib/Runtime/Program/program.fbs, so
that a new one is covered at once: every number, flag, string and list, those that the file leaves out because they have
their default included. Machine code is trusted: of `image` and `cubin` only the length changes. The other half is of what
tables say together (program_structure.py): the order of commands and messages, partners, groups, axes, stages, events.

Whatever is changed, ds-run refuses the file by name or runs it: it never dies by a signal, hangs, says that it has an
internal error, or lets a library speak. So does program-player, which has programs of several stages. Files for which they
did are kept in DIR/bad, and the exit code is 1. Equal seeds and programs give equal files. Needs flatc, ds-opt and ds-run on
PATH, and PyTorch for the seeds that are exported.

Examples: programs.py --out DIR --count 10000 --seed 7      many, which nobody has seen before
          programs.py --out DIR --seed 7 --first 612 --count 1    one of them again
"""

import argparse
import concurrent.futures
import os
import random
import re
import shutil
import sys
from collections import Counter

from program_changes import mutate
from program_tree import Program
from seeds import SEEDS, make_seed
from served import Tools

MEMORY, SECONDS = 3 << 30, 120

# What ds-run may answer, by exit code: the message must match. 0: the change left a program that runs, if with other
# numbers; 2: it keeps states on NVMe, and needs an option; 3: it asks for other data, ranks or weights than it is given; 4:
# for more memory than there is; 6: for a file that is not there; 8: it trains, and its loss is no number; 9: it is made for
# another machine.
ALLOWED = {
    0: "", 2: r"names no directory", 3: "", 4: r"bytes", 5: r"\.dsx: ", 6: r"No such file|cannot open", 8: r"step 1: the (loss|gradient)|overflow",
    9: r"made for|lacks|workspace|oneDNN|threads|NVMe",
}
FORBIDDEN = re.compile(r"internal error|terminate called|what\(\)|libgomp|runtime error|Sanitizer|dlopen|Aborted")


def judge(answer):
    """What is wrong with an answer, or None."""
    code, said = answer.code, answer.said
    if code == "hang":
        return f"no end within {SECONDS} s"
    if code not in ALLOWED:
        return said[-2000:] or "no message"
    if FORBIDDEN.search(said) or not re.search(ALLOWED[code], said):
        return f"message: {said[-2000:]}"
    errors = [line for line in said.splitlines() if "error: " in line]
    if code != 0 and (not errors or max(map(len, errors)) > 20000):
        return f"no message of one line: {said[-2000:]}"
    return None


class Round:
    """The mutations of some seeds, shared out to workers."""

    def __init__(self, args):
        self.args = args
        self.bad = os.path.join(args.out, "bad")
        self.tools = Tools(os.path.join(args.out, "work"), args.served)
        self.seeds = []
        for name in args.seeds:
            seed = make_seed(name, os.path.join(args.out, "seeds"), args.fake)
            self.seeds.append((name, seed, Program(seed.program, os.path.dirname(seed.program), args.fields)))

    def ask(self, seed, program):
        return self.tools.run(seed.command(program), SECONDS, seed.environment, memory=MEMORY if self.args.limits else 0)

    def complain_about_seeds(self):
        for name, seed, _ in self.seeds:
            answer = self.ask(seed, seed.program)
            if wrong := judge(answer) or answer.code != 0:
                sys.exit(f"{name}: the program itself ends with {answer.code}: {wrong}: {answer.said}")

    def run(self, number):
        """The outcome of mutation `number`: (exit code, complaint or None)."""
        draw = random.Random(f"{self.args.seed} {number}")
        name, seed, program = self.seeds[number % len(self.seeds)]
        what, tree = mutate(program, draw, self.args.structural)
        stem = os.path.join(self.args.out, "work", f"case-{number}")
        path = stem + ".dsx"
        try:
            with open(path, "wb") as file:
                file.write(program.seal(tree, stem, self.tools))
            for _ in range(3):  # ranks that a busy machine starts too late have not read the program yet
                answer = self.ask(seed, path)
                wrong = judge(answer)
                if not wrong or "come to the rendezvous" not in wrong:
                    break
            if wrong:
                shutil.copy(path, os.path.join(self.bad, f"{self.args.seed}-{number}-{name}.dsx"))
                wrong = f"case {number} of {name}: {what}\n  exit code {answer.code}: {wrong.strip()}"
            return answer.code, wrong
        except ValueError as error:
            return "unformed", f"case {number} of {name}: {what}: {error}"
        finally:
            for suffix in (".json", ".bin", ".dsx", ".after.safetensors"):
                if os.path.exists(stem + suffix):
                    os.remove(stem + suffix)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=lambda text: text.split(","), default=None, help=", ".join(SEEDS))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation: to see one again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fields", default="", metavar="PATTERN", help="only fields whose path matches, as kernels|params")
    parser.add_argument("--structural", type=float, default=0.5, help="how many change several fields, from 0 to 1")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-limits", dest="limits", action="store_false", help="of memory: sanitizers need more")
    parser.add_argument("--no-server", dest="served", action="store_false", help="load the tools anew for each program")
    parser.add_argument("--fake", default="", metavar="LIBRARY", help="libds-fake-cuda.so, for the seeds for CUDA")
    args = parser.parse_args()
    args.seeds = args.seeds or [name for name in SEEDS if args.fake or "cuda" not in name]
    args.out = os.path.abspath(args.out)
    return args


def main():
    args = parse()
    for folder in ("work", "bad", "seeds"):
        os.makedirs(os.path.join(args.out, folder), exist_ok=True)
    os.environ.update(OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive")  # read before main, so by a server too
    work = Round(args)
    work.complain_about_seeds()
    counts, complaints = Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for code, wrong in pool.map(work.run, range(args.first, args.first + args.count)):
            counts[str(code)] += 1
            if wrong:
                complaints += 1
                print(wrong, flush=True)
    work.tools.close()
    print(f"{args.count} programs of {len(work.seeds)} seeds: " +
          ", ".join(f"{counts[code]} x exit {code}" for code in sorted(counts)))
    print(f"{complaints} answers that ds-run must not give")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
