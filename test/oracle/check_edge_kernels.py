#!/usr/bin/python3
"""check_edge_kernels.py - gradients at the edges of functions, compiled, against PyTorch.

The table is that of test/Import/check_edges.py, but for points without a finite gradient: a step that has one is not taken. One
step of plain SGD, of so large a rate that the weights' own rounding does not show, reveals every gradient; in fp32 and in bf16.

    check_edge_kernels.py --out DIR [--fake LIBRARY]       needs ds-opt and ds-run on PATH

With --fake, in fp32 on the fake device alone: the kernels are a GPU's.
"""

import argparse
import json
import os
import sys

import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "..", "examples"), os.path.join(here, "..", "Import")]
import check_edges  # noqa: E402
import fake_cuda  # noqa: E402
import safetensors_io  # noqa: E402
from commands import compile_program, finish, run  # noqa: E402

RATE = 2.0 ** 20


def is_finite(entry):
    """Whether a step has numbers: the points, the values, and the gradients that are held to PyTorch's."""
    case, x, *z = entry
    leaves = [check_edges.points(values).requires_grad_() for values in (x, *(z or [[1.0]]))]
    loss = check_edges.evaluate_case(case, *leaves)
    loss.backward()
    grads = [leaf.grad for which, leaf in zip("xz", leaves) if leaf.grad is not None and (case, which) not in check_edges.OURS]
    return all(bool(value.isfinite().all()) for value in (loss, *grads, *(leaf.detach() for leaf in leaves)))


def gradients(archive, compute, out, fake):
    """{parameter: gradient} of the program in that precision, on the CPU or the fake device."""
    endings = ("json", "dsx", "safetensors", "after.safetensors", "data.safetensors")
    files = {ending: os.path.join(out, f"{compute}.{ending}") for ending in endings}
    with open(files["json"], "w") as file:
        json.dump({"train_micro_batch_size_per_gpu": 1, "gradient_clipping": 0.0, "bf16": {"enabled": compute == "bf16"},
                   "optimizer": {"type": "SGD", "params": {"lr": RATE}}}, file)
    safetensors_io.save(files["data.safetensors"], {"a": torch.ones(1)})
    device = "cuda" if fake else "cpu"
    compile_program(archive, files["json"], ["a=1xf32"], files["dsx"], ["--target", "cuda:sm_90" if fake else "cpu"])
    if fake:
        fake_cuda.translate(files["dsx"], out)
        fake_cuda.use(fake, out, 1)
    run("ds-run", files["dsx"], "--device", device, "--data", files["data.safetensors"], "--steps", 1,
        "--save-weights", files["after.safetensors"])
    before, after = (safetensors_io.load(files[name]) for name in ("safetensors", "after.safetensors"))
    return {name: torch.tensor((before[name].astype("f8") - value.astype("f8")) / RATE).float() for name, value in after.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--fake", metavar="LIBRARY", help="libds-fake-cuda.so")
    args = parser.parse_args()
    out = args.out
    os.makedirs(out, exist_ok=True)
    table = [entry for entry in check_edges.TABLE if is_finite(entry)]
    archive = os.path.join(out, "edges.pt")
    torch.jit.trace(check_edges.Cases(table), (torch.ones(1),), check_trace=False).save(archive)
    complaints = []
    for compute in ["f32"] if args.fake else check_edges.TOLERANCES:
        element, tolerance = check_edges.TOLERANCES[compute]
        found, expected = gradients(archive, compute, out, args.fake), check_edges.reference(table, element)
        complaints += [f"{compute}: {line}" for line in check_edges.complaints_of(table, found, expected, tolerance)]
    finish(complaints, f"{len(table)} of {len(check_edges.TABLE)} cases agree")


if __name__ == "__main__":
    main()
