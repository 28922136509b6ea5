"""cluster.json, which ds-run --calibrate writes as well: what plans for a cluster are estimated with."""

import glob
import json
import os
import re

from . import Format, change_json
from .ds_config import PLAIN, ROOT

MODEL = {"model_type": "gpt2", "vocab_size": 512, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
OWN = {"name": "our-lab", "base": "rtx3090", "nodes": 2, "devices_per_node": 4, "host": {"memory_bytes": 137438953472}}


def make(folder):
    paths = []
    model, config = os.path.join(folder, "model", "config.json"), os.path.join(folder, "ds.config")
    os.makedirs(os.path.dirname(model), exist_ok=True)
    for path, value in ((model, MODEL), (config, {**PLAIN, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2}})):
        with open(path, "w") as file:
            json.dump(value, file)
    for path in sorted(glob.glob(os.path.join(ROOT, "lib/Config/clusters/*.json"))):
        with open(path) as file:
            text = re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read(), flags=re.S)
        try:
            value = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
        except json.JSONDecodeError:
            continue  # a file that uses more of the liberties than these
        paths.append((os.path.join(folder, "cluster-" + os.path.basename(path)), value))
    assert len(paths) >= 3, "the descriptions of clusters are not where they were"
    paths.append((os.path.join(folder, "cluster-own.json"), OWN))
    names = set()
    for path, value in paths:
        with open(path, "w") as file:
            json.dump(value, file)
        names.update(re.findall(r'"(\w+)":', json.dumps(value)))

    def change(draw, data, path):
        return change_json(draw, json.loads(data), sorted(names))

    def command(path):
        return ["ds-opt", model, "--config", config, "--cluster", path, "--basis=rules", "--emit=plan"], None

    return Format([path for path, _ in paths], change, command, frozenset({0, 4}))
