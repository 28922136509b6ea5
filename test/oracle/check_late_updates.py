#!/usr/bin/python3
"""check_late_updates.py - updates on the host that run beside the next step's forward give the numbers of those that end a step.

    check_late_updates.py gpt --out DIR --config ds_config.json --ranks 1,2 --steps 6 [--fake LIBRARY]

A pairwise cover of precision, accumulation, clipping, stage of ZeRO, and what is offloaded, with steps that overflow. Losses,
norms, loss scales, held-out losses and weights must be equal to the bit, poisoned or not. Held-out data are read behind every
third step, so that updates are made beside a forward and on their own. Checkpoints of either program are taken up by the other.
"""

import os
import shutil

from commands import finish
from trials import Trials, parse

# An fp16 scale that overflows at once: steps are skipped until it has fallen.
TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 40}}}

OPTIMIZER, PARAMETERS = {"offload_optimizer": {"device": "cpu"}}, {"offload_param": {"device": "cpu"}}
HALF = {"offload_optimizer": {"device": "cpu", "ratio": 0.5}}
BOTH = {**OPTIMIZER, **PARAMETERS}
NEVER, ALWAYS = 1e4, 1e-3  # what clips no step of these, and all

# ranks, type, accumulation, clipping, stage, what is offloaded, optimizer
CASES = [
    (1, "bf16", 4, ALWAYS, 0, OPTIMIZER, {}), (1, "fp16", 1, ALWAYS, 0, OPTIMIZER, {}), (1, "fp32", 1, NEVER, 2, OPTIMIZER, {}),
    (1, "bf16", 1, NEVER, 3, BOTH, {}), (1, "fp32", 4, ALWAYS, 3, BOTH, {}), (1, "fp16", 4, 0.0, 1, OPTIMIZER, {}),
    (1, "bf16", 4, 0.0, 0, OPTIMIZER, {}), (1, "bf16", 1, ALWAYS, 0, OPTIMIZER, {"type": "Lamb", "params": {"lr": 0.001}}),
    (2, "bf16", 4, ALWAYS, 1, OPTIMIZER, {}), (2, "fp16", 1, 0.0, 2, OPTIMIZER, {}), (2, "fp32", 4, ALWAYS, 0, OPTIMIZER, {}),
    (2, "bf16", 1, NEVER, 3, HALF, {}), (2, "fp16", 4, NEVER, 3, BOTH, {}), (2, "fp32", 1, ALWAYS, 1, OPTIMIZER, {}),
]

EVERY = 3  # steps between two evaluations


def is_late(plan):
    """Whether a plan says that updates are late."""
    return any("updates on the host are late" in note for note in plan["notes"])


def resume(trials, name, late, waiting):
    """Complaints where one of the two does not go on from the other's checkpoint as the unbroken run did."""
    complaints = []
    for maker, taker, end in ((late, waiting, "late"), (waiting, late, "waiting")):
        saves = os.path.join(trials.args.out, f"{end}-saves")
        shutil.rmtree(saves, ignore_errors=True)
        whole, steps = maker(), trials.args.steps
        trials.args.steps = EVERY - 1
        maker("--save", saves)
        trials.args.steps = steps
        rest = taker("--resume", saves)
        rest.log = whole.log[: EVERY - 1] + rest.log[EVERY - 1 - steps:]  # behind what earlier runs have written
        complaints += whole.differences(rest, f"{name}, from a checkpoint of updates that are {end}")
    return complaints


def check(trials, case, resumes):
    ranks, kind, accumulation, clipping, stage, offloaded, optimizer = case
    name = f"{kind}-{accumulation}-{clipping}-{stage}-{'-'.join(sorted(offloaded))}-{optimizer.get('type', 'AdamW')}"
    changes = {**TYPES[kind], "gradient_accumulation_steps": accumulation, "gradient_clipping": clipping}
    if optimizer:
        changes.update(optimizer=optimizer, zero_force_ds_cpu_optimizer=False)
    zero = {"stage": stage, "sub_group_size": 3000, **offloaded}

    def train(end, late, *options):
        return trials.train(f"{name}-{end}", zero, {**changes, "late_updates": late}, eval_every=EVERY, options=options)

    waiting, late = train("waiting", False), train("late", True, "--check-replicas", "5")
    os.environ["DS_POISON"] = "1"
    poisoned = train("late", True)
    del os.environ["DS_POISON"]
    told = f"{name} on {ranks}"
    complaints = waiting.differences(late, told) + waiting.differences(poisoned, f"{told}, poisoned")
    if [step.get("skipped") for step in waiting.log] != [step.get("skipped") for step in late.log]:
        complaints.append(f"{told}: other steps are skipped")
    if kind == "fp16" and not any(step.get("skipped") for step in late.log):
        complaints.append(f"{told}: expects a step that overflows")
    if is_late(waiting.plan) or not is_late(late.plan):
        complaints.append(f"{told}: expects late updates where they are asked for, but the notes are {late.plan['notes']}")
    if resumes:
        complaints += resume(trials, told, lambda *options: train("late", True, *options),
                             lambda *options: train("waiting", False, *options))
    return complaints


def main():
    args, rest = parse(__doc__)
    wanted = {int(part) for part in args.ranks.split(",")}
    complaints = []
    trials = {ranks: Trials(args, rest, ranks) for ranks in wanted}
    cases = [case for case in CASES if case[0] in wanted]
    if args.fake:  # whose kernels take their time to translate; what is computed is the CPU's
        cases = cases[:2]
    for number, case in enumerate(cases):
        complaints += check(trials[case[0]], case, resumes=not args.fake and number % 4 == 0)
    finish(complaints, f"{len(cases)} runs whose updates are late are those whose updates end the step")


if __name__ == "__main__":
    main()
