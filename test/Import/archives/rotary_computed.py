# RUN: %check-archive %s
"""Rotary frequencies computed in forward from arange and a buffer; rotate_half by unbind of a reshaped tensor;
memory-style kwargs resolved at trace time."""
import torch
from torch import nn, einsum
import torch.nn.functional as F


class RotaryEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq)

    def forward(self, seq_len: int):
        t = torch.arange(seq_len, device=self.inv_freq.device).type_as(self.inv_freq)
        freqs = einsum("i,j->ij", t, self.inv_freq)
        return torch.cat((freqs, freqs), dim=-1)


def rotate_half(x):
    x = x.reshape(x.shape[0], x.shape[1], x.shape[2], 2, x.shape[3] // 2)
    x1, x2 = x.unbind(dim=-2)
    return torch.cat((-x2, x1), dim=-1)


class Attention(nn.Module):
    def __init__(self, dim, dim_head=8, heads=2):
        super().__init__()
        self.heads, self.scale = heads, dim_head ** -0.5
        self.to_q = nn.Linear(dim, dim_head * heads, bias=False)
        self.to_kv = nn.Linear(dim, dim_head * heads * 2, bias=False)
        self.to_out = nn.Linear(dim_head * heads, dim)

    def split(self, t):
        return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, rotary):
        q = self.to_q(x)
        k, v = self.to_kv(x).chunk(2, dim=-1)
        q, k, v = self.split(q), self.split(k), self.split(v)
        q = q * rotary.cos() + rotate_half(q) * rotary.sin()
        k = k * rotary.cos() + rotate_half(k) * rotary.sin()
        dots = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        i, j = dots.shape[-2], dots.shape[-1]
        r = torch.arange(i, device=x.device)
        mask = r.unsqueeze(-1) < torch.arange(j, device=x.device).unsqueeze(0)
        dots = dots.masked_fill(mask, -torch.finfo(torch.float32).max)
        attn = F.softmax(dots, dim=-1)
        out = einsum("b h i j, b h j d -> b h i d", attn, v)
        return self.to_out(out.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_emb = nn.Embedding(32, 16)
        self.rotary = RotaryEmbedding(8)
        self.layers = nn.ModuleList([nn.ModuleList([nn.LayerNorm(16), Attention(16), nn.LayerNorm(16),
                                                    nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))])
                                     for _ in range(2)])
        self.norm = nn.LayerNorm(16)
        self.to_logits = nn.Linear(16, 32)

    def forward(self, x, y):
        rotary = self.rotary(x.shape[1])
        h = self.token_emb(x)
        for norm1, attn, norm2, ff in self.layers:
            h = attn(norm1(h), rotary) + h
            h = ff(norm2(h)) + h
        logits = self.to_logits(self.norm(h))
        return F.cross_entropy(logits.permute(0, 2, 1), y)


def make():
    return Decoder()


FORMS = ("traced",)  # a ModuleList cannot be unpacked in scripted code
