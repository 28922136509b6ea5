"""Plans as --plan-json writes them and ds-opt --diff reads them."""

import json
import os
import shutil

from . import Format, change_json, quietly
from .ds_config import MODEL, PLAIN

NAMES = ["schema", "world", "mesh", "ranks", "rank", "states", "arenas", "peak", "bytes", "at_peak", "lower_bound", "fits", "predicted",
         "schedule", "parameters", "step_seconds", "communication_bytes", "device", "host", "nvme", "changes", "memory_limit", "inputs",
         "terms", "seconds", "loss_chunks", "saved_bytes", "stage", "dp", "tp", "pp", "tf32", "planning_only"]


def make(folder):
    model, config = (os.path.join(folder, name) for name in ("model.mlir", "ds.config"))
    with open(model, "w") as file:
        file.write(MODEL)
    paths = [os.path.join(folder, name) for name in ("one.json", "two.json")]
    for path, extra in zip(paths, ({}, {"zero_optimization": {"stage": 1}})):
        with open(config, "w") as file:
            json.dump({**PLAIN, "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}, **extra}, file)
        quietly(["ds-opt", model, "--config", config, *(["--ranks", "2"] if extra else []), "--emit=plan", "--plan-json", path])
    right = os.path.join(folder, "right.json")
    shutil.copy(paths[0], right)

    def change(draw, data, path):
        return change_json(draw, json.loads(data), NAMES)

    return Format(paths, change, lambda path: (["ds-opt", "--diff", right, path], None))
