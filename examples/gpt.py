"""gpt.py - a GPT-2-style decoder in plain PyTorch.

Learned positions, layer norm before each block, causal attention spelled out with matmul, masked_fill and softmax,
GELU in its tanh form, and a head that shares the token table.  forward(x, y) returns the mean cross-entropy; GPTLogits
has the same weights and returns logits instead.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    vocab: int = 64
    context: int = 16
    layers: int = 2
    heads: int = 2
    width: int = 32
    bias: bool = True


SIZES = {
    "tiny": GPTConfig(),
    "small": GPTConfig(vocab=256, context=128, layers=6, heads=4, width=256),
    "bench": GPTConfig(vocab=50304, context=256, layers=6, heads=6, width=384),
    "words": GPTConfig(vocab=50257, context=256, layers=6, heads=4, width=256),
    "gpt2": GPTConfig(vocab=50257, context=1024, layers=12, heads=12, width=768),
}


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        self.heads = config.heads
        self.head_width = config.width // config.heads
        self.scale = 1.0 / math.sqrt(self.head_width)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=config.bias)
        self.proj = nn.Linear(config.width, config.width, bias=config.bias)
        future = torch.ones(config.context, config.context, dtype=torch.bool).triu(1)
        self.register_buffer("future", future.view(1, 1, config.context, config.context))

    def forward(self, x):
        batch, time, width = x.size()
        q, k, v = self.qkv(x).split(width, dim=2)
        q = q.view(batch, time, self.heads, self.head_width).transpose(1, 2)
        k = k.view(batch, time, self.heads, self.head_width).transpose(1, 2)
        v = v.view(batch, time, self.heads, self.head_width).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale
        scores = scores.masked_fill(self.future[:, :, :time, :time], float("-inf"))
        weights = F.softmax(scores, dim=-1)
        mixed = torch.matmul(weights, v).transpose(1, 2).contiguous().view(batch, time, width)
        return self.proj(mixed)


class Block(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = CausalSelfAttention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, 4 * config.width, bias=config.bias)
        self.down = nn.Linear(4 * config.width, config.width, bias=config.bias)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPTLogits(nn.Module):
    """forward(x) returns the logits: the label is then the compiler's input (--loss cross_entropy)."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(initialise)
        for name, parameter in self.named_parameters():
            if name.endswith(("proj.weight", "down.weight")):  # the two that write into the residual stream
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * config.layers))

    def logits(self, x):
        place = torch.arange(x.size(1), dtype=torch.long, device=x.device)
        hidden = self.tokens(x) + self.positions(place)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))

    def forward(self, x):
        return self.logits(x)


class GPT(GPTLogits):
    """forward(x, y) returns the mean cross-entropy of predicting y from x."""

    def forward(self, x, y):
        logits = self.logits(x)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))


def initialise(module):
    """As GPT-2 publishes it: normal of 0.02, biases zero, norms one."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
