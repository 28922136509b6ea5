#!/usr/bin/python3
"""check_targets.py - train on labels of which most do not count, divided in several ways, and compare with PyTorch.

    check_targets.py --config plain.json --out DIR [--fake LIBRARY]

A global batch is 4 samples. Samples have different numbers of targets; the first micro-batch of the second step has none,
and the third step has none at all: it changes nothing, and PyTorch leaves it out. With loss_normalization "micro_batches"
each division into micro-batches and ranks must have PyTorch's mean of means, to which a micro-batch without a target adds 0.
With "tokens" all divisions must have PyTorch's mean over the targets of the whole batch, in a loss made in chunks too. The
held-out loss has the same meaning: over the micro-batches that have a target, or over all targets. With --fake
(libds-fake-cuda.so) one division alone is trained, on the fake device, and must have the same numbers.
"""

import argparse
import json
import os
import sys

import numpy as np
import torch

import compare
import ds_config
import fake_cuda
import train_oracle
from commands import compile_program, finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402
import safetensors_io  # noqa: E402

BATCH, STEPS, LENGTH, IGNORED = 4, 6, 16, -100
WITHOUT = 3  # the step that has no target
# (micro-batch, accumulation, ranks, more settings)
DIVISIONS = [(4, 1, 1, {}), (2, 2, 1, {}), (2, 1, 2, {}), (1, 2, 2, {"zero_optimization": {"stage": 2}}),
             (2, 2, 2, {"tensor_parallel": {"autotp_size": 2}}), (2, 2, 1, {"loss_chunks": 3})]


def mask_labels(path):
    """Leaves out targets of all samples, each another number of them, and all of some."""
    data = safetensors_io.load(path)
    labels, draw = data["y"], np.random.default_rng(5)
    for sample in range(len(labels)):
        labels[sample, draw.permutation(LENGTH)[:draw.integers(1, LENGTH - 1)]] = IGNORED
    labels[4:6] = IGNORED  # the first micro-batch of step 2, or the first rank's
    labels[8:12] = IGNORED  # step 3
    safetensors_io.save(path, data)


class Masked(train_oracle.Trainer):
    """A micro-batch without a target adds 0, and a step without one is none."""

    batches = 0

    def micro_backward(self, batch):
        return super().micro_backward(batch) if (batch[1] != IGNORED).any() else 0.0

    def backward(self):
        total = 0.0
        for micro_step in range(self.accumulation):
            first = (self.batches * self.accumulation + micro_step) * self.micro
            total += self.micro_backward(self.data.batch(self.names, first, self.micro))
        return total / self.accumulation

    def step(self):
        size = self.accumulation * self.micro
        labels = self.data.batch(self.names, self.batches * size, size)[1]
        record = super().step() if (labels != IGNORED).any() else None
        self.batches += 1
        return record


def pytorch(archive, data, micro, accumulation, base):
    """(log without the step that is none, trainer after it)."""
    config = {**base, "train_micro_batch_size_per_gpu": micro, "gradient_accumulation_steps": accumulation}
    trainer = Masked(torch.jit.load(archive), config, train_oracle.Data(data))
    log = [trainer.step() for _ in range(STEPS)]
    return [record for record in log if record], trainer


def held_out(trainer, data, micro, by_tokens):
    """The loss of `data` by PyTorch."""
    columns, losses, weights = train_oracle.Data(data), [], []
    with torch.no_grad():
        for first in range(0, columns.count, micro):
            batch = columns.batch(trainer.names, first, micro)
            count = int((batch[1] != IGNORED).sum())
            if count:
                losses.append(float(trainer.model(*batch)) * (count if by_tokens else 1))
                weights.append(count if by_tokens else 1)
    return sum(losses) / sum(weights)


