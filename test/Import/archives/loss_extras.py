# RUN: %check-archive %s
"""What people add to the loss: a z-loss on logsumexp, label smoothing, an auxiliary mean, reduction='sum' over a count."""
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.a, self.b = nn.Linear(16, 32), nn.Linear(16, 32)

    def forward(self, x, y):
        h = self.embed(x)
        first, second = self.a(h), self.b(torch.tanh(h))
        n = x.size(0) * x.size(1)
        loss = F.cross_entropy(first.view(n, -1), y.view(n), label_smoothing=0.1)
        other = F.cross_entropy(second.view(n, -1), y.view(n), reduction="sum") / n
        z = torch.logsumexp(first, dim=-1).pow(2).mean()
        return loss + 0.5 * other + 1e-3 * z + 1e-2 * h.abs().mean()


def make():
    return Model()
