# RUN: %check-archive %s
"""RMS norm with one plus the weight, embeddings scaled by sqrt(d), tanh GeGLU, scores and logits capped by tanh,
keys and queries normalised."""
import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float())
        return (output * (1.0 + self.weight.float())).type_as(x)


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, cap: float):
        super().__init__()
        self.heads, self.size, self.cap = heads, dim // heads, cap
        self.input_norm, self.post_norm = RMSNorm(dim), RMSNorm(dim)
        self.q_norm, self.k_norm = RMSNorm(self.size), RMSNorm(self.size)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)
        self.gate, self.up = nn.Linear(dim, 40, bias=False), nn.Linear(dim, 40, bias=False)
        self.down = nn.Linear(40, dim, bias=False)

    def forward(self, x, mask):
        b, t, c = x.shape
        qkv = self.qkv(self.input_norm(x)).view(b, t, 3, self.heads, self.size)
        q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv.select(2, 2)
        q = self.q_norm(q).transpose(1, 2)
        k = self.k_norm(k).transpose(1, 2)
        v = v.transpose(1, 2)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.size ** -0.5
        scores = torch.tanh(scores / self.cap) * self.cap
        weights = F.softmax((scores + mask).float(), dim=-1).type_as(q)
        x = x + self.o(torch.matmul(weights, v).transpose(1, 2).contiguous().view(b, t, -1))
        h = self.post_norm(x)
        return x + self.down(F.gelu(self.gate(h), approximate="tanh") * self.up(h))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedder = nn.Embedding(32, 16)
        self.layers = nn.ModuleList([Block(16, 2, 50.0) for _ in range(2)])
        self.norm = RMSNorm(16)
        mask = torch.full((1, 1, 8, 8), -2.3819763e38)
        self.register_buffer("mask", torch.triu(mask, diagonal=1))

    def forward(self, x, y):
        h = self.embedder(x)
        h = h * torch.tensor(16 ** 0.5, dtype=h.dtype)
        for layer in self.layers:
            h = layer(h, self.mask.index_select(2, torch.arange(x.size(1)))[..., : x.size(1)])
        logits = torch.matmul(self.norm(h), self.embedder.weight.t())
        logits = torch.tanh(logits / 30.0) * 30.0
        return F.cross_entropy(logits.view(-1, 32), y.view(-1))


def make():
    return Model()
