#!/usr/bin/python3
"""refused.py - write modules that cannot be imported into a folder, one archive each."""

import os
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def forward(self, x):
        x = torch.logcumsumexp(x, 1)
        return torch.sort(x, 1)[0] + x.detach()


class Unsupported(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(6))
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        x = x * self.w
        for block in self.blocks:
            x = block(x)
        if x.sum() > 0:
            x = torch.atan2(x, x)
        return F.gumbel_softmax(x).sum()


class Decides(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(6))

    def forward(self, x):
        x = x * self.w
        if x.sum() > 0:
            x = torch.atan2(x, x)
        return x.sum()


class Logits(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 6)
        self.head = nn.Linear(6, 16)

    def forward(self, x):
        return self.head(self.table(x))


class Endless(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(6))

    def forward(self, x):
        while True:
            x = x * 1
        return (x * self.w).sum()


class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(6))

    def forward(self, x):
        assert x.size(0) == 2, "two rows, please"
        return (x * self.w).sum()


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(6, 2, 3))

    def forward(self, x):
        return torch.convolution(x, self.w, None, [1], [0], [2], True, [1], 1).sum()


class Slides(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 6, 3))

    def forward(self, x):
        return F.conv1d(x, self.w).sum()


class Spectral(nn.Module):
    """Without an order the norm of a matrix is that of its elements; with 2 it is its largest singular value."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return torch.linalg.norm(x * self.w, 2.0) + torch.linalg.norm(x * self.w)


MODELS = {"unsupported": Unsupported, "decides": Decides, "logits": Logits, "endless": Endless, "raises": Raises, "transposed": Transposed,
          "slides": Slides, "spectral": Spectral}
for name, kind in MODELS.items():
    torch.jit.script(kind()).save(os.path.join(sys.argv[1], name + ".pt"))
