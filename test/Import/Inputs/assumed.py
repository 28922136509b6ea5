#!/usr/bin/python3
"""assumed.py - write modules that would train wrongly if the import believed a value, a flag or a draw; one archive each."""

import os
import sys
from typing import List

import torch
from torch import nn
from torch.nn import functional as F


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(6))


class Noise(Base):
    """Stochastic depth as it is often written: the draw is made on a tensor of which everything is known."""

    def forward(self, x):
        keep = torch.ones(4, 1).bernoulli_(0.5)
        noise = torch.empty(4, 6).uniform_(0.0, 1.0)
        return (x * self.w * keep + noise).sum()


class Alpha(Base):
    def forward(self, x):
        return (x * self.w * F.alpha_dropout(torch.ones(4, 6), 0.5, True)).sum()


class Data(Base):
    """No gradient goes through .data."""

    def forward(self, x):
        return (x * self.w * self.w.data).sum()


class AsksForGradient(Base):
    def forward(self, x):
        y = x * self.w
        if y.requires_grad:
            y = y * 2
        return y.sum()


class Known(Base):
    """What is known of gradients: of a parameter, of integers, of a buffer."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Parameter(torch.ones(6), requires_grad=False)
        self.register_buffer("table", torch.ones(6))

    def forward(self, x):
        y = x * self.w
        if self.w.requires_grad:
            y = y * 2
        if self.frozen.requires_grad or self.table.requires_grad:
            y = torch.exp(y)
        return y.sum()


class Freezes(Base):
    def forward(self, x):
        return (x * self.w.requires_grad_(False)).sum()


class Alias(Base):
    """A list that holds a part of a parameter: trained through the parameter, read through the list."""

    def __init__(self):
        super().__init__()
        self.parts: List[torch.Tensor] = [self.w.data[:3]]

    def forward(self, x):
        return (x * self.w).sum() + (x[:, :3] * self.parts[0]).sum()


class AliasBuffer(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("copy", self.w.data)

    def forward(self, x):
        return (x * self.w * self.copy).sum()


class Assigns(Base):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps = self.steps + 1
        return (x * self.w).sum() * self.steps


class NoGrad(Base):
    def forward(self, x):
        with torch.no_grad():
            scale = self.w.mean()
        return (x * self.w * scale).sum()


class Largest(Base):
    """A branch by the positions of a maximum."""

    def forward(self, x):
        values, positions = (x * self.w).max(1)
        if bool((positions == 0).all()):
            values.mul_(2)
        return values.sum()


class Tables(Base):
    """A buffer that is an operand as a whole, and one that decides as well what else is written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("whole", torch.sin(torch.arange(6144.0)).view(1024, 6))
        self.register_buffer("cut", torch.cos(torch.arange(6144.0)).view(1024, 6))

    def forward(self, x):
        y = x * self.w
        return (self.whole @ y.t()).mean() + (self.cut @ y.t()).mean() + (y * self.cut[:4]).sum()


class Doubles(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6).double()

    def forward(self, x):
        return self.second(self.first(x).double()).sum()


class DoubleProduct(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.register_buffer("table", torch.ones(6, 6, dtype=torch.float64))

    def forward(self, x):
        return (self.first(x).double() @ self.table).sum()


MODELS = {"noise": Noise, "alpha": Alpha, "data": Data, "asks": AsksForGradient, "known": Known, "freezes": Freezes, "alias": Alias,
          "alias_buffer": AliasBuffer, "assigns": Assigns, "no_grad": NoGrad, "largest": Largest, "tables": Tables,
          "doubles": Doubles, "double_product": DoubleProduct}
for name, kind in MODELS.items():
    torch.jit.script(kind()).save(os.path.join(sys.argv[1], name + ".pt"))
