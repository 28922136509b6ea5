# RUN: %check-archive %s
"""The transformer as first published: sinusoidal positions in a buffer, embeddings times sqrt(d), ReLU, norm after the
residual, mask of -1e9, layers built by deepcopy."""
import copy
import math
import torch
from torch import nn
import torch.nn.functional as F


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


def attention(query, key, value, mask):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    scores = scores.masked_fill(mask == 0, -1e9)
    return torch.matmul(F.softmax(scores, dim=-1), value)


class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = clones(nn.Linear(d_model, d_model), 4)

    def forward(self, query, key, value, mask):
        mask = mask.unsqueeze(1)
        nbatches = query.size(0)
        query = self.linears[0](query).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
        key = self.linears[1](key).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
        value = self.linears[2](value).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
        x = attention(query, key, value, mask)
        x = x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)
        return self.linears[3](x)


class Layer(nn.Module):
    def __init__(self, d_model, h, d_ff):
        super().__init__()
        self.self_attn = MultiHeadedAttention(h, d_model)
        self.w_1, self.w_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask):
        x = self.norm1(x + self.self_attn(x, x, x, mask))
        return self.norm2(x + self.w_2(self.w_1(x).relu()))


class Model(nn.Module):
    def __init__(self, d_model=16, max_len=20):
        super().__init__()
        self.d_model = d_model
        self.lut = nn.Embedding(32, d_model)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))
        self.layers = clones(Layer(d_model, 2, 40), 2)
        self.proj = nn.Linear(d_model, 32)

    def forward(self, x, y):
        size = x.size(-1)
        subsequent = torch.triu(torch.ones(1, size, size), diagonal=1).type(torch.uint8) == 0
        h = self.lut(x) * math.sqrt(self.d_model) + self.pe[:, : x.size(1)].requires_grad_(False)
        for layer in self.layers:
            h = layer(h, subsequent)
        logp = F.log_softmax(self.proj(h), dim=-1)
        return F.nll_loss(logp.contiguous().view(-1, logp.size(-1)), y.contiguous().view(-1))


def make():
    return Model()


FORMS = ("traced",)  # requires_grad_ on a slice of a buffer does not script
