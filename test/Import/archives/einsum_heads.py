# RUN: %check-archive %s
"""Attention and its projections as einsum over named axes."""
import torch
from torch import nn, einsum
import torch.nn.functional as F


class EinsumAttention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        head = dim // heads
        self.scale = head ** -0.5
        self.wq = nn.Parameter(torch.randn(dim, heads, head) * 0.2)
        self.wk = nn.Parameter(torch.randn(dim, heads, head) * 0.2)
        self.wv = nn.Parameter(torch.randn(dim, heads, head) * 0.2)
        self.wo = nn.Parameter(torch.randn(heads, head, dim) * 0.2)

    def forward(self, x):
        q = einsum("btd,dhk->bhtk", x, self.wq) * self.scale
        k = einsum("btd,dhk->bhtk", x, self.wk)
        v = einsum("btd,dhk->bhtk", x, self.wv)
        sim = einsum("bhik,bhjk->bhij", q, k)
        i, j = sim.size(-2), sim.size(-1)
        mask = torch.ones(i, j, dtype=torch.bool, device=x.device).triu(j - i + 1)
        sim = sim.masked_fill(mask, -3.4e38)
        attn = sim.softmax(dim=-1)
        out = einsum("bhij,bhjk->bhik", attn, v)
        return einsum("bhik,hkd->bid", out, self.wo)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(32, 16)
        self.norm = nn.LayerNorm(16)
        self.attn = EinsumAttention(16, 4)
        self.out = nn.Parameter(torch.randn(32, 16) * 0.2)

    def forward(self, x, y):
        h = self.emb(x)
        h = h + self.attn(self.norm(h))
        logits = torch.einsum("bnd,vd->bvn", h, self.out)
        return F.cross_entropy(logits, y)


def make():
    return Net()
