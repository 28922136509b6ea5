# RUN: %check-archive %s
"""Rotary positions on neighbouring pairs: strided slices, stack on a new last axis, flatten."""
import torch
from torch import nn
from torch.nn import functional as F


def apply_rotary(x, cos, sin):
    even = x[..., 0::2]
    odd = x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.n_heads, self.d = heads, dim // heads
        self.wqkv = nn.Linear(dim, dim * 3, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, cos, sin, mask):
        b, t, c = x.shape
        q, k, v = torch.split(self.wqkv(x), c, dim=-1)
        q = apply_rotary(q.view(b, t, self.n_heads, self.d), cos, sin).transpose(1, 2)
        k = apply_rotary(k.view(b, t, self.n_heads, self.d), cos, sin).transpose(1, 2)
        v = v.view(b, t, self.n_heads, self.d).transpose(1, 2)
        att = q.matmul(k.transpose(2, 3)).div(self.d ** 0.5).add(mask).softmax(-1)
        return self.wo(att.matmul(v).transpose(1, 2).reshape(b, t, c))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(32, 16)
        self.attn = Attention(16, 2)
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, 32, bias=False)
        freqs = 1.0 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8))
        angles = torch.outer(torch.arange(12).float(), freqs)
        self.register_buffer("cos", angles.cos()[:, None, :], persistent=False)
        self.register_buffer("sin", angles.sin()[:, None, :], persistent=False)

    def forward(self, x, y):
        t = x.shape[1]
        mask = torch.full((1, 1, t, t), float("-inf"), device=x.device)
        mask = torch.triu(mask, diagonal=1)
        h = self.emb(x)
        h = h + self.attn(self.norm(h), self.cos[:t], self.sin[:t], mask)
        return F.cross_entropy(self.out(h).view(-1, 32), y.view(-1))


def make():
    return Net()
