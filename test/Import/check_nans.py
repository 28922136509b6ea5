#!/usr/bin/python3
"""check_nans.py - where a number is lost, PyTorch's operators and ours lose the same.

    check_nans.py IMPORTER

Every case is an expression of x, which lacks numbers (NaN) and has infinities and zeros, z, which lacks others, and w,
complete weights. Forward: a lost number counts as 7, so that one that is found again shows in the loss. Backward:
ds-opt's gradients by each case's own x and z, of which the same elements must be NaN and the others equal.

What is lost stays lost. Where PyTorch's own formula says that the gradient of a lost x is a number (EITHER), ours may be NaN
or another number there; wherever x is a number the two are equal, at the bounds of clamp as well.
"""

import os
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional as F

import evaluate

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import importlib.util  # noqa: E402

spec = importlib.util.spec_from_file_location(
    "oracle_evaluate", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "evaluate.py"))
oracle = importlib.util.module_from_spec(spec)
spec.loader.exec_module(oracle)

CASES = [
    "x + z", "x - z", "x * z", "x / z", "-x", "x.abs()", "x.exp()", "x.log()", "x.sqrt()", "x.rsqrt()", "x.tanh()", "x.erf()",
    "x.sigmoid()", "x.sin()", "x.cos()", "torch.maximum(x, z)", "torch.minimum(x, z)", "torch.max(x, z)", "x.pow(z.abs())",
    "x ** 2", "x ** 3", "x.square()", "x.clamp(-0.5, 0.5)", "x.clamp(min=0.1)", "x.clamp(max=0.1)", "F.hardtanh(x)", "x.clamp(min=0.0)", "x.clamp(0.0, 1.0)", "x.clamp(max=1.0)",
    "torch.where(x > z, x, z)", "x.masked_fill(x == 1.0, 3.0)", "F.relu(x)", "F.relu6(x)", "F.leaky_relu(x, 0.2)", "F.elu(x)",
    "F.celu(x, 0.7)", "F.selu(x)", "F.gelu(x)", "F.gelu(x, approximate='tanh')", "F.silu(x)", "F.softplus(x)", "F.logsigmoid(x)",
    "F.mish(x)", "F.hardsigmoid(x)", "F.hardswish(x)", "F.glu(x)", "x.floor() + x", "x.exp2()", "x.expm1()", "x.log1p()",
    "torch.lerp(x, z, 0.3)", "x.sum(1)", "x.mean(1)", "x.amax(1)", "x.amin(1)", "x.softmax(1)", "x.log_softmax(1)", "x.logsumexp(1)",
    "F.layer_norm(x, (6,))", "F.relu(x @ w)", "F.relu(F.linear(x, w.t(), w[0]))", "x @ w",
]
EITHER = {"x.abs()", "F.elu(x)", "F.celu(x, 0.7)", "F.selu(x)", "F.softplus(x)", "F.logsigmoid(x)", "x.clamp(-0.5, 0.5)",
          "x.clamp(min=0.1)", "x.clamp(max=0.1)", "x.clamp(min=0.0)", "x.clamp(0.0, 1.0)", "x.clamp(max=1.0)", "F.hardtanh(x)",
          "F.relu6(x)", "F.hardsigmoid(x)", "F.hardswish(x)", "F.mish(x)"}


