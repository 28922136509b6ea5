#!/usr/bin/python3
"""run.py - run a module on all ranks of its mesh, and print what each function gives to each rank.

    ds-opt FILE --mlir-print-op-generic | run.py [--rounds] [FILE]      exit code 1: ranks do not fit together

One step, as the schedule says; without one, each function once, in the order of the text.  Element e of a whole state is e, of
an input of sample s in micro-batch m it is 100 m + 10 s + e, so that results can be worked out by hand.  Printed are, for each
rank, the elements of the results of each function's last run, then the whole states, and what was sent.
"""

import argparse
import math
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import evaluate  # noqa: E402
from ranks.agreement import draw_batches  # noqa: E402
from ranks.ir import read_modules  # noqa: E402
from ranks.meetings import Mismatch, spell  # noqa: E402
from ranks.program import Program  # noqa: E402
from ranks.session import Ranks  # noqa: E402
from ranks.values import Numbers  # noqa: E402


def counted(kind, first=0):
    return (torch.arange(math.prod(kind.shape)) + first).reshape(kind.shape).to(evaluate.dtype(kind.element))


def counted_wholes(program):
    """Each whole value as the numbers of its elements."""
    result = {}
    for stage in program.stages:
        for state in stage.states.values():
            result[state.key] = counted(state.type)
            for name in stage.buckets[state.bucket].members if state.bucket else []:
                key = name if state.role == "parameter" else f"{name}.{state.slot}"
                result[key] = counted(stage.declared[name].type)
    return result


def counted_batch(program):
    """Inputs of one step."""
    batch, = draw_batches(program, 1, lambda name, kind: kind)
    return [[{name: counted(kind, 100 * micro_batch + 10 * sample) for name, kind in inputs.items()}
             for sample, inputs in enumerate(samples)] for micro_batch, samples in enumerate(batch)]


def show(value):
    return "[" + ", ".join(f"{item:g}" for item in value.reshape(-1).double().tolist()) + "]"


def report(ranks):
    for rank in ranks.ranks:
        for name, results in rank.results.items():
            if results:
                print(f"rank {rank.number} @{name}: {', '.join(map(show, results))}")
    for key, value in sorted(ranks.whole().items()):
        print(f"whole {key}: {show(value)}")
    for (name, axes), sent in sorted(ranks.meetings.traffic.items()):
        print(f"sent by {name} along {spell(axes)}: {sent} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=argparse.FileType(), default=sys.stdin)
    parser.add_argument("--rounds", action="store_true", help="round results to their types (default: exact)")
    args = parser.parse_args()
    failed = False
    for index, module in enumerate(read_modules(args.file.read())):
        if index:
            print(f"module {index}:")
        try:
            program = Program(module)
            ranks = Ranks(program, counted_wholes(program), Numbers(args.rounds))
            with torch.no_grad():
                ranks.step(counted_batch(program))
                ranks.evaluate(counted_batch(program)[0])
            report(ranks)
        except (Mismatch, ValueError) as error:
            failed = True
            print(f"error: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
