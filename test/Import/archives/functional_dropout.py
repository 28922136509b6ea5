# RUN: %check-archive %s
"""Dropout of probability zero in training mode, by module and by function, and a branch on self.training."""
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, p: float = 0.0):
        super().__init__()
        self.p = p
        self.embed = nn.Embedding(32, 16, padding_idx=0)
        self.drop = nn.Dropout(p)
        self.up, self.down = nn.Linear(16, 40), nn.Linear(40, 16)
        self.head = nn.Linear(16, 32)

    def forward(self, x, y):
        h = self.drop(self.embed(x))
        inner = F.leaky_relu(self.up(h), 0.1)
        inner = F.dropout(inner, p=self.p, training=self.training)
        h = h + self.down(inner)
        if self.training:
            h = h * 1.0
        return F.cross_entropy(self.head(h).view(-1, 32), y.view(-1))


def make():
    return Model()
