#!/usr/bin/python3
"""check_speculation.py - updates on the host before the norm is known give the numbers of those that wait for it.

    check_speculation.py gpt --out DIR --config ds_config.json --ranks 1,2 --steps 4 [--fake LIBRARY]

A pairwise cover of precision, accumulation, clipping, stage of ZeRO, and what is offloaded, with steps of which none is
clipped, all are, and some overflow. Losses, norms, loss scales and weights must be equal to the bit, poisoned or not, and the
plan must say that updates are speculative and what their old values take.
"""

import os
import re

from commands import finish
from trials import Trials, parse

# An fp16 scale that overflows at once: steps are skipped until it has fallen.
TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 40}}}

OPTIMIZER, PARAMETERS = {"offload_optimizer": {"device": "cpu"}}, {"offload_param": {"device": "cpu"}}
HALF = {"offload_optimizer": {"device": "cpu", "ratio": 0.5}}
BOTH = {**OPTIMIZER, **PARAMETERS}
NEVER, SOME, ALWAYS = 1e4, 1.0, 1e-3 # what clips no step of these, an unclear number of them, and all

# ranks, type, accumulation, clipping, stage, what is offloaded, optimizer
CASES = [
    (1, "fp32", 1, NEVER, 0, OPTIMIZER, {}), (1, "bf16", 4, ALWAYS, 0, OPTIMIZER, {}), (1, "fp16", 1, SOME, 3, HALF, {}),
    (1, "fp32", 4, ALWAYS, 3, BOTH, {}), (1, "fp16", 4, 0.0, 1, OPTIMIZER, {}), (1, "bf16", 1, 0.0, 3, BOTH, {}),
    (1, "fp16", 1, NEVER, 0, OPTIMIZER, {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9}}),
    (1, "fp32", 4, ALWAYS, 0, OPTIMIZER, {"type": "Lion", "params": {"lr": 0.001}}),
    (1, "bf16", 1, ALWAYS, 0, OPTIMIZER, {"type": "Lamb", "params": {"lr": 0.001}}),
    (2, "fp32", 4, NEVER, 0, OPTIMIZER, {}), (2, "bf16", 1, SOME, 1, OPTIMIZER, {}), (2, "fp16", 4, ALWAYS, 2, OPTIMIZER, {}),
    (2, "fp32", 1, ALWAYS, 2, OPTIMIZER, {}), (2, "bf16", 4, NEVER, 3, HALF, {}), (2, "fp16", 1, 0.0, 3, BOTH, {}),
]


def early(offloaded):
    return {**offloaded, "offload_optimizer": {**offloaded["offload_optimizer"], "super_offload": True}}


def early_updates(plan):
    """How many updates of a plan are speculative, and the bytes of what they change; None where all wait."""
    for note in plan["notes"]:
        if found := re.match(r"(\d+) speculative updates on the host keep (\d+) bytes", note):
            return int(found[1]), int(found[2])
    return None


def check(trials, case):
    ranks, kind, accumulation, clipping, stage, offloaded, optimizer = case
    name = f"{kind}-{accumulation}-{clipping}-{stage}-{'-'.join(sorted(offloaded))}-{optimizer.get('type', 'AdamW')}"
    changes = {**TYPES[kind], "gradient_accumulation_steps": accumulation, "gradient_clipping": clipping}
    if optimizer:
        changes.update(optimizer=optimizer, zero_force_ds_cpu_optimizer=False)
    zero = {"stage": stage, "sub_group_size": 3000}
    waiting = trials.train(f"{name}-waiting", {**zero, **offloaded}, changes)
    here = trials.train(name, {**zero, **early(offloaded)}, changes)
    os.environ["DS_POISON"] = "1"
    poisoned = trials.train(name, {**zero, **early(offloaded)}, changes)
    del os.environ["DS_POISON"]
    name = f"{name} on {ranks}"
    complaints = waiting.differences(here, name) + waiting.differences(poisoned, f"{name}, poisoned")
    if [step.get("skipped") for step in waiting.log] != [step.get("skipped") for step in here.log]:
        complaints.append(f"{name}: other steps are skipped")
    norms = [step["grad_norm"] for step in here.log if not step.get("skipped")]
    if kind == "fp16" and not any(step.get("skipped") for step in here.log):
        complaints.append(f"{name}: expects a step that overflows")
    if clipping == NEVER and any(norm > clipping for norm in norms) or clipping == ALWAYS and any(norm <= clipping for norm in norms):
        complaints.append(f"{name}: expects to clip {'no' if clipping == NEVER else 'each'} step, but the norms are {norms}")
    if early_updates(waiting.plan):
        complaints.append(f"{name}: updates are speculative without super_offload")
    updates, undo = early_updates(here.plan) or (0, 0)
    if offloaded is not OPTIMIZER and updates == 0: # scalars that the device makes with what waits keep all waiting
        return complaints
    if updates == 0 or undo == 0:
        return complaints + [f"{name}: no update goes early"]
    more = here.rank()["arenas"]["host"] - waiting.rank()["arenas"]["host"]
    if more <= 0:
        complaints.append(f"{name}: old values take {undo} bytes, but the host's arena has {more} more")
    return complaints


def main():
    args, rest = parse(__doc__)
    wanted = {int(part) for part in args.ranks.split(",")}
    complaints = []
    trials = {ranks: Trials(args, rest, ranks) for ranks in wanted}
    cases = [case for case in CASES if case[0] in wanted]
    if args.fake: # whose kernels take their time to translate; what is computed is the CPU's
        cases = cases[1::6]
    for case in cases:
        complaints += check(trials[case[0]], case)
    finish(complaints, f"{len(cases)} runs whose updates are speculative are those whose updates wait")


if __name__ == "__main__":
    main()
