# RUN: %check-archive %s
# RUN: %check-archive --steps 10 --optimizer SGD %s
"""torch.nn's own encoder: its forward formats messages about the paths that it does not take."""
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, activation="gelu")
        first = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.norm_first = nn.TransformerEncoder(first, 1, nn.LayerNorm(16))
        self.head = nn.Linear(16, 32)

    def forward(self, x, y):
        h = self.norm_first(self.encoder(self.embed(x)))
        return F.cross_entropy(self.head(h).view(-1, 32), y.view(-1))


def make():
    return Model()
