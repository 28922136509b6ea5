#!/usr/bin/python3
"""check_offload.py - states on the host, updated there, give the numbers of states on the device.

    check_offload.py gpt --out DIR --config ds_config.json --ranks 1,2 --steps 4 [--nvme] [--clipped] [--fake LIBRARY]

A pairwise cover of precision, accumulation, clipping, stage of ZeRO, and what is offloaded: the optimizer, half of it,
parameters, or both. With --nvme they are in storage, parameters in a directory of their own; with --clipped only cases that
clip gradients are run. They are updated in pieces of a few thousand elements. Losses, norms, loss scales and weights must be
equal to the bit, poisoned or not; what was said to live elsewhere must be there and not on the device. With --fake some of it
for CUDA.
"""

import os

from commands import finish
from trials import Trials, parse

# An fp16 scale that overflows at once: steps are skipped until it has fallen.
TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 40}}}

OPTIMIZER, PARAMETERS = {"offload_optimizer": {"device": "cpu"}}, {"offload_param": {"device": "cpu"}}
HALF = {"offload_optimizer": {"device": "cpu", "ratio": 0.5}}
BOTH = {**OPTIMIZER, **PARAMETERS}

# ranks, type, accumulation, clipping, stage, what is offloaded
CASES = [
    (1, "fp32", 1, 0.0, 0, OPTIMIZER), (1, "bf16", 4, 1.0, 0, OPTIMIZER), (1, "fp16", 1, 1.0, 3, HALF),
    (1, "fp32", 4, 1.0, 3, BOTH), (1, "fp16", 4, 0.0, 1, OPTIMIZER), (1, "bf16", 1, 0.0, 3, PARAMETERS),
    (2, "fp32", 4, 1.0, 0, OPTIMIZER), (2, "bf16", 1, 1.0, 1, OPTIMIZER), (2, "fp16", 4, 1.0, 2, OPTIMIZER),
    (2, "fp32", 1, 0.0, 2, OPTIMIZER), (2, "bf16", 4, 0.0, 3, HALF), (2, "fp16", 1, 0.0, 3, BOTH),
    (2, "fp32", 4, 1.0, 3, BOTH), (2, "bf16", 1, 1.0, 3, PARAMETERS),
    # What stays gathered for the step is updated while backward still reads it.
    (2, "fp32", 4, 0.0, 3, OPTIMIZER),
]


def on_nvme(offloaded, folder):
    """The same in storage, where parameters have a folder of their own, and a few thousand elements room on the host."""
    there = {key: {**value, "device": "nvme", "nvme_path": folder} for key, value in offloaded.items()}
    if "offload_param" in there:
        there["offload_param"].update(nvme_path=f"{folder}-parameters", max_in_cpu=5000)
    for section in there.values():
        os.makedirs(section["nvme_path"], exist_ok=True)
    return there


def check(trials, case, nvme):
    ranks, kind, accumulation, clipping, stage, offloaded = case
    name = f"{kind}-{accumulation}-{clipping}-{stage}-{'-'.join(sorted(offloaded))}"
    changes = {**TYPES[kind], "gradient_accumulation_steps": accumulation, "gradient_clipping": clipping}
    if nvme:
        offloaded = on_nvme(offloaded, nvme)
    there = trials.train(f"{name}-device", {"stage": stage}, changes)
    here = trials.train(name, {"stage": stage, "sub_group_size": 3000, **offloaded}, changes)
    os.environ["DS_POISON"] = "1"
    poisoned = trials.train(name, {"stage": stage, "sub_group_size": 3000, **offloaded}, changes)
    del os.environ["DS_POISON"]
    complaints = there.differences(here, f"{name} on {ranks}") + there.differences(poisoned, f"{name} on {ranks}, poisoned")
    if [step.get("skipped") for step in there.log] != [step.get("skipped") for step in here.log]:
        complaints.append(f"{name} on {ranks}: other steps are skipped")
    if kind == "fp16" and not any(step.get("skipped") for step in here.log):
        complaints.append(f"{name} on {ranks}: expects a step that overflows")
    if here.rank()["arenas"]["host"] == 0:
        complaints.append(f"{name} on {ranks}: nothing lies on the host")
    if nvme and (here.rank()["arenas"]["nvme"] == 0 or here.plan["storage"]["bytes_written_per_step"] == 0):
        complaints.append(f"{name} on {ranks}: nothing lies on NVMe")
    # Beside scratch memory that the processor's library asks for a small model's loads ahead take what its states left.
    kept = [sum(result.rank()["at_peak"][kind] for kind in ("parameters", "optimizer")) for result in (here, there)]
    if kept[0] >= kept[1]:
        complaints.append(f"{name} on {ranks}: {kept[0]} bytes of states are on the device with offload, {kept[1]} without")
    return complaints


def main():
    args, rest = parse(__doc__)
    nvme = os.path.join(args.out, "nvme") if "--nvme" in rest else None
    clipped = "--clipped" in rest
    rest = [word for word in rest if word not in ("--nvme", "--clipped")]
    wanted = {int(part) for part in args.ranks.split(",")}
    complaints = []
    trials = {ranks: Trials(args, rest, ranks) for ranks in wanted}
    cases = [case for case in CASES if case[0] in wanted and (case[3] > 0 or not clipped)]
    if args.fake: # whose kernels take their time to translate; what is computed is the CPU's
        cases = cases[1::4]
    for case in cases:
        complaints += check(trials[case[0]], case, nvme)
    finish(complaints, f"{len(cases)} runs with states on {'NVMe' if nvme else 'the host'} are those without")


if __name__ == "__main__":
    main()
