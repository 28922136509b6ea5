#!/usr/bin/python3
"""check_ir_gradients.py - compare differentiated functions with torch.autograd.

Reads modules (generic form, split by `// -----`) in which @forward returns its loss and then gradients.  The forward part
is differentiated by autograd; every gradient that the IR computes must agree, and every trainable parameter that
influences the loss must have one.  With --seed-scale S, the IR's gradients are expected to be S times autograd's.
"""

import argparse
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from evaluate import Module, dtype, evaluate  # noqa: E402


def sample(kind, generator):
    shape, element = kind
    if dtype(element) == torch.int64:
        return torch.randint(0, 4, shape, generator=generator)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * 0.7


def check(text, scale, tolerance):
    """[complaints] about one module, and the number of gradients compared."""
    module = Module(text)
    function = module.functions["forward"]
    generator = torch.Generator().manual_seed(1)
    arguments = [sample(kind, generator) for _, kind in function.arguments]
    leaves = {}
    for index, attribute in enumerate(function.argument_attributes):
        if attribute and attribute[0] == "state" and module.states[attribute[1]].trainable:
            leaves[attribute[1]] = arguments[index].requires_grad_()
    results = evaluate(function, arguments)
    found = {attribute[1]: value for attribute, value in zip(function.result_attributes, results)
             if attribute and attribute[0] == "gradient"}
    expected = dict(zip(leaves, torch.autograd.grad(results[0], list(leaves.values()), allow_unused=True)))
    complaints = []
    for name, gradient in expected.items():
        if gradient is None or name not in found:
            if gradient is not None or name in found:
                complaints.append(f"@{name}: autograd {'has' if gradient is not None else 'has no'} gradient, the IR "
                                  f"{'has' if name in found else 'has none'}")
            continue
        off = float((found[name] - scale * gradient).abs().max())
        size = float(gradient.abs().max())
        if not size > 0:
            complaints.append(f"@{name}: the gradient is zero, so that nothing is compared")
        if not off <= tolerance * size:
            complaints.append(f"@{name}: gradient is off by {off:.3g} of {size:.3g}")
    return complaints, len(expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed-scale", type=float, default=1.0)
    parser.add_argument("--tolerance", type=float, default=1e-6, help="constants are rounded to f32 in the IR")
    args = parser.parse_args()
    failed, compared = False, 0
    for index, text in enumerate(sys.stdin.read().split("// -----")):
        complaints, count = check(text, args.seed_scale, args.tolerance)
        compared += count
        for complaint in complaints:
            failed = True
            print(f"module {index}: {complaint}", file=sys.stderr)
    print(f"{compared} gradients compared")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
