#!/usr/bin/python3
"""check_overlap.py - train models whose layers ranks share with exchanges beside products and without, to the bit.

    check_overlap.py --out DIR [--steps N] [--ranks N] [--fake libds-fake-cuda.so]

Rows of products are independent, so `tp_overlap_comm` changes no sum: logs and weights of both programs must be equal to the bit, with
norms cut along the sequence and without.  The program that overlaps must have more exchanges, or nothing would be compared.
"""

import argparse
import os
import sys

from check_tensors import MODELS, SAVINGS, TYPES, Mesh, Model, configuration, safetensors_io
from commands import finish, run

# Two samples of 64 rows: less than two parts of 64 rows the CPU cannot make with the bits of the whole. One sample is cut in as many for
# each of two ranks.
MODELS["gpt2"] = {**MODELS["gpt2"], "n_positions": 64}
MODELS["llama"] = {**MODELS["llama"], "max_position_embeddings": 64, "vocab_size": 128}
MODELS["long"] = {**MODELS["llama"], "max_position_embeddings": 256}
# By family: whether norms are cut along the sequence, the type, and what saves memory.
JOBS = {"gpt2": ((False, "fp32", "kept"), (True, "fp32", "recompute"), (True, "bf16", "kept")),
        "llama": ((False, "fp32", "kept"), (True, "fp32", "kept"), (False, "bf16", "recompute")),
        "long": ((True, "fp32", "recompute"), (True, "bf16", "kept"))}


def exchanges(model, name, ranks):
    """How many commands of the program exchange parts of layers."""
    target = ["--target", "cuda:sm_90"] if model.args.fake else []
    text = run("ds-opt", model.path, "--config", os.path.join(model.folder, name + ".json"), *model.options, "--ranks", ranks, *target,
               "--emit=ir", "--phase=scheduled")
    return sum("ds.communicate" in line and " on exchange " in line for line in text.splitlines())


def steps_of(log):
    return [{key: value for key, value in step.items() if key in ("step", "loss", "grad_norm", "lr", "skipped")} for step in log]


def check(model, sequence, dtype, saving, args):
    """[complaints] about a model with both settings."""
    logs, weights, counts = {}, {}, {}
    for overlaps in (False, True):
        name = f"{dtype}-{saving}-rows-{'cut' if sequence else 'whole'}-{'overlaps' if overlaps else 'waits'}"
        keys = {"tensor_parallel": {"sequence_parallel": sequence, "tp_overlap_comm": overlaps}}
        sizes = {"train_micro_batch_size_per_gpu": 1} if os.path.basename(model.folder) == "long" else {}
        config = configuration(Mesh(tp=args.ranks), changes=[TYPES[dtype], SAVINGS[saving], keys, sizes])
        program = model.compile(name, config, args.ranks)
        counts[overlaps] = exchanges(model, name, args.ranks)
        file = os.path.join(model.folder, name + ".trained.safetensors")
        logs[overlaps] = steps_of(model.run(program, args.ranks, name, "--steps", args.steps, "--save-weights", file))
        weights[overlaps] = safetensors_io.load(file)
    complaints = [] if counts[True] > counts[False] else [f"{counts[True]} exchanges, and {counts[False]} where nothing is cut"]
    complaints += [f"{a} against {b}" for a, b in zip(logs[True], logs[False]) if a != b]
    complaints += [f"{key} differs" for key in weights[False] if weights[True][key].tobytes() != weights[False][key].tobytes()]
    if len(logs[True]) != args.steps or weights[True].keys() != weights[False].keys():
        complaints.append(f"{len(logs[True])} steps, {len(weights[True])} weights and {len(weights[False])}")
    print(f"{name}: {counts[False]} exchanges, {counts[True]} beside products: {'; '.join(complaints[:4]) or 'equal'}", flush=True)
    return [f"{name}: {text}" for text in complaints]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--fake", metavar="LIBRARY", help="programs for CUDA, on the fake device")
    args = parser.parse_args()
    complaints, count = [], 0
    for family, jobs in JOBS.items():
        model = Model(family, False, args)
        for sequence, dtype, saving in jobs:
            complaints += check(model, sequence, dtype, saving, args)
            count += 1
    finish(complaints, f"{count} models train alike to the bit")


if __name__ == "__main__":
    sys.exit(main())
