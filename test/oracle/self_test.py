"""self_test.py - the oracle against what PyTorch itself offers: its optimizers, and autograd of a tied parameter."""

import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ds_config  # noqa: E402
import schedules  # noqa: E402
import train_oracle  # noqa: E402
from optimizers import Optimizer  # noqa: E402

CASES = [
    ("SGD", {"lr": 0.1}, lambda p: torch.optim.SGD(p, 0.1)),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
     lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True)),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, lambda p: torch.optim.SGD(p, 0.1, 0.9, 0.5)),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.1}, lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1)),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1}, lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1)),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "adam_w_mode": False},
     lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1)),
    ("Adagrad", {"lr": 0.01, "weight_decay": 0.1}, lambda p: torch.optim.Adagrad(p, 0.01, weight_decay=0.1)),
]


def check_optimizers():
    for kind, params, make in CASES:
        torch.manual_seed(0)
        ours = torch.randn(40)
        theirs = torch.nn.Parameter(ours.clone())
        optimizer, reference = Optimizer({"type": kind, "params": params}, [ours]), make([theirs])
        for step in range(1, 8):
            gradient = torch.randn(40)
            theirs.grad = gradient.clone()
            reference.step()
            optimizer.step([gradient], optimizer.base_rate, optimizer.betas, step)
        error = float((ours - theirs.detach()).abs().max())
        assert error < 2e-6, f"{kind} {params}: {error}"


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(7, 4)
        self.head = torch.nn.Linear(4, 7, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x, y):
        return torch.nn.functional.cross_entropy(self.head(torch.tanh(self.table(x))), y)


def check_tied():
    torch.manual_seed(0)
    model, x, y = Tied(), torch.randint(0, 7, (5,)), torch.randint(0, 7, (5,))
    model(x, y).backward()
    torch.jit.script(model).save("tied.pt")
    loaded = torch.jit.load("tied.pt")
    loaded(x, y).backward()
    shared = train_oracle.shared_parameters(loaded)
    assert [names for names, _ in shared] == [["head.weight", "table.weight"]], shared
    assert torch.allclose(train_oracle.gradient_of(shared[0][1]), model.table.weight.grad, atol=1e-7)


def check_schedules():
    """Values worked out by hand from the published formulas."""
    linear = {"type": "WarmupLR", "params": {"warmup_max_lr": 1.0, "warmup_num_steps": 4, "warmup_type": "linear"}}
    rates = [schedules.learning_rate(linear, 9.0, k) for k in range(1, 8)]
    assert rates == [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0], rates
    cycle = {"type": "OneCycle", "params": {"cycle_min_lr": 1.0, "cycle_max_lr": 3.0, "cycle_first_step_size": 2}}
    rates = [schedules.learning_rate(cycle, 9.0, k) for k in range(1, 7)]
    assert rates == [1.0, 2.0, 3.0, 2.0, 1.0, 1.0], rates
    assert schedules.betas(cycle, (0.9, 0.999), 1) == (0.8, 0.99)


def check_config():
    text = '{"a": "x // y, ]", /* b */ "c": [1, 2,], # d\n "e": {"f": 1, // g\n}, }'
    assert ds_config.parse(text) == {"a": "x // y, ]", "c": [1, 2], "e": {"f": 1}}
    assert ds_config.batch_triple({"train_batch_size": 32, "gradient_accumulation_steps": 4}, 2) == (32, 4, 4)


check_optimizers()
check_tied()
check_schedules()
check_config()
