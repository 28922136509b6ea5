# RUN: %check-archive %s
"""Layer norm by mean and variance, by mean and standard deviation (of n - 1), and by a centred product."""
import torch
from torch import nn
from torch.nn import functional as F


class ByVariance(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return self.gamma * (x - mean) / torch.sqrt(var + 1e-5) + self.beta


class ByDeviation(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a_2, self.b_2 = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + 1e-6) + self.b_2


class ByProduct(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))

    def forward(self, x):
        u = x.mean(-1, keepdim=True)
        s = (x - u).pow(2).mean(-1, keepdim=True)
        x = (x - u) * torch.rsqrt(s + 1e-12)
        return self.weight * x + self.bias


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.n1, self.n2, self.n3 = ByVariance(16), ByDeviation(16), ByProduct(16)
        self.f1, self.f2, self.f3 = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 32)

    def forward(self, x, y):
        h = self.embed(x)
        h = h + torch.tanh(self.f1(self.n1(h)))
        h = h + torch.tanh(self.f2(self.n2(h)))
        return F.cross_entropy(self.f3(self.n3(h)).view(-1, 32), y.view(-1))


def make():
    return Model()
