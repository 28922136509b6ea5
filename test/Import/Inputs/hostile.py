#!/usr/bin/python3
"""hostile.py FOLDER - write archives whose code does harm, or only looks like it, when it is loaded or run."""

import os
import sys
import warnings
from typing import List, Tuple

import torch

FOLDER = sys.argv[1]
SECRET = os.path.join(FOLDER, "secret")
Saved = Tuple[torch.Tensor, str, bool]


class Loaded(torch.nn.Module):
    """Saves a weight and a path; what each subclass does when it is loaded stands in its __setstate__."""

    def __init__(self, path=SECRET):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))
        self.path = path

    def forward(self, x):
        return (x * self.w).sum()

    @torch.jit.export
    def __getstate__(self):
        return self.w, self.path, self.training


class Writes(Loaded):
    @torch.jit.export
    def __setstate__(self, state: Saved):
        self.w, self.path, self.training = state[0], state[1], state[2]
        torch.save(self.w, self.path)


class Reads(Loaded):
    @torch.jit.export
    def __setstate__(self, state: Saved):
        self.w = torch.from_file(state[1], False, 3, dtype=torch.uint8).float()
        self.path, self.training = state[1], state[2]


class ReadsShared(Loaded):
    @torch.jit.export
    def __setstate__(self, state: Saved):
        self.w = torch.from_file(state[1], True, 3, dtype=torch.uint8).float()
        self.path, self.training = state[1], state[2]


class Fills(Loaded):
    """Doubles a list until the memory is full."""

    @torch.jit.export
    def __setstate__(self, state: Saved):
        self.w, self.path, self.training = state[0], state[1], state[2]
        items: List[int] = [1]
        while True:
            items = items + items


class Stays(Loaded):
    """Never comes back."""

    @torch.jit.export
    def __setstate__(self, state: Saved):
        self.w, self.path, self.training = state[0], state[1], state[2]
        turns = 0
        while self.training or not self.training:
            turns = turns + 1


@torch.jit.script
def square(x: torch.Tensor):
    return x @ x


class Works(Loaded):
    """Does what an honest module may do: threads, random numbers, products, convolutions, output, warnings."""

    @torch.jit.export
    def __setstate__(self, state: Saved):
        self.path, self.training = state[1], state[2]
        future = torch.jit.fork(square, torch.rand(300, 300))
        noise = torch.conv2d(torch.randn(2, 8, 32, 32), torch.randn(8, 8, 3, 3)).sum()
        noise = noise + torch.jit.wait(future).sum() + torch.linalg.inv(torch.eye(64)).sum()
        noise = noise + torch.fft.fft(torch.ones(64)).real.sum()
        warnings.warn("harmless")
        self.w = state[0] + 0 * torch.tanh(noise)


class Allocates(torch.nn.Module):
    """Asks for four tebibytes when it runs."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return (x * self.w).sum() + torch.ones(1 << 40).sum()


class Expands(torch.nn.Module):
    """A weight of four bytes that is two gibibytes long."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(1).expand(1 << 29))

    def forward(self, x):
        return (x * self.w[:3]).sum() + self.w.sum()


def save(module, name):
    torch.jit.script(module).save(os.path.join(FOLDER, name + ".pt"))


with open(SECRET, "w") as file:
    file.write("secret")
save(Writes(os.path.join(FOLDER, "owned")), "writes")
save(Reads(), "reads")
save(Reads("secret"), "reads-relative")
save(Reads("/proc/self/environ"), "reads-environment")
save(ReadsShared(), "reads-shared")
save(Fills(), "fills")
save(Stays(), "stays")
save(Works(), "works")
save(Allocates(), "allocates")
save(Expands(), "expands")
