#!/usr/bin/python3
"""write_deepspeed.py - a folder of DeepSpeed's whose parameters are those of a weights file.

    write_deepspeed.py WEIGHTS.safetensors FOLDER --optimizer AdamW [--lost NAME.SLOT]

ZeRO 2 of two ranks, with moments as Adam keeps them. --optimizer none leaves the configuration without one, as where a
script makes it; --lost puts a NaN among the elements of one state.
"""

import argparse
import os
import sys
from collections import OrderedDict

import torch

import deepspeed_files as files

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import safetensors_io  # noqa: E402


class Trained(files.Training):
    """All tensors in one group, moments of small numbers."""

    def __init__(self, tensors):
        draw = torch.Generator().manual_seed(1)
        self.half = torch.float16
        self.groups = [OrderedDict((name, tuple(value.shape)) for name, value in tensors.items())]
        self.states = {name: {"value": torch.from_numpy(value.copy()), "exp_avg": torch.randn(value.shape, generator=draw) * 1e-3,
                              "exp_avg_sq": torch.rand(value.shape, generator=draw) * 1e-6} for name, value in tensors.items()}
        self.frozen, self.buffers, self.tied = {}, {}, {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("folder")
    parser.add_argument("--optimizer", default="AdamW")
    parser.add_argument("--lost", metavar="NAME.SLOT")
    args = parser.parse_args()
    training = Trained(safetensors_io.load(args.weights))
    if args.lost:
        name, _, slot = args.lost.rpartition(".")
        training.states[name][slot].view(-1)[3] = float("nan")
    config = {} if args.optimizer == "none" else {"optimizer": {"type": args.optimizer, "params": {"lr": 1e-3}}}
    files.DeepSpeedConfig = lambda: config
    files.pretend()
    files.write_flat(args.folder, training, stage=2, ranks=2)


if __name__ == "__main__":
    main()
