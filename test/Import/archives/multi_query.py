# RUN: %check-archive %s
"""Two ways to share keys and values between heads: broadcasting one head, and repeat_interleave of two."""
import torch
from torch import nn
from torch.nn import functional as F


class MultiQuery(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * self.size)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, t, c = x.size()
        q = self.q(x).view(b, t, self.heads, self.size).transpose(1, 2)
        k, v = self.kv(x).split([self.size, self.size], dim=-1)
        scores = torch.matmul(q, k.unsqueeze(1).transpose(-1, -2)) / self.size ** 0.5
        weights = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        mixed = torch.matmul(weights, v.unsqueeze(1))
        return self.out(mixed.transpose(1, 2).reshape(b, t, c))


class Grouped(nn.Module):
    def __init__(self, dim: int, heads: int, groups: int):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, dim // heads
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, groups * self.size, bias=False)
        self.v = nn.Linear(dim, groups * self.size, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, mask):
        b, t, c = x.size()
        q = self.q(x).view(b, t, self.heads, self.size)
        k = self.k(x).view(b, t, self.groups, self.size).repeat_interleave(self.heads // self.groups, dim=2)
        v = self.v(x).view(b, t, self.groups, self.size).repeat_interleave(self.heads // self.groups, dim=2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        scores = q @ k.mT * self.size ** -0.5
        weights = scores.masked_fill(mask.logical_not(), float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(start_dim=2))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.first, self.second = MultiQuery(16, 4), Grouped(16, 4, 2)
        self.head = nn.Linear(16, 32)

    def forward(self, x, y):
        t = x.size(1)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        h = self.embed(x)
        h = h + self.first(self.norm1(h), mask)
        h = h + self.second(self.norm2(h), mask)
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


def make():
    return Model()
