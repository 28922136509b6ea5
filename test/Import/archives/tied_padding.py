# RUN: %check-archive %s
# RUN: %check-archive --steps 20 --optimizer SGD %s
# RUN: %check-archive --steps 20 --optimizer AdamW %s
# RUN: %check-archive --steps 6 --optimizer AdamW --ranks 2 --stage 1 %s
# RUN: %check-archive --steps 6 --optimizer SGD --ranks 2 --stage 2 %s
# RUN: %check-archive --steps 6 --optimizer AdamW --ranks 2 --stage 3 %s
"""A table with a padding row that is also the head, as masked language models have it: looking the row up gives it no
gradient, the head trains it, and from the second step on it is not zero."""
import torch
from torch import nn
from torch.nn import functional as F


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word_embeddings = nn.Embedding(32, 16, padding_idx=0)
        self.position_embeddings = nn.Embedding(12, 16)
        self.LayerNorm = nn.LayerNorm(16)
        self.register_buffer("position_ids", torch.arange(12).expand((1, -1)))

    def forward(self, x):
        position_ids = self.position_ids[:, :x.size(1)]
        return self.LayerNorm(self.word_embeddings(x) + self.position_embeddings(position_ids))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = Embeddings()
        self.dense = nn.Linear(16, 16)
        self.decoder = nn.Linear(16, 32)
        self.decoder.weight = self.embeddings.word_embeddings.weight

    def forward(self, x, y):
        h = self.embeddings(x)
        h = h + F.gelu(self.dense(h))
        return F.cross_entropy(self.decoder(h).view(-1, 32), y.view(-1))


def inputs():
    x, y = torch.randint(1, 32, (2, 8)), torch.randint(0, 32, (2, 8))
    x[:, 5:] = 0
    return {"x": x, "y": y}


def make():
    return Model()
