"""llama.py - a Llama-style decoder in plain PyTorch.

RMS norm, rotary positions in real arithmetic (the half-split layout of the published weights), grouped-query
attention, SwiGLU and an untied head.  No dropout, no bias.  forward(x, y) returns the mean cross-entropy.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class LlamaConfig:
    vocab: int = 64
    context: int = 16
    layers: int = 2
    heads: int = 4
    groups: int = 2  # key and value heads
    width: int = 32
    hidden: int = 88
    theta: float = 10000.0
    eps: float = 1e-6


SIZES = {
    "tiny": LlamaConfig(),
    "small": LlamaConfig(vocab=256, context=128, layers=4, heads=6, groups=2, width=192, hidden=512),
    "bench": LlamaConfig(vocab=32000, context=256, layers=6, heads=6, groups=2, width=384, hidden=1024),
}


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    """Turns each pair (x[i], x[i + d/2]) by its position's angle."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.heads = config.heads
        self.groups = config.groups
        self.head_width = config.width // config.heads
        self.scale = 1.0 / math.sqrt(self.head_width)
        self.q = nn.Linear(config.width, config.heads * self.head_width, bias=False)
        self.k = nn.Linear(config.width, config.groups * self.head_width, bias=False)
        self.v = nn.Linear(config.width, config.groups * self.head_width, bias=False)
        self.o = nn.Linear(config.heads * self.head_width, config.width, bias=False)

    def forward(self, x, cos, sin, mask):
        batch, time, width = x.size()
        q = self.q(x).view(batch, time, self.heads, self.head_width).transpose(1, 2)
        k = self.k(x).view(batch, time, self.groups, self.head_width).transpose(1, 2)
        v = self.v(x).view(batch, time, self.groups, self.head_width).transpose(1, 2)
        q = rotate(q, cos, sin)
        k = rotate(k, cos, sin)
        shared = self.heads // self.groups
        shape = [batch, self.groups, shared, time, self.head_width]
        k = k.unsqueeze(2).expand(shape).reshape(batch, self.heads, time, self.head_width)
        v = v.unsqueeze(2).expand(shape).reshape(batch, self.heads, time, self.head_width)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.scale + mask
        mixed = torch.matmul(F.softmax(scores, dim=-1), v)
        return self.o(mixed.transpose(1, 2).reshape(batch, time, width))


class Block(nn.Module):
    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.norm1 = RMSNorm(config.width, config.eps)
        self.attention = Attention(config)
        self.norm2 = RMSNorm(config.width, config.eps)
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.norm1(x), cos, sin, mask)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class LlamaLogits(nn.Module):
    """forward(x) returns the logits."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = RMSNorm(config.width, config.eps)
        self.head = nn.Linear(config.width, config.vocab, bias=False)
        head_width = config.width // config.heads
        frequency = config.theta ** (-torch.arange(0, head_width, 2, dtype=torch.float32) / head_width)
        angle = torch.outer(torch.arange(config.context, dtype=torch.float32), frequency)
        angle = torch.cat((angle, angle), dim=-1)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("mask", torch.full((config.context, config.context), float("-inf")).triu(1))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def logits(self, x):
        time = x.size(1)
        cos, sin, mask = self.cos[:time], self.sin[:time], self.mask[:time, :time]
        hidden = self.tokens(x)
        for block in self.blocks:
            hidden = block(hidden, cos, sin, mask)
        return self.head(self.norm(hidden))

    def forward(self, x):
        return self.logits(x)


class Llama(LlamaLogits):
    """forward(x, y) returns the mean cross-entropy of predicting y from x."""

    def forward(self, x, y):
        logits = self.logits(x)
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())
