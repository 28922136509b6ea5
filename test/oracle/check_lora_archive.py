#!/usr/bin/python3
"""check_lora_archive.py - adapters beside the layers of a TorchScript archive, and frozen parameters of it.

    check_lora_archive.py DIR   (with gpt.pt and gpt.data.safetensors, of examples/export.py)

The first loss with adapters drawn is the loss without, for B is zero; two ranks of ZeRO 3 have the bits of one; the archive's weights
stay as they are, and the factors move. Dropout changes later losses and not the first, and that the same way on each rank's
samples. What is frozen stays, and trained parameters move.
"""

import json
import os
import sys

import numpy as np

import compare
from commands import compile_program, finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import safetensors_io  # noqa: E402

LORA = "*.attention.*:4:8"
INPUTS = ["x=2x16xi64", "y=2x16xi64"]
STEPS = 2


def train(folder, name, part, ranks=1, accumulation=1, stage=0):
    """The log, the weights before and after."""
    config, program = os.path.join(folder, name + ".json"), os.path.join(folder, name + ".dsx")
    with open(config, "w") as file:
        json.dump({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": accumulation, "gradient_clipping": 0.0,
                   "zero_optimization": {"stage": stage}, "optimizer": {"type": "AdamW", "params": {"lr": 0.01}}}, file)
    compile_program(os.path.join(folder, "gpt.pt"), config, INPUTS, program, ["--ranks", ranks, *part])
    log, after = program + ".jsonl", program + ".after.safetensors"
    run("ds-run", program, "--data", os.path.join(folder, "gpt.data.safetensors"), "--ranks", ranks, "--steps", STEPS, "--log-jsonl", log,
        "--save-weights", after)
    return ([step["loss"] for step in compare.read_log(log)], safetensors_io.load(os.path.join(folder, name + ".safetensors")),
            safetensors_io.load(after))


def moved(before, after):
    return {name for name in before if not np.array_equal(before[name], after[name])}


def main():
    folder = sys.argv[1]
    losses, base, _ = train(folder, "whole", [])
    adapted, before, after = train(folder, "adapted", ["--lora", LORA])
    complaints = [] if adapted[0] == losses[0] and adapted[1] != losses[1] else [f"losses {adapted} with adapters, {losses} without"]
    factors = {name for name in after if name.startswith("base_model.model.")}
    layers = {name.split(".lora_")[0] for name in factors}
    if len(factors) != 2 * len(layers) or not layers or factors & set(base):
        complaints.append(f"expects two factors of each layer, but got {sorted(factors)}")
    complaints += [f"{name}: is the archive's and has changed" for name in sorted(moved(base, after))]
    complaints += [f"{name}: did not move" for name in sorted(factors) if "lora_B" in name and not np.any(after[name])]
    alone = train(folder, "alone", ["--lora", LORA], accumulation=2)
    shared = train(folder, "shared", ["--lora", LORA], ranks=2, stage=3)
    complaints += [f"{name}: differs on two ranks" for name in sorted(moved(alone[2], shared[2]))]
    dropped = train(folder, "dropped", ["--lora", LORA + ":0.5"], accumulation=2)
    dropped_shared = train(folder, "dropped-shared", ["--lora", LORA + ":0.5"], ranks=2, stage=3)
    if dropped[0][0] != alone[0][0] or dropped[0][1] == alone[0][1]:
        complaints.append(f"losses {dropped[0]} with dropout, {alone[0]} without")
    complaints += [f"{name}: dropout differs on two ranks" for name in sorted(moved(dropped[2], dropped_shared[2]))]
    _, before, after = train(folder, "frozen", ["--freeze", "*.bias", "--freeze", "blocks.0.*"])
    frozen = {name for name in before if name.endswith(".bias") or name.startswith("blocks.0.")}
    complaints += [f"{name}: is frozen and has changed" for name in sorted(frozen & moved(before, after))]
    complaints += [f"{name}: did not move" for name in sorted(set(before) - frozen - moved(before, after))]
    if not frozen:
        complaints.append("nothing is frozen")
    finish(complaints, f"adapters and frozen parameters of an archive: {len(layers)} layers, {len(frozen)} parameters")


if __name__ == "__main__":
    main()
