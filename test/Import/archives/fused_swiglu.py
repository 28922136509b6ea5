# RUN: %check-archive %s
"""SwiGLU from one projection chunked in two, RMS norm by the vector norm, per-channel residual scales."""
import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = dim ** -0.5
        self.g = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        norm = torch.norm(x, dim=-1, keepdim=True) * self.scale
        return x / norm.clamp(min=1e-8) * self.g


class SwiGLU(nn.Module):
    def forward(self, x):
        x, gate = x.chunk(2, dim=-1)
        return F.silu(gate) * x


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.fused = nn.Linear(dim, 3 * dim + 2 * 24, bias=False)
        self.act = SwiGLU()
        self.attn_out, self.ff_out = nn.Linear(dim, dim, bias=False), nn.Linear(24, dim, bias=False)
        self.gamma = nn.Parameter(torch.full((dim,), 0.5))
        self.dim = dim

    def forward(self, x, mask):
        q, k, v, ff = self.fused(self.norm(x)).split((self.dim, self.dim, self.dim, 48), dim=-1)
        attn = (q @ k.transpose(-2, -1) * self.dim ** -0.5).masked_fill(mask, float("-inf"))
        out = attn.softmax(dim=-1) @ v
        return torch.addcmul(x, self.gamma, self.attn_out(out) + self.ff_out(self.act(ff)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(32, 16)
        self.blocks = nn.ModuleList([Block(16) for _ in range(3)])
        self.norm = RMSNorm(16)
        self.out = nn.Linear(16, 32, bias=False)

    def forward(self, x, y):
        n = x.shape[1]
        mask = torch.ones(n, n).triu(1).to(torch.bool)
        h = self.emb(x)
        for block in self.blocks:
            h = block(h, mask)
        return F.cross_entropy(self.out(self.norm(h)).view(-1, 32), y.view(-1))


def make():
    return Model()
