#!/usr/bin/python3
"""Generated kernels beside PyTorch eager's equivalents, on the same machine in the same run, two threads each.

usage: bench/kernels.py [build/bin/kernels]
Prints one line a kernel: microseconds of both (best of many) and their ratio; below 1 the generated kernel is faster.
PyTorch runs what a training step in eager mode runs: one library call where it has one, else the usual expression.
"""
import json
import os
import subprocess
import sys
import time

import openblas

os.environ["OMP_NUM_THREADS"] = "2"
OPENBLAS = openblas.use_fastest()  # before PyTorch loads OpenBLAS
import torch
import torch.nn.functional as F

torch.set_num_threads(2)
ELEMENTS = 20_000_000
M, C, H = 1024, 384, 1536


def best(run, count=300):
    least = 1e30
    for _ in range(count):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least * 1e6


def backward_of(output, inputs, gradient):
    return lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True)


def adamw():
    parameter = torch.nn.Parameter(torch.rand(ELEMENTS))
    parameter.grad = torch.rand(ELEMENTS)
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, foreach=False)
    return best(optimizer.step, 6)


def torch_times():
    x, g, w, b = torch.rand(M, C), torch.rand(M, C), torch.rand(C), torch.rand(C)
    wide, wide_gradient, rows = torch.rand(M, H), torch.rand(M, H), torch.rand(6144, 256)
    leaf = x.clone().requires_grad_()
    weight, bias = w.clone().requires_grad_(), b.clone().requires_grad_()
    normed = F.layer_norm(leaf, (C,), weight, bias)
    wide_leaf = wide.clone().requires_grad_()
    activated = F.gelu(wide_leaf, approximate="tanh")
    with torch.no_grad():
        times = {
            "adamw": adamw(),
            "layer_norm": best(lambda: torch.native_layer_norm(x, (C,), w, b, 1e-5)),
            "gelu": best(lambda: F.gelu(wide, approximate="tanh")),
            "residual_add": best(lambda: x + g),
            "bias_gradient": best(lambda: wide.sum(0)),
            "softmax": best(lambda: torch.softmax(rows, -1)),
        }
    times["layer_norm_backward"] = best(backward_of(normed, (leaf, weight, bias), g))
    times["gelu_backward"] = best(backward_of(activated, (wide_leaf,), wide_gradient))
    return times


def copy_bandwidth():
    source, target = torch.rand(70_000_000), torch.empty(70_000_000)
    return 2 * 4 * source.numel() / best(lambda: target.copy_(source), 6) / 1e3


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    binary = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "build", "bin", "kernels")
    output = subprocess.run([binary, os.path.join(here, "kernels.mlir"), str(ELEMENTS)], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    first, *lines = [json.loads(line) for line in output.splitlines()]
    ours = {line["kernel"]: line for line in lines}
    theirs = torch_times()
    print(f"{first['kernels']} kernels for {first['cpu']} compiled in {first['compile_us'] / 1e3:.0f} ms; "
          f"copying reaches {copy_bandwidth():.1f} GB/s; PyTorch's products by {OPENBLAS}")
    print(f"{'kernel':22}{'ours us':>10}{'torch us':>10}{'ratio':>8}{'GB/s':>8}")
    # PyTorch's backward of layer_norm gives the input's and the gains' gradients in one call.
    ours["layer_norm_backward"]["us"] += ours.pop("layer_norm_gains")["us"]
    for name, line in ours.items():
        print(f"{name:22}{line['us']:10.1f}{theirs[name]:10.1f}{line['us'] / theirs[name]:8.2f}"
              f"{line['gbytes_per_second']:8.1f}")


if __name__ == "__main__":
    main()
