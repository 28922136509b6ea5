"""weighted_loss.py OUT - archives of losses that PyTorch spells out, and labels of which the first four do not count.

A linear layer's cross-entropy with class weights and smoothed labels, traced, as OUT/weighted.pt; OUT/labels.safetensors
has 8 samples, of which the first four have the label -100.
"""

import os
import sys

import numpy as np
import torch
from torch.nn import functional as F

import safetensors_io


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 3)
        self.register_buffer("weight", torch.tensor([0.5, 1.0, 2.0]))

    def forward(self, x, y):
        return F.cross_entropy(self.layer(x), y, weight=self.weight, label_smoothing=0.1)


def main():
    torch.manual_seed(1)
    out, model = sys.argv[1], Weighted()
    x, y = torch.randn(8, 5), torch.tensor([-100] * 4 + [0, 1, 2, 1])
    torch.jit.trace(model, (x[4:], y[4:])).save(os.path.join(out, "weighted.pt"))
    safetensors_io.save(os.path.join(out, "labels.safetensors"), {"x": x.numpy(), "y": y.numpy().astype(np.int64)})
    print(f"loss {float(model(x[4:], y[4:])):.6g}")


if __name__ == "__main__":
    main()
