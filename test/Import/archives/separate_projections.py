# RUN: %check-archive %s
"""Query, key and value as three layers, blocks in a Sequential, positions as one parameter, exact GELU,
dropout switched off by eval()."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.key = nn.Linear(n_embd, n_embd)
        self.query = nn.Linear(n_embd, n_embd)
        self.value = nn.Linear(n_embd, n_embd)
        self.attn_drop = nn.Dropout(0.1)
        self.resid_drop = nn.Dropout(0.1)
        self.proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size))[None, None, :, :])
        self.n_head = n_head

    def forward(self, x):
        B, T, C = x.shape
        k = self.key(x).view(B, T, self.n_head, C // self.n_head).permute(0, 2, 1, 3)
        q = self.query(x).view(B, T, self.n_head, C // self.n_head).permute(0, 2, 1, 3)
        v = self.value(x).view(B, T, self.n_head, C // self.n_head).permute(0, 2, 1, 3)
        att = torch.matmul(q, k.permute(0, 1, 3, 2)) / math.sqrt(C // self.n_head)
        att = att.masked_fill(self.mask[:, :, :T, :T].eq(0), -1e10)
        att = self.attn_drop(torch.softmax(att, -1))
        y = torch.matmul(att, v).permute(0, 2, 1, 3).reshape(B, T, C)
        return self.resid_drop(self.proj(y))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.ln1 = nn.LayerNorm(n_embd)
        self.ln2 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, block_size)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd),
                                 nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        x = x + self.mlp(self.ln2(x))
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_emb = nn.Embedding(32, 16)
        self.pos_emb = nn.Parameter(torch.randn(1, 12, 16) * 0.02)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.Sequential(*[Block(16, 4, 12) for _ in range(2)])
        self.ln_f = nn.LayerNorm(16)
        self.head = nn.Linear(16, 32, bias=False)

    def forward(self, x, y):
        t = x.size(1)
        h = self.drop(self.tok_emb(x) + self.pos_emb[:, :t, :])
        logits = self.head(self.ln_f(self.blocks(h)))
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def make():
    return Model().eval()
