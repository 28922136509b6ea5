"""hf_t5.py - T5 in plain PyTorch, as its paper (arXiv 1910.10683) and checkpoints define it. hf_models.make() builds it."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from hf_parts import Named, RMSNorm, activation, loss_of


def buckets(config, rows, columns, both):
    """The bucket of each pair of positions: near ones have their own, far ones share."""
    relative = torch.arange(columns)[None] - torch.arange(rows)[:, None]
    count, farthest = config.get("relative_attention_num_buckets", 32), config.get("relative_attention_max_distance", 128)
    first = torch.zeros_like(relative)
    if both:
        count //= 2
        first, relative = (relative > 0).long() * count, relative.abs()
    else:
        relative = -torch.min(relative, torch.zeros_like(relative))
    exact = count // 2
    far = exact + (torch.log(relative.float().clamp(min=1) / exact) / math.log(farthest / exact) * (count - exact)).long()
    return first + torch.where(relative < exact, relative, torch.min(far, torch.full_like(far, count - 1)))


class Attention(nn.Module):
    def __init__(self, c, biased):
        super().__init__()
        self.size, inner = c["d_kv"], c["d_kv"] * c["num_heads"]
        self.q, self.k, self.v = (nn.Linear(c["d_model"], inner, bias=False) for _ in range(3))
        self.o = nn.Linear(inner, c["d_model"], bias=False)
        if biased:
            self.relative_attention_bias = nn.Embedding(c.get("relative_attention_num_buckets", 32), c["num_heads"])

    def forward(self, x, memory, bias=None):
        q, k, v = (part(y).view(y.size(0), y.size(1), -1, self.size).transpose(1, 2) for part, y in ((self.q, x), (self.k, memory), (self.v, memory)))
        scores = q @ k.transpose(2, 3)
        mixed = F.softmax(scores if bias is None else scores + bias, dim=-1) @ v
        return self.o(mixed.transpose(1, 2).reshape(x.size(0), x.size(1), -1))


class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        kind = c.get("feed_forward_proj", "relu" if c["model_type"] == "t5" else "gated-gelu")
        self.act = activation({"gated-gelu": "gelu_new"}.get(kind, kind.replace("gated-", "")))
        for name in ("wi_0", "wi_1") if kind.startswith("gated-") else ("wi",):
            setattr(self, name, nn.Linear(c["d_model"], c["d_ff"], bias=False))
        self.wo = nn.Linear(c["d_ff"], c["d_model"], bias=False)

    def forward(self, x):
        return self.wo(self.act(self.wi_0(x)) * self.wi_1(x) if hasattr(self, "wi_0") else self.act(self.wi(x)))


class Stack(nn.Module):
    def __init__(self, c, layers, causal):
        super().__init__()
        self.c, self.causal, eps = c, causal, c.get("layer_norm_epsilon", 1e-6)
        self.block = nn.ModuleList()
        for index in range(layers):
            parts = [Named(SelfAttention=Attention(c, index == 0))] + [Named(EncDecAttention=Attention(c, False))] * causal + [
                Named(DenseReluDense=FeedForward(c))]
            for part in parts:
                part.layer_norm = RMSNorm(c["d_model"], eps)
            self.block.append(Named(layer=nn.ModuleList(parts)))
        self.final_layer_norm = RMSNorm(c["d_model"], eps)

    def bias(self, time):
        table = self.block[0].layer[0].SelfAttention.relative_attention_bias
        bias = table(buckets(self.c, time, time, not self.causal)).permute(2, 0, 1)[None]
        if not self.causal:
            return bias
        return bias.masked_fill(~torch.ones(time, time, dtype=torch.bool).tril(), float("-inf"))

    def forward(self, x, memory=None):
        bias = self.bias(x.size(1))
        for block in self.block:
            for part in block.layer:
                normed = part.layer_norm(x)
                if hasattr(part, "SelfAttention"):
                    x = x + part.SelfAttention(normed, normed, bias)
                elif hasattr(part, "EncDecAttention"):
                    x = x + part.EncDecAttention(normed, memory)
                else:
                    x = x + part.DenseReluDense(normed)
        return self.final_layer_norm(x)


class T5(nn.Module):
    def __init__(self, c):
        super().__init__()
        tied = c.get("tie_word_embeddings", c["model_type"] == "t5")
        self.scale = c["d_model"] ** -0.5 if c.get("scale_decoder_outputs", tied) else 1.0
        self.shared = nn.Embedding(c["vocab_size"], c["d_model"])
        self.encoder = Stack(c, c["num_layers"], causal=False)
        self.decoder = Stack(c, c.get("num_decoder_layers", c["num_layers"]), causal=True)
        self.lm_head = nn.Linear(c["d_model"], c["vocab_size"], bias=False)
        self.encoder.embed_tokens = self.decoder.embed_tokens = self.shared
        if tied:
            self.lm_head.weight = self.shared.weight

    def forward(self, input_ids, decoder_input_ids, labels):
        memory = self.encoder(self.shared(input_ids))
        return loss_of(self.lm_head(self.decoder(self.shared(decoder_input_ids), memory) * self.scale), labels)
