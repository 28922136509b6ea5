# RUN: %check-archive %s
"""No positions but a linear bias per head, made from two aranges; mask and bias added together."""
import torch
from torch import nn
from torch.nn import functional as F


class AlibiAttention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        slopes = torch.tensor([2.0 ** (-8.0 * (i + 1) / heads) for i in range(heads)])
        self.register_buffer("slopes", slopes.view(1, heads, 1, 1))

    def forward(self, x):
        b, t, d = x.size()
        qkv = self.qkv(x).view(b, t, self.heads, 3 * (d // self.heads))
        q, k, v = torch.chunk(qkv.transpose(1, 2), 3, dim=3)
        position = torch.arange(t)
        distance = (position.view(1, -1) - position.view(-1, 1)).to(torch.float32)
        bias = self.slopes * distance
        scores = torch.matmul(q, k.transpose(-1, -2)) / (d // self.heads) ** 0.5 + bias
        scores = torch.where(distance > 0, torch.tensor(-1e30), scores)
        out = torch.matmul(scores.softmax(-1), v)
        return self.proj(out.transpose(1, 2).contiguous().view(b, t, d))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.ln = nn.LayerNorm(16)
        self.attn = AlibiAttention(16, 4)
        self.head = nn.Linear(16, 32)

    def forward(self, x, y):
        h = self.embed(x)
        h = h + self.attn(self.ln(h))
        return F.cross_entropy(self.head(h).view(-1, 32), y.view(-1))


def make():
    return Model()
