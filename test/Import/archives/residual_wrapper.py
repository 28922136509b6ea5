# RUN: %check-archive %s
"""Everything is a Sequential: residual and pre-norm wrappers around the inner modules, logits transposed for the loss."""
import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x):
        return self.fn(self.norm(x))


class Attention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(dim, dim), nn.Dropout(0.0))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q = q.reshape(b, n, self.heads, -1).transpose(1, 2)
        k = k.reshape(b, n, self.heads, -1).transpose(1, 2)
        v = v.reshape(b, n, self.heads, -1).transpose(1, 2)
        mask = torch.ones((n, n), dtype=torch.bool).triu(1)
        dots = (q @ k.transpose(-1, -2)) * (d // self.heads) ** -0.5
        out = dots.masked_fill(mask, float("-inf")).softmax(dim=-1) @ v
        return self.to_out(out.transpose(1, 2).reshape(b, n, d))


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Dropout(0.0), nn.Linear(dim * 4, dim))

    def forward(self, x):
        return self.net(x)


class Model(nn.Module):
    def __init__(self, dim=16, depth=2):
        super().__init__()
        self.embed = nn.Embedding(32, dim)
        blocks = []
        for _ in range(depth):
            blocks += [Residual(PreNorm(dim, Attention(dim))), Residual(PreNorm(dim, FeedForward(dim)))]
        self.net = nn.Sequential(*blocks, nn.LayerNorm(dim), nn.Linear(dim, 32))

    def forward(self, x, y):
        logits = self.net(self.embed(x))
        return F.cross_entropy(logits.transpose(1, 2), y)


def make():
    return Model()
