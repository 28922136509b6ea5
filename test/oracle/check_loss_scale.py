#!/usr/bin/python3
"""check_loss_scale.py - run steps with injected overflows and compare the scaler with DeepSpeed's.

    check_loss_scale.py --print 20 | ds-opt --split-input-file --ds-differentiate --ds-build-step
        --ds-decompose --mlir-print-op-generic | check_loss_scale.py

The first call prints modules whose scalers, schedules and accumulation a fixed seed draws; the second runs each for
several patterns of overflows: an infinite or undefined input in one micro-step of a step. Scale, skipped steps, rate,
norm and weights must be DeepSpeed's after every step, the scale exactly.
"""

import argparse
import math
import os
import random
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import optimizers  # noqa: E402
import schedules  # noqa: E402
from check_ir_step import Step, relative, to_blocks, training_of  # noqa: E402
from evaluate import Module  # noqa: E402
from loss_scaler import GivesUp, LossScaler  # noqa: E402

MODULE = """module attributes {{ds.training = #ds.training<gradient_accumulation_steps = {accumulation}, gradient_clipping = {clip},
    optimizer = {{type = {optimizer}, lr = 0.05}}, scheduler = {{type = WarmupLR, warmup_max_lr = 0.05,
    warmup_num_steps = 6, warmup_log = false}}, loss_scale = {{{scaler}}}>}} {{
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3xf32>
  func.func @forward(%x: tensor<3xf32> {{ds.input = "x"}}, %w: tensor<3xf32> {{ds.state = @w}}) -> tensor<f32> {{
    %y = ds.mul %x, %w : tensor<3xf32>
    %loss = ds.reduce sum %y dims [0] : tensor<3xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }}
}}
"""


def random_module(rng):
    scaler = "skip = true"
    kind = rng.choice(["dynamic"] * 6 + ["static", "skip"])
    if kind != "skip":
        initial = 2.0 ** rng.choice([0, 2, 4, 16])
        scaler += f", scale = true, dynamic = {'true' if kind == 'dynamic' else 'false'}, initial = {initial}"
    if kind == "dynamic":
        scaler += (f", window = {rng.choice([1, 2, 3, 5])}, hysteresis = {rng.choice([0, 1, 2, 3])}, "
                   f"consecutive_hysteresis = {rng.choice(['true', 'false'])}, "
                   f"minimum = {rng.choice([0.25, 1.0, 2.0])}")
    return MODULE.format(accumulation=rng.choice([1, 2, 3]), clip=rng.choice([0.0, 0.5, 100.0]),
                         optimizer=rng.choice(["adam", "sgd"]), scaler=scaler)


class Reference:
    """The weights, the scaler and the schedule as DeepSpeed keeps them."""

    def __init__(self, training, weights):
        block, self.schedule = to_blocks(training)
        self.optimizer = optimizers.Optimizer(block, [weights])
        self.accumulation, self.clip = training.get("gradient_accumulation_steps", 1), training.get("gradient_clipping", 0.0)
        options = training["loss_scale"]
        self.scale, self.scaler, self.made = options.get("initial", 1.0), None, 0
        if options.get("dynamic", False):
            self.scaler = LossScaler(self.scale, options.get("window", 1000), options.get("hysteresis", 2),
                                     options.get("consecutive_hysteresis", False), options.get("minimum", 1.0))

    def step(self, batches):
        """(rate, norm, skipped) of a step."""
        gradient = sum(batches) / self.accumulation
        norm = float(gradient.norm())
        rate = schedules.learning_rate(self.schedule, self.optimizer.base_rate, self.made + 1)
        overflow = not math.isfinite(norm)
        if not overflow:
            divisor = max((norm + 1e-6) / self.clip, 1.0) if self.clip else 1.0
            self.made += 1
            self.optimizer.step([gradient / divisor], rate, self.optimizer.betas, self.made)
        if not self.scaler:
            return rate, norm, int(overflow)
        try:
            self.scaler.update(overflow)
        except GivesUp:
            return rate, norm, 2
        self.scale = self.scaler.scale
        return rate, norm, int(overflow)


def differences(states, reference, rate, norm, skipped):
    """What is wrong after a step."""
    exact = {"skipped": skipped, "step": reference.made}
    if "loss_scale" in states and skipped != 2:
        exact["loss_scale"] = reference.scale
    found = [f"@{name} is {float(states[name])}, not {value}" for name, value in exact.items()
             if float(states[name]) != value]
    near = {"lr": rate, "w": reference.optimizer.parameters[0]}
    if math.isfinite(norm):
        near["grad_norm"] = norm
    return found + [f"@{name} is off by {off:.3g}" for name, value in near.items()
                    for off in [relative(states[name], value)] if not off <= 1e-5]


def run(module, training, rng, steps):
    """[complaints] about one pattern, and how many steps were skipped in it."""
    step = Step(module, torch.Generator().manual_seed(rng.randrange(1 << 30)))
    reference = Reference(training, step.states["w"].clone())
    density, overflows = rng.choice([0.1, 0.4, 0.8]), 0
    for number in range(1, steps + 1):
        batches = [step.sample()["x"] for _ in range(reference.accumulation)]
        if rng.random() < density:
            rng.choice(batches)[rng.randrange(3)] = rng.choice([math.inf, -math.inf, math.nan])
        rate, norm, skipped = reference.step(batches)
        step.execute([{"x": batch} for batch in batches])
        overflows += skipped > 0
        found = differences(step.states, reference, rate, norm, skipped)
        if found:
            return [f"step {number}: {text}" for text in found], overflows
        if skipped == 2:
            break
    return [], overflows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", type=int, metavar="N")
    parser.add_argument("--patterns", type=int, default=6)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    rng = random.Random(4)
    if args.print:
        print("// -----\n".join(random_module(rng) for _ in range(args.print)))
        return 0
    texts, complaints, overflows = sys.stdin.read().split("// -----"), [], 0
    for index, text in enumerate(texts):
        module, training = Module(text), training_of(text)
        for _ in range(args.patterns):
            found, count = run(module, training, rng, args.steps)
            overflows += count
            complaints += [f"module {index} {training['loss_scale']}: {text}" for text in found]
    print("\n".join(complaints) if complaints else f"{len(texts)} scalers agree, {overflows} steps skipped")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
