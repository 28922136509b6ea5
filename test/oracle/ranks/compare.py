#!/usr/bin/python3
"""compare.py - a module on all ranks of its mesh against a module of one rank, both in generic form.

    compare.py MANY ONE [--steps 2] [--tolerance 1e-9] [--rounds] [--ids 4]

Both name their states alike, by parameter and slot where they are kept in buckets, and start from the same random values.  The
one rank takes the samples of all ranks as micro-batches.  Every whole value of the one rank, gradients aside, must be
there on the ranks and agree within the tolerance, relative to its largest element.
"""

import argparse
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ranks.agreement import differences, draw_batches, random_inputs, train, train_alone  # noqa: E402
from ranks.meetings import Mismatch  # noqa: E402
from ranks.program import read_program  # noqa: E402
from ranks.values import Numbers  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("many", type=argparse.FileType())
    parser.add_argument("one", type=argparse.FileType())
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=1e-9)
    parser.add_argument("--rounds", action="store_true", help="round results to their types (default: exact)")
    parser.add_argument("--ids", type=int, default=4, help="whole numbers of inputs are below this")
    args = parser.parse_args()
    torch.set_num_threads(1)
    numbers, many, one = Numbers(args.rounds), read_program(args.many.read()), read_program(args.one.read())
    batches = draw_batches(many, args.steps, random_inputs(ids=args.ids))
    try:
        theirs = train_alone(one, batches, numbers)
        complaints = differences(train(many, batches, numbers), theirs, args.tolerance)
    except (Mismatch, ValueError) as error:
        complaints = [f"error: {error}"]
    print("\n".join(complaints) or f"{len(theirs)} values agree: {', '.join(sorted(theirs))}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
