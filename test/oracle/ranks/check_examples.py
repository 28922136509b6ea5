#!/usr/bin/python3
"""check_examples.py - the examples at the stages of ZeRO on n ranks of IR against one rank.

    check_examples.py --out DIR [--models mlp,gpt] [--ranks 2,4,8] [--stages 1,2,3] [--steps N]      needs ds-opt on PATH

With one micro-batch a step, sums have one order: in fp32 losses, norm, rate, weights and moments must have the bits of one
rank.  With two, and in bf16, numbers are not rounded: all must agree to 1e-9, whatever types the program has.
"""

import argparse
import itertools
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import example  # noqa: E402
from ranks.agreement import differences, draw_batches, train, train_alone  # noqa: E402
from ranks.compiling import compile_ranks, ds_opt  # noqa: E402
from ranks.values import Numbers  # noqa: E402

import safetensors_io  # noqa: E402

CONFIG = {"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1}}}
# Buckets of a few parameters each, and some parameters that all ranks keep.
SMALL = {"reduce_bucket_size": 3000, "stage3_param_persistence_threshold": 40}


class Example:
    """A model, its data, and the programs that were made of it."""

    def __init__(self, name, out):
        self.folder = out
        archive, data, inputs = example.export.main([name, "--out", out, "--data", "64", "--batch", "2", "--layers", "1"][
            :-2 if name == "mlp" else None])
        self.model = os.path.join(out, f"{name}.mlir")
        ds_opt(archive, *(part for text in inputs for part in ("--input", text)), "--phase=model", "-o", self.model)
        self.data = {key: torch.from_numpy(value) for key, value in safetensors_io.load(data).items()}
        self.name, self.programs, self.alone = name, {}, {}

    def program(self, ranks, stage, accumulation, kind, **zero):
        key = ranks, stage if ranks > 1 else 0, accumulation, kind, *zero.items()
        if key not in self.programs:
            config = {**CONFIG, "gradient_accumulation_steps": accumulation, "bf16": {"enabled": kind == "bf16"},
                      "gradient_clipping": 0.5, "zero_optimization": {"stage": key[1], **zero, **SMALL}}
            self.programs[key] = compile_ranks(self.model, config, ranks, self.folder)
        return self.programs[key]

    def draw(self):
        """Inputs in the order of the data: a sample's together, two rows each."""
        taken = dict.fromkeys(self.data, 0)

        def take(name, kind):
            first = taken[name]
            taken[name] = (first + kind.shape[0]) % len(self.data[name])
            rows = self.data[name][first:first + kind.shape[0]]
            return rows.double() if kind.element.startswith("f") else rows
        return take

    def check(self, ranks, stage, accumulation, kind, steps, **zero):
        """[complaints] about one division; `zero` are further keys of zero_optimization."""
        is_exact = accumulation > 1
        numbers, key = Numbers(rounds=not is_exact), (ranks, accumulation, kind)
        program = self.program(ranks, stage, accumulation, kind, **zero)
        if key not in self.alone:
            batches = draw_batches(program, steps, self.draw())
            self.alone[key] = batches, train_alone(self.program(1, 0, accumulation * ranks, kind), batches, numbers)
        batches, theirs = self.alone[key]
        found = differences(train(program, batches, numbers), theirs, 1e-9 if is_exact else 0.0)
        return [f"{self.name}, {ranks} ranks, stage {stage}, {kind}: {text}" for text in found]


def numbers_of(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--models", type=lambda text: text.split(","), default=["mlp", "gpt", "llama", "vit", "speech"])
    parser.add_argument("--ranks", type=numbers_of, default=[2, 4, 8])
    parser.add_argument("--stages", type=numbers_of, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, help="default: 2 on 2 ranks, where they are cheap, else 1")
    args = parser.parse_args()
    torch.set_num_threads(1)
    complaints, counts = [], {"to the bit": 0, "to 1e-9": 0, "to 1e-9 where two ranks divide": 0,
                              "to the bit with a second copy": 0, "to 1e-9 with a second copy": 0}
    for turn, name in enumerate(args.models):
        model = Example(name, args.out)
        for index, (ranks, stage) in enumerate(itertools.product(args.ranks, args.stages)):
            steps = args.steps or (2 if ranks == 2 else 1)
            complaints += model.check(ranks, stage, 1, "fp32", steps)
            counts["to the bit"] += 1
            if (index + turn) % 3 == 0:  # the models together have all pairs
                complaints += model.check(ranks, stage, 2, "bf16", steps)
                counts["to 1e-9"] += 1
        ranks = (4, 8)[turn % 2]
        complaints += model.check(ranks, 3, 2, "bf16", 1, mics_shard_size=2)
        counts["to 1e-9 where two ranks divide"] += 1
        for size in (2, 4)[:turn % 2 + 1]:
            complaints += model.check(ranks, 3, 1, "fp32", 2, zero_hpz_partition_size=size)
            counts["to the bit with a second copy"] += 1
        complaints += model.check(ranks, 3, 3, "bf16", 2, zero_hpz_partition_size=2)  # first, middle and last micro-steps
        counts["to 1e-9 with a second copy"] += 1
    print("\n".join(complaints) or "\n".join(f"{count} steps agree with one rank {how}" for how, count in counts.items()))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
