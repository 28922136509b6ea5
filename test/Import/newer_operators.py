#!/usr/bin/python3
"""newer_operators.py - archives that call operators which this PyTorch does not know.

    newer_operators.py FOLDER            writes FOLDER/known.pt and FOLDER/unknown.pt
    newer_operators.py FOLDER IMPORTER   imports known.pt and compares with what the operators mean

PyTorch 1.13 cannot export them, so that the code of an archive is rewritten: calls of layer_norm and bmm become calls
of rms_norm and scaled_dot_product_attention, as a newer PyTorch writes them.
"""

import os
import re
import sys
import zipfile

import torch

import evaluate


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.weight = torch.nn.Parameter(torch.rand(4) + 0.5)
        self.qkv = torch.nn.Parameter(torch.randn(4, 12) * 0.5)

    def forward(self, x):
        x = torch.layer_norm(x, [4], self.weight, None, 1e-6, False)
        q, k, v = (x @ self.qkv).view(2, 5, 3, 2, 2).permute(2, 0, 3, 1, 4).unbind(0)
        return torch.dist(q, k).sum() + v.mean()


def rewrite(source, target, changes):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".py"):
                text = data.decode()
                for pattern, by in changes:
                    text, count = re.subn(pattern, by, text)
                    assert count, f"{pattern} is not in {text}"
                data = text.encode()
            if not name.endswith(".debug_pkl"):
                new.writestr(name, data)


def reference(x, weight, qkv):
    x = x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * weight
    q, k, v = (x @ qkv).view(2, 5, 3, 2, 2).permute(2, 0, 3, 1, 4).unbind(0)
    scores = (q @ k.transpose(-1, -2) * 0.25).masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), float("-inf"))
    return (scores.softmax(-1) @ v).sum() + v.mean()


def main():
    folder, *importer = sys.argv[1:]
    old, known, unknown = (os.path.join(folder, name + ".pt") for name in ("old", "known", "unknown"))
    if not importer:
        torch.jit.script(Model()).save(old)
        norm = (r"torch\.layer_norm\((.*?), None, (\S+), False\)", r"torch.rms_norm(\1, \2)")
        attention = (r"torch\.dist\(q, k\)",
                     "torch.scaled_dot_product_attention(q, k, v, None, 0., True, scale=0.25, enable_gqa=False)")
        rewrite(old, known, [norm, attention])
        rewrite(old, unknown, [norm, (r"torch\.dist\(q, k\)", "torch._safe_softmax(torch.not_an_operator(q, k), -1)")])
        return
    text, weights = evaluate.run_importer(importer[0], known, ["x=2x5x4xf32"])
    x = evaluate.make_inputs(["x=2x5x4xf32"], 0)["x"]
    actual, expected = evaluate.Function(text).run({"x": x, **weights}), reference(x, weights["weight"], weights["qkv"])
    assert evaluate.relative(actual, expected) < 1e-5, (actual, expected)
    print("agrees")


if __name__ == "__main__":
    main()
