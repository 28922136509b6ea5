# RUN: %check-archive %s
"""One argument: the model shifts the tokens itself, as autoregressive wrappers do."""
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_emb = nn.Embedding(32, 16)
        self.pos_emb = nn.Embedding(16, 16)
        self.attn = nn.Linear(16, 48, bias=False)
        self.norm = nn.LayerNorm(16)
        self.to_logits = nn.Linear(16, 32)

    def forward(self, x):
        n = x.shape[1]
        h = self.token_emb(x) + self.pos_emb(torch.arange(n))[None, :, :]
        q, k, v = self.attn(self.norm(h)).chunk(3, dim=-1)
        sim = torch.einsum("bid,bjd->bij", q, k) * 16 ** -0.5
        causal = torch.ones((n, n), dtype=torch.bool).triu(1)
        attn = sim.masked_fill(causal, -1e9).softmax(dim=-1)
        h = h + torch.einsum("bij,bjd->bid", attn, v)
        return self.to_logits(h)


class AutoregressiveWrapper(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        inp, target = x[:, :-1], x[:, 1:]
        logits = self.net(inp)
        return F.cross_entropy(logits.transpose(1, 2), target, ignore_index=-100)


def make():
    return AutoregressiveWrapper(Net())


def inputs():
    return {"x": torch.randint(0, 32, (2, 9))}
