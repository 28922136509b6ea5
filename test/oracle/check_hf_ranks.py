#!/usr/bin/python3
"""check_hf_ranks.py - train a model of config.json without a checkpoint on two ranks, and compare it with one rank.

    check_hf_ranks.py whisper plain [t5 plain ...] --out DIR

Three steps under ZeRO 1 and 3: the losses are those of one rank that sees the same micro-batches, to 1e-6, and weights of both stages
are equal to the bit. Parameters that nothing trains end as they began, wherever their parts lie. What is saved has the published names,
and a run that starts from it has its weights.
"""

import argparse
import json
import os

import numpy as np
import torch

import check_hf
import compare
import hf_models
import hf_variants
import train_oracle
from commands import finish, run

import safetensors_io

STEPS = 3


def train(folder, name, ranks, stage, steps=STEPS, weights="none"):
    """The log and the weights of one run on `ranks`, which together see four samples a step."""
    zero = {"stage": stage, "reduce_bucket_size": 20000, "stage3_param_persistence_threshold": 100}
    config = {"train_micro_batch_size_per_gpu": check_hf.BATCH, "gradient_accumulation_steps": 2 // ranks, "gradient_clipping": 1.0,
              "optimizer": {"type": "AdamW", "params": {"lr": 0.01}}, "zero_optimization": zero}
    path = {key: os.path.join(folder, f"{name}.{key}") for key in ("json", "dsx", "jsonl", "after.safetensors")}
    with open(path["json"], "w") as file:
        json.dump(config, file)
    run("ds-opt", os.path.join(folder, "config.json"), "--config", path["json"], "--ranks", ranks, "--emit=program", "-o", path["dsx"])
    run("ds-run", path["dsx"], "--ranks", ranks, "--data", os.path.join(folder, "data.safetensors"), "--weights", weights, "--steps", steps,
        "--log-jsonl", path["jsonl"], "--save-weights", path["after.safetensors"])
    return compare.read_log(path["jsonl"]), safetensors_io.load(path["after.safetensors"])


def same(ours, theirs, what):
    """Complaints about tensors that are not equal to the bit, or that one side has alone."""
    names = sorted(set(ours) | set(theirs))
    return [f"{name}: differs {what}" for name in names
            if name not in ours or name not in theirs or not np.array_equal(ours[name], theirs[name])]


def check(folder, config):
    """[complaints] about one model, and what is to be said of it."""
    model, _ = check_hf.write_model(folder, config, 2 * check_hf.BATCH)
    reference, alone = train(folder, "alone", 1, 0)
    logs, weights = zip(*(train(folder, f"stage{stage}", 2, stage) for stage in (1, 3)))
    complaints = []
    for stage, log in zip((1, 3), logs):
        complaints += [f"stage {stage}: {text}" for text in compare.compare(log, reference, 1e-6, 1e-5)[0]]
    complaints += same(weights[0], weights[1], "between stages 1 and 3")
    names = {name for name, _ in train_oracle.all_parameters(model)}
    complaints += [f"{name}: not a published name" for name in sorted(set(alone) - names)]
    frozen = {name: value for name, value in hf_models.fresh(config).named_parameters() if not value.requires_grad}
    for name, value in frozen.items():
        complaints += [f"{name}: {text} of rounding more than PyTorch's" for text in beyond_rounding(weights[1][name], value)]
    _, again = train(folder, "again", 2, 3, 0, os.path.join(folder, "stage3.after.safetensors"))
    complaints += same(again, weights[1], "from the weights that were read")
    return complaints, f"loss {reference[-1]['loss']:.6f} after {STEPS} steps, {len(frozen)} frozen"


def beyond_rounding(ours, theirs):
    """How much further values are apart than angles of rows, rounded to 24 bits twice on either side, let them be; or nothing."""
    angles = np.arange(len(ours))[:, None] * 2.0 ** -21 + 2.0 ** -23
    worst = float(np.max(np.abs(ours.astype(np.float64) - theirs.detach().numpy()) - angles))
    return [f"{worst:.3g}"] if worst > 0 else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="FAMILY VARIANT")
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    torch.set_num_threads(1)
    complaints = []
    for family, variant in zip(args.models[::2], args.models[1::2], strict=True):
        found, summary = check(os.path.join(args.out, f"{family}-{variant}"), hf_variants.config_of(family, variant))
        print(f"-- {family} {variant}: {summary}")
        complaints += [f"{family} {variant}: {text}" for text in found]
    finish(complaints, f"{len(args.models) // 2} models train on two ranks as on one")


if __name__ == "__main__":
    main()
