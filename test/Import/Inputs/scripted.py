#!/usr/bin/python3
"""scripted.py - write small scripted modules into a folder, one archive each."""

import os
import sys
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.w = nn.Parameter(torch.randn(6))


class Control(Base):
    flag: torch.jit.Final[bool]

    def __init__(self):
        super().__init__()
        self.flag = False
        self.turns = 3

    def forward(self, x):
        x = x * self.w
        for i in range(self.turns):
            x = torch.tanh(x) + i
        count = 0
        while count < 10:
            count += 4
            if count > 6:
                break
        if self.flag:
            x = torch.exp(x)
        elif x.size(0) == 4 and x.dim() == 2:
            x = x * count
        assert x.shape[1] == 6
        return x.mean() if self.training else x.sum()


class Containers(Base):
    def pair(self, x) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
        return x, {"double": x * 2, "half": x / 2}

    def forward(self, x):
        x = x * self.w
        first, named = self.pair(x)
        named["third"] = x / 3
        parts: List[torch.Tensor] = []
        for value in named.values():
            parts.append(value)
        if "half" in named:
            parts.extend([named["half"], first])
        parts.insert(0, x.sin())
        last = parts.pop()
        copy = list(parts)
        copy.reverse()
        copy[0] = last
        total = torch.zeros(4, 6)
        for key, value in named.items():
            total = total + value * float(len(key))
        for name in named.keys():
            total = total + len(name)
        for i, value in enumerate(copy):
            total = total + value * (i + 1)
        sizes = [value.size(0) for value in copy]
        return {"loss": (total * sum(sizes)).mean(), "logits": total}


class Optionals(Base):
    def __init__(self):
        super().__init__()
        self.bias: Optional[torch.Tensor] = None

    def forward(self, x, extra: Optional[torch.Tensor] = None, scale: float = 2.0):
        x = x * self.w * scale
        if extra is not None:
            x = x + extra
        if self.bias is not None:
            x = x + self.bias
        if torch.is_grad_enabled():
            x = x.cpu()
        else:
            x = x * 0
        if x.size(0) == 4:
            print("{} has {}".format("x %d" % x.size(1), x))
        unwrapped: Optional[torch.Tensor] = x
        assert unwrapped is not None
        return unwrapped.sum(), x


class InPlace(Base):
    def forward(self, x):
        x = x * self.w
        mask = torch.zeros(4, 6)
        mask[:, 2] = 1
        mask.tril_()
        scores = (x + 1).view(2, 12)
        scores.masked_fill_(mask.view(2, 12) == 1, -2.0)
        scores *= 3
        scores += 1
        return scores.relu_().mean()


class Tied(Base):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6, bias=False)
        self.b = nn.Linear(6, 6, bias=False)
        self.b.weight = self.a.weight
        self.frozen = nn.Parameter(torch.randn(6), requires_grad=False)
        self.unused = nn.Parameter(torch.randn(6))

    def forward(self, x):
        return (self.b(torch.tanh(self.a(x))) * self.frozen + self.w).mean()


class Stale(Base):
    def forward(self, x):
        x = x * self.w
        flat = x.view(24)
        flat.add_(1)
        return x.mean()


class Writes(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(6))

    def forward(self, x):
        self.steps.add_(1)
        return (x * self.w + self.steps).mean()


class Slides(Base):
    """Traces have `_convolution` in place of these."""

    def forward(self, x):
        signal, image = (x * self.w).view(1, 4, 6), (x + self.w).view(1, 2, 3, 4)
        filters = self.w.view(3, 2, 1)
        left = torch.conv1d(signal, filters[:2].repeat(1, 2, 1), self.w[:2], stride=2, padding=1)
        middle = torch.convolution(signal[:, :2], filters, None, [1], [0], [1], False, [0], 1)
        same = torch.conv2d(image, self.w[:2].view(2, 1, 1, 1).repeat(1, 1, 2, 3), padding="same", groups=2)
        wide = torch.conv_transpose1d(signal[:, :3], filters, stride=2) ** 2
        high = torch.conv_transpose2d(image, self.w.view(2, 1, 3, 1), padding=(1, 0)) ** 2
        deep = torch.conv_transpose3d(image.view(1, 2, 3, 2, 2), self.w.view(2, 3, 1, 1, 1)) ** 2
        volume = torch.conv3d(image.view(1, 2, 3, 2, 2), filters.view(3, 2, 1, 1, 1), dilation=2)
        return left.sum() + middle.exp().sum() + wide.sum() + high.sum() + deep.sum() + (same * same).sum() + (volume * volume).sum()


MODELS = {"control": Control, "containers": Containers, "optional": Optionals, "inplace": InPlace, "tied": Tied,
          "stale": Stale, "writes": Writes, "slides": Slides}

for name, kind in MODELS.items():
    torch.jit.script(kind()).save(os.path.join(sys.argv[1], name + ".pt"))
