# RUN: %check-archive %s
"""One token, one head, heads of one number, a batch of one: sizes that make dimensions vanish."""
import math
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.width, self.heads = width, heads
        self.qkv = nn.Linear(16, 3 * width)
        self.out = nn.Linear(width, 16)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(self.width, dim=2)
        q = q.view(B, T, self.heads, self.width // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, self.width // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, self.width // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(self.width // self.heads))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(B, T, self.width))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.many, self.one = Attention(16, 2), Attention(16, 1)
        self.thin, self.single = Attention(4, 4), Attention(1, 1)
        self.head = nn.Linear(16, 32)

    def run(self, x):
        h = self.embed(x)
        h = h + self.many(h) + self.one(h) + self.thin(h) + self.single(h)
        return self.head(torch.cat([h[:, :0], h, h[:, x.size(1):]], 1))

    def forward(self, x, y):
        long = F.cross_entropy(self.run(x).view(-1, 32), y.view(-1))
        short = F.cross_entropy(self.run(x[:, :1]).view(-1, 32), y[:, :1].reshape(-1))
        alone = F.cross_entropy(self.run(x[:1, :1]).view(-1, 32), y[:1, :1].reshape(-1))
        return long + short + alone + self.run(x[:1]).mean()


def inputs():
    return {"x": torch.randint(0, 32, (2, 5)), "y": torch.randint(0, 32, (2, 5))}


def make():
    return Model()
