#!/usr/bin/python3
"""slopes.py - write attention with addends that grow with the distance into a folder, one traced archive each.

Each spelling is that of a published code; `near_...` are those that are nearly one and must stay what they are.
"""

import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

HEADS, SIZE, LENGTH, LOW = 6, 4, 64, torch.finfo(torch.float32).min


def slopes():
    """As transformers computes them for a number of heads that is no power of two."""
    base, extra = 2.0 ** -(2.0 ** -(math.log2(4) - 3)), 2.0 ** -(2.0 ** -(math.log2(8) - 3))
    powers = torch.pow(torch.tensor(base), torch.arange(1, 5, dtype=torch.int32))
    return torch.cat([powers, torch.pow(torch.tensor(extra), torch.arange(1, 5, 2, dtype=torch.int32))])


def bloom_alibi(batch):
    """build_alibi_tensor of a mask of ones: [batch * heads, 1, length]."""
    mask = torch.ones(batch, LENGTH)
    positions = ((mask.cumsum(dim=-1) - 1) * mask)[:, None, :]
    return (slopes()[..., None] * positions).reshape(batch * HEADS, 1, LENGTH)


def causal(fill=LOW):
    return torch.full((LENGTH, LENGTH), fill).triu(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 3 * HEADS * SIZE), nn.Linear(HEADS * SIZE, 8)

    def heads(self, x):
        """Queries, keys and values, [B, T, H, D], of a projection that has those of a head side by side."""
        joined = self.qkv(x).view(x.size(0), x.size(1), HEADS, 3, SIZE)
        return joined[..., 0, :], joined[..., 1, :], joined[..., 2, :]

    def forward(self, x):
        mixed = self.mix(*self.heads(x))
        return (self.out(mixed.transpose(1, 2).reshape(x.size(0), x.size(1), HEADS * SIZE)) ** 2).mean()

    def mix(self, q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return torch.ops.aten._scaled_dot_product_attention(q, k, v, self.mask(int(q.size(0))))[0]


class Bloom(Attention):
    """Batch and heads are one dimension, and the addend is the product's start."""

    def mix(self, q, k, v):
        batch = int(q.size(0))
        rows = batch * HEADS
        alibi = self.alibi(batch)
        q, v = (x.transpose(1, 2).reshape(rows, LENGTH, SIZE) for x in (q, v))
        k = k.permute(0, 2, 3, 1).reshape(rows, SIZE, LENGTH)
        scores = alibi.baddbmm(batch1=q, batch2=k, beta=1.0, alpha=1 / math.sqrt(SIZE)).view(batch, HEADS, LENGTH, LENGTH)
        hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)[None, None].expand(batch, 1, LENGTH, LENGTH)
        weights = F.softmax(torch.masked_fill(scores, hidden, LOW), dim=-1)
        return torch.bmm(weights.view(rows, LENGTH, LENGTH), v).view(batch, HEADS, LENGTH, SIZE)

    def alibi(self, batch):
        return bloom_alibi(batch)


class Falcon(Attention):
    """Slopes are added before scores are scaled, the mask afterwards."""

    def mix(self, q, k, v):
        batch = int(q.size(0))
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        logits = (q @ k.transpose(-1, -2)).view(batch, HEADS, LENGTH, LENGTH) + bloom_alibi(batch).view(batch, HEADS, 1, -1)
        logits = logits * (1 / math.sqrt(SIZE))
        return F.softmax(logits + causal()[None, None].repeat(batch, 1, 1, 1), dim=-1) @ v


class FalconFused(Attention):
    """Slopes and mask in one tensor for all samples."""

    def mask(self, batch):
        alibi = bloom_alibi(batch).view(batch, HEADS, 1, -1)
        hidden = causal()[None, None].repeat(batch, 1, 1, 1)
        return torch.masked_fill(alibi / math.sqrt(SIZE), hidden < -1, LOW)


class Distances(Attention):
    """slopes[h] * (s - t) of all pairs, and the mask, as two addends of one mask."""

    def mask(self, batch):
        place = torch.arange(LENGTH)
        distance = place[None, :] - place[:, None]
        return (slopes()[:, None, None] * distance)[None] + causal(float("-inf"))


class FromTheEnd(Attention):
    """slopes[h] * (s - (S - 1)), without a mask."""

    def mask(self, batch):
        return (slopes()[:, None, None] * torch.arange(1 - LENGTH, 1)[None, None])[None]


class Undirected(Attention):
    """-slopes[h] * |s - t| under a causal mask."""

    def mask(self, batch):
        place = torch.arange(LENGTH)
        bias = slopes()[:, None, None] * -(place[None, :] - place[:, None]).abs().float()
        return torch.where(causal() < 0, torch.tensor(float("-inf")), bias)[None]


class Window(Attention):
    """The last 5 positions, as a float mask for each sample."""

    def mask(self, batch):
        return (causal() + torch.full((LENGTH, LENGTH), LOW).tril(-5))[None, None].repeat(batch, 1, 1, 1)


class NearKink(Bloom):
    """The distances of one head stop growing."""

    def alibi(self, batch):
        bias = bloom_alibi(batch).clone()
        bias[3, 0, 40:] = bias[3, 0, 40]
        return bias


class NearSquares(FromTheEnd):
    def mask(self, batch):
        return (slopes()[:, None, None] * torch.arange(LENGTH) ** 2)[None]


class NearRounded(FromTheEnd):
    """Rounded to bf16 on the way: no longer a multiple of the slope."""

    def mask(self, batch):
        return (0.7 * super().mask(batch)).bfloat16().float()


class NearSamples(FalconFused):
    """The second sample has other slopes."""

    def mask(self, batch):
        mask = super().mask(batch).clone()
        mask[1] = torch.where(mask[1] == LOW, mask[1], 2 * mask[1])
        return mask


for kind in (Bloom, Falcon, FalconFused, Distances, FromTheEnd, Undirected, Window, NearKink, NearSquares, NearRounded, NearSamples):
    torch.manual_seed(0)
    torch.jit.trace(kind(), torch.randn(2, LENGTH, 8), check_trace=False).save(os.path.join(sys.argv[1], kind.__name__ + ".pt"))
