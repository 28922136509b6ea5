# RUN: %check-archive %s
"""The vision-transformer way with heads: reshape to five dimensions, permute, unbind; flatten(2) at the end."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, dim, num_heads=4, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        attn = (attn + mask).softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).flatten(2)
        return self.proj(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.pos = nn.Parameter(torch.zeros(8, 16))
        self.norm = nn.LayerNorm(16)
        self.attn = Attention(16)
        self.fc = nn.Linear(16, 32)

    def forward(self, x, y):
        n = x.shape[1]
        mask = torch.zeros(n, n).masked_fill(torch.ones(n, n).tril() == 0, float("-inf"))
        h = self.embed(x) + self.pos[:n]
        h = h + self.attn(self.norm(h), mask)
        logits = self.fc(h)
        return F.cross_entropy(logits.flatten(end_dim=1), y.flatten())


def make():
    return Model()
