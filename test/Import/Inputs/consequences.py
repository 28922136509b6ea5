#!/usr/bin/python3
"""consequences.py - write modules that miss one operator each, and in which much depends on what it would have given."""

import os
import sys
from typing import Dict, List, Optional

import torch
from torch import nn
from torch.nn import functional as F


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(6))
        self.register_buffer("steps", torch.zeros(6))


class Asserts(Base):
    """The model's own check of a shape, with a message made of it."""

    def forward(self, x):
        x = torch.logcumsumexp(x * self.w, 1)
        assert x.size(0) == 4, f"expects 4 rows, but got {x.size(0)}"
        if x.dim() != 2:
            raise ValueError("expects a matrix, but got {}".format(x.dim()))
        torch._assert(x.numel() == 24, "24, please")
        return x.sum()


class Branches(Base):
    def forward(self, x):
        x = torch.logcumsumexp(x * self.w, 1)
        if x.size(1) % 2 == 0:
            x = x.view(x.size(0), 2, x.size(1) // 2).sum(1)
        else:
            raise RuntimeError("odd")
        return x.sum()


class Loops(Base):
    """Trip counts, lists that grow in loops, and their elements."""

    def forward(self, x):
        x = torch.logcumsumexp(x * self.w, 1)
        rows: List[torch.Tensor] = []
        for i in range(x.size(0)):
            rows.append(x[i] * i)
        first, second, third, fourth = rows
        i = 0
        while i < x.size(1):
            first = first + rows[i % 4]
            i += 1
        named: Dict[str, torch.Tensor] = {}
        if x.size(0) > 3:
            named["rows"] = fourth
        return (first + second * third + named["rows"]).sum()


class Unpacks(Base):
    """Lists and sizes of something unknown."""

    def forward(self, x):
        x = torch.logcumsumexp(x * self.w, 1)
        rows, columns = x.shape
        left, right = x.chunk(2, 1)
        a, b, c = x.split(2, 1)
        table = torch.zeros(rows, columns)
        table[:, 0] = 1
        position = [0, 1, 2][rows - 2]
        return (left * right).sum() + (a + b + c).sum() + table.sum() + position


class InPlace(Base):
    """Writes of something unknown to what is known."""

    def forward(self, x):
        x = torch.logcumsumexp(x * self.w, 1)
        total = torch.zeros(4, 6)
        total += x
        total[0] = x[1]
        total.mul_(self.steps + 1)
        if bool(total.sum() > 0):
            total = total * 2
        return total.sum()


class Counts(Base):
    """A layer that counts in what is no buffer and misses an operator: the write is no cause of its own."""

    def forward(self, x):
        self.w.add_(1)
        return torch.logcumsumexp(x * self.w, 1).sum()


class CountsItself(Base):
    """Here the write is a cause, for the operator that is missing is one of another layer."""

    def __init__(self):
        super().__init__()
        self.inner = Branches()

    def forward(self, x):
        self.w.add_(1)
        return self.inner(x * self.w)


class Optionals(Base):
    def pick(self, x: Optional[torch.Tensor]) -> torch.Tensor:
        if x is None:
            raise RuntimeError("nothing to pick")
        return x

    def forward(self, x):
        found = torch.logcumsumexp(x * self.w, 1)
        if found is not None:
            found = found + 1
        chosen: Optional[torch.Tensor] = None
        if found.size(0) > 2:
            chosen = found
        return self.pick(chosen).sum() + torch.sort(self.w)[0].sum()


MODELS = {"asserts": Asserts, "branches": Branches, "loops": Loops, "unpacks": Unpacks, "inplace": InPlace, "counts": Counts,
          "counts_itself": CountsItself, "optionals": Optionals}
for name, kind in MODELS.items():
    torch.jit.script(kind()).save(os.path.join(sys.argv[1], name + ".pt"))
