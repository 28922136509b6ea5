#!/usr/bin/python3
"""check_reduction.py - when gradients of several micro-steps are reduced: chosen by memory, or forced.

    check_reduction.py gpt --out DIR --config ds_config.json --ranks 2 --accumulation 4 --steps 3

Stage 1 reduces once per step where keeping whole gradients until then fits, else in each micro-step; stage 2 in each
micro-step. The key gradient_reduction forces either. Runs that reduce at the same moments are equal to the bit.
"""

import json
import os

from commands import finish
from trials import Trials, parse


def force(when):
    return {"gradient_reduction": when}


def check(trials):
    once = trials.train("once", {"stage": 1}, force("once_per_step"))
    each = trials.train("each", {"stage": 1}, force("each_micro_step"))
    roomy = trials.train("roomy", {"stage": 1}, memory=once.arena())
    for share in (1.0, 0.93, 0.87, 0.8, 0.74):  # of what one plan takes, to where whole gradients do not fit any more
        try:
            tight = trials.train("tight", {"stage": 1}, memory=int(share * each.arena()))
        except SystemExit:  # nothing fits: with what a plan takes at least, where the processor's library asks for much
            with open(os.path.join(trials.args.out, f"tight-ranks{trials.ranks}", "plan.json")) as file:
                tight = trials.train("tight", {"stage": 1}, memory=json.load(file)["ranks"][0]["arenas"]["device"])
        if tight.rank()["states"]["gradients"] < once.rank()["states"]["gradients"]:
            break
    two = trials.train("two", {"stage": 2})
    kept = trials.train("kept", {"stage": 2}, force("once_per_step"))
    complaints = once.differences(roomy, "roomy against once") + each.differences(tight, "tight against each")
    complaints += each.differences(two, "stage 2 against each") + once.differences(kept, "stage 2 forced against once")
    gradients = {name: result.rank()["states"]["gradients"] for name, result in (
        ("once", once), ("each", each), ("roomy", roomy), ("tight", tight), ("two", two), ("kept", kept))}
    full = gradients["once"]
    expected = {name: full if name in ("once", "roomy", "kept") else full // trials.ranks for name in gradients}
    if gradients != expected:
        complaints.append(f"expects gradients of {expected} bytes, but got {gradients}")
    if each.sent("reduce_scatter") != trials.args.accumulation * once.sent("reduce_scatter"):
        complaints.append(f"expects one reduction per micro-step, but {each.sent('reduce_scatter')} bytes are sent")
    for result, text in ((roomy, "gradients are reduced once per step"), (tight, "gradients are reduced in each micro-step"),
                         (tight, "reducing gradients once per step would take")):
        if not any(note.startswith(text) for note in result.plan["notes"]):
            complaints.append(f"expects a note '{text}', but got {result.plan['notes']}")
    return complaints


def main():
    args, rest = parse(__doc__)
    trials = Trials(args, rest, int(args.ranks))
    finish(check(trials), f"{args.ranks} ranks reduce as memory or the configuration asks")


if __name__ == "__main__":
    main()
