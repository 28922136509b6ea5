#!/usr/bin/python3
"""check_skips.py - a step that is to be skipped has never been, and good steps are the same bits with and without skip_bad_steps.

    check_skips.py --config plain.json --out DIR

An MLP with SGD, for each of several settings: its weights after training on good data must be those of a program without the
key.  A batch with a NaN (--on-nan skip) or with a leap of the loss (--on-spike skip) must leave the weights that training
without this batch gives, and the first lost number is named.
"""

import argparse
import json
import os
import sys

import numpy as np

from commands import finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402
import safetensors_io  # noqa: E402

BATCH, STEPS, BAD = 2, 6, 4  # the fifth step's batch
SETTINGS = {"plain": (), "clipped": ("gradient_clipping=0.5",), "bf16": ("bf16.enabled=true", "bf16.check_grad_overflow=false"),
            "two micro-steps": ("gradient_accumulation_steps=2",)}


def compile_program(archive, inputs, config, out, settings):
    sets = [part for text in ("optimizer.type=SGD", *settings) for part in ("--set", text)]
    run("ds-opt", archive, "--config", config, *sets, *(part for text in inputs for part in ("--input", text)),
        "--emit=program", "-o", out)
    return out


def train(program, data, steps, *options):
    """(weights after the steps, losses, log) of a run."""
    out, log = program + ".after.safetensors", program + ".jsonl"
    text = run("ds-run", program, "--data", data, "--steps", steps, "--save-weights", out, "--log-jsonl", log, *options)
    with open(log) as file:
        losses = [json.loads(line).get("loss") for line in file]
    return safetensors_io.load(out), losses, text


def same(one, other):
    return sorted(one) == sorted(other) and all(one[name].tobytes() == other[name].tobytes() for name in one)


def write_bad(data, rows, change, folder):
    """(file with a bad batch, file without that batch)."""
    first = BAD * rows
    bad = {name: value.copy() for name, value in data.items()}
    change(bad["x"][first:first + rows])
    without = {name: np.delete(value, slice(first, first + rows), axis=0) for name, value in data.items()}
    paths = os.path.join(folder, "bad.safetensors"), os.path.join(folder, "without.safetensors")
    safetensors_io.save(paths[0], bad)
    safetensors_io.save(paths[1], without)
    return paths


def check(name, settings, archive, inputs, config, data_path, folder):
    keeps = compile_program(archive, inputs, config, os.path.join(folder, "keeps.dsx"), (*settings, "skip_bad_steps=true"))
    usual = compile_program(archive, inputs, config, os.path.join(folder, "usual.dsx"), settings)
    data = safetensors_io.load(data_path)
    rows = BATCH * (2 if name == "two micro-steps" else 1)
    complaints = []
    ours, theirs = train(keeps, data_path, STEPS), train(usual, data_path, STEPS)
    if ours[1] != theirs[1] or not same(ours[0], theirs[0]):
        complaints.append(f"{name}: good steps are not the same")

    def poison(batch):
        batch[0, 3] = np.nan

    def leap(batch):
        batch *= 1e4

    for change, options, word in ((poison, ("--on-nan", "skip"), "the input 'x' has nan at element 3"),
                                  (leap, ("--spike-factor", 5, "--spike-window", 4, "--on-spike", "skip"), "")):
        bad, without = write_bad(data, rows, change, folder)
        skipped, losses, text = train(keeps, bad, STEPS, *options)
        expected = train(usual, without, STEPS - 1)
        if not same(skipped, expected[0]) or losses[:BAD] + losses[BAD + 1:] != expected[1]:
            complaints.append(f"{name} {options[0]}: not as if the batch had never been")
        if word not in text or (not word and "not finite" in text):
            complaints.append(f"{name} {options[0]}: says {text}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    archive, data, inputs = export.main(["mlp", "--out", args.out, "--data", str(4 * BATCH * STEPS), "--batch", str(BATCH)])
    complaints = []
    for name, settings in SETTINGS.items():
        complaints += check(name, settings, archive, inputs, args.config, data, args.out)
    finish(complaints, f"{len(SETTINGS)} settings skip as if the batch had never been")


if __name__ == "__main__":
    main()
