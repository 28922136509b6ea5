"""ds_config.py - the part of a ds_config.json that decides the numbers of an fp32 run, read independently of ds-opt.

DeepSpeed reads its files with hjson; of that the tests use comments and trailing commas, which are removed here.
"""

import json
import re

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|#[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://|#)[^\n]*\s*)*[}\]])', re.DOTALL)


def parse(text):
    """JSON with comments and trailing commas; strings are left alone."""
    return json.loads(TOKEN.sub(lambda match: match.group() if match.group().startswith('"') else "", text))


def read(path, overrides=()):
    """The file at `path` with `key.path=value` overrides applied."""
    with open(path) as file:
        config = parse(file.read())
    for override in overrides:
        key, value = override.split("=", 1)
        *parents, last = key.split(".")
        node = config
        for parent in parents:
            node = node.setdefault(parent, {})
        try:
            node[last] = json.loads(value)
        except json.JSONDecodeError:
            node[last] = value
    return config


def batch_triple(config, world=1):
    """(train batch, micro-batch of a rank, accumulation steps), by DeepSpeed's table of what may be left out."""
    train = config.get("train_batch_size")
    micro = config.get("train_micro_batch_size_per_gpu")
    steps = config.get("gradient_accumulation_steps")
    if micro is None and train is None:
        raise ValueError("neither train_batch_size nor train_micro_batch_size_per_gpu is given")
    if micro is None:
        steps = steps or 1
        micro = train // world // steps
    if steps is None:
        steps = train // micro // world if train is not None else 1
    if train is None:
        train = micro * steps * world
    if min(train, micro, steps) <= 0 or train != micro * steps * world:
        raise ValueError(f"train batch {train} is not {micro} * {steps} * {world}")
    return train, micro, steps


def clipping(config):
    """The global norm above which gradients are scaled down; 0 switches it off, absent means 1.0."""
    return float(config.get("gradient_clipping", 1.0))
