#!/usr/bin/python3
"""check_hf.py - compile variants of families from their config.json, start from a checkpoint, compare with PyTorch.

    check_hf.py llama qwen3 --out DIR [--variant NAME]

For each: the loss of the first step to 1e-5, and every parameter's gradient to 1e-4 by norm, as one step of plain SGD
reveals it.
"""

import argparse
import json
import os
import shutil

import torch

import check_gradients
import compare
import hf_models
import hf_variants
import train_oracle
from check_archive import RATE, write_config
from commands import finish, run

import safetensors_io

BATCH = 2


def write_model(folder, config, samples=BATCH, seed=0):
    """config.json, a checkpoint under every name, and data; the module and its batch."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
    model = hf_models.make(config, seed)
    weights = {name: value.detach().numpy() for name, value in train_oracle.all_parameters(model)}
    safetensors_io.save(os.path.join(folder, "model.safetensors"), weights)
    data = hf_variants.data(config, samples, seed)
    safetensors_io.save(os.path.join(folder, "data.safetensors"), data)
    return model, {name: torch.from_numpy(value) for name, value in data.items()}


def step_of(model, batch):
    """The loss and the gradient of each parameter under each of its names."""
    with torch.backends.mkldnn.flags(enabled=False):  # its GELU behind a convolution over time has other gradients in PyTorch 1.13
        loss = model(**batch)
        loss.backward()
    return float(loss), {name: value.grad.numpy() for name, value in train_oracle.all_parameters(model)
                         if value.grad is not None}


def compile_and_run(folder, model, program, extra=()):
    """One step of plain SGD; the logged step and the weights after it."""
    config, _ = write_config(folder, BATCH)
    log, after = os.path.join(folder, program + ".jsonl"), os.path.join(folder, program + ".after.safetensors")
    path = os.path.join(folder, program + ".dsx")
    run("ds-opt", os.path.join(folder, model), "--config", config, *extra, "--emit=program", "-o", path)
    run("ds-run", path, "--data", os.path.join(folder, "data.safetensors"), "--weights", folder, "--steps", 1,
        "--log-jsonl", log, "--save-weights", after)
    return compare.read_log(log)[0], safetensors_io.load(after)


def check(folder, config):
    """[complaints] about one variant."""
    model, batch = write_model(folder, config)
    loss, gradients = step_of(model, batch)
    step, after = compile_and_run(folder, "config.json", "model")
    complaints = []
    if not compare.difference(step["loss"], loss) < 1e-5:
        complaints.append(f"loss {step['loss']} against {loss}")
    before = safetensors_io.load(os.path.join(folder, "model.safetensors"))
    more, seen = check_gradients.compare(before, after, gradients, RATE, 1e-4)
    complaints += more + [f"{name}: not among the weights" for name in check_gradients.unseen(gradients, seen)]
    complaints += [f"{name}: no parameter of the published model" for name in sorted(set(after) - set(before))]
    return complaints, f"loss {loss:.6f}, {len(seen)} gradients"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="+", choices=sorted(hf_variants.FAMILIES))
    parser.add_argument("--variant", help="this one of each family alone")
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)  # an earlier run's weights would be read as the model's
    complaints = []
    for family in args.families:
        for variant in [args.variant] if args.variant else hf_variants.FAMILIES[family][1]:
            print(f"-- {family} {variant}")
            found, summary = check(os.path.join(args.out, family, variant), hf_variants.config_of(family, variant))
            print(summary)
            complaints += [f"{family} {variant}: {text}" for text in found]
    finish(complaints, "all variants agree")


if __name__ == "__main__":
    main()
