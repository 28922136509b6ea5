#!/usr/bin/python3
"""compare.py - compare two training logs step by step.

Losses, gradient norms and rates must agree relatively: the first step within --step1, the others within --curve
(gradient norms within ten times that).  Exits 1 and names the worst step of each quantity where they do not.
"""

import argparse
import json
import math
import sys

QUANTITIES = {"loss": 1.0, "grad_norm": 10.0, "lr": 0.1}  # name -> share of the tolerance


def read_log(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def difference(a, b):
    """Relative difference; 0 for two equal numbers, infinite where one is not finite or missing."""
    if a is None or b is None or not math.isfinite(a) or not math.isfinite(b):
        return math.inf
    return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))


def compare(ours, theirs, step1, curve):
    """[complaints], one for each quantity whose worst step is beyond its tolerance; and a summary line."""
    complaints, summary = [], []
    if len(ours) != len(theirs) or not ours:
        return [f"{len(ours)} steps against {len(theirs)}"], ""
    for index, (a, b) in enumerate(zip(ours, theirs)):
        if a.get("step") != b.get("step"):
            return [f"line {index + 1} is step {a.get('step')} against step {b.get('step')}"], ""
    for name, share in QUANTITIES.items():
        excess = [(difference(a.get(name), b.get(name)) / ((step1 if i == 0 else curve) * share), i)
                  for i, (a, b) in enumerate(zip(ours, theirs))]
        worst, i = max(excess)
        relative = difference(ours[i].get(name), theirs[i].get(name))
        text = f"{name} at step {i + 1}: {ours[i].get(name)} against {theirs[i].get(name)}, relative {relative:.2g}"
        summary.append(text)
        if worst > 1.0:
            complaints.append(text + f", limit {(step1 if i == 0 else curve) * share:.2g}")
    return complaints, "\n".join(summary)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--step1", type=float, default=1e-5)
    parser.add_argument("--curve", type=float, default=1e-4)
    args = parser.parse_args()
    complaints, summary = compare(read_log(args.ours), read_log(args.theirs), args.step1, args.curve)
    print("\n".join(complaints) if complaints else f"agree; worst:\n{summary}")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
