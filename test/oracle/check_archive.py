#!/usr/bin/python3
"""check_archive.py - import a model source in each of its forms and compare its first step with PyTorch.

    check_archive.py --out DIR test/Import/archives/alibi.py
    check_archive.py --out DIR --steps 20 --optimizer AdamW --ranks 2 --stage 3 test/Import/archives/tied_padding.py

The loss must agree to 1e-5, every parameter's gradient to 1e-4 by norm (as check_gradients.py does it), and every buffer
that the forward updates to 1e-5.  With --steps it
is a training run that is compared: losses, gradient norms and the final weights.  Two ranks see what PyTorch sees with
twice the accumulation.
"""

import argparse
import json
import os
import sys

import numpy as np

import archives
import check_gradients
import compare
import train_oracle
from check_training import PLAIN_SGD, RATE, weight_complaints
from commands import compile_program, finish, run

import safetensors_io


def write_config(folder, batch):
    """One step of plain SGD on one micro-batch."""
    path = os.path.join(folder, "ds_config.json")
    config = {"train_micro_batch_size_per_gpu": batch, **PLAIN_SGD}
    with open(path, "w") as file:
        json.dump(config, file)
    return path, config


OPTIMIZERS = {"SGD": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}},
              "AdamW": {"type": "AdamW", "params": {"lr": 0.01, "betas": [0.9, 0.99], "weight_decay": 0.1}}}


NAMES = {"model": "model.pt", "data": "data.safetensors", "program": "program.dsx", "before": "program.safetensors",
         "log": "log.jsonl", "after": "after.safetensors"}


def paths(folder):
    """The files of an archive and of its run, by what they are."""
    return {key: os.path.join(folder, name) for key, name in NAMES.items()}


def read_expected(folder):
    """What archives.py wrote of the archive, and its batch size."""
    with open(os.path.join(folder, "expected.json")) as file:
        expected = json.load(file)
    return expected, int(expected["inputs"][0].split("=")[1].split("x")[0])


def buffer_complaints(before, after, trainer, tolerance):
    """Buffers that PyTorch's forward updates and ours does not, or otherwise, each relative to its own norm."""
    complaints = []
    for name, value in trainer.model.named_buffers():
        theirs = value.detach().numpy().astype(np.float64)
        if name not in after:
            continue  # it is written out as ops, or nothing reads it
        ours, was = (weights[name].astype(np.float64).reshape(theirs.shape) for weights in (after, before))
        off = float(np.linalg.norm(ours - theirs))
        if not off <= max(tolerance * float(np.linalg.norm(theirs)), 1e-7 * theirs.size ** 0.5):  # a mean of 0 is noise
            complaints.append(f"buffer {name}: differs by {off:.3g} of {np.linalg.norm(theirs - was):.3g}")
    return complaints


def check(folder):
    """[complaints] and a summary for the first step of the archive in `folder`."""
    files = paths(folder)
    expected, batch = read_expected(folder)
    config_path, config = write_config(folder, batch)
    compile_program(files["model"], config_path, expected["inputs"], files["program"])
    run("ds-run", files["program"], "--data", files["data"], "--steps", 1, "--log-jsonl", files["log"], "--save-weights",
        files["after"])
    theirs, trainer = train_oracle.train(files["model"], config, files["data"], 1)
    assert compare.difference(theirs[0]["loss"], expected["loss"]) < 1e-6, "the oracle does not train what was exported"
    complaints, summary = compare.compare(compare.read_log(files["log"]), theirs, 1e-5, 1e-5)
    gradients = trainer.named(trainer.gradients)
    before, after = safetensors_io.load(files["before"]), safetensors_io.load(files["after"])
    complaints += buffer_complaints(before, after, trainer, 1e-5)
    buffers = {name for name, _ in trainer.model.named_buffers()}
    more, seen = check_gradients.compare({name: value for name, value in before.items() if name not in buffers}, after, gradients,
                                         RATE, 1e-4)
    complaints += more + [f"{name}: not among the weights" for name in check_gradients.unseen(gradients, seen)]
    return complaints, f"{summary}\n{len(seen)} gradients agree"


def check_run(folder, args):
    """The same for a training run."""
    files = paths(folder)
    expected, batch = read_expected(folder)
    config = {"train_micro_batch_size_per_gpu": batch, "gradient_accumulation_steps": 1,
              "optimizer": OPTIMIZERS[args.optimizer], "zero_optimization": {"stage": args.stage},
              "zero_allow_untested_optimizer": True}
    more = {name: np.concatenate([np.roll(value, rank, -1) for rank in range(args.ranks)])
            for name, value in safetensors_io.load(files["data"]).items()}
    safetensors_io.save(files["data"], more)
    config_path = os.path.join(folder, "ds_config.json")
    with open(config_path, "w") as file:
        json.dump(config, file)
    compile_program(files["model"], config_path, expected["inputs"], files["program"], ["--ranks", args.ranks])
    run("ds-run", files["program"], "--ranks", args.ranks, "--data", files["data"], "--steps", args.steps, "--log-jsonl",
        files["log"], "--save-weights", files["after"])
    theirs, trainer = train_oracle.train(files["model"], {**config, "gradient_accumulation_steps": args.ranks}, files["data"],
                                         args.steps)
    complaints, summary = compare.compare(compare.read_log(files["log"]), theirs, 1e-5, 1e-4)
    before, after = safetensors_io.load(files["before"]), safetensors_io.load(files["after"])
    if args.ranks == 1: # of several, buffers are the mean of what the ranks make of them
        complaints += buffer_complaints(before, after, trainer, 1e-4)
    return complaints + weight_complaints(after, trainer.weights(), 1e-4), summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--steps", type=int, metavar="N")
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="SGD")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--stage", type=int, default=0)
    parser.add_argument("source", metavar="SOURCE")
    args = parser.parse_args()
    complaints = []
    for form, folder in archives.build(args.source, args.out):
        print(f"-- {form}")
        found, summary = check_run(folder, args) if args.steps else check(folder)
        print(summary)
        complaints += [f"{form}: {text}" for text in found]
    finish(complaints, "all forms agree")


if __name__ == "__main__":
    main()
