#!/usr/bin/python3
"""from_nanogpt.py - write the model of a nanoGPT checkpoint as a TorchScript archive with its weights.

    examples/from_nanogpt.py out-shakespeare-char/ckpt.pt --out gpt [--batch 16]

The module below has nanoGPT's layers under nanoGPT's names, so that every tensor of the checkpoint finds its place, and what is
exported later has the names that nanoGPT knows. The optimizer's moments are left: training goes on with new ones.
"""

import argparse
import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F


class LayerNorm(nn.Module):
    """nanoGPT's layer norm has a bias only where the whole model has them."""

    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads, context, bias, dropout):
        super().__init__()
        self.heads, self.dropout, self.scale = heads, dropout, 1.0 / math.sqrt(width // heads)
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)
        self.register_buffer("past", torch.ones(context, context, dtype=torch.bool).tril().view(1, 1, context, context), persistent=False)

    def forward(self, x):
        batch, time, width = x.shape
        query, key, value = [part.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
                             for part in self.c_attn(x).split(width, dim=2)]
        scores = (query @ key.transpose(-2, -1)) * self.scale
        weights = F.softmax(scores.masked_fill(~self.past[:, :, :time, :time], float("-inf")), dim=-1)
        weights = F.dropout(weights, self.dropout, self.training)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, time, width)
        return F.dropout(self.c_proj(mixed), self.dropout, self.training)


class Mlp(nn.Module):
    def __init__(self, width, bias, dropout):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.c_proj = nn.Linear(4 * width, width, bias=bias)
        self.dropout = dropout

    def forward(self, x):
        return F.dropout(self.c_proj(F.gelu(self.c_fc(x))), self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, width, heads, context, bias, dropout):
        super().__init__()
        self.ln_1, self.ln_2 = LayerNorm(width, bias), LayerNorm(width, bias)
        self.attn = Attention(width, heads, context, bias, dropout)
        self.mlp = Mlp(width, bias, dropout)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGpt(nn.Module):
    """forward(idx, targets) returns the mean cross-entropy."""

    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd, bias, dropout):
        super().__init__()
        self.dropout = dropout
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocab_size, n_embd), "wpe": nn.Embedding(block_size, n_embd),
            "h": nn.ModuleList([Block(n_embd, n_head, block_size, bias, dropout) for _ in range(n_layer)]),
            "ln_f": LayerNorm(n_embd, bias)})
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, idx, targets):
        parts = self.transformer
        x = parts["wte"](idx) + parts["wpe"](torch.arange(idx.shape[1]))
        x = F.dropout(x, self.dropout, self.training)
        for block in parts["h"]:
            x = block(x)
        logits = self.lm_head(parts["ln_f"](x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def load(path):
    """The checkpoint's model, and the checkpoint."""
    checkpoint = torch.load(path, map_location="cpu")
    keys = ("vocab_size", "block_size", "n_layer", "n_head", "n_embd", "bias", "dropout")
    missing = [key for key in ("model", "model_args") if key not in checkpoint]
    missing += [key for key in keys if key not in checkpoint.get("model_args", keys)]
    if missing:
        sys.exit(f"from_nanogpt.py: {path} is no checkpoint of nanoGPT: it has no {', '.join(missing)}")
    model = NanoGpt(**{key: checkpoint["model_args"][key] for key in keys})
    # torch.compile puts its name before all others; masks that are buffers of some versions are made anew.
    weights = {name.replace("_orig_mod.", ""): value for name, value in checkpoint["model"].items()}
    model.load_state_dict({name: value for name, value in weights.items() if not name.endswith((".attn.bias", ".attn.past"))})
    return model, checkpoint


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--batch", type=int, default=16, help="samples of a micro-batch (default: 16)")
    args = parser.parse_args()
    model, checkpoint = load(args.checkpoint)
    shape = (args.batch, checkpoint["model_args"]["block_size"])
    example = torch.zeros(shape, dtype=torch.int64)
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "gpt.pt")
    torch.jit.trace(model, (example, example), check_trace=False).save(path)
    print(f"{path}: {sum(p.numel() for p in model.parameters())} parameters after {checkpoint.get('iter_num', '?')} iterations, "
          f"validation loss {float(checkpoint.get('best_val_loss', 'nan')):.4f}")
    print(" ".join(f"--input {name}={shape[0]}x{shape[1]}xi64" for name in ("idx", "targets")))


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # TorchScript writes sets of names in the order of their hashes
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main()
