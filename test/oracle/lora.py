"""lora.py - low-rank adapters in plain PyTorch, by the formulas that PEFT publishes.

A layer y = f(x) gives f(x) + scale * (x A^T) B^T, A [rank, inputs] and B [outputs, rank], scale = alpha / rank or, with
use_rslora, alpha / sqrt(rank). Everything else is frozen. save() writes the folder that PEFT's save_pretrained writes.
"""

import json
import math
import os

import torch
from torch import nn
from torch.nn import functional as F

import safetensors_io


class Adapted(nn.Module):
    """A linear layer, or GPT-2's Conv1D, beside its adapter."""

    def __init__(self, base, rank, alpha, rslora, generator):
        super().__init__()
        is_linear = isinstance(base, nn.Linear)
        inputs, outputs = base.weight.shape[::-1] if is_linear else base.weight.shape
        self.base, self.rank, self.alpha = base, rank, alpha
        self.scale = alpha / (math.sqrt(rank) if rslora else rank)
        self.lora_A = nn.Parameter(torch.empty(rank, inputs).normal_(std=0.1, generator=generator))
        self.lora_B = nn.Parameter(torch.empty(outputs, rank).normal_(std=0.1, generator=generator))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.lora_A), self.lora_B)


def adapt(model, targets, rank, alpha, rslora=False, rank_pattern=None, seed=1):
    """Puts an adapter beside each layer whose name ends so; the adapters by the layers' names."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    found = {}
    for name, module in list(model.named_modules()):
        parent, _, last = name.rpartition(".")
        if last not in targets:
            continue
        own = next((value for end, value in (rank_pattern or {}).items() if name.endswith(end)), rank)
        found[name] = Adapted(module, own, alpha, rslora, generator)
        setattr(model.get_submodule(parent), last, found[name])
    return found


def parameters(adapters):
    """{PEFT's name: parameter}."""
    return {f"base_model.model.{layer}.lora_{factor}.weight": getattr(adapter, f"lora_{factor}")
            for layer, adapter in adapters.items() for factor in "AB"}


def values(adapters):
    return {name: parameter.detach().float().numpy() for name, parameter in parameters(adapters).items()}


def save(folder, adapters, config):
    """adapter_config.json and adapter_model.safetensors."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "bias": "none", "inference_mode": True, "lora_dropout": 0.0,
                   "base_model_name_or_path": "somewhere", "modules_to_save": None, "use_dora": False, **config}, file)
    safetensors_io.save(os.path.join(folder, "adapter_model.safetensors"), values(adapters))
