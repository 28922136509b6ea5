# RUN: %check-archive %s
"""Weights as plain parameters used in every product there is: @, matmul with .t() and .T, mm, addmm, F.linear,
tensordot-like reshapes; parameters in a ParameterList."""
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        def weight(*shape):
            return nn.Parameter(torch.randn(*shape) * 0.2)
        self.table = weight(32, 16)
        self.w1, self.b1 = weight(16, 24), weight(24)
        self.w2, self.b2 = weight(16, 24), weight(16)
        self.w3, self.b3 = weight(16, 16), weight(16)
        self.w4, self.w5 = weight(16, 16), weight(16, 16)
        self.scale = weight(1)

    def forward(self, x, y):
        h = F.embedding(x, self.table)
        h = h @ self.w1 + self.b1
        h = torch.relu(h).matmul(self.w2.t()) + self.b2
        flat = h.reshape(-1, h.size(-1))
        flat = torch.addmm(self.b3, flat, self.w3, beta=0.5, alpha=2.0)
        flat = torch.mm(torch.tanh(flat), self.w4.T) * (1.0 + self.scale)
        flat = F.linear(flat, self.w5) - flat
        logits = torch.matmul(flat, self.table.transpose(0, 1))
        return F.cross_entropy(logits, y.reshape(-1))


def make():
    return Model()
