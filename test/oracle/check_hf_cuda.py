#!/usr/bin/python3
"""check_hf_cuda.py - train models of config.json that are compiled for CUDA on the fake device, and compare them with the CPU.

    check_hf_cuda.py gemma2 tight [bloom plain ...] --fake LIBRARY --out DIR

The CUDA part launches the program's kernels as on a GPU (check_cuda.py says how). Losses and gradient norms of three steps agree to
1e-4, in fp32.
"""

import argparse
import json
import os

import check_hf
import compare
import fake_cuda
import hf_variants
from check_hf_plan import TRAINING
from commands import finish, run


def train(folder, target):
    """The log of the model on one target."""
    name = target.split(":")[0]
    program, log = os.path.join(folder, f"{name}.dsx"), os.path.join(folder, f"{name}.jsonl")
    run("ds-opt", os.path.join(folder, "config.json"), "--config", os.path.join(folder, "ds_config.json"), "--target", target,
        "--weights", "none", "--emit=program", "-o", program)
    if name == "cuda":
        fake_cuda.translate(program, folder)
    run("ds-run", program, "--device", name, "--data", os.path.join(folder, "data.safetensors"), "--weights",
        os.path.join(folder, "model.safetensors"), "--steps", 3, "--log-jsonl", log)
    return compare.read_log(log)


def check(folder, config, library):
    """[complaints] about one model, and what is to be said of it."""
    check_hf.write_model(folder, config, 2 * check_hf.BATCH)
    with open(os.path.join(folder, "ds_config.json"), "w") as file:
        json.dump(TRAINING, file)
    fake_cuda.use(library, folder, 1)
    return compare.compare(train(folder, "cuda:sm_90"), train(folder, "cpu"), 1e-4, 1e-4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="FAMILY VARIANT")
    parser.add_argument("--fake", required=True, metavar="LIBRARY", help="libds-fake-cuda.so")
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    complaints = []
    for family, variant in zip(args.models[::2], args.models[1::2], strict=True):
        found, summary = check(os.path.join(args.out, f"{family}-{variant}"), hf_variants.config_of(family, variant), args.fake)
        print(f"-- {family} {variant}: {summary}")
        complaints += [f"{family} {variant}: {text}" for text in found]
    finish(complaints, f"{len(args.models) // 2} models agree with the CPU")


if __name__ == "__main__":
    main()
