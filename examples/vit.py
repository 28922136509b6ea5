"""vit.py - a Vision Transformer that classifies images.

A convolution cuts the image into patches (Dosovitskiy et al., arXiv:2010.11929); a class token stands before them,
positions are learned, and the head reads the token.  forward(x, y) returns the mean cross-entropy of the labels y.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class ViTConfig:
    image: int = 16
    patch: int = 4
    layers: int = 2
    heads: int = 2
    width: int = 32
    classes: int = 10


SIZES = {
    "tiny": ViTConfig(),
    "small": ViTConfig(image=224, patch=16, layers=12, heads=6, width=384, classes=1000),
}


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, time, width = x.size()
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (torch.matmul(q, k.transpose(-2, -1)) * self.scale).softmax(-1)
        return self.proj(torch.matmul(weights, v).transpose(1, 2).reshape(batch, time, width))


class Block(nn.Module):
    """A layer that speech.py shares."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ViTLogits(nn.Module):
    """forward(x) returns the logits."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        patches = (config.image // config.patch) ** 2
        self.patches = nn.Conv2d(3, config.width, config.patch, config.patch)
        self.token = nn.Parameter(torch.randn(1, 1, config.width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, patches + 1, config.width) * 0.02)
        self.blocks = nn.ModuleList([Block(config.width, config.heads) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.classes)

    def logits(self, x):
        hidden = self.patches(x).flatten(2).transpose(1, 2)
        hidden = torch.cat([self.token.expand(x.size(0), -1, -1), hidden], 1) + self.positions
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden)[:, 0])

    def forward(self, x):
        return self.logits(x)


class ViT(ViTLogits):
    def forward(self, x, y):
        return F.cross_entropy(self.logits(x), y)


def make_data(config, random, samples):
    """Random images, labelled by which of as many random filters answers most."""
    x = random.standard_normal((samples, 3, config.image, config.image), dtype="float32")
    plane = random.standard_normal((x[0].size, config.classes), dtype="float32")
    return {"x": x, "y": (x.reshape(samples, -1) @ plane).argmax(1).astype("int64")}
