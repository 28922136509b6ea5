#!/usr/bin/python3
"""check_random_models.py - one step of models that nobody would write, against autograd.

Each model is compiled to a program and trained for one step of plain gradient descent, with bytes outside planned lifetimes
poisoned. Its loss must be the interpreter's, and each parameter must have moved by its gradient.

    check_random_models.py --out DIR --seeds 20 [--first 0]       needs ds-opt and ds-run on PATH
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import torch

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parents[1] / "examples")]
import safetensors_io  # noqa: E402
from evaluate import Module, evaluate  # noqa: E402
from random_step import random_model  # noqa: E402

RATE = 0.1
SETTINGS = ["optimizer.type=SGD", f"optimizer.params.lr={RATE}", "train_micro_batch_size_per_gpu=4", "gradient_clipping=0"]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "DS_POISON": "1"})
    if done.returncode:
        raise AssertionError(f"{command[0]} exits with {done.returncode}: {done.stderr.strip()[:500]}")
    return done.stdout


def reference(text, weights, x):
    """The loss and the parameters after the step, in double precision."""
    function = Module(text).functions["forward"]
    leaves = {name: value.double().requires_grad_() for name, value in weights.items()}
    values = [leaves[name] if kind == "state" else x.double() for kind, name in function.argument_attributes]
    loss, = evaluate(function, values)
    loss.backward()
    return loss.item(), {name: leaf.detach() - RATE * (0 if leaf.grad is None else leaf.grad)
                         for name, leaf in leaves.items()}


def check(seed, out):
    """What differs for the model of `seed`, or None."""
    (out / "model.mlir").write_text(random_model(seed))
    text = run("ds-opt", out / "model.mlir", "--mlir-print-op-generic")
    generator = torch.Generator().manual_seed(seed)
    weights = {name: torch.rand(state.shape, generator=generator) + 0.25 for name, state in Module(text).states.items()}
    x = torch.rand([4, 4], generator=generator)
    safetensors_io.save(out / "weights.safetensors", weights)
    safetensors_io.save(out / "data.safetensors", {"x": x})
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    run("ds-opt", out / "model.mlir", "--emit=program", "-o", out / "model.dsx", *settings)
    run("ds-run", out / "model.dsx", "--data", out / "data.safetensors", "--weights", out / "weights.safetensors", "--steps",
        "1", "--log-jsonl", out / "log.jsonl", "--save-weights", out / "after.safetensors")
    loss, expected = reference(text, weights, x)
    logged = json.loads((out / "log.jsonl").read_text().splitlines()[0])["loss"]
    if not abs(logged - loss) <= 1e-4 * max(1, abs(loss)):
        return f"the loss is {logged}, not {loss}"
    after = safetensors_io.load(out / "after.safetensors")
    for name, value in expected.items():
        off = (torch.as_tensor(after[name]).double() - value).abs().max().item()
        if not off <= 1e-4 * max(1, value.abs().max().item()):
            return f"@{name} is off by {off:.3g}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    faults = {}
    for seed in range(args.first, args.first + args.seeds):
        try:
            faults[seed] = check(seed, args.out)
        except AssertionError as error:
            faults[seed] = str(error)
        if faults[seed]:
            print(f"seed {seed}: {faults[seed]}", file=sys.stderr)
    print(f"{sum(fault is None for fault in faults.values())} of {args.seeds} models agree")
    return 1 if any(faults.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
