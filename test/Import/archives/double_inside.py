# RUN: %check-archive %s
"""Elementwise float64 inside a float32 model, float64 numbers of rank 0, and a float64 buffer that is a scalar."""
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.head = nn.Linear(16, 32)
        self.register_buffer("temperature", torch.tensor(0.7, dtype=torch.float64))
        self.register_buffer("table", torch.linspace(0.1, 2.0, 16, dtype=torch.float64))

    def forward(self, x, y):
        h = self.embed(x) * self.temperature
        h = torch.tanh(h.double() * self.table).float() + h * float(self.table[3])
        return F.cross_entropy(self.head(h).view(-1, 32), y.view(-1))


def make():
    return Model()
