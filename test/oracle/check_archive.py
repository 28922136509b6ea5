#!/usr/bin/python3
"""check_archive.py - import a model source in each of its forms and compare its first step with PyTorch.

    check_archive.py --out DIR test/Import/archives/alibi.py

The loss must agree to 1e-5, every parameter's gradient to 1e-4 by norm (as check_gradients.py does it).
"""

import argparse
import json
import os
import sys

import archives
import check_gradients
import compare
import train_oracle
from check_training import PLAIN_SGD, RATE
from commands import compile_program, finish, run

import safetensors_io


def write_config(folder, batch):
    """One step of plain SGD on one micro-batch."""
    path = os.path.join(folder, "ds_config.json")
    config = {"train_micro_batch_size_per_gpu": batch, **PLAIN_SGD}
    with open(path, "w") as file:
        json.dump(config, file)
    return path, config


def check(folder):
    """[complaints] and a summary for the archive in `folder`."""
    archive, data = os.path.join(folder, "model.pt"), os.path.join(folder, "data.safetensors")
    program, log = os.path.join(folder, "program.dsx"), os.path.join(folder, "log.jsonl")
    after = os.path.join(folder, "after.safetensors")
    with open(os.path.join(folder, "expected.json")) as file:
        expected = json.load(file)
    batch = int(expected["inputs"][0].split("=")[1].split("x")[0])
    config_path, config = write_config(folder, batch)
    compile_program(archive, config_path, expected["inputs"], program)
    run("ds-run", program, "--data", data, "--steps", 1, "--log-jsonl", log, "--save-weights", after)
    theirs, trainer = train_oracle.train(archive, config, data, 1)
    assert compare.difference(theirs[0]["loss"], expected["loss"]) < 1e-6, "the oracle does not train what was exported"
    complaints, summary = compare.compare(compare.read_log(log), theirs, 1e-5, 1e-5)
    gradients = trainer.named(trainer.gradients)
    more, seen = check_gradients.compare(safetensors_io.load(program.replace(".dsx", ".safetensors")),
                                         safetensors_io.load(after), gradients, RATE, 1e-4)
    complaints += more + [f"{name}: not among the weights" for name in check_gradients.unseen(gradients, seen)]
    return complaints, f"{summary}\n{len(seen)} gradients agree"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("source", metavar="SOURCE")
    args = parser.parse_args()
    complaints = []
    for form, folder in archives.build(args.source, args.out):
        print(f"-- {form}")
        found, summary = check(folder)
        print(summary)
        complaints += [f"{form}: {text}" for text in found]
    finish(complaints, "all forms agree")


if __name__ == "__main__":
    main()
