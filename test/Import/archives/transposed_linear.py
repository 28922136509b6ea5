# RUN: %check-archive %s
"""Weights stored [in, out] and applied by addmm, heads split by hand, torch.where with the smallest float,
a padding mask that is added, the shift by one token inside the model, tuples between the modules."""
from typing import Tuple
import torch
from torch import nn, Tensor


class Conv1D(nn.Module):
    def __init__(self, nf: int, nx: int):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.randn(nx, nf) * 0.1)
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x: Tensor) -> Tensor:
        size_out = x.size()[:-1] + [self.nf] if torch.jit.is_scripting() else x.size()[:-1] + (self.nf,)
        x = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return x.view(size_out)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, positions: int):
        super().__init__()
        self.num_heads, self.head_dim, self.split_size = heads, width // heads, width
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)
        mask = torch.tril(torch.ones((positions, positions), dtype=torch.uint8))
        self.register_buffer("bias", mask.view(1, 1, positions, positions).bool())

    def split_heads(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), self.num_heads, self.head_dim).permute(0, 2, 1, 3)

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tuple[Tensor, Tensor]:
        query, key, value = self.c_attn(hidden).split(self.split_size, dim=2)
        query, key, value = self.split_heads(query), self.split_heads(key), self.split_heads(value)
        weights = torch.matmul(query, key.transpose(-1, -2))
        weights = weights / (value.size(-1) ** 0.5)
        length, total = query.size(-2), key.size(-2)
        causal = self.bias[:, :, total - length:total, :total]
        smallest = torch.full([], -3.4028234663852886e38, dtype=weights.dtype, device=weights.device)
        weights = torch.where(causal, weights, smallest) + attention_mask
        weights = nn.functional.softmax(weights, dim=-1).type(value.dtype)
        out = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
        out = out.view(out.size(0), out.size(1), self.split_size)
        return self.c_proj(out), weights


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, positions: int):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps=1e-5), nn.LayerNorm(width, eps=1e-5)
        self.attn = Attention(width, heads, positions)
        self.c_fc, self.c_proj = Conv1D(4 * width, width), Conv1D(width, 4 * width)

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tuple[Tensor, Tensor]:
        outputs = self.attn(self.ln_1(hidden), attention_mask)
        hidden = outputs[0] + hidden
        inner = self.c_fc(self.ln_2(hidden))
        inner = 0.5 * inner * (1.0 + torch.tanh(0.7978845608028654 * (inner + 0.044715 * torch.pow(inner, 3.0))))
        return self.c_proj(inner) + hidden, outputs[1]


class LMHeadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(32, 16), nn.Embedding(12, 16)
        self.h = nn.ModuleList([Layer(16, 2, 12) for _ in range(2)])
        self.ln_f = nn.LayerNorm(16)
        self.lm_head = nn.Linear(16, 32, bias=False)
        self.lm_head.weight = self.wte.weight
        self.loss = nn.CrossEntropyLoss()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        position_ids = torch.arange(0, input_ids.size(-1), dtype=torch.long).unsqueeze(0).view(-1, input_ids.size(-1))
        mask = attention_mask[:, None, None, :].to(torch.float32)
        mask = (1.0 - mask) * -10000.0
        hidden = self.wte(input_ids) + self.wpe(position_ids)
        for layer in self.h:
            hidden, _ = layer(hidden, mask)
        logits = self.lm_head(self.ln_f(hidden))
        shift_logits = logits[..., :-1, :].contiguous()
        shift_labels = labels[..., 1:].contiguous()
        return self.loss(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))


def make():
    return LMHeadModel()


def inputs():
    ids = torch.randint(0, 32, (2, 8))
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[1, 6:] = 0
    labels = ids.clone()
    labels[1, 6:] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}
