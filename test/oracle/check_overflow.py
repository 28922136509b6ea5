#!/usr/bin/python3
"""check_overflow.py - train in fp16 with samples that overflow, and hold the logged scale against DeepSpeed's scaler.

    check_overflow.py --out DIR --config ds_config.json

The perceptron of the examples with its data, of which some samples, by a fixed seed, are beyond fp16. The log must name
exactly the steps that saw one as skipped, and each step's scale must be the scaler's after it.
"""

import argparse
import json
import os
import random
import sys

import compare
import ds_config
from commands import compile_program, finish, run
from loss_scaler import LossScaler

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402
import safetensors_io  # noqa: E402

SCALERS = [{"initial_scale_power": 6, "loss_scale_window": 3},
           {"initial_scale_power": 6, "loss_scale_window": 2, "hysteresis": 3, "consecutive_hysteresis": True},
           {"initial_scale_power": 8, "loss_scale_window": 4, "hysteresis": 1}]


def expected(block, overflows):
    """[(scale, skipped)] after each step."""
    scaler = LossScaler(2.0 ** block["initial_scale_power"], block["loss_scale_window"], block.get("hysteresis", 2),
                        block.get("consecutive_hysteresis", False))
    found = []
    for overflow in overflows:
        scaler.update(overflow)
        found.append((scaler.scale, overflow))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--config", required=True)
    parser.add_argument("--steps", type=int, default=16)
    args = parser.parse_args()
    config = ds_config.read(args.config)
    batch, micro, _ = ds_config.batch_triple(config)
    archive, data, inputs = export.main(["mlp", "--traced", "--out", args.out, "--data", str(batch * args.steps),
                                         "--batch", str(micro)])
    rng = random.Random(5)
    overflows = [rng.random() < 0.35 for _ in range(args.steps)]
    arrays = safetensors_io.load(data)
    for step, overflow in enumerate(overflows):
        if overflow:
            arrays["x"][step * batch + rng.randrange(batch)] = 1e6  # the largest fp16 is 65504
    safetensors_io.save(data, arrays)
    complaints = []
    for index, block in enumerate(SCALERS):
        files = {kind: os.path.join(args.out, f"{index}.{kind}") for kind in ("json", "dsx", "jsonl")}
        with open(files["json"], "w") as file:
            json.dump({**config, "fp16": {"enabled": True, **block}}, file)
        compile_program(archive, files["json"], inputs, files["dsx"])
        run("ds-run", files["dsx"], "--data", data, "--steps", args.steps, "--log-jsonl", files["jsonl"])
        found = [(entry["loss_scale"], entry["skipped"]) for entry in compare.read_log(files["jsonl"])]
        wanted = expected(block, overflows)
        complaints += [f"{block}: step {step + 1} is {a}, not {b}"
                       for step, (a, b) in enumerate(zip(found, wanted)) if a != b or len(found) != len(wanted)]
    finish(complaints, f"{len(SCALERS)} scalers, {sum(overflows)} of {args.steps} steps skipped")


if __name__ == "__main__":
    main()
