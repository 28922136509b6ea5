#!/usr/bin/python3
"""written.py - write modules whose text is looked at into a folder, one archive each."""

import os
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Constants(nn.Module):
    """Known tensors of every kind."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(8, 8))
        self.register_buffer("mask", torch.tril(torch.ones(1, 8, 8)))
        self.register_buffer("future", torch.full((8, 8), float("-inf")).triu(2))
        self.register_buffer("table", torch.sin(torch.arange(8192.0)).view(1024, 8))
        self.register_buffer("unused", torch.ones(9))

    def forward(self, x):
        x = x * self.w
        x = x + torch.arange(3, 27, 3)  # a count
        x = x.masked_fill(self.mask[0] == 0, -1.0) + self.future.exp()  # two triangles
        x = x + torch.tensor([0.5, 2.5, -1.0, 4.0, 0.0, 1.0, 7.0, 9.0])  # a literal
        x = x + self.table[:8] + (self.table @ x).sum()  # a piece, and all of a buffer
        return x.mean()


class Dropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(8))

    def forward(self, x):
        x = F.dropout(x * self.w, 0.1)
        x = F.dropout(x, 0.25)
        x = F.dropout(x, 0.0)
        return F.dropout(x, 0.5, training=False).mean()


class Products(nn.Module):
    """Swapped operands are read as they lie."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(8, 4))
        self.b = nn.Parameter(torch.ones(4))

    def forward(self, x):
        y = torch.addmm(self.b, x, self.w)
        return (y @ y.transpose(0, 1)).mean() + F.linear(x, self.w.t()).mean()


MODELS = {"constants": (Constants, (8, 8)), "dropout": (Dropout, (2, 8)), "products": (Products, (3, 8))}
for name, (kind, shape) in MODELS.items():
    path = os.path.join(sys.argv[1], name + ".pt")
    torch.jit.trace(kind(), torch.ones(shape), check_trace=False).save(path)
