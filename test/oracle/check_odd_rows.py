#!/usr/bin/python3
"""check_odd_rows.py - train a softmax between two products compiled for CUDA, and compare it with the CPU.

    check_odd_rows.py softmax --out DIR --config ds_config.json --fake libds-fake-cuda.so [options of check_cuda.py]

Rows of 257 numbers are written by a product, read by generated kernels that reduce them, and read by products: on CUDA
they lie apart.
"""

import os

import torch
from torch import nn
from torch.nn import functional as F

import check_cuda
import ds_config
from commands import finish

import safetensors_io

MICRO, LENGTH, WIDTH, ROW = 2, 16, 32, 257


class Lookup(nn.Module):
    """Mixes values by how well keys fit, as attention over a table does."""

    def __init__(self):
        super().__init__()
        self.keys, self.values = nn.Linear(WIDTH, ROW, bias=False), nn.Linear(ROW, WIDTH, bias=False)
        nn.init.normal_(self.keys.weight, std=0.5)

    def forward(self, x, y):
        return F.mse_loss(self.values(F.softmax(self.keys(x), dim=-1)), y)


def save_example(out):
    """The archive and its data."""
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(0)
    archive, data = os.path.join(out, "lookup.pt"), os.path.join(out, "data.safetensors")
    x, y = torch.randn(32, LENGTH, WIDTH), torch.randn(32, LENGTH, WIDTH)
    torch.jit.trace(Lookup(), (x[:MICRO], y[:MICRO])).save(archive)
    safetensors_io.save(data, {"x": x.numpy(), "y": y.numpy()})
    return archive, data


def main():
    args, _ = check_cuda.parse()
    config = ds_config.read(args.config, args.set + [f"train_micro_batch_size_per_gpu={MICRO}"])
    archive, data = save_example(args.out)
    inputs = [f"{name}={MICRO}x{LENGTH}x{WIDTH}xf32" for name in ("x", "y")]
    complaints = []
    for kind in args.types:
        found, summary = check_cuda.check(args, kind, {"archive": archive, "data": data, "inputs": inputs}, config)
        print(f"{kind}: " + summary.replace("\n", f"\n{kind}: "))
        complaints += [f"{kind}: {text}" for text in found]
    finish(complaints, f"rows of {ROW} agree with the CPU over {args.steps} steps")


if __name__ == "__main__":
    main()
