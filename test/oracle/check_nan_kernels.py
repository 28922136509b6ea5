#!/usr/bin/python3
"""check_nan_kernels.py - what compiled kernels make of lost numbers, against PyTorch.

Every case is an expression of x, which lacks numbers (NaN) and has infinities and zeros, z, which lacks others, and w, complete
weights. A lost number counts as 7 in the loss, so that one that is found again shows. Rows of 37 are vectors of 16, or of 8, and
a rest of 5; what is lost lies in both. The cases are those of test/Import/check_nans.py, which looks at the same operators
and their gradients before they are compiled.

    check_nan_kernels.py --out DIR       needs ds-opt and ds-run on PATH
"""

import argparse
import json
import os
import sys

import torch
from torch.nn import functional as F

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "..", "examples"), os.path.join(here, "..", "Import")]
import safetensors_io  # noqa: E402
from check_nans import CASES  # noqa: E402
from commands import compile_program, finish, run  # noqa: E402

ROWS, COLUMNS = 4, 37


def cases():
    """Those of check_nans.py at this shape, and reductions over rows of other lengths and over columns."""
    fitting = [case.replace("(6,)", f"({COLUMNS},)").replace("F.glu(x)", "F.glu(x[:, :36])") for case in CASES]
    return fitting + ["(x @ w).softmax(0)", "x.reshape(2, 74).amax(1)", "x.amax(0)", "x.amin(0)"]


class Cases(torch.nn.Module):
    def __init__(self, cases):
        super().__init__()
        self.cases = [compile(case, case, "eval") for case in cases]
        torch.manual_seed(5)
        self.register_buffer("w", torch.randn(COLUMNS, COLUMNS))
        self.p = torch.nn.Parameter(torch.zeros(1))  # what is trained; it sees nothing that is lost

    def forward(self, x, z):
        loss = self.p.sum()
        for case in self.cases:
            value = eval(case, {"x": x, "z": z, "w": self.w * 1, "F": F, "torch": torch})
            value = torch.where(value == value, value, 7.0).clamp(-9.0, 9.0)
            weights = torch.arange(value.numel(), dtype=torch.float32).mul(0.7).sin().add(0.2).reshape(value.shape)
            loss = loss + (value * weights).sum()
        return loss


def data():
    nan, inf = float("nan"), float("inf")
    torch.manual_seed(6)
    x, z = torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    for row, column, in_x, in_z in [(0, 0, nan, 1.0), (0, 36, nan, -1.0), (1, 7, 0.5, nan), (1, 33, -2.0, nan), (1, 20, nan, nan),
                                    (2, 15, 0.0, 0.0), (2, 34, inf, 1.0), (3, 3, -inf, 2.0), (2, 36, 1.0, inf), (0, 17, 1.0, 0.3)]:
        x[row, column], z[row, column] = in_x, in_z
    return x, z


def check(cases, out, config):
    """What differs for `cases` together, or None."""
    model, (x, z) = Cases(cases), data()
    archive = os.path.join(out, "nan.pt")
    torch.jit.trace(model, (x, z), check_trace=False).save(archive)
    expected = model(x, z).item()
    files = {name: os.path.join(out, f"nan.{name}") for name in ("dsx", "safetensors", "jsonl", "data.safetensors")}
    safetensors_io.save(files["data.safetensors"], {"x": x, "z": z})
    compile_program(archive, config, [f"x={ROWS}x{COLUMNS}xf32", f"z={ROWS}x{COLUMNS}xf32"], files["dsx"],
                    ["--set", f"train_micro_batch_size_per_gpu={ROWS}"])
    run("ds-run", files["dsx"], "--data", files["data.safetensors"], "--steps", "1", "--log-jsonl", files["jsonl"])
    with open(files["jsonl"]) as log:
        loss = json.loads(log.readline())["loss"]
    return None if abs(loss - expected) <= 1e-5 * (1 + abs(expected)) else f"the loss is {loss}, not {expected}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--config", required=True)
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    every, complaints = cases(), []
    if check(every, arguments.out, arguments.config):
        for case in every:
            if text := check([case], arguments.out, arguments.config):
                complaints.append(f"{case}: {text}")
        assert complaints, "the cases disagree together, but each alone agrees"
    finish(complaints, f"{len(every)} cases agree")


if __name__ == "__main__":
    main()
