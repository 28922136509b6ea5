#!/usr/bin/python3
"""check_recompute.py - what backward recomputes has the bits of what forward made.

    check_recompute.py gpt --out DIR --config ds_config.json --ranks 1,2 --steps 3 [--policies]

Programs are planned once with all memory and once with so little that products or attention have to be recomputed, for a
pairwise cover of precision, accumulation, clipping and stage of ZeRO. Losses, norms and weights must be equal to the bit,
though what is given up is poisoned, and most plans have to say that products or attention are recomputed. With --policies the configuration
says what is recomputed, or what goes to the host, and memory is free.
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

CHECKPOINTS, INTERVAL = {"activation_checkpointing": {"number_checkpoints": 2}}, {"pipeline": {"activation_checkpoint_interval": 3}}
SELECTIVE = {"activation_checkpointing": {"granularity": "selective"}}
LAYERS, OPS = {"activation_checkpointing": {"layers": [1, 2]}}, {"activation_checkpointing": {"ops": ["matmul", "attention"]}}
ON_HOST = {"activation_checkpointing": {"cpu_checkpointing": True}}
OFFLOADED = {"compile": {"offload_activation": True}}

# ranks, type, accumulation, clipping, stage, policy, what of its plan is more than nothing
POLICIES = [
    (1, "fp32", 1, 0.0, 0, CHECKPOINTS, "again"), (1, "bf16", 3, 1.0, 0, INTERVAL, "again"),
    (1, "fp16", 1, 1.0, 3, SELECTIVE, "again"), (1, "fp32", 3, 1.0, 1, LAYERS, "again"),
    (1, "bf16", 1, 0.0, 3, OPS, "again"), (1, "fp16", 3, 0.0, 2, ON_HOST, "both"),
    (1, "fp32", 1, 1.0, 0, OFFLOADED, "host"), (2, "bf16", 1, 1.0, 3, CHECKPOINTS, "again"),
    (2, "fp16", 1, 0.0, 1, INTERVAL, "again"), (2, "fp32", 3, 0.0, 2, SELECTIVE, "again"),
    (2, "fp32", 1, 1.0, 3, ON_HOST, "both"), (2, "bf16", 3, 1.0, 3, OFFLOADED, "host"),
    (2, "fp16", 3, 1.0, 0, OFFLOADED, "host"),
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
    os.environ["DS_POISON"] = "1"
    tight = trials.train(name, {"stage": stage}, changes, memory=memory)
    del os.environ["DS_POISON"]
    complaints = free.differences(tight, f"{name} on {ranks}")
    if tight.arena() > memory:
        complaints.append(f"{name} on {ranks}: takes {tight.arena()} bytes of {memory}")
    again = {entry["what"] for entry in tight.plan.get("made_again", [])}
    return complaints, bool(again & {"matmul", "attention"})


def check_policy(trials, case):
    ranks, kind, accumulation, clipping, stage, policy, kept = case
    section = next(iter(policy.values()))
    name = f"{kind}-{accumulation}-{clipping}-{stage}-{'-'.join(section)}"
    changes = {**TYPES[kind], "gradient_accumulation_steps": accumulation, "gradient_clipping": clipping}
    free = trials.train(f"{name}-free", {"stage": stage}, changes)
    os.environ["DS_POISON"] = "1"
    asked = trials.train(name, {"stage": stage}, {**changes, **policy})
    del os.environ["DS_POISON"]
    complaints = free.differences(asked, f"{name} on {ranks}")
    if asked.arena() >= free.arena():
        complaints.append(f"{name} on {ranks}: takes {asked.arena()} bytes of the device, {free.arena()} without")
    calls = {"matmul", "attention"} & {entry["what"] for entry in asked.plan.get("made_again", [])}
    if kept in ("again", "both") and not calls:
        complaints.append(f"{name} on {ranks}: no product and no attention is recomputed")
    if kept in ("host", "both") and asked.rank()["arenas"]["host"] == 0:
        complaints.append(f"{name} on {ranks}: nothing lies on the host")
    return complaints


def check_policies(trials):
    cases = [case for case in POLICIES if case[0] in trials]
    complaints = []
    for case in cases:
        complaints += check_policy(trials[case[0]], case)
    finish(complaints, f"{len(cases)} runs with a policy are those without")


def main():
    args, rest = parse(__doc__)
    wanted = {int(part) for part in args.ranks.split(",")}
    asks = "--policies" in rest
    trials = {ranks: Trials(args, [part for part in rest if part != "--policies"], ranks) for ranks in wanted}
    if asks:
        return check_policies(trials)
    cases = [case for case in CASES if case[0] in wanted]
    complaints, repeated = [], 0
    for case in cases:
        faults, repeats_calls = check(trials[case[0]], case)
        complaints += faults
        repeated += repeats_calls
    # Cheap ops are enough for some.
    if repeated < 3 * len(cases) // 4:
        complaints.append(f"only {repeated} of {len(cases)} programs recompute products or attention")
    finish(complaints, f"{len(cases)} runs that recompute layers are those that keep them")


if __name__ == "__main__":
    main()
