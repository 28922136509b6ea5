# RUN: %check-archive %s
"""nn.LogSoftmax and nn.NLLLoss as two modules; tanh layers; the context concatenated by view."""
import torch
from torch import nn


class WindowModel(nn.Module):
    def __init__(self, vocab=32, dim=6, window=8, hidden=20):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.hidden = nn.Linear(window * dim, hidden)
        self.out = nn.Linear(hidden, vocab)
        self.log_softmax = nn.LogSoftmax(dim=1)
        self.criterion = nn.NLLLoss()

    def forward(self, x, y):
        e = self.embed(x).view(x.size(0), -1)
        h = torch.tanh(self.hidden(e))
        return self.criterion(self.log_softmax(self.out(h)), y)


def make():
    return WindowModel()


def inputs():
    return {"x": torch.randint(0, 32, (4, 8)), "y": torch.randint(0, 32, (4,))}
