#!/usr/bin/python3
"""check_ranks.py - train an example on several ranks and compare each run with one rank on the same global batch.

    check_ranks.py gpt --out DIR --config ds_config.json --ranks 2,4 --stages 0,1,2,3 --types fp32,bf16

One rank runs with N times the accumulation, so that it sees the same micro-batches.  Losses and gradient norms must
agree within the type's tolerance; runs of different stages whose gradients are reduced at the same moments must be
equal to the bit, in their logs and in the weights they save.  Unknown options go to examples/export.py.
"""

import itertools
import json
import os

import numpy as np

import compare
import ds_config
import example
from commands import compile_program, finish, run

import safetensors_io

TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}},
         "fp16": {"fp16": {"enabled": True, "initial_scale_power": 12}}}
TOLERANCE = {"fp32": (1e-6, 1e-5), "bf16": (2 ** -8, 2 ** -8), "fp16": (2 ** -8, 2 ** -8)}  # step 1, later steps
SMALL_BUCKETS = {"reduce_bucket_size": 20000, "allgather_bucket_size": 20000, "stage3_param_persistence_threshold": 100}


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse():
    parser = example.make_parser(__doc__)
    parser.add_argument("--ranks", type=numbers, default=[2])
    parser.add_argument("--stages", type=numbers, default=[0, 1, 2, 3])
    parser.add_argument("--types", type=lambda text: text.split(","), default=["fp32"])
    parser.add_argument("--accumulation", type=numbers, default=[1])
    return parser.parse_known_args()


class Matrix:
    """Runs of one model, each kept in a folder of its own."""

    def __init__(self, args, rest):
        self.args = args
        self.config = ds_config.read(args.config, args.set)
        self.micro = self.config["train_micro_batch_size_per_gpu"]
        self.archive, self.data, self.inputs = example.make_example(args, rest, self.micro)
        self.results = {}

    def train(self, kind, stage, ranks, accumulation):
        """(log, weights) of one run; each is made once."""
        key = (kind, stage if ranks > 1 else 0, ranks, accumulation)
        if key not in self.results:
            self.results[key] = self.run(*key)
        return self.results[key]

    def run(self, kind, stage, ranks, accumulation):
        folder = os.path.join(self.args.out, f"{kind}-stage{stage}-ranks{ranks}-accumulation{accumulation}")
        os.makedirs(folder, exist_ok=True)
        zero = {**SMALL_BUCKETS, **self.config.get("zero_optimization", {}), "stage": stage}
        config = {**self.config, **TYPES[kind], "gradient_accumulation_steps": accumulation, "zero_optimization": zero}
        names = ("config.json", "model.dsx", "log.jsonl", "after.safetensors")
        paths = {name: os.path.join(folder, name) for name in names}
        with open(paths["config.json"], "w") as file:
            json.dump(config, file, indent=2)
        compile_program(self.archive, paths["config.json"], self.inputs, paths["model.dsx"],
                        [*example.loss_options(self.args), "--ranks", ranks])
        run("ds-run", paths["model.dsx"], "--ranks", ranks, "--data", self.data, "--steps", self.args.steps, "--log-jsonl",
            paths["log.jsonl"], "--save-weights", paths["after.safetensors"])
        return compare.read_log(paths["log.jsonl"]), safetensors_io.load(paths["after.safetensors"])

    def against_one_rank(self, kind, stage, ranks, accumulation):
        """The complaints of one run, and a line that says how far it is."""
        log, _ = self.train(kind, stage, ranks, accumulation)
        reference, _ = self.train(kind, 0, 1, accumulation * ranks)
        complaints, _ = compare.compare(log, reference, *TOLERANCE[kind])
        name = f"{kind} stage {stage}, {ranks} ranks, accumulation {accumulation}"
        worst = max(compare.difference(a["loss"], b["loss"]) for a, b in zip(log, reference))
        first = compare.difference(log[0]["loss"], reference[0]["loss"])
        return [f"{name}: {text}" for text in complaints], f"{name}: loss within {first:.2g} at step 1, {worst:.2g} over all"

    def between_stages(self, kind, ranks, accumulation):
        """Stages that reduce at the same moments give the same bits."""
        together = [stage for stage in self.args.stages if stage >= (1 if accumulation == 1 else 2)]
        complaints = []
        for first, second in itertools.pairwise(together):
            a, b = (self.train(kind, stage, ranks, accumulation) for stage in (first, second))
            name = f"{kind}, {ranks} ranks, accumulation {accumulation}: stages {first} and {second}"
            for x, y in zip(a[0], b[0]):
                if any(x.get(key) != y.get(key) for key in ("loss", "grad_norm", "lr", "loss_scale", "skipped")):
                    complaints.append(f"{name} differ at step {x['step']}: {x} against {y}")
                    break
            complaints += [f"{name}: {tensor} differs" for tensor in a[1] if not np.array_equal(
                a[1][tensor].view(np.uint8), b[1][tensor].view(np.uint8))]
        return complaints


def main():
    args, rest = parse()
    matrix = Matrix(args, rest)
    complaints, summary = [], []
    for kind, ranks, accumulation in itertools.product(args.types, args.ranks, args.accumulation):
        for stage in args.stages:
            found, line = matrix.against_one_rank(kind, stage, ranks, accumulation)
            complaints += found
            summary.append(line)
        if ranks > 1:
            complaints += matrix.between_stages(kind, ranks, accumulation)
    finish(complaints, "\n".join(summary + [f"{len(summary)} runs agree with one rank"]))


if __name__ == "__main__":
    main()
