# RUN: %check-archive %s
"""The same few activations in all their spellings: GELU by erf, by tanh with pow, with x**3 and with products, the
sigmoid one; SiLU by hand; F.gelu in both modes; squared ReLU; softplus."""
import math
import torch
from torch import nn
from torch.nn import functional as F


def gelu_erf(x):
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def gelu_cube(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gelu_products(x):
    cdf = 0.5 * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))
    return x * cdf


def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


def silu(x):
    return x / (1.0 + torch.exp(-x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 12)
        self.layers = nn.ModuleList([nn.Linear(12, 12) for _ in range(9)])
        self.head = nn.Linear(12, 32)

    def forward(self, x, y):
        h = self.embed(x)
        h = h + gelu_erf(self.layers[0](h))
        h = h + gelu_cube(self.layers[1](h))
        h = h + gelu_products(self.layers[2](h))
        h = h + quick_gelu(self.layers[3](h))
        h = h + silu(self.layers[4](h))
        h = h + F.gelu(self.layers[5](h))
        h = h + F.gelu(self.layers[6](h), approximate="tanh")
        h = h + F.relu(self.layers[7](h)).pow(2)
        h = h + F.softplus(self.layers[8](h))
        return F.cross_entropy(self.head(h).view(-1, 32), y.view(-1))


def make():
    return Model()
