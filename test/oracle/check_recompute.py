#!/usr/bin/python3
"""check_recompute.py - what backward makes again has the bits of what forward made.

    check_recompute.py gpt --out DIR --config ds_config.json --ranks 1,2 --steps 3

Programs are planned once with all memory and once with so little that products or attention have to be made again, for a
pairwise cover of precision, accumulation, clipping and stage of ZeRO. Losses, norms and weights must be equal to the bit,
poisoned or not, and most plans have to say that products or attention are made again.
"""

import os
import subprocess

from commands import finish
from trials import Trials, parse

TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 40}}}

# ranks, type, accumulation, clipping, stage
CASES = [
    (1, "fp32", 1, 0.0, 0), (1, "bf16", 3, 1.0, 0), (1, "fp16", 1, 1.0, 0), (1, "fp32", 3, 1.0, 3),
    (2, "fp32", 3, 1.0, 3), (2, "bf16", 1, 1.0, 3), (2, "fp16", 3, 1.0, 2), (2, "fp32", 1, 0.0, 1),
]

# Of what a program takes beside its states: the first with which there is a plan is what it gets.
SHARES = [0.5, 0.6, 0.65, 0.7, 0.75, 0.8]


def least_memory(trials, name, free):
    """The least memory of `SHARES` that a program with the configuration of run `name` fits."""
    config = os.path.join(trials.args.out, f"{name}-ranks{trials.ranks}", "config.json")
    shapes = [part for text in trials.inputs for part in ("--input", text)]
    kept = sum(free.rank()["states"].values())
    for share in SHARES:
        memory = kept + int(share * (free.arena() - kept))
        done = subprocess.run(["ds-opt", trials.archive, "--config", config, *shapes, "--ranks", str(trials.ranks), "--memory",
                               str(memory), "--emit=plan"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return memory
        assert done.returncode == 4, f"{name}: exit code {done.returncode}"
    return free.arena()


def check(trials, case):
    ranks, kind, accumulation, clipping, stage = case
    name = f"{kind}-{accumulation}-{clipping}-{stage}"
    changes = {**TYPES[kind], "gradient_accumulation_steps": accumulation, "gradient_clipping": clipping}
    free = trials.train(f"{name}-free", {"stage": stage}, changes)
    memory = least_memory(trials, f"{name}-free", free)
    tight = trials.train(name, {"stage": stage}, changes, memory=memory)
    os.environ["DS_POISON"] = "1"
    poisoned = trials.train(name, {"stage": stage}, changes, memory=memory)
    del os.environ["DS_POISON"]
    complaints = free.differences(tight, f"{name} on {ranks}") + free.differences(poisoned, f"{name} on {ranks}, poisoned")
    if tight.arena() > memory:
        complaints.append(f"{name} on {ranks}: takes {tight.arena()} bytes of {memory}")
    again = {entry["what"] for entry in tight.plan.get("made_again", [])}
    return complaints, bool(again & {"matmul", "attention"})


def main():
    args, rest = parse(__doc__)
    wanted = {int(part) for part in args.ranks.split(",")}
    trials = {ranks: Trials(args, rest, ranks) for ranks in wanted}
    cases = [case for case in CASES if case[0] in wanted]
    complaints, repeated = [], 0
    for case in cases:
        faults, repeats_calls = check(trials[case[0]], case)
        complaints += faults
        repeated += repeats_calls
    # Cheap ops are enough for some.
    if repeated < 3 * len(cases) // 4:
        complaints.append(f"only {repeated} of {len(cases)} programs make products or attention again")
    finish(complaints, f"{len(cases)} runs that make layers again are those that keep them")


if __name__ == "__main__":
    main()
