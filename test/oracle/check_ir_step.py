#!/usr/bin/python3
"""check_ir_step.py - run the functions of a step in the interpreter and compare with PyTorch.

Reads modules (generic form, split by `// -----`) after ds-build-step.  Steps are executed as their schedule says: @first,
@middle (accumulation - 2 times), @last.  The reference takes its gradients from autograd through @evaluate, and its
optimizer and learning rate from optimizers.py and schedules.py, as `ds.training` asks.  Parameters, loss, norm and rate
must agree after every step, and parameters that no gradient reaches must not move.
"""

import argparse
import os
import re
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import optimizers  # noqa: E402
import schedules  # noqa: E402
from evaluate import Module, dtype, evaluate  # noqa: E402


def read_dictionary(text):
    """{key: number, boolean, string, list or dictionary} of the fields of an attribute, without what is around them."""
    result, position = {}, 0
    entry = re.compile(r"\s*(\w+) = ")
    while position < len(text):
        match = entry.match(text, position)
        key, position = match.group(1), match.end()
        if text[position] in "{[":
            close, depth, end = {"{": "}", "[": "]"}[text[position]], 1, position + 1
            while depth:
                depth += {text[position]: 1, close: -1}.get(text[end], 0)
                end += 1
            body = text[position + 1:end - 1]
            result[key] = read_dictionary(body) if text[position] == "{" else re.findall(r'"([^"]*)"', body)
            position = end + 1
            continue
        end = text.find(",", position)
        end = len(text) if end < 0 else end
        word = text[position:end].strip()
        if word in ("true", "false"):
            result[key] = word == "true"
        elif re.fullmatch(r"[A-Za-z_]\w*", word):
            result[key] = word
        else:
            result[key] = int(word) if re.fullmatch(r"-?\d+", word) else float(word)
        position = end + 1
    return result


def training_of(text):
    found = re.search(r"ds\.training = #ds\.training<(.*)>\} : \(\) -> \(\)", text)
    return read_dictionary(found.group(1)) if found else {}


def to_blocks(training):
    """The optimizer and scheduler blocks of a ds_config that says the same."""
    optimizer = dict(training.get("optimizer", {}))
    kind = optimizer.pop("type", "adam")
    if "beta1" in optimizer or "beta2" in optimizer:
        optimizer["betas"] = (optimizer.pop("beta1", 0.9), optimizer.pop("beta2", 0.999))
    scheduler = dict(training.get("scheduler", {}))
    if not scheduler:
        return {"type": kind, "params": optimizer}, None
    if not scheduler.pop("warmup_log", True):
        scheduler["warmup_type"] = "linear"
    return {"type": kind, "params": optimizer}, {"type": scheduler.pop("type"), "params": scheduler}


class Step:
    """Executes segments on a dictionary of states."""

    def __init__(self, module, generator):
        self.module, self.generator = module, generator
        self.states = {}
        for state in module.states.values():
            shape = state.shape
            value = torch.zeros(shape, dtype=dtype(state.element))
            if state.role == "parameter":
                value = torch.randn(shape, generator=generator, dtype=torch.float64) * 0.7
            elif state.start:
                value = torch.full(shape, state.start, dtype=dtype(state.element))
            self.states[state.name] = value

    def sample(self):
        """One micro-batch by input name."""
        function = self.module.functions["evaluate"]
        return {attribute[1]: torch.randn(kind[0], generator=self.generator, dtype=torch.float64)
                for (_, kind), attribute in zip(function.arguments, function.argument_attributes)
                if attribute[0] == "input"}

    def run(self, name, batch, states):
        """{state: new value} of one segment."""
        function = self.module.functions[name]
        arguments = [batch[key] if kind == "input" else states[key] for kind, key in function.argument_attributes]
        values = evaluate(function, arguments)
        return {key: value for (_, key), value in zip(function.result_attributes, values)}

    def execute(self, batches):
        """One step of the program."""
        names = ["first"] + ["middle"] * (len(batches) - 2) if len(batches) > 1 else []
        for name, batch in zip(names + ["last"], batches):
            self.states.update(self.run(name, batch, self.states))


def reference_gradients(step, names, parameters, batches):
    """(mean loss, gradients) of parameters through @evaluate."""
    leaves = {name: value.detach().requires_grad_() for name, value in zip(names, parameters)}
    losses = [step.run("evaluate", batch, {**step.states, **leaves})["eval_loss"] for batch in batches]
    loss = sum(losses) / len(losses)
    return loss.detach(), torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)


def relative(value, expected):
    """Largest difference, in units of the largest expected element."""
    value, expected = torch.as_tensor(value).double(), torch.as_tensor(expected).double()
    return float((value - expected).abs().max() / expected.abs().max().clamp(min=1e-12))


def check(text, steps, tolerance):
    """[complaints] about one module."""
    training, module = training_of(text), Module(text)
    step = Step(module, torch.Generator().manual_seed(3))
    accumulation, clipping = training.get("gradient_accumulation_steps", 1), training.get("gradient_clipping", 0)
    block, scheduler = to_blocks(training)
    names = [state.name for state in module.states.values() if state.trainable]
    parameters = [step.states[name].clone() for name in names]
    undecayed = {**block, "params": {**block["params"], "weight_decay": 0.0}}
    free = [any(re.search(pattern, name) for pattern in training.get("no_decay", [])) for name in names]
    complaints = []

    probe = step.sample()
    reached = [gradient is not None for gradient in reference_gradients(step, names, parameters, [probe])[1]]
    chosen = [index for index, is_reached in enumerate(reached) if is_reached]
    references = [optimizers.Optimizer(undecayed if free[index] else block, [parameters[index]]) for index in chosen]

    for number in range(1, steps + 1):
        batches = [step.sample() for _ in range(accumulation)]
        loss, gradients = reference_gradients(step, names, parameters, batches)
        gradients = [gradients[index] for index in chosen]
        norm = torch.sqrt(sum((gradient * gradient).sum() for gradient in gradients))
        if clipping:
            gradients = [gradient * min(1.0, clipping / (float(norm) + 1e-6)) for gradient in gradients]
        rate = schedules.learning_rate(scheduler, references[0].base_rate, number)
        for reference, gradient in zip(references, gradients):
            reference.step([gradient], rate, schedules.betas(scheduler, reference.betas, number), number)
        step.execute(batches)

        for name, value, expected in [("loss", step.states["loss"], loss), ("grad_norm", step.states["grad_norm"], norm),
                                      ("lr", step.states["lr"], rate), ("step", step.states["step"], number),
                                      *zip(names, [step.states[name] for name in names], parameters)]:
            off = relative(value, expected)
            if not off <= tolerance:
                complaints.append(f"step {number}: @{name} is off by {off:.3g}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--tolerance", type=float, default=1e-5, help="constants are rounded to f32 in the IR")
    args = parser.parse_args()
    modules = sys.stdin.read().split("// -----")
    failed = False
    for index, text in enumerate(modules):
        for complaint in check(text, args.steps, args.tolerance):
            failed = True
            print(f"module {index}: {complaint}", file=sys.stderr)
    print(f"{len(modules)} modules agree" if not failed else "modules differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
