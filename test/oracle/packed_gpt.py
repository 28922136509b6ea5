"""packed_gpt.py - a GPT whose samples may hold several documents, which do not see each other.

forward(x, y, position_ids, document_ids): positions are looked up as they are given, and a score counts where the key is
not later than the query and of the same document. What hides the others is added to the scores, and all layers
share it: ds-opt makes one attention op of that, which keeps no scores.
"""

import torch
from torch import nn
from torch.nn import functional as F

import example  # noqa: F401: finds gpt
import gpt


class Attention(gpt.CausalSelfAttention):
    def forward(self, x, mask):
        batch, time, width = x.size()
        q, k, v = [part.view(batch, time, self.heads, self.head_width).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2)]
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale
        scores = scores.masked_fill(self.future[:, :, :time, :time], float("-inf")) + mask
        mixed = torch.matmul(F.softmax(scores, dim=-1), v).transpose(1, 2).contiguous().view(batch, time, width)
        return self.proj(mixed)


class Block(gpt.Block):
    def __init__(self, config):
        super().__init__(config)
        self.attention = Attention(config)

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class PackedGPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab, bias=False)
        self.apply(gpt.initialise)

    def forward(self, x, y, position_ids, document_ids):
        apart = (document_ids.unsqueeze(2) != document_ids.unsqueeze(1)).unsqueeze(1)
        mask = apart.float() * -1e9
        hidden = self.tokens(x) + self.positions(position_ids)
        for block in self.blocks:
            hidden = block(hidden, mask)
        logits = self.head(self.norm(hidden))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))


def save(path):
    torch.manual_seed(0)
    torch.jit.script(PackedGPT(gpt.GPTConfig())).save(path)
