"""rounding.py - what a run may lose whose numbers have few bits.

A value that is rounded to a type with unit roundoff u moves by at most u times itself. Here PyTorch works in f32, and
every float that an operator of forward or backward returns, and every weight that it reads, moves by such an amount,
drawn at random: no run in 16 bits may round more, for what is fused or summed stays in f32 there. The deviations that
this makes in the loss and in each parameter's gradient are what u, the number of roundings and the magnitudes that they
meet allow, on any processor: nothing here knows of one. Sums in 16 bits, or masters in 16 bits, lie far above.

Losses stay in f32 in every mode: what is summed to one number does not move.
"""

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import compare
import train_oracle

UNIT_ROUNDOFF = {"bf16": 2.0 ** -8, "fp16": 2.0 ** -11}  # half the distance from 1 to the next number
SAMPLES = 6
LOSSES = ("log_softmax", "nll_loss", "mse_loss")  # operators that every mode computes in f32


class Perturb(TorchDispatchMode):
    """Multiplies every float result by 1 + u d, d uniform in [-1, 1]."""

    def __init__(self, roundoff, seed):
        super().__init__()
        self.roundoff, self.generator = roundoff, torch.Generator().manual_seed(seed)

    def moved(self, value):
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32 or value.dim() == 0:
            return value
        return value * (1 + self.roundoff * (2 * torch.rand(value.shape, generator=self.generator) - 1))

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        result = function(*arguments, **(options or {}))
        schema = function._schema
        if schema.is_mutable or any(a.alias_info for a in schema.returns) or any(name in schema.name for name in LOSSES):
            return result  # of views and memory that someone else holds, the numbers were moved when they were made
        if isinstance(result, (tuple, list)):
            return type(result)(self.moved(part) for part in result)
        return self.moved(result)


class RoundedTrainer(train_oracle.Trainer):
    """A trainer whose weights, as forward and backward see them, are what `change(index, tensor)` makes of them."""

    def change(self, index, tensor):
        raise NotImplementedError

    def micro_backward(self, batch):
        tensors = [tensor for _, group in self.shared for tensor in group]
        masters = [tensor.detach().clone() for tensor in tensors]
        with torch.no_grad():
            for index, (tensor, master) in enumerate(zip(tensors, masters)):
                tensor.copy_(self.change(index, master))
        loss = self.see(batch)
        with torch.no_grad():
            for tensor, master in zip(tensors, masters):
                tensor.copy_(master)
        return loss

    def see(self, batch):
        return super().micro_backward(batch)


class PerturbedTrainer(RoundedTrainer):
    """One step's loss and gradients where everything moves."""

    def change(self, index, tensor):
        return self.mode.moved(tensor)

    def see(self, batch):
        with self.mode:
            return super().see(batch)


class DriftingTrainer(RoundedTrainer):
    """A run whose weights and gradients are off by as much as one step's are, in one direction from step to step."""

    def prepare(self, roundoff, deviations, seed):
        generator = torch.Generator().manual_seed(seed)
        self.roundoff = roundoff
        self.directions = [[torch.randn(tensor.shape, generator=generator) for tensor in group] for _, group in self.shared]
        self.moves = [2 * torch.rand(tensor.shape, generator=generator) - 1 for _, group in self.shared for tensor in group]
        self.deviations = deviations
        self.loss_move = deviations.loss * float(torch.randn((), generator=generator))

    def change(self, index, tensor):
        return tensor * (1 + self.roundoff * self.moves[index])

    def backward(self):
        loss = super().backward()
        for index, ((_, group), directions) in enumerate(zip(self.shared, self.directions)):
            norm = float(gradient_norm(group))
            for tensor, direction in zip(group, directions):
                if tensor.grad is not None:
                    size = self.deviations.relative(index) * norm / math.sqrt(max(tensor.numel(), 1))
                    tensor.grad += size * direction
        return loss * (1 + self.loss_move)


def gradient_norm(group):
    return train_oracle.gradient_of(group).norm()


class Deviations:
    """Root mean squares over the samples: of the loss's relative error, and of the norm of each gradient's error."""

    def __init__(self, exact_loss, exact, samples):
        self.norms = [float(gradient.norm()) for gradient in exact]
        self.loss = root_mean([(loss - exact_loss) / exact_loss for loss, _ in samples])
        self.gradients = [root_mean([float((sample[index] - gradient).norm()) for _, sample in samples])
                          for index, gradient in enumerate(exact)]

    def relative(self, index):
        return self.gradients[index] / self.norms[index] if self.norms[index] else 0.0


def root_mean(values):
    return math.sqrt(sum(value ** 2 for value in values) / len(values))


def first_step(archive, config, data, loss, roundoff, seed):
    """The loss and gradients of step 1; exact where `roundoff` is 0."""
    trainer = PerturbedTrainer(torch.jit.load(archive), config, train_oracle.Data(data), loss)
    trainer.mode = Perturb(roundoff, seed)
    value = trainer.backward()
    return value, [train_oracle.gradient_of(group).clone() for _, group in trainer.shared]


def deviations(archive, config, data, loss, kind):
    exact_loss, exact = first_step(archive, config, data, loss, 0.0, 0)
    samples = [first_step(archive, config, data, loss, UNIT_ROUNDOFF[kind], 100 + k) for k in range(SAMPLES)]
    return Deviations(exact_loss, exact, samples)


def noise(found, exact):
    """The largest relative difference between the losses of two runs."""
    return max(compare.difference(a, b) for a, b in zip(found, exact))


def drift(archive, config, data, steps, loss, exact, kind, found):
    """Root mean square of the noise, against the losses `exact`, of runs that are off as `found` says."""
    noises = []
    for seed in range(SAMPLES):
        trainer = DriftingTrainer(torch.jit.load(archive), config, train_oracle.Data(data), loss)
        trainer.prepare(UNIT_ROUNDOFF[kind], found, 200 + seed)
        noises.append(noise([trainer.step()["loss"] for _ in range(steps)], exact))
    return root_mean(noises)
