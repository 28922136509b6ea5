"""baseline_models.py - writes the models and data of baseline_cases.py, each once, below one folder.

The same tree and the same PyTorch write the same bytes; archives of TorchScript need PYTHONHASHSEED=0 for that.
"""

import contextlib
import io
import json
import os

import numpy as np

import baseline_cases  # noqa: F401  (its search path)
import hf_variants
import safetensors_io

SAMPLES = 24


def described(config, folder, with_data):
    """A config.json, and tokens for a small one."""
    path, data = os.path.join(folder, "config.json"), os.path.join(folder, "data.safetensors")
    with open(path, "w") as file:
        json.dump(config, file, indent=2)
    if with_data:
        chance, shape = np.random.default_rng(0), (SAMPLES, hf_variants.positions(config))
        safetensors_io.save(data, {name: chance.integers(0, config["vocab_size"], shape) for name in ("input_ids", "labels")})
    return path, data, []


def example(name, options, folder):
    import export
    with contextlib.redirect_stdout(io.StringIO()):
        return export.main([name, "--out", folder, "--data", str(SAMPLES), *options])


def archive(source, folder):
    """The model source in the last of its forms: scripted, where it has that."""
    import archives
    _, made = archives.build(source, folder)[-1]
    with open(os.path.join(made, "expected.json")) as file:
        return os.path.join(made, "model.pt"), os.path.join(made, "data.safetensors"), json.load(file)["inputs"]


class Models:
    """Files of each model that was asked for: its path, its data and the values of --input."""

    def __init__(self, folder):
        self.folder, self.made = folder, {}

    def files(self, model):
        key = json.dumps(model, sort_keys=True)
        if key not in self.made:
            folder = os.path.join(self.folder, f"{len(self.made):03}")
            os.makedirs(folder, exist_ok=True)
            kind, what, *options = model
            if kind == "example":
                self.made[key] = example(what, options, folder)
            elif kind == "archive":
                self.made[key] = archive(what, folder)
            else:
                self.made[key] = described(what, folder, kind == "config.json")
        return self.made[key]
