#!/usr/bin/python3
"""check_hf_documents.py - models from config.json on windows of several documents, against PyTorch on each document alone.

    check_hf_documents.py --out DIR

ds-run reads a token stream, whose windows hold several documents each, with positions that begin anew and attention that
stays within a document.  PyTorch never sees a window: it is given one document after another.  The loss agrees to 1e-5
and every parameter's gradient to 1e-4 by norm.

Within a document rotary positions may begin anywhere.  So in some cases positions begin anew, but attention crosses
documents; PyTorch is then given the windows, and the rows of its tables in that order.
"""

import argparse
import os
import shutil

import numpy as np
import torch

import check_gradients
import check_hf
import compare
import hf_parts
import hf_variants
import train_oracle
from check_archive import RATE, write_config
from commands import finish, run

import safetensors_io

END, IGNORED = 7, -100
CROSSING = "crossing"  # what a case is called whose attention crosses documents
# Learned positions, heads too wide for the attention op, rotary positions from literals and computed ones, windows, parallel
# blocks, attention in both directions.
CASES = {"gpt2": ("gpt2", "plain", {}), "wide-heads": ("gpt2", "plain", {"n_embd": 520, "n_head": 2}),
         "llama": ("llama", "plain", {}), "long": ("llama", "long", {}), "mistral": ("mistral", "window", {}),
         "gpt_neox": ("gpt_neox", "plain", {}), "bert": ("bert", "plain", {}), "opt": ("opt", "plain", {}), "bloom": ("bloom", "plain", {}),
         "gemma2": ("gemma2", "tight", {}), "gptj": ("gptj", "plain", {}),
         "llama-crossing": ("llama", "plain", {}), "long-crossing": ("llama", "long", {}),
         "gpt_neox-crossing": ("gpt_neox", "plain", {}), "gptj-crossing": ("gptj", "plain", {})}


def draw(vocabulary, length):
    """Two windows and the token behind them; a document of one token among others, and one over the window's border."""
    tokens = np.random.default_rng(5).integers(8, vocabulary, 2 * length + 1)
    tokens[[4, 5, length - 6, length + 3, 2 * length - 1]] = END
    return tokens


def documents(tokens, length):
    """(inputs, targets) of each document, or what a window has of it."""
    for begin in (0, length):
        x, y = tokens[begin:begin + length], tokens[begin + 1:begin + length + 1].copy()
        y[x == END] = IGNORED
        borders = [0, *np.flatnonzero(x == END) + 1, length]
        yield from ((x[a:b], y[a:b]) for a, b in zip(borders, borders[1:]) if (y[a:b] != IGNORED).any())


def alone(model, tokens, length):
    """The mean loss over all targets that count, of one document after another."""
    parts = list(documents(tokens, length))
    count = sum(int((y != IGNORED).sum()) for _, y in parts)
    return sum(model(torch.from_numpy(x)[None], torch.from_numpy(y)[None]) * int((y != IGNORED).sum())
               for x, y in parts) / count


def crossing(model, tokens, length):
    """The mean loss of both windows, with positions that begin anew behind each END."""
    x, y = (torch.from_numpy(tokens[first:first + 2 * length].reshape(2, length).copy()) for first in (0, 1))
    y[x == END] = IGNORED
    positions = torch.zeros_like(x)
    for t in range(1, length):
        positions[:, t] = torch.where(x[:, t - 1] == END, 0, positions[:, t - 1] + 1)
    for rotary in {module for module in model.modules() if isinstance(module, hf_parts.Rotary)}:
        rotary.cos, rotary.sin = rotary.cos[0][positions], rotary.sin[0][positions]
    return model(x, y)


def check(folder, config, crosses):
    """[complaints] about one model."""
    model, _ = check_hf.write_model(folder, config)
    length = hf_variants.positions(config)
    tokens = draw(config["vocab_size"], length)
    tokens.astype("uint16").tofile(os.path.join(folder, "packed.bin"))
    loss = (crossing if crosses else alone)(model, tokens, length)
    loss.backward()
    gradients = {name: value.grad.numpy() for name, value in train_oracle.all_parameters(model) if value.grad is not None}
    loss = float(loss)
    path, log, after = (os.path.join(folder, name) for name in ("model.dsx", "log.jsonl", "after.safetensors"))
    names = ["input_ids", "labels", "position_ids"] + ([] if crosses else ["document_ids"])
    inputs = [part for name in names for part in ("--input", f"{name}={check_hf.BATCH}x{length}xi64")]
    run("ds-opt", os.path.join(folder, "config.json"), "--config", write_config(folder, check_hf.BATCH)[0], *inputs,
        "--emit=program", "-o", path)
    run("ds-run", path, "--data", os.path.join(folder, "packed.bin"), "--document-token", END, "--reset-positions",
        *([] if crosses else ["--reset-attention"]), "--weights", folder, "--steps", 1, "--log-jsonl", log, "--save-weights", after)
    step = compare.read_log(log)[0]
    complaints = [] if compare.difference(step["loss"], loss) < 1e-5 else [f"loss {step['loss']} against {loss}"]
    more, seen = check_gradients.compare(safetensors_io.load(os.path.join(folder, "model.safetensors")),
                                         safetensors_io.load(after), gradients, RATE, 1e-4)
    complaints += more + [f"{name}: not among the weights" for name in check_gradients.unseen(gradients, seen)]
    return complaints, f"loss {loss:.6f}, {len(seen)} gradients"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    complaints = []
    for name, (family, variant, more) in CASES.items():
        print(f"-- {name}")
        found, summary = check(os.path.join(args.out, name), {**hf_variants.config_of(family, variant), **more},
                               name.endswith(CROSSING))
        print(summary)
        complaints += [f"{name}: {text}" for text in found]
    finish(complaints, "all models agree")


if __name__ == "__main__":
    main()
