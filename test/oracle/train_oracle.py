#!/usr/bin/python3
"""train_oracle.py - train a TorchScript archive with PyTorch by the rules of a ds_config.json.

What ds-run is compared with: the same archive, data and configuration, eager autograd in fp32, the optimizer one tensor
operation at a time.  It writes the same keys a step as ds-run, and on request the gradients of step 1 (averaged over
the accumulation, before clipping) and the final weights, each under every name that a shared parameter has.

    test/oracle/train_oracle.py model.pt --config ds_config.json --data data.safetensors --steps 20 --log-jsonl log.jsonl
"""

import argparse
import json
import math
import os
import sys
import time

import numpy as np
import torch
from torch.nn import functional as F

import ds_config
import schedules
from optimizers import Optimizer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import safetensors_io  # noqa: E402


def shared_parameters(model):
    """[(names, tensors)]: an archive may load a tied parameter as one tensor, or as two on one storage."""
    groups = {}
    for name, parameter in sorted(all_parameters(model), key=lambda item: item[0]):
        key = (parameter.data_ptr(), tuple(parameter.shape), tuple(parameter.stride()))
        names, tensors = groups.setdefault(key, ([], []))
        names.append(name)
        if not any(parameter is known for known in tensors):
            tensors.append(parameter)
    return list(groups.values())


def all_parameters(model, prefix=""):
    """(name, parameter) of every module, shared ones under each of their names."""
    for name, parameter in model._parameters.items() if hasattr(model, "_parameters") else ():
        if parameter is not None:
            yield prefix + name, parameter
    for name, child in model.named_children():
        yield from all_parameters(child, f"{prefix}{name}.")


def gradient_of(tensors):
    """The gradient of a shared parameter: the sum of what reached each of its tensors."""
    found = [tensor.grad for tensor in tensors if tensor.grad is not None]
    return sum(found) if found else torch.zeros_like(tensors[0])


class Data:
    """Samples in order, wrapping at the end: tensors of a safetensors file, or windows of a token stream."""

    def __init__(self, path, length=None):
        if path.endswith(".safetensors"):
            self.arrays = safetensors_io.load(path)
        else:
            tokens = np.fromfile(path, dtype="<u2").astype(np.int64)
            count = (len(tokens) - 1) // length
            starts = np.arange(count)[:, None] * length + np.arange(length)
            self.arrays = {"x": tokens[starts], "y": tokens[starts + 1]}
        self.count = len(next(iter(self.arrays.values())))

    def batch(self, names, first, size):
        rows = np.arange(first, first + size) % self.count
        return [torch.from_numpy(self.arrays[name][rows]) for name in names]


def argument_names(model, data):
    """The archive's argument names, in order; a label that forward does not take comes last."""
    names = [argument.name for argument in model.forward.schema.arguments[1:]]
    missing = [name for name in names if name not in data.arrays]
    if missing:  # a token stream has no names: first the inputs, second the targets
        return list(data.arrays)
    return names + [name for name in data.arrays if name not in names]


def loss_of(model, batch, kind):
    """The scalar loss: what forward returns, or `kind` of its logits and the last tensor of the batch."""
    if kind is None:
        return model(*batch)
    out = model(*batch[:-1])
    if kind == "mse":
        return F.mse_loss(out, batch[-1])
    return F.cross_entropy(out.reshape(-1, out.size(-1)), batch[-1].reshape(-1))


class Trainer:
    """A model, its data and its optimizer, stepped as DeepSpeed's engine steps."""

    def __init__(self, model, config, data, loss=None, autocast=False):
        self.model, self.config, self.data, self.loss = model, config, data, loss
        self.autocast = autocast  # bf16, the only type that PyTorch's autocast knows on the CPU
        self.names = argument_names(model, data)
        self.shared = shared_parameters(model)
        self.optimizer = Optimizer(config["optimizer"], [tensors[0].detach() for _, tensors in self.shared])
        self.train_batch, self.micro, self.accumulation = ds_config.batch_triple(config)
        self.clip = ds_config.clipping(config)
        self.step_number = 0
        self.gradients = None

    def micro_backward(self, batch):
        """Accumulates the gradients of one micro-batch's share of the loss; returns its loss."""
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            loss = loss_of(self.model, batch, self.loss)
        (loss / self.accumulation).backward()
        return float(loss)

    def backward(self):
        """Accumulates the gradients of one global batch of loss/G; returns the mean of the micro-batch losses."""
        total = 0.0
        for micro_step in range(self.accumulation):
            first = (self.step_number * self.accumulation + micro_step) * self.micro
            total += self.micro_backward(self.data.batch(self.names, first, self.micro))
        return total / self.accumulation

    def step(self):
        """One optimizer step; returns what ds-run logs of it."""
        started = time.perf_counter()
        loss = self.backward()
        gradients = [gradient_of(tensors) for _, tensors in self.shared]
        if self.step_number == 0:
            self.gradients = [gradient.clone() for gradient in gradients]
        norm = math.sqrt(sum(float(gradient.double().pow(2).sum()) for gradient in gradients))
        if self.clip > 0 and self.clip / (norm + 1e-6) < 1:
            gradients = [gradient * (self.clip / (norm + 1e-6)) for gradient in gradients]
        self.step_number += 1
        scheduler = self.config.get("scheduler")
        rate = schedules.learning_rate(scheduler, self.optimizer.base_rate, self.step_number)
        betas = schedules.betas(scheduler, self.optimizer.betas, self.step_number)
        self.optimizer.step(gradients, rate, betas, self.step_number)
        for _, tensors in self.shared:
            for tensor in tensors:
                tensor.grad = None
        seconds = time.perf_counter() - started
        return {"step": self.step_number, "loss": loss, "grad_norm": norm, "lr": rate, "loss_scale": 1.0,
                "skipped": False, "step_seconds": seconds, "samples_per_second": self.train_batch / seconds}

    def named(self, tensors):
        """name -> array for one tensor per shared parameter, under each of its names."""
        return {name: tensor.detach().numpy() for (names, _), tensor in zip(self.shared, tensors) for name in names}

    def weights(self):
        return self.named(self.optimizer.parameters)


def train(archive, config, data_path, steps, loss=None, length=None, autocast=False):
    """The log of `steps` steps and the trainer after them."""
    model = torch.jit.load(archive)
    trainer = Trainer(model, config, Data(data_path, length), loss, autocast)
    return [trainer.step() for _ in range(steps)], trainer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive")
    parser.add_argument("--config", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--data", required=True)
    parser.add_argument("--length", type=int, help="tokens a window, for a .bin token stream")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--loss", choices=["cross_entropy", "mse"])
    parser.add_argument("--log-jsonl", metavar="FILE")
    parser.add_argument("--gradients", metavar="FILE", help="write the gradients of step 1")
    parser.add_argument("--save-weights", metavar="FILE")
    args = parser.parse_args()
    config = ds_config.read(args.config, args.set)
    log, trainer = train(args.archive, config, args.data, args.steps, args.loss, args.length)
    lines = "".join(json.dumps(entry) + "\n" for entry in log)
    if args.log_jsonl:
        with open(args.log_jsonl, "w") as file:
            file.write(lines)
    else:
        sys.stdout.write(lines)
    if args.gradients:
        safetensors_io.save(args.gradients, trainer.named(trainer.gradients))
    if args.save_weights:
        safetensors_io.save(args.save_weights, trainer.weights())


if __name__ == "__main__":
    main()
