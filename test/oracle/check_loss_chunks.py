#!/usr/bin/python3
"""check_loss_chunks.py - train an example with its logits made whole and in chunks, and compare.

    check_loss_chunks.py gpt --traced --out DIR --config ds_config.json --chunks 2,3,32 --types fp32,bf16 --ranks 2

Every second sample has targets that are all ignored, and one has some: chunks of which nothing counts are among them,
and ranks with different counts. The run in one chunk is itself held to PyTorch, where it is fp32 on one rank. Losses and
gradient norms must agree with it within the type's rounding, for chunks that divide the rows and for such that do not,
and so must the weights that are saved. Unknown options go to examples/export.py.
"""

import json
import os

import compare
import ds_config
import example
import train_oracle
from check_training import weight_complaints
from commands import compile_program, finish, run

import safetensors_io

TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}},
         "fp16": {"fp16": {"enabled": True, "initial_scale_power": 12}}}
TOLERANCE = {"fp32": 2e-5, "bf16": 2 ** -8, "fp16": 2 ** -10}


def numbers(text):
    return [int(part) for part in text.split(",")]


def ignore_targets(path):
    """Takes the targets of every second sample out, and three of the first."""
    data = safetensors_io.load(path)
    data["y"][1::2] = -100
    data["y"][0, :3] = -100
    safetensors_io.save(path, data)


def train(args, name, archive, data, inputs, config):
    """(log, weights) of one run."""
    files = {kind: os.path.join(args.out, f"{name}.{kind}") for kind in ("json", "dsx", "jsonl", "safetensors")}
    with open(files["json"], "w") as file:
        json.dump(config, file, indent=2)
    ranks = ["--ranks", str(args.ranks)] if args.ranks > 1 else []
    compile_program(archive, files["json"], inputs, files["dsx"], [*example.loss_options(args), *ranks])
    run("ds-run", files["dsx"], *ranks, "--data", data, "--steps", args.steps, "--log-jsonl", files["jsonl"],
        "--save-weights", files["safetensors"] + ".after")
    return compare.read_log(files["jsonl"]), safetensors_io.load(files["safetensors"] + ".after")


def parse():
    parser = example.make_parser(__doc__)
    parser.add_argument("--chunks", type=numbers, default=[2])
    parser.add_argument("--types", type=lambda text: text.split(","), default=["fp32"])
    parser.add_argument("--ranks", type=int, default=1)
    return parser.parse_known_args()


def main():
    args, rest = parse()
    base = ds_config.read(args.config, args.set)
    _, micro, _ = ds_config.batch_triple(base, args.ranks)
    archive, data, inputs = example.make_example(args, rest, micro)
    ignore_targets(data)
    complaints, runs = [], 0
    for kind in args.types:
        config = {**base, **TYPES[kind], "loss_chunks": 1}
        whole, weights = train(args, f"{kind}-1", archive, data, inputs, config)
        if kind == "fp32" and args.ranks == 1:
            log, _ = train_oracle.train(archive, base, data, args.steps, args.loss)
            complaints += compare.compare(whole, log, 1e-5, 1e-4)[0]
        for chunks in args.chunks:
            config["loss_chunks"] = chunks
            log, after = train(args, f"{kind}-{chunks}", archive, data, inputs, config)
            runs += 1
            tolerance = TOLERANCE[kind]
            found = compare.compare(log, whole, tolerance, tolerance)[0] + weight_complaints(after, weights, tolerance)
            complaints += [f"{kind}, {chunks} chunks: {text}" for text in found]
    finish(complaints, f"{runs} runs in chunks agree with their run in one")


if __name__ == "__main__":
    main()