class Cases(torch.nn.Module):
    def __init__(self, cases, forward):
        super().__init__()
        self.cases, self.forward_only = [compile(case, case, "eval") for case in cases], forward
        nan, inf = float("nan"), float("inf")
        torch.manual_seed(5)
        x, z = torch.randn(4, 6), torch.randn(4, 6)
        x[0, 0], x[1, 2], x[2, 3], x[0, 4] = nan, nan, 0.0, 1.0
        z[0, 1], z[1, 2], z[2, 3], z[3, 3] = nan, nan, 0.0, inf
        self.x = torch.nn.ParameterList([torch.nn.Parameter(x.clone()) for _ in cases])
        self.z = torch.nn.ParameterList([torch.nn.Parameter(z.clone()) for _ in cases])
        self.register_buffer("x0", x)
        self.w = torch.nn.Parameter(torch.randn(6, 6))

    def forward(self, a):
        loss = a.sum() * 0
        for case, x, z in zip(self.cases, self.x, self.z):
            value = eval(case, {"x": x + a, "z": z + a, "w": self.w * 1, "F": F, "torch": torch})
            if self.forward_only:
                value = torch.where(value == value, value, 7.0).clamp(-9.0, 9.0)
            weights = torch.arange(value.numel(), dtype=torch.float32).mul(0.7).sin().add(0.2).reshape(value.shape)
            loss = loss + (value * weights).sum()
        return loss


def save(cases, forward, folder):
    archive = torch.jit.trace(Cases(cases, forward), (torch.zeros(4, 6),), check_trace=False)
    path = os.path.join(folder, "model.pt")
    archive.save(path)
    return path, archive


def values_of(importer, path, *passes):
    """(losses and gradients by result attribute) of the imported function after `passes`."""
    text, weights = evaluate.run_importer(importer, path, ["a=4x6xf32"])
    done = subprocess.run(["ds-opt", "-", *passes, "--mlir-print-op-generic"], input=text, stdout=subprocess.PIPE, text=True,
                          check=True)
    module = oracle.Module(done.stdout)
    function = module.functions["forward"]
    arguments = []
    for attribute, (_, kind) in zip(function.argument_attributes, function.arguments):
        value = weights[attribute[1]] if attribute and attribute[0] == "state" else torch.zeros(4, 6)
        arguments.append(value.to(oracle.dtype(kind[1])))
    return function.result_attributes, oracle.evaluate(function, arguments)


def check_forward(importer, cases, folder):
    path, archive = save(cases, True, folder)
    expected = archive(torch.zeros(4, 6)).item()
    _, (loss, *_) = values_of(importer, path)
    return None if abs(loss.item() - expected) <= 1e-5 * (1 + abs(expected)) else f"the loss is {loss.item()}, not {expected}"


def check_gradients(importer, cases, folder):
    """[(case, complaint)]."""
    path, archive = save(cases, False, folder)
    archive(torch.zeros(4, 6)).backward()
    theirs = {name: parameter.grad for name, parameter in archive.named_parameters()}
    complaints = []
    attributes, results = values_of(importer, path, "--canonicalize", "--ds-differentiate", "--ds-decompose", "--canonicalize")
    ours = {attribute[1]: value for attribute, value in zip(attributes, results) if attribute and attribute[0] == "gradient"}
    for name, expected in theirs.items():
        if name == "w" or expected is None:
            continue
        case = cases[int(name.split(".")[1])]
        found = ours.get(name, torch.zeros_like(expected))
        counts = ~archive.x0.isnan() if case in EITHER else torch.ones_like(expected, dtype=torch.bool)
        lost, kept = found.isnan() & ~expected.isnan() & counts, ~found.isnan() & expected.isnan()
        off = ~found.isnan() & ~expected.isnan() & (found != expected) & counts
        off &= ~((found - expected).abs() <= 1e-4 * (1 + expected.abs()))
        for what, where in (("found again", kept), ("lost", lost), ("another", off)):
            if where.any():
                complaints.append((case, f"gradient of {name[0]} is {what} at {where.nonzero().tolist()}: "
                                         f"{found[where].tolist()}, not {expected[where].tolist()}"))
    return complaints


def main():
    importer = sys.argv[1]
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        if check_forward(importer, CASES, folder):
            complaints = [(case, text) for case in CASES if (text := check_forward(importer, [case], folder))]
            assert complaints, "the cases disagree together, but each alone agrees"
        complaints += check_gradients(importer, CASES, folder)
    for case, text in complaints:
        print(f"{case}: {text}")
    print(f"{len(CASES)} cases, {len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
