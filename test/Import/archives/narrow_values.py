# RUN: %check-archive %s
"""Values that are narrower and wider than the keys, in every spelling, and heads that are wider than any kernel of attention
takes: products and a softmax."""
import math
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, keys: int, values: int, heads: int, causal: bool):
        super().__init__()
        self.keys, self.values, self.heads, self.causal = keys, values, heads, causal
        self.q, self.k = nn.Linear(16, keys * heads), nn.Linear(16, keys * heads)
        self.v, self.out = nn.Linear(16, values * heads), nn.Linear(values * heads, 16)

    def forward(self, x):
        B, T, C = x.shape
        q = self.q(x).view(B, T, self.heads, self.keys).transpose(1, 2)
        k = self.k(x).view(B, T, self.heads, self.keys).transpose(1, 2)
        v = self.v(x).view(B, T, self.heads, self.values).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(self.keys)
        if self.causal:
            att = att.masked_fill(torch.ones(T, T).tril() == 0, float("-inf"))
        y = att.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, self.heads * self.values))


class Folded(nn.Module):
    """Heads as batch, by baddbmm and bmm."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 8), nn.Linear(8, 16)

    def forward(self, x):
        B, T, C = x.shape
        q = self.q(x).view(B, T, 2, 8).transpose(1, 2).reshape(B * 2, T, 8)
        k = self.k(x).view(B, T, 2, 8).transpose(1, 2).reshape(B * 2, T, 8)
        v = self.v(x).view(B, T, 2, 4).transpose(1, 2).reshape(B * 2, T, 4)
        att = torch.bmm(q * 8 ** -0.5, k.transpose(1, 2)).softmax(-1)
        return self.out(torch.bmm(att, v).view(B, 2, T, 4).transpose(1, 2).reshape(B, T, 8))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.narrow, self.wide = Attention(8, 4, 2, False), Attention(4, 8, 2, True)
        self.huge, self.folded = Attention(264, 264, 1, True), Folded()
        self.head = nn.Linear(16, 32)

    def forward(self, x, y):
        h = self.embed(x)
        h = h + self.narrow(h)
        h = h + self.wide(h)
        h = h + self.huge(h) + self.folded(h)
        return F.cross_entropy(self.head(h).view(-1, 32), y.view(-1))


def make():
    return Model()
