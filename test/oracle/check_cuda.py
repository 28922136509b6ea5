#!/usr/bin/python3
"""check_cuda.py - train an example compiled for CUDA on the fake device, and compare it with the CPU.

    check_cuda.py gpt --out DIR --config ds_config.json --types fp32,bf16 --ranks 2 --steps 3

The program is what a GPU would get: the runtime's CUDA part launches its kernels, whose PTX is translated to host code
instruction by instruction (ptx_to_cpp.py), and calls cuBLASLt, cuDNN and NCCL of the fake device. Losses, gradient norms
and the saved weights must agree with those of the same model compiled for the CPU. Attention in 16 bits must be cuDNN's.
Unknown options go to examples/export.py.
"""

import json
import os
import re

import numpy as np

import compare
import ds_config
import example
import fake_cuda
from check_training import weight_complaints
from commands import compile_program, finish, run

import safetensors_io

TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}},
         "fp16": {"fp16": {"enabled": True, "initial_scale_power": 12}}}
TOLERANCE = {"fp32": 1e-4, "bf16": 2 ** -8, "fp16": 2 ** -8}


def parse():
    parser = example.make_parser(__doc__)
    parser.add_argument("--fake", required=True, metavar="LIBRARY", help="libds-fake-cuda.so")
    parser.add_argument("--types", type=lambda text: text.split(","), default=["fp32"])
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--poison", action="store_true", help="fill device memory outside lifetimes with NaNs")
    parser.add_argument("--gelu", choices=["within", "after"], help="who applies GELU: products, or kernels after them")
    parser.add_argument("--bias-gradients", choices=["within", "apart"], help="who makes gradients of biases: products, or kernels")
    parser.add_argument("--target", default="cuda:sm_90")
    parser.add_argument("--pairs", metavar="DIR", help="the built-in clusters: nodes have two ranks each")
    return parser.parse_known_args()


def write_pairs(args, folder, name):
    """A cluster of nodes of two ranks, made of a built-in one of the target."""
    with open(os.path.join(args.pairs, {"cpu": "cpu.json", "cuda": "h100-80g.json"}[name])) as file:
        text = re.sub(r'"nodes": \d+,', "", file.read())
    text = re.sub(r'"devices_per_node": \d+', f'"nodes": {args.ranks // 2}, "devices_per_node": 2', text)
    if '"between": {' not in text:
        text = text[:text.rindex("}")].rstrip() + ', "between": {"latency_seconds": 1e-4, "port_bytes_per_second": 1e8, "ports_per_node": 1}}'
    path = os.path.join(folder, name + "-pairs.json")
    with open(path, "w") as file:
        file.write(text)
    return path


def train(args, folder, files, target):
    """(log, weights, printed) of the model on one target."""
    name = target.split(":")[0]
    paths = {key: os.path.join(folder, f"{name}.{key}") for key in ("dsx", "jsonl", "safetensors")}
    ranks = ["--ranks", str(args.ranks)] if args.ranks > 1 else []
    cluster = ["--cluster", write_pairs(args, folder, name)] if args.pairs else []
    compile_program(files["archive"], files["config"], files["inputs"], paths["dsx"],
                    [*example.loss_options(args), *ranks, *cluster, "--target", target])
    if name == "cuda":
        fake_cuda.translate(paths["dsx"], folder)
        fake_cuda.use(args.fake, folder, args.ranks)
        os.environ.update(DS_POISON=str(int(args.poison)), DS_CUDA_GELU=str(int(args.gelu != "after")),
                          DS_CUDA_BGRAD=str(int(args.bias_gradients != "apart")))
    printed = run("ds-run", paths["dsx"], "--device", name, *ranks, "--data", files["data"], "--steps", args.steps, "--log-jsonl",
        paths["jsonl"], "--save-weights", paths["safetensors"] + ".after")
    return compare.read_log(paths["jsonl"]), safetensors_io.load(paths["safetensors"] + ".after"), printed


def check(args, kind, files, config):
    folder = os.path.join(args.out, kind)
    os.makedirs(folder, exist_ok=True)
    files["config"] = os.path.join(folder, "ds_config.json")
    with open(files["config"], "w") as file:
        json.dump({**config, **TYPES[kind]}, file, indent=2)
    (log, weights, printed), (expected, expected_weights, _) = (train(args, folder, files, target)
                                                                for target in (args.target, "cpu"))
    complaints, summary = compare.compare(log, expected, TOLERANCE[kind], TOLERANCE[kind])
    attention = re.search("; (attention by .*?)(?:; GELU within [^;]*)?(?:; gradients of biases [^;]*)*"
                          "(?:; [0-9]+ of [0-9]+ products of odd [^;]*)?; device memory", printed)
    if kind != "fp32" and attention and attention.group(1) != "attention by cuDNN 9.19.0":
        complaints.append(attention.group(1))
    for what, wanted in (("GELU", args.gelu), ("gradients of biases", args.bias_gradients),
                         ("gradients of biases with GELU's", args.bias_gradients)):
        found = re.search(rf"; {what} within (\d+) of (\d+) products", printed)
        if wanted and (not found or found.group(1) != (found.group(2) if wanted == "within" else "0")):
            complaints.append(found.group(0) if found else f"no product has {what}")
    theirs = {name: np.asarray(value, np.float64) for name, value in expected_weights.items()}
    if set(weights) != set(theirs):
        complaints.append("other weights: " + " ".join(sorted(set(weights) ^ set(theirs))))
    return complaints + weight_complaints(weights, theirs, TOLERANCE[kind]), summary


def main():
    args, rest = parse()
    config = ds_config.read(args.config, args.set)
    _, micro, _ = ds_config.batch_triple(config)
    archive, data, inputs = example.make_example(args, rest, micro)
    complaints = []
    for kind in args.types:
        found, summary = check(args, kind, {"archive": archive, "data": data, "inputs": inputs}, config)
        print(f"{kind}: " + summary.replace("\n", f"\n{kind}: "))
        complaints += [f"{kind}: {text}" for text in found]
    finish(complaints, f"{len(args.types)} types agree with the CPU over {args.steps} steps")


if __name__ == "__main__":
    main()
