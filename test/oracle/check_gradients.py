#!/usr/bin/python3
"""check_gradients.py - compare the gradients that one step of plain SGD reveals with PyTorch's.

BEFORE and AFTER are weights around one step of SGD with learning rate --lr, no momentum, decay or clipping; the gradient
is (before - after) / lr.  A large power of two as the rate keeps rounding out of it.  Each parameter's
difference must be within --tolerance of its gradient's norm; a gradient that is all rounding noise (below 1e-6 of the
global norm) only has to stay noise.
"""

import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import safetensors_io  # noqa: E402

NOISE = 1e-6  # of the global norm: key biases, whose true gradient is zero, stay below it


def compare(before, after, expected, lr, tolerance):
    """[complaints] about parameters that are missing, unknown or off."""
    norms = {name: float(np.linalg.norm(value.astype(np.float64))) for name, value in expected.items()}
    floor = NOISE * float(np.sqrt(sum(norm * norm for norm in norms.values())))
    complaints, seen = [], set()
    for name in sorted(before):
        if name not in after:
            complaints.append(f"{name}: not among the weights after the step")
            continue
        gradient = (before[name].astype(np.float64) - after[name].astype(np.float64)) / lr
        if name not in expected:
            if np.any(gradient):
                complaints.append(f"{name}: changed, but PyTorch has no such parameter")
            continue
        seen.add(name)
        off = float(np.linalg.norm(gradient - expected[name].reshape(gradient.shape)))
        if not off <= max(tolerance * norms[name], floor):
            complaints.append(f"{name}: gradient differs by {off:.3g} of norm {norms[name]:.3g}")
    return complaints, seen


def unseen(expected, seen):
    """Parameters of PyTorch of which no name was seen; the names of a shared one have equal gradients."""
    known = [expected[name] for name in seen]
    return [name for name in sorted(set(expected) - seen)
            if not any(value.shape == expected[name].shape and np.array_equal(value, expected[name])
                       for value in known)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("expected", help="train_oracle.py --gradients")
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()
    expected = safetensors_io.load(args.expected)
    complaints, seen = compare(safetensors_io.load(args.before), safetensors_io.load(args.after), expected, args.lr,
                               args.tolerance)
    complaints += [f"{name}: not among the weights" for name in unseen(expected, seen)]
    print("\n".join(complaints) if complaints else f"{len(seen)} gradients agree")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
