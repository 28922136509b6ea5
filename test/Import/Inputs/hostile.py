#!/usr/bin/python3
"""hostile.py - write archives whose code does harm when it is loaded or run."""

import os
import sys
from typing import Tuple

import torch

FOLDER = sys.argv[1]


class Writes(torch.nn.Module):
    """Saves a file when it is loaded."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))
        self.target = os.path.join(FOLDER, "owned")

    def forward(self, x):
        return (x * self.w).sum()

    @torch.jit.export
    def __getstate__(self):
        return self.w, self.target, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, str, bool]):
        self.w = state[0]
        self.target = state[1]
        self.training = state[2]
        torch.save(self.w, self.target)


class Allocates(torch.nn.Module):
    """Asks for four tebibytes when it runs."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return (x * self.w).sum() + torch.ones(1 << 40).sum()


torch.jit.script(Writes()).save(os.path.join(FOLDER, "writes.pt"))
torch.jit.script(Allocates()).save(os.path.join(FOLDER, "allocates.pt"))
os.remove(os.path.join(FOLDER, "owned")) if os.path.exists(os.path.join(FOLDER, "owned")) else None
