# RUN: %check-archive %s
"""Heads folded into the batch: bmm and baddbmm on rank-3 tensors, addmm for the head."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.in_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def fold(self, x):
        b, t, d = x.size()
        return x.view(b, t, self.heads, self.size).transpose(1, 2).reshape(b * self.heads, t, self.size)

    def forward(self, x, mask):
        b, t, d = x.size()
        q, k, v = self.in_proj(x).chunk(3, dim=-1)
        q, k, v = self.fold(q), self.fold(k), self.fold(v)
        scores = torch.baddbmm(mask.expand(b * self.heads, t, t), q, k.transpose(1, 2), beta=1.0,
                               alpha=self.size ** -0.5)
        out = torch.bmm(torch.softmax(scores, dim=2), v)
        out = out.view(b, self.heads, t, self.size).transpose(1, 2).contiguous().view(b, t, d)
        return self.out_proj(out)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.attn1, self.attn2 = Attention(16, 2), Attention(16, 4)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.weight = nn.Parameter(torch.randn(16, 32) * 0.1)
        self.bias = nn.Parameter(torch.zeros(32))

    def forward(self, x, y):
        t = x.size(1)
        mask = torch.triu(torch.full((t, t), float("-inf")), diagonal=1).unsqueeze(0)
        h = self.embed(x)
        h = self.norm1(h + self.attn1(h, mask))
        h = self.norm2(h + self.attn2(h, mask))
        logits = torch.addmm(self.bias, h.view(-1, h.size(2)), self.weight)
        return F.cross_entropy(logits, y.view(-1))


def make():
    return Model()
