"""speech.py - an encoder of spectrograms as in Whisper, with a classifier behind it.

Two convolutions over time, the second of stride 2, make the tokens (Radford et al., arXiv:2212.04356).  forward(x, y)
returns the mean cross-entropy of the labels y.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from vit import Block


@dataclass
class SpeechConfig:
    mels: int = 8
    frames: int = 30
    layers: int = 1
    heads: int = 2
    width: int = 32
    classes: int = 6


SIZES = {
    "tiny": SpeechConfig(),
    "small": SpeechConfig(mels=80, frames=3000, layers=4, heads=6, width=384, classes=100),
}


class SpeechLogits(nn.Module):
    """forward(x) returns the logits."""

    def __init__(self, config: SpeechConfig):
        super().__init__()
        self.conv1 = nn.Conv1d(config.mels, config.width, 3, padding=1)
        self.conv2 = nn.Conv1d(config.width, config.width, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.randn(1, (config.frames + 1) // 2, config.width) * 0.02)
        self.blocks = nn.ModuleList([Block(config.width, config.heads) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.classes)

    def logits(self, x):
        hidden = self.conv2(F.gelu(self.conv1(x), approximate="tanh"))
        hidden = F.gelu(hidden, approximate="tanh").transpose(1, 2) + self.positions
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden).mean(1))

    def forward(self, x):
        return self.logits(x)


class Speech(SpeechLogits):
    def forward(self, x, y):
        return F.cross_entropy(self.logits(x), y)


def make_data(config, random, samples):
    """Random spectrograms, labelled by which of as many random filters answers most."""
    x = random.standard_normal((samples, config.mels, config.frames), dtype="float32")
    plane = random.standard_normal((x[0].size, config.classes), dtype="float32")
    return {"x": x, "y": (x.reshape(samples, -1) @ plane).argmax(1).astype("int64")}
