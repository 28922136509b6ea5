#!/usr/bin/env python3
"""export_pt2.py - tiny archives of torch.export, and the losses that they give, by a PyTorch that has it (2.x).

    export_pt2.py FOLDER        writes NAME.pt2, and losses.json: of each archive its inputs, version and loss

Inputs and values are those of published_losses.py, so that whoever reads an archive knows what must come out. An archive that
cannot be exported is written with its reason.
"""

import json
import os
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional

import published_losses

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "examples"))


class Pictures(nn.Module):
    """Convolution, batch norm in training and pooling, before a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x, y):
        x = functional.max_pool2d(functional.relu(self.norm(self.conv(x))), 2)
        return functional.cross_entropy(self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1)), y)


class Recurrent(nn.Module):
    """An LSTM over words."""

    def __init__(self):
        super().__init__()
        self.words, self.cells, self.head = nn.Embedding(32, 16), nn.LSTM(16, 16, batch_first=True), nn.Linear(16, 32)

    def forward(self, x, y):
        return functional.cross_entropy(self.head(self.cells(self.words(x))[0]).flatten(0, 1), y.flatten())


class Published(nn.Module):
    """A model of transformers with the mean loss of its targets."""

    def __init__(self, family):
        super().__init__()
        self.model, _ = published_losses.build(family)

    def forward(self, input_ids, labels):
        logits = self.model(input_ids=input_ids, use_cache=False).logits
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def example(name, *more):
    """One of examples/ with its own data."""
    import export
    args = export.parse([name, "--out", ".", "--batch", "2", *more])
    config = export.make_config(args)
    return export.FAMILIES[name][1](config), export.make_data(args, config, 2, getattr(config, "context", 0), 0)


def words():
    tokens = numpy.arange(16).reshape(2, 8) * 5 % 32
    return {"x": tokens, "y": (tokens * 3 + 1) % 32}


def pixels():
    return {"x": numpy.sin(numpy.arange(2 * 3 * 16 * 16) * 0.37).reshape(2, 3, 16, 16).astype(numpy.float32), "y": numpy.array([1, 3])}


ARCHIVES = {
    "mlp": lambda: example("mlp"), "gpt": lambda: example("gpt", "--layers", "1", "--width", "32", "--vocab", "64", "--context", "16"),
    "llama": lambda: example("llama", "--layers", "1"), "vit": lambda: example("vit", "--layers", "1"),
    "pictures": lambda: (Pictures(), pixels()), "recurrent": lambda: (Recurrent(), words()),
    "published-gpt2": lambda: (Published("gpt2"), published_losses.batch_of("CausalLM")),
}


def export_one(name, folder):
    model, inputs = ARCHIVES[name]()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(published_losses.values(key, parameter.shape)))
    tensors = {key: torch.from_numpy(numpy.asarray(value)) for key, value in inputs.items()}
    program = torch.export.export(model.train(), (), tensors)
    torch.export.save(program, os.path.join(folder, f"{name}.pt2"))
    return {"loss": float(model(**tensors)), "inputs": {key: list(value.shape) for key, value in tensors.items()}}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    found = {"torch": torch.__version__, "archives": {}}
    for name in ARCHIVES:
        try:
            found["archives"][name] = export_one(name, folder)
        except Exception as error:  # one archive's mistake is its own entry
            found["archives"][name] = {"reason": f"{type(error).__name__}: {error}"[:300]}
        print(name, found["archives"][name])
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in found["archives"].items())
    with open(os.path.join(folder, "losses.json"), "w") as file:
        file.write(f'{{"torch": "{found["torch"]}", "archives": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main(sys.argv[1])
