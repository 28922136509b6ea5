#!/usr/bin/python3
"""check_exchange.py - what ranks send of their gradients, against PyTorch's rounding of what each of them has.

    check_exchange.py mlp --out DIR

One step of plain SGD reveals gradients. One rank alone, on the samples of rank r, reveals what rank r has. From that
PyTorch makes what W ranks must get: each one's share rounded to communication_data_type, added up in f32 in rank order,
rounded to that type again and then to the gradient's own. Every precision and type of exchange is run, by all-reduce
and by reduce-scatter where the type loses bits; so are gradient_allreduce_op and the keys that scale before the sum.
Unknown options go to examples/export.py.
"""

import argparse
import json
import os
import sys

import numpy as np
import torch

from commands import compile_program, finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402
import safetensors_io  # noqa: E402

RATE, SCALE, RANKS = 1024.0, 128.0, 2  # powers of two: they round nothing
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MODES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "loss_scale": SCALE}}}
MEANS = [("gradient_allreduce_op sum", {"gradient_allreduce_op": "sum"}, 1, (0, 2)),
         ("prescaled", {"prescale_gradients": True, "gradient_predivide_factor": 4.0}, RANKS, (1,))]
FLIPS = 2e-3  # share of elements that may be rounded to the neighbour: they lay between two numbers


def rounded(tensor, name):
    return tensor.to(TYPES[name]).float()


def sent_and_received(parts, mode, exchange, divisor):
    """The gradient that every rank gets, from what each has; `exchange` is absent: their own type."""
    scale, kind = (SCALE if mode == "fp16" else 1.0), exchange or mode
    total = sum(rounded(part * (scale / divisor), kind) for part in parts)
    return rounded(rounded(total, kind), mode) / scale


class Runner:
    """Programs of one model, each run for one step."""

    def __init__(self, args, rest):
        self.out = args.out
        self.archive, self.data, self.inputs = export.main([args.name, "--out", args.out, "--data", str(2 * RANKS), "--batch", "2",
                                                            *rest])

    def gradients(self, name, mode, ranks, data, stage=0, extra=()):
        """name -> gradient that one step of plain SGD reveals, as f32."""
        stem = os.path.join(self.out, name.replace(" ", "-"))
        config = {"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.0, "zero_allow_untested_optimizer": True,
                  "optimizer": {"type": "SGD", "params": {"lr": RATE}}, **MODES[mode], **dict(extra),
                  "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 50, "reduce_bucket_size": 2000}}
        with open(stem + ".json", "w") as file:
            json.dump(config, file, indent=2)
        compile_program(self.archive, stem + ".json", self.inputs, stem + ".dsx", ["--ranks", ranks, "--threads-per-rank", 1])
        run("ds-run", stem + ".dsx", "--ranks", ranks, "--data", data, "--steps", 1, "--save-weights", stem + ".after.safetensors")
        before, after = (safetensors_io.load(stem + end) for end in (".safetensors", ".after.safetensors"))
        found = {key: (before[key].astype(np.float64) - after[key]) / RATE for key in sorted(before)}
        return {key: torch.from_numpy(value.astype(np.float32)) for key, value in found.items()}

    def of_each_rank(self, mode):
        """What each rank has, in the type in which it has it."""
        whole, parts = safetensors_io.load(self.data), []
        for rank in range(RANKS):
            path = os.path.join(self.out, f"rank{rank}.safetensors")
            safetensors_io.save(path, {key: value[2 * rank:2 * rank + 2] for key, value in whole.items()})
            found = self.gradients(f"{mode} rank {rank}", mode, 1, path)
            scale = SCALE if mode == "fp16" else 1.0
            parts.append({key: rounded(value * scale, mode) / scale for key, value in found.items()})
        return parts


def compare(name, found, parts, mode, exchange, divisor):
    """[complaints], and the share of elements that an exchange in the widest type would have made otherwise."""
    off = other = count = 0
    for key, gradient in found.items():
        mine = [part[key] for part in parts]
        expected, plain = (sent_and_received(mine, mode, kind, divisor) for kind in (exchange, "fp32"))
        limit = expected.abs() * 2 ** -21 + 2 ** -32  # what revealing it costs
        off += int(((gradient - expected).abs() > limit).sum())
        other += int(((plain - expected).abs() > limit).sum())
        count += gradient.numel()
        if float((gradient - expected).norm()) > 2 ** -9 * float(expected.norm()) + 2 ** -30:
            return [f"{name}: {key} is off by {float((gradient - expected).norm() / expected.norm()):.2g}"], other / count
    return [f"{name}: {off} of {count} elements are off"] if off > FLIPS * count else [], other / count


def narrower(kind, mode):
    """Whether an exchange in type `kind` loses bits that gradients of `mode` have."""
    bits = {"fp32": 24, "fp16": 11, "bf16": 8}
    return kind is not None and bits[kind] < bits[mode]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--out", required=True, metavar="DIR")
    args, rest = parser.parse_known_args()
    runner, complaints, summary = Runner(args, rest), [], []
    for mode in MODES:
        parts = runner.of_each_rank(mode)
        cases = [(f"sent as {kind or 'it is'}", {"communication_data_type": kind} if kind else {}, kind, RANKS, stage)
                 for kind in [None, *TYPES] for stage in ((0, 3) if narrower(kind, mode) else (3,))]
        cases += [(words, extra, None, divisor, stage) for words, extra, divisor, kept in MEANS for stage in kept]
        for words, extra, kind, divisor, stage in cases:
            name = f"{mode} {words} stage {stage}"
            found = runner.gradients(name, mode, RANKS, runner.data, stage, extra.items())
            wrong, other = compare(name, found, parts, mode, kind, divisor)
            complaints += wrong
            summary.append(f"{name}: agrees; f32 would give other numbers in {other:.1%}")
            if narrower(kind, mode) and other < 0.05:
                complaints.append(f"{name}: proves nothing, for f32 gives the same")
    finish(complaints, "\n".join(summary + [f"{len(summary)} exchanges agree"]))


if __name__ == "__main__":
    main()
