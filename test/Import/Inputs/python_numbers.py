#!/usr/bin/python3
"""python_numbers.py - traces in which numbers of Python stand beside tensors, and one in which tensors of one number do."""

import math
import os
import sys

import torch
from torch import nn


class Diffusion(nn.Module):
    """The embedding of time steps in diffusion models, and scalars that numbers scale."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 3)

    def forward(self, t, x):
        table = torch.exp(torch.arange(4) * -(math.log(10000) / 3))
        angles = t[:, None] * table[None]
        hidden = self.linear(torch.cat([angles.sin(), angles.cos()], 1)) * x.size(1) ** -0.5
        count = (x > 0).sum(dtype=torch.int32) * 2
        return (hidden * (t[:, None] * 0.1)).sum() * (x.mean() * 0.3 + 1) / (count + 1)


class Tensors(nn.Module):
    """What torch.tensor makes of a number is a tensor, of the type that was asked for."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, t, x):
        scale = x.mean() * torch.tensor(0.3, dtype=torch.float64) * 0.3
        return (self.w * x).sum() * scale.float()


for name, kind in {"diffusion": Diffusion, "tensors": Tensors}.items():
    inputs = torch.tensor([1, 5, 9]), torch.linspace(-1, 2, 9).view(3, 3)
    torch.jit.trace(kind(), inputs).save(os.path.join(sys.argv[1], name + ".pt"))
