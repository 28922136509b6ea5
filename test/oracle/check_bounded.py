#!/usr/bin/python3
"""check_bounded.py - train a GPT whose scores and logits are bounded, and compare it with PyTorch.

    check_bounded.py --out DIR --config ds_config.json [--fake libds-fake-cuda.so]

One layer sees the last positions only, one caps its scores, one does both, and the logits are capped, each spelled out with
matmul, masked_fill, tanh and softmax.  ds-opt must make ops with a window and a cap of that and keep no mask; ds-run must
train as PyTorch does, on the CPU and, with --fake, by CUDA's kernels.
"""

import argparse
import json
import os
import re

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import compare
import ds_config
import example  # noqa: F401: finds gpt
import fake_cuda
import train_oracle
from check_training import weight_complaints
from commands import compile_program, finish, run

import gpt
import safetensors_io

LENGTH, MICRO, STEPS, WINDOW, CAP, LOGIT_CAP = 80, 2, 5, 23, 0.5, 3.0
FORMS = ((True, False), (False, True), (True, True))  # of each layer: a window, a cap


class Attention(gpt.CausalSelfAttention):
    def __init__(self, config, has_window, has_cap):
        super().__init__(config)
        self.has_window, self.has_cap = has_window, has_cap

    def forward(self, x):
        batch, time, width = x.size()
        q, k, v = [part.view(batch, time, self.heads, self.head_width).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2)]
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale
        positions = torch.arange(time)
        ahead = positions.unsqueeze(0) - positions.unsqueeze(1)
        hidden = ahead > 0
        if self.has_window:
            hidden = hidden | (ahead <= -WINDOW)
        if self.has_cap:
            scores = CAP * torch.tanh(scores / CAP)
        scores = scores.masked_fill(hidden, float("-inf"))
        mixed = torch.matmul(F.softmax(scores, dim=-1), v).transpose(1, 2).contiguous().view(batch, time, width)
        return self.proj(mixed)


class BoundedGPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList([gpt.Block(config) for _ in FORMS])
        for block, form in zip(self.blocks, FORMS):
            block.attention = Attention(config, *form)
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab, bias=False)
        self.apply(gpt.initialise)
        nn.init.normal_(self.head.weight, std=1.0)  # so that the cap bends

    def forward(self, x, y):
        hidden = self.tokens(x)
        for block in self.blocks:
            hidden = block(hidden)
        logits = LOGIT_CAP * torch.tanh(self.head(self.norm(hidden)) / LOGIT_CAP)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))


def save_example(out):
    """The archive and its data."""
    torch.manual_seed(0)
    archive, data = os.path.join(out, "bounded.pt"), os.path.join(out, "data.safetensors")
    model = BoundedGPT(gpt.GPTConfig(context=LENGTH))
    tokens = torch.randint(0, 64, (16, LENGTH + 1))
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    torch.jit.trace(model, (x[:MICRO], y[:MICRO])).save(archive)
    safetensors_io.save(data, {"x": x.numpy(), "y": y.numpy()})
    return archive, data


def form_complaints(archive, config, inputs):
    """What is wrong with the ops that ds-opt makes of the archive."""
    flags = [word for value in inputs for word in ("--input", value)]
    text = run("ds-opt", archive, "--config", config, *flags, "--emit=ir", "--phase=step")
    forward = re.findall(r"ds\.attention %.*? scale", text)[:len(FORMS)]  # the functions of a step repeat them
    expected = [f"causal window {WINDOW} scale", f"causal cap {CAP:e} scale", f"causal window {WINDOW} cap {CAP:e} scale"]
    complaints = [f"{len(forward)} ops of attention"] if len(forward) != len(FORMS) else []
    complaints += [f"no {part} in {op}" for op, part in zip(forward, expected) if part not in op]
    complaints += [f"a mask in {op}" for op in forward if "mask(" in op]
    if f"ignore_index -100 cap {LOGIT_CAP:e}" not in text:
        complaints.append("a loss without a cap")
    return complaints


def train(args, files, name, inputs, *flags):
    """(log, weights) of ds-run."""
    log, after = (os.path.join(args.out, name + suffix) for suffix in (".jsonl", ".after.safetensors"))
    program = os.path.join(args.out, name + ".dsx")
    compile_program(files["archive"], files["config"], inputs, program, ["--target", "cuda:sm_90"] if name == "cuda" else [])
    if name == "cuda":
        fake_cuda.translate(program, args.out)
        fake_cuda.use(args.fake, args.out, 1)
    run("ds-run", program, "--data", files["data"], "--steps", STEPS, "--log-jsonl", log, "--save-weights", after, *flags)
    return compare.read_log(log), safetensors_io.load(after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--fake", metavar="LIBRARY", help="libds-fake-cuda.so")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    config = ds_config.read(args.config, [f"train_micro_batch_size_per_gpu={MICRO}"])
    archive, data = save_example(args.out)
    files = {"archive": archive, "data": data, "config": os.path.join(args.out, "ds_config.json")}
    with open(files["config"], "w") as file:
        json.dump(config, file)
    inputs = [f"{name}={MICRO}x{LENGTH}xi64" for name in ("x", "y")]
    complaints = form_complaints(archive, files["config"], inputs)
    log, trainer = train_oracle.train(archive, config, data, STEPS)
    for name in ("cpu", "cuda") if args.fake else ("cpu",):
        ours, weights = train(args, files, name, inputs, *(["--device", "cuda"] if name == "cuda" else []))
        found, _ = compare.compare(ours, log, 1e-5, 1e-4)
        theirs = {key: np.asarray(value, np.float64) for key, value in trainer.weights().items()}
        complaints += [f"{name}: {text}" for text in found + weight_complaints(weights, theirs, 1e-4)]
    finish(complaints, f"{STEPS} steps with windows and caps are PyTorch's")


if __name__ == "__main__":
    main()
