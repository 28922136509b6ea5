#!/usr/bin/python3
"""buffers.py - write modules whose forward writes buffers."""

import os
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.linspace(0.5, 1.5, 6))
        self.register_buffer("mean", torch.linspace(-1.0, 1.0, 6))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("scale", torch.ones(6))


class Moves(Base):
    """Read before and after it is written, twice; one that is overwritten without being read, and one that is only read."""

    def forward(self, x):
        before = (x * self.mean).sum()
        self.mean.mul_(0.9).add_((x * self.w).detach().mean(0), alpha=0.1)
        self.count += 1
        y = x * self.w + self.mean
        self.mean.copy_(self.mean * 2)
        self.scale.fill_(3.0)
        return before + (y * self.mean).sum() * self.count + self.scale.sum()


class Assigns(Base):
    """As older versions of batch norm count: the attribute is assigned."""

    def forward(self, x):
        self.count = self.count + 1
        self.mean = self.mean * 0.5 + (x * self.w).detach().mean(0)
        return (x * self.w * self.mean).sum() * self.count


class Shared(Base):
    """One batch norm that is applied twice: the second time to what the first has kept."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6, momentum=0.3)

    def forward(self, x):
        return self.norm(self.norm(x * self.w).tanh() * self.w).sin().sum()


class Frozen(Shared):
    """A norm that is evaluated in training writes nothing."""

    def forward(self, x):
        y = F.batch_norm(x * self.w, self.mean, self.scale, self.w, None, False)
        return y.sin().sum()


class Looks(Base):
    """A branch that depends on what is written."""

    def forward(self, x):
        if bool(self.count > 3):
            x = x * 2
        self.count += 1
        return (x * self.w).sum()


class Views(Base):
    """A part of a buffer is written."""

    def forward(self, x):
        self.mean[1:3] = 2.0
        return (x * self.w * self.mean).sum()


x = torch.randn(4, 6)
for kind in (Moves, Shared, Frozen):
    torch.jit.trace(kind(), (x,), check_trace=False).save(os.path.join(sys.argv[1], kind.__name__.lower() + ".pt"))
for kind in (Moves, Assigns, Shared, Looks, Views):
    torch.jit.script(kind()).save(os.path.join(sys.argv[1], kind.__name__.lower() + ".scripted.pt"))
