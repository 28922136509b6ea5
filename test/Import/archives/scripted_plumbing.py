# RUN: %check-archive %s
"""What scripted code is full of: dictionaries and tuples between modules, optional arguments, early returns, enumerate
over a ModuleList, counted loops, lists that are appended to and stacked, asserts with messages."""
from typing import Dict, List, Optional, Tuple
import torch
from torch import nn, Tensor
import torch.nn.functional as F


class Mixer(nn.Module):
    def __init__(self, dim: int, index: int):
        super().__init__()
        self.dim, self.index = dim, index
        self.use_gate = index % 2 == 1
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim) if index % 2 == 1 else nn.Identity()

    def attend(self, x: Tensor, mask: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
        scores = torch.matmul(self.q(x), self.k(x).transpose(1, 2)) / float(self.dim) ** 0.5
        if mask is not None:
            scores = scores + mask
        weights = torch.softmax(scores, dim=-1)
        return torch.matmul(weights, self.v(x)), weights

    def forward(self, state: Dict[str, Tensor], mask: Optional[Tensor] = None) -> Dict[str, Tensor]:
        hidden = state["hidden"]
        mixed, _ = self.attend(hidden, mask)
        if self.use_gate:
            mixed = mixed * torch.sigmoid(self.gate(hidden))
        out: Dict[str, Tensor] = {"hidden": hidden + mixed, "last": mixed}
        return out


class Model(nn.Module):
    def __init__(self, layers: int = 3):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.layers = nn.ModuleList([Mixer(16, i) for i in range(layers)])
        self.weights = nn.Parameter(torch.ones(layers))
        self.head = nn.Linear(16, 32)
        self.rounds = 2

    def mask_for(self, t: int) -> Tensor:
        rows: List[Tensor] = []
        for i in range(t):
            rows.append(torch.cat([torch.zeros(i + 1), torch.full([t - i - 1], -1e9)]))
        return torch.stack(rows)

    def loss_of(self, logits: Tensor, y: Optional[Tensor]) -> Tensor:
        if y is None:
            return logits
        return F.cross_entropy(logits.view(-1, logits.size(2)), y.view(-1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        assert x.dim() == 2, "x must be [batch, time]"
        state = {"hidden": self.embed(x), "last": torch.zeros(1)}
        mask = self.mask_for(x.size(1))
        collected: List[Tensor] = []
        for i, layer in enumerate(self.layers):
            state = layer(state, mask if i > 0 else mask * 1.0)
            collected.append(state["hidden"])
        stacked = torch.stack(collected, dim=0)
        hidden = (stacked * F.softmax(self.weights, dim=0).view(-1, 1, 1, 1)).sum(0)
        for _ in range(self.rounds):
            hidden = F.layer_norm(hidden, [16])
        return self.loss_of(self.head(hidden), y)


def make():
    return Model()


FORMS = ("scripted",)
