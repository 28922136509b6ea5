# RUN: %check-archive %s
# RUN: %check-archive --steps 20 --optimizer SGD %s
# RUN: %check-archive --steps 20 --optimizer AdamW %s
"""Padding rows that are not zero: one that only weight decay changes, one that is counted from the end, and one of a table
that another lookup without padding trains."""
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Embedding(32, 16, padding_idx=3)
        self.second = nn.Embedding(32, 16, padding_idx=-1)
        self.shared = nn.Parameter(torch.randn(32, 16))
        self.head = nn.Linear(16, 32)

    def forward(self, x, y):
        h = self.first(x) + self.second(x) + F.embedding(x, self.shared, 5) + F.embedding(y, self.shared)
        return F.cross_entropy(self.head(torch.tanh(h)).view(-1, 32), y.view(-1))


def inputs():
    x = torch.tensor([[3, 31, 5, 1, 2, 3, 5, 31], [7, 3, 3, 5, 31, 31, 4, 9]])
    return {"x": x, "y": torch.randint(0, 32, (2, 8))}


def make():
    model = Model()
    with torch.no_grad():
        model.first.weight[3] = 0.5
        model.second.weight[31] = -0.25
    return model
