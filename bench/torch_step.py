#!/usr/bin/python3
"""torch_step.py - time training steps of an example GPT in PyTorch eager mode, in its fastest variant.

Prints one JSON object: seconds of every step, loss of every step, BLAS library.  Started by bench/step.py.
"""

import argparse
import json
import os
import sys
import time

import numpy as np
import torch
import torch.utils.checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples"))
import gpt  # noqa: E402


def blas_library():
    """The file that provides BLAS in this process: OpenBLAS in its OpenMP flavour, or the measurement means nothing."""
    with open("/proc/self/maps") as file:
        libraries = {line.split()[-1] for line in file if "blas" in line}
    return sorted(libraries)


def batches(path, length, size):
    """Windows of a token stream in order, as ds-run reads them."""
    tokens = np.fromfile(path, dtype="<u2").astype(np.int64)
    count = (len(tokens) - 1) // length
    position = 0
    while True:
        starts = (np.arange(position, position + size) % count)[:, None] * length + np.arange(length)
        yield torch.from_numpy(tokens[starts]), torch.from_numpy(tokens[starts + 1])
        position += size


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def checkpoint_blocks(model, count):
    """Lets the first `count` blocks keep what enters them alone, and run again in backward."""
    for block in list(model.blocks)[:count]:
        forward = block.forward
        block.forward = lambda x, forward=forward: torch.utils.checkpoint.checkpoint(forward, x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--foreach", action="store_true")
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32", help="bf16: under torch.autocast")
    parser.add_argument("--checkpoint", type=int, default=0, metavar="K", help="checkpoint the first K blocks")
    args = parser.parse_args()
    torch.manual_seed(0)
    before = resident()
    model = gpt.GPT(gpt.SIZES[args.size])
    checkpoint_blocks(model, args.checkpoint)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, foreach=args.foreach)
    seconds, losses = [], []
    data = batches(args.data, args.length, args.batch)
    for _ in range(args.steps):
        x, y = next(data)
        started = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = model(x, y)
        loss.backward()
        if args.clip > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"seconds": seconds, "losses": losses, "blas": blas_library(), "threads": torch.get_num_threads(), "resident_before": before,
                      "parameters": sum(p.numel() for p in model.parameters())}))


if __name__ == "__main__":
    main()
