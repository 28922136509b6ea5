#!/usr/bin/python3
"""check_lost_values.py - ds-ckpt import names every number that is none, whatever folder it is in.

    check_lost_values.py --out DIR [--all]

Mutants: one element of one tensor of a folder is NaN, infinite or minus infinite. Folders are DeepSpeed's of every kind and
weights as Hugging Face keeps them; the tensor is a weight, a moment, a frozen parameter or a buffer of fp32, bf16 or fp16; the
element is the first, one in the middle or the last. The import must end with 0 and say one line about that tensor, with its
count and place, and nothing of an infinite buffer, as masks are; the folder as it was must be imported without a line. A loss
scale that is no positive number is left out with a line. A few mutants of each tensor are tried; with --all every one.
"""

import argparse
import itertools
import json
import os
import shutil
import struct
import subprocess

import numpy as np
import torch

import checkpoint_io
import deepspeed_files as files
from commands import finish

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
WORDS = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}  # as safetensors spells them
VALUES = {"NaN": float("nan"), "infinite": float("inf"), "minus infinite": float("-inf")}
SCALES = (float("nan"), float("inf"), 0.0, -2.0)
PLACES = {"first": lambda count: 0, "middle": lambda count: count // 2, "last": lambda count: count - 1}
WEIGHTS = ("value",)
STATES = WEIGHTS + ("exp_avg", "exp_avg_sq", "frozen", "buffer")  # of folders of DeepSpeed
TENSORS = ("embed.weight", "h.0.odd", "h.1.bias")  # of those that are trained


def write_torch(root, training):
    files.save({name: slots["value"] for name, slots in training.states.items()}, root, "pytorch_model.bin")


def write_safetensors(root, training):
    header, data = {}, b""
    for name, slots in training.states.items():
        begin = len(data)
        data += slots["value"].contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": WORDS[slots["value"].dtype], "shape": list(slots["value"].shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    os.makedirs(root)
    with open(os.path.join(root, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# format: how it is written, and what can be wrong in it
FORMATS = {
    "ZeRO 1": (lambda root, each: files.write_flat(root, each, 1, 3), STATES),
    "ZeRO 1 of bf16": (lambda root, each: files.write_flat(root, each, 1, 2, prefix="bf16_"), STATES),
    "ZeRO 2": (lambda root, each: files.write_flat(root, each, 2, 2), STATES),
    "ZeRO 2, elastic": (lambda root, each: files.write_flat(root, each, 2, 3, elastic=True), STATES),
    "ZeRO 3": (lambda root, each: files.write_sliced(root, each, 3), STATES),
    "universal": (files.write_universal, STATES),
    "universal of ZeRO 3": (lambda root, each: files.write_universal(root, each, sliced=True), STATES),
    "safetensors": (write_safetensors, WEIGHTS),
    "torch.save": (write_torch, WEIGHTS),
}


def make_training(kind):
    """All floats of one type; the frozen parameter and the buffer are 2-d, as tensors are."""
    training = files.Training(seed=3, half=TYPES[kind])
    training.states = {name: {slot: tensor.to(TYPES[kind]) for slot, tensor in slots.items()} for name, slots in training.states.items()}
    training.frozen = {"frozen.a": torch.ones(3, 4, dtype=TYPES[kind])}
    training.buffers = {"h.0.mask": torch.zeros(2, 5, dtype=TYPES[kind])}
    return training


def find(training, slot, tensor):
    """The tensor that is to be changed, and its name in messages."""
    if slot == "frozen":
        return training.frozen["frozen.a"], "frozen.a"
    if slot == "buffer":
        return training.buffers["h.0.mask"], "h.0.mask"
    return training.states[tensor][slot], tensor if slot == "value" else f"{tensor}.{slot}"


def import_lines(root, write, training):
    """What ds-ckpt says of a folder on stderr, by line."""
    shutil.rmtree(root, ignore_errors=True)
    write(os.path.join(root, "from"), training)
    done = subprocess.run(["ds-ckpt", "import", os.path.join(root, "from"), os.path.join(root, "to")], capture_output=True, text=True)
    return done.returncode, done.stderr.splitlines()


def isQuiet(mutant):
    _, (_, _, slot, value, _) = mutant
    return slot == "buffer" and value != "NaN"


def check(root, write, mutant):
    """A complaint about one mutant; None where it is told as it should be."""
    number, (_, kind, slot, value, place) = mutant
    training = make_training(kind)
    tensor, name = find(training, slot, TENSORS[number % len(TENSORS)])
    element = PLACES[place](tensor.numel())
    tensor.view(-1)[element] = VALUES[value]
    index = ", ".join(str(int(each)) for each in np.unravel_index(element, tuple(tensor.shape)))
    expected = [f"ds-ckpt: '{name}': 1 of {tensor.numel()} elements is {value.split()[-1]}, the first at [{index}]"]
    if isQuiet(mutant):
        expected = []
    code, lines = import_lines(root, write, training)
    return None if (code, lines) == (0, expected) else f"{mutant[1]}: exit {code}, {lines}, expected {expected}"


def check_scale(root, scale):
    """A loss scale that is no positive number is not taken up, and a line says so."""
    before = files.DynamicLossScaler
    files.DynamicLossScaler = lambda _: before(scale)
    code, lines = import_lines(root, FORMATS["ZeRO 2"][0], make_training("fp32"))
    files.DynamicLossScaler = before
    said = (code, lines) == (0, [f"ds-ckpt: the loss scale is {scale:g}: left out"])
    taken = "loss_scale" in checkpoint_io.load(os.path.join(root, "to", "step-12"))[1]
    return None if said and not taken else f"loss scale {scale}: exit {code}, {lines}, taken up: {taken}"


def mutants(every):
    """(number, (format, type, slot, value, place)): all, or a Latin square of types, values and places for each format and slot."""
    numbers = itertools.count()
    for name, (_, slots) in FORMATS.items():
        for row, slot in enumerate(slots):
            for (i, kind), (j, value), (k, place) in itertools.product(enumerate(TYPES), enumerate(VALUES), enumerate(PLACES)):
                if every or (i == (row + j) % 3 and k == (i + j) % 3):
                    yield next(numbers), (name, kind, slot, value, place)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    files.pretend()
    complaints = []
    for name, (write, _) in FORMATS.items():
        for kind in TYPES:
            code, lines = import_lines(args.out, write, make_training(kind))
            if code or lines:
                complaints.append(f"{name} of {kind}, as it was: exit {code}, {lines}")
    tried = list(mutants(args.all))
    complaints += filter(None, (check(args.out, FORMATS[mutant[1][0]][0], mutant) for mutant in tried))
    complaints += filter(None, (check_scale(args.out, scale) for scale in SCALES))
    quiet = sum(map(isQuiet, tried))
    finish(complaints, f"{len(tried) - quiet} mutants are told, and {quiet} infinite buffers are not; "
                       f"{len(SCALES)} loss scales are left out")


if __name__ == "__main__":
    main()
