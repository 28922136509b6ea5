# RUN: %check-archive %s
"""Attention and feed-forward side by side on one norm, rotary positions on a part of each head, one fused projection
split by head."""
import torch
from torch import nn
from torch.nn import functional as F


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2:]
    return torch.cat((-x2, x1), dim=-1)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, rotary: int):
        super().__init__()
        self.heads, self.size, self.rotary = heads, width // heads, rotary
        self.query_key_value = nn.Linear(width, 3 * width)
        self.dense = nn.Linear(width, width)

    def turn(self, x, cos, sin):
        rot = x[..., : self.rotary]
        rest = x[..., self.rotary:]
        return torch.cat((rot * cos + rotate_half(rot) * sin, rest), dim=-1)

    def forward(self, x, cos, sin, mask):
        b, t, c = x.size()
        qkv = self.query_key_value(x).view(b, t, self.heads, 3 * self.size)
        q = qkv[..., : self.size].permute(0, 2, 1, 3)
        k = qkv[..., self.size: 2 * self.size].permute(0, 2, 1, 3)
        v = qkv[..., 2 * self.size:].permute(0, 2, 1, 3)
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        scores = torch.matmul(q, k.transpose(-1, -2)) * (self.size ** -0.5)
        scores = torch.where(mask, scores, torch.full_like(scores, -1e9))
        out = torch.matmul(F.softmax(scores, -1), v)
        return self.dense(out.permute(0, 2, 1, 3).contiguous().view(b, t, c))


class Layer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.input_layernorm = nn.LayerNorm(width)
        self.post_attention_layernorm = nn.LayerNorm(width)
        self.attention = Attention(width, 2, 4)
        self.dense_h_to_4h = nn.Linear(width, 4 * width)
        self.dense_4h_to_h = nn.Linear(4 * width, width)

    def forward(self, x, cos, sin, mask):
        attn = self.attention(self.input_layernorm(x), cos, sin, mask)
        mlp = self.dense_4h_to_h(F.gelu(self.dense_h_to_4h(self.post_attention_layernorm(x))))
        return mlp + attn + x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_in = nn.Embedding(32, 16)
        self.layers = nn.ModuleList([Layer(16) for _ in range(2)])
        self.final = nn.LayerNorm(16)
        self.embed_out = nn.Linear(16, 32, bias=False)
        angle = torch.outer(torch.arange(16.0), torch.tensor([1.0, 0.01]))
        angle = torch.cat((angle, angle), -1)[None, None, :, :]
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("mask", torch.ones(16, 16, dtype=torch.bool).tril()[None, None])

    def forward(self, x, y):
        t = x.size(1)
        h = self.embed_in(x)
        for layer in self.layers:
            h = layer(h, self.cos[:, :, :t], self.sin[:, :, :t], self.mask[..., :t, :t])
        logits = self.embed_out(self.final(h))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))


def make():
    return Model()