def train(args, name, archive, data, config, ranks, target="cpu"):
    """(log, what was told) of a run of ds-run."""
    files = {kind: os.path.join(args.out, f"{name}.{kind}") for kind in ("json", "dsx", "jsonl")}
    with open(files["json"], "w") as file:
        json.dump(config, file, indent=2)
    micro, ranked = config["train_micro_batch_size_per_gpu"], ["--ranks", str(ranks)] if ranks > 1 else []
    inputs = [f"{name}={micro}x{LENGTH}xi64" for name in ("x", "y")]
    compile_program(archive, files["json"], inputs, files["dsx"], [*ranked, "--target", target])
    if target != "cpu":
        fake_cuda.translate(files["dsx"], args.out)
        fake_cuda.use(args.fake, args.out, ranks)
    device = ["--device", "cuda"] if target != "cpu" else []
    text = run("ds-run", files["dsx"], *ranked, *device, "--data", data, "--steps", STEPS, "--log-jsonl", files["jsonl"],
               "--eval-data", data)
    return compare.read_log(files["jsonl"]), text


def check_log(log, expected, labels):
    """Complaints about steps: the one without a target, and all others against PyTorch's."""
    complaints = []
    counts = [int((labels[step * BATCH:(step + 1) * BATCH] != IGNORED).sum()) for step in range(STEPS)]
    if [record.get("targets") for record in log] != counts:
        complaints.append(f"targets {[record.get('targets') for record in log]}, expected {counts}")
    without = log[WITHOUT - 1]
    if without.get("skipped") is not True or "loss" in without or counts[WITHOUT - 1] != 0:
        complaints.append(f"step {WITHOUT} was made: {without}")
    made = [record for record in log if record["step"] != WITHOUT]
    theirs = [{**record, "step": own["step"]} for record, own in zip(expected, made)]
    return complaints + compare.compare(made, theirs, 1e-5, 1e-4)[0]


def check(args, archive, data, base, by_tokens, division, target="cpu"):
    micro, accumulation, ranks, more = division
    config = {**base, **more, "train_micro_batch_size_per_gpu": micro, "gradient_accumulation_steps": accumulation,
              "loss_normalization": "tokens" if by_tokens else "micro_batches"}
    name = f"{config['loss_normalization']}-{micro}-{accumulation}-{ranks}" + ("-chunks" if "loss_chunks" in more else "")
    shared = more.get("tensor_parallel", {}).get("autotp_size", 1)  # ranks that have the same samples
    name += (f"-shared-{shared}" if shared > 1 else "") + ("" if target == "cpu" else "-cuda")
    log, text = train(args, name, archive, data, config, ranks, target)
    split = (BATCH, 1) if by_tokens else (micro, accumulation * ranks // shared)
    expected, trainer = pytorch(archive, data, *split, base)
    complaints = check_log(log, expected, safetensors_io.load(data)["y"])
    loss = held_out(trainer, data, split[0], by_tokens)
    if not compare.difference(log[-1].get("eval_loss"), loss) < 1e-4:
        complaints.append(f"held-out loss {log[-1].get('eval_loss')}, PyTorch's {loss}")
    told = text.count("targets, and each weighs the same in the loss")
    if told != (0 if by_tokens or micro == BATCH else 1):
        complaints.append(f"told {told} times of micro-batches with different numbers of targets")
    return [f"{name}: {complaint}" for complaint in complaints]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--fake", metavar="LIBRARY", help="libds-fake-cuda.so")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    archive, data, _ = export.main(["gpt", "--out", args.out, "--batch", str(BATCH), "--data", str(BATCH * STEPS)])
    mask_labels(data)
    base = ds_config.read(args.config)
    if args.fake:
        finish(check(args, archive, data, base, True, DIVISIONS[1], "cuda:sm_90"), "CUDA has PyTorch's losses")
        return
    complaints = []
    for by_tokens in (False, True):
        for division in DIVISIONS if by_tokens else DIVISIONS[:-1]:
            complaints += check(args, archive, data, base, by_tokens, division)
    finish(complaints, f"{2 * len(DIVISIONS) - 1} divisions of a batch have PyTorch's losses")


if __name__ == "__main__":
    main()
