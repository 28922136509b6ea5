#!/usr/bin/python3
"""check_precision.py - train an example in 16 bits, and hold what is lost against what rounding allows.

    check_precision.py gpt --traced --out DIR --config ds_config.json

Modes are bf16 and fp16, and both by torch_autocast. Of each, against f32:

  - The loss of step 1 and every parameter's gradient, as one step of plain SGD reveals it, are off by at most
    a few times what rounding every value makes of them in PyTorch (rounding.py): sums of products or of
    micro-steps in 16 bits are not.
  - The losses of --steps steps drift by at most as many times what gradients and weights of that error make of them.
  - The weights that are saved are more than the 16-bit type can hold: masters are f32.
  - Something is lost, or nothing was lowered.
"""

import json
import os

import numpy as np

import compare
import ds_config
import example
import rounding
import train_oracle
from check_training import PLAIN_SGD, RATE
from commands import compile_program, finish, run

import safetensors_io

MODES = {"bf16": {"bf16": {"enabled": True}},
         "fp16": {"fp16": {"enabled": True, "initial_scale_power": 12}},
         "autocast-bf16": {"torch_autocast": {"enabled": True, "dtype": "bf16"}},
         "autocast-fp16": {"torch_autocast": {"enabled": True, "dtype": "fp16"}}}
# What a broken mode would do, asked for by name: this check must refuse it.
BAD_MODES = {"masters-bf16": {"bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True},
                              "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True},
             "sums-bf16": {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "bf16"}}}


# How many deviations are too many: of a norm over many elements, which differs little from sample to sample, and of a
# number that a few samples tell little of.
LIMIT, SMALL_LIMIT, SMALL = 2.0, 4.0, 16


def type_of(mode):
    return mode.split("-")[-1]


class Ours:
    """Runs of ds-run on one example."""

    def __init__(self, args, archive, data, inputs):
        self.args, self.archive, self.data, self.inputs = args, archive, data, inputs

    def train(self, config, name, steps):
        """(losses, weights before, weights after)."""
        files = {kind: os.path.join(self.args.out, f"{name}.{kind}") for kind in ("json", "dsx", "jsonl", "after")}
        with open(files["json"], "w") as file:
            json.dump(config, file, indent=2)
        compile_program(self.archive, files["json"], self.inputs, files["dsx"], example.loss_options(self.args))
        run("ds-run", files["dsx"], "--data", self.data, "--steps", steps, "--log-jsonl", files["jsonl"], "--save-weights",
            files["after"])
        log = compare.read_log(files["jsonl"])
        skipped = sum(bool(entry.get("skipped")) for entry in log)
        assert not skipped, f"{name}: {skipped} steps were skipped, and cannot be compared"
        before = safetensors_io.load(os.path.join(self.args.out, f"{name}.safetensors"))
        return [entry["loss"] for entry in log], before, safetensors_io.load(files["after"])

    def gradients(self, config, name):
        """The loss of step 1 and {name: gradient}."""
        plain = {**config, **PLAIN_SGD}
        plain.pop("scheduler", None)
        losses, before, after = self.train(plain, name + "-step", 1)
        return losses[0], {key: (value.astype(np.float64) - after[key]) / RATE for key, value in before.items()}


def is_held(values, kind):
    """Of each value, whether the 16-bit type holds it."""
    if kind == "fp16":
        return values.astype(np.float16).astype(np.float32) == values
    return values.astype(np.float32).view(np.uint32) & 0xFFFF == 0


def check_step(name, limits, names, found, exact):
    """Complaints about the loss and the gradients of step 1, and the largest error in deviations."""
    errors, most = {"loss": abs(found[0] - exact[0]) / abs(exact[0]) / limits.loss}, {"loss": SMALL_LIMIT}
    for index, aliases in enumerate(names):
        key = next(alias for alias in aliases if alias in exact[1])
        off = float(np.linalg.norm(found[1][key] - exact[1][key]))
        errors[key] = off / limits.gradients[index] if limits.gradients[index] else 0.0
        most[key] = SMALL_LIMIT if exact[1][key].size < SMALL else LIMIT
    complaints = [f"{name}: the error of step 1's {'loss' if key == 'loss' else 'gradient of ' + key} is {error:.2f} times what "
                  f"rounding makes it, limit {most[key]}" for key, error in errors.items() if not error <= most[key]]
    if not any(errors.values()):
        complaints.append(f"{name}: step 1 is that of f32")
    worst = max(errors, key=lambda key: errors[key] / most[key])
    return complaints, f"step 1 errs by {errors[worst]:.2f} of what rounding makes ({worst}), limit {most[worst]}"


def check_masters(name, after):
    """Complaints about weights that have no more digits than 16 bits hold."""
    bad = [key for key, values in sorted(after.items()) if values.size >= 16 and is_held(values, type_of(name)).mean() > 0.5]
    return [f"{name}: {key} has the digits of {type_of(name)} alone: is its master gone?" for key in bad]


def parse():
    parser = example.make_parser(__doc__)
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES))
    return parser.parse_known_args()


def main():
    args, rest = parse()
    config = ds_config.read(args.config, args.set)
    _, micro, _ = ds_config.batch_triple(config)
    archive, data, inputs = example.make_example(args, rest, micro)
    ours = Ours(args, archive, data, inputs)
    theirs, trainer = train_oracle.train(archive, config, data, args.steps, args.loss)
    names = [aliases for aliases, _ in trainer.shared]
    exact, exact_step = ours.train(config, "f32", args.steps)[0], ours.gradients(config, "f32")
    limits, drifts = {}, {}
    for kind in sorted({type_of(mode) for mode in args.modes}):
        limits[kind] = rounding.deviations(archive, config, data, args.loss, kind)
        drifts[kind] = rounding.drift(archive, config, data, args.steps, args.loss, [entry["loss"] for entry in theirs], kind,
                                      limits[kind])
    summary, complaints = [], []
    for mode in args.modes:
        lowered, kind = {**config, **{**MODES, **BAD_MODES}[mode]}, type_of(mode)
        more, text = check_step(mode, limits[kind], names, ours.gradients(lowered, mode), exact_step)
        losses, _, after = ours.train(lowered, mode, args.steps)
        drift = rounding.noise(losses, exact) / drifts[kind]
        summary.append(f"{mode}: {text}; {args.steps} steps drift by {drift:.2f}")
        complaints += more + check_masters(mode, after)
        if not 0 < drift <= SMALL_LIMIT:
            complaints.append(f"{summary[-1]}, limit {SMALL_LIMIT}")
    finish(complaints, "\n".join(summary))


if __name__ == "__main__":
    main()
