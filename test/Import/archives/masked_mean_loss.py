# RUN: %check-archive %s
"""Loss with reduction='none', weighted by a mask of valid targets and divided by their number."""
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.ff = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 32)

    def forward(self, x, y, mask):
        h = self.embed(x)
        h = h + self.ff(h)
        logits = self.head(h)
        loss = F.cross_entropy(logits.view(-1, 32), y.view(-1), reduction="none")
        weight = mask.view(-1)
        return (loss * weight).sum() / weight.sum().clamp(min=1.0)


def make():
    return Model()


def inputs():
    mask = torch.ones(2, 8)
    mask[0, 5:] = 0.0
    return {"x": torch.randint(0, 32, (2, 8)), "y": torch.randint(0, 32, (2, 8)), "mask": mask}
