#!/usr/bin/python3
"""check_import.py - ds-ckpt import makes checkpoints that ds-run goes on from.

    check_import.py --out DIR

Folders of DeepSpeed, written as deepspeed_files.py does, of the tiny GPT in the middle of a training with AdamW: imported,
resumed on one and on two ranks, all parameters and moments must be equal to the bit; one more step must be the one that
PyTorch makes from the same state. Weights of Hugging Face become step 0.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import torch

import checkpoint_io
import compare
import deepspeed_files as files
from commands import finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402
import gpt  # noqa: E402
import safetensors_io  # noqa: E402

ADAMW = {"lr": 0.01, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.1}
SLOTS = ("value", "exp_avg", "exp_avg_sq")


class GPTTraining(files.Training):
    """The tiny GPT behind ten updates: weights and moments of the size that training gives them."""

    def __init__(self, half, prefix=""):
        draw = torch.Generator().manual_seed(5)
        torch.manual_seed(0)
        model = gpt.GPT(gpt.SIZES["tiny"])
        self.half = half
        weights = [(prefix + name, value.detach()) for name, value in model.named_parameters()]
        self.groups = [OrderedDict((name, tuple(value.shape)) for name, value in weights if value.dim() == 2),
                       OrderedDict((name, tuple(value.shape)) for name, value in weights if value.dim() == 1)]
        self.states = {name: {"value": value, "exp_avg": 1e-3 * torch.randn(value.shape, generator=draw),
                              "exp_avg_sq": 1e-5 * torch.rand(value.shape, generator=draw) + 1e-8} for name, value in weights}
        self.frozen, self.buffers = {}, {prefix + name: value for name, value in model.named_buffers()}
        self.tied = {prefix + "head.weight": prefix + "tokens.weight"}

    def expected(self, prefix=""):
        """The names and values that a checkpoint of ours has."""
        return {name[len(prefix):] + ("" if slot == "value" else "." + slot): tensor.numpy()
                for name, slots in self.states.items() for slot, tensor in slots.items()}


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file)
    return path


def compile_programs(out, archive, inputs):
    """{name: (program, ranks)}: fp32 on one rank, fp16 with masters on two at ZeRO 2."""
    programs = {}
    for name, ranks, extra in (("one", 1, {}), ("two", 2, {"fp16": {"enabled": True, "initial_scale_power": 6},
                                                         "zero_optimization": {"stage": 2, "reduce_bucket_size": 4096}})):
        config = write_json(os.path.join(out, name + ".json"), {
            "train_batch_size": 2, "gradient_clipping": 0.0, "optimizer": {"type": "AdamW", "params": ADAMW}, **extra})
        path = os.path.join(out, name + ".dsx")
        shapes = [text.replace("=2x", f"={2 // ranks}x") for text in inputs]
        run("ds-opt", archive, "--config", config, "--ranks", ranks, *(part for text in shapes for part in ("--input", text)),
            "--emit=program", "-o", path)
        programs[name] = path, ranks
    return programs


def differing(what, found, expected):
    """Complaints about tensors of `expected` that `found` has not, or has other bits of."""
    return [f"{what}: {name} differs" for name, value in expected.items()
            if name not in found or found[name].tobytes() != value.tobytes()]


def make_step(training, data):
    """Loss and parameters of PyTorch's eleventh update."""
    model = gpt.GPT(gpt.SIZES["tiny"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=ADAMW["lr"], betas=ADAMW["betas"], eps=ADAMW["eps"],
                                  weight_decay=ADAMW["weight_decay"])
    for name, parameter in model.named_parameters():
        slots = training.states[name]
        parameter.data.copy_(slots["value"])
        optimizer.state[parameter] = {"step": torch.tensor(10.0), **{slot: slots[slot].clone() for slot in SLOTS[1:]}}
    loss = model(*(torch.from_numpy(data[name]) for name in ("x", "y")))
    loss.backward()
    optimizer.step()
    return float(loss), {name: value.detach().numpy() for name, value in model.named_parameters()}


class Checks:
    def __init__(self, out):
        self.out, self.complaints, self.done = out, [], 0
        archive, self.data, inputs = export.main(["gpt", "--out", out, "--data", "2", "--batch", "2"])
        self.programs = compile_programs(out, archive, inputs)

    def folder(self, name):
        return os.path.join(self.out, name)

    def take_up(self, what, source, expected, step):
        """Imports `source` and lets each program go on from it and save at once."""
        saves = self.folder(what + "-imported")
        print(run("ds-ckpt", "import", source, saves))
        path = os.path.join(saves, f"step-{step}")
        manifest, kept = checkpoint_io.load(path)
        self.complaints += differing(f"{what}: imported", kept, expected)
        run("ds-ckpt", "verify", path)
        for name, (program, ranks) in self.programs.items():
            again = self.folder(f"{what}-{name}")
            run("ds-run", program, "--ranks", ranks, "--data", self.data, "--resume", saves, "--steps", step, "--save", again)
            found = checkpoint_io.load(os.path.join(again, f"step-{step}"))[1]
            self.complaints += differing(f"{what}: resumed by {name}", found, expected)
        self.done += 1
        return manifest, kept, path

    def deepspeed(self, what, write, training, prefix=""):
        root = self.folder(what)
        write(root, training)
        manifest, kept, path = self.take_up(what, root, training.expected(prefix), 12)
        if (kept["step"], manifest["data"]["samples"], manifest["data"]["tokens"]) != (10, 96, 98304):
            self.complaints.append(f"{what}: step {kept['step']}, data {manifest['data']}")
        if kept["loss_scale"] != 4096:
            self.complaints.append(f"{what}: loss scale {kept['loss_scale']}")
        return path

    def go_on(self, path, training):
        """The next step is PyTorch's."""
        log, saves = self.folder("on.jsonl"), self.folder("on")
        run("ds-run", self.programs["one"][0], "--data", self.data, "--resume", path, "--steps", 13, "--save", saves,
            "--log-jsonl", log)
        loss, after = make_step(training, safetensors_io.load(self.data))
        found, step = checkpoint_io.load(os.path.join(saves, "step-13"))[1], compare.read_log(log)[0]
        if step["step"] != 13 or not compare.difference(step["loss"], loss) < 1e-5 or found["step"] != 11:
            self.complaints.append(f"the next step: {step}, update {found['step']}, against loss {loss}")
        for name, value in after.items():
            update = np.linalg.norm(value - training.states[name]["value"].numpy())
            if not np.linalg.norm(found[name] - value) < 1e-4 * update:
                self.complaints.append(f"the next step: {name} is not PyTorch's")

    def weights(self):
        """A folder of Hugging Face: parameters, and its config.json goes along to the next export."""
        training, root = GPTTraining(torch.float16), self.folder("hf")
        os.makedirs(root)
        values = {name: slots["value"].numpy() for name, slots in training.states.items()}
        safetensors_io.save(os.path.join(root, "model.safetensors"), values)
        write_json(os.path.join(root, "config.json"), {"model_type": "toy"})
        _, _, path = self.take_up("hf", root, values, 0)
        run("ds-ckpt", "export", path, self.folder("hf-again"))
        again = safetensors_io.load(os.path.join(self.folder("hf-again"), "model.safetensors"))
        self.complaints += differing("hf: exported", again, values)
        with open(os.path.join(self.folder("hf-again"), "config.json")) as file:
            if json.load(file) != {"model_type": "toy"}:
                self.complaints.append("hf: config.json is another")

    def refusals(self, source, taken):
        """Exit codes of what cannot be imported; nothing is left behind."""
        os.makedirs(self.folder("empty"))
        for code, command in ((6, [self.folder("absent"), self.folder("no")]), (3, [self.folder("empty"), self.folder("no")]),
                              (6, [source, taken]), (3, [source, self.folder("on")]), (2, [self.folder("hf"), self.folder("no"), "--step", "3"]),
                              (2, [source]), (2, [source, self.folder("no"), "--step", "x"])):
            done = subprocess.run(["ds-ckpt", "import", *command], capture_output=True, text=True)
            if done.returncode != code or os.path.exists(self.folder("no")):
                self.complaints.append(f"import {command}: exit {done.returncode}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    os.makedirs(args.out)
    files.pretend()
    checks, training = Checks(args.out), GPTTraining(torch.float16)
    path = checks.deepspeed("flat", lambda root, each: files.write_flat(root, each, 2, 3), training)
    checks.deepspeed("sliced", lambda root, each: files.write_sliced(root, each, 2), training)
    wrapped = GPTTraining(torch.bfloat16, "module.")
    checks.deepspeed("wrapped", lambda root, each: files.write_flat(root, each, 1, 1), wrapped, "module.")
    checks.go_on(path, training)
    checks.weights()
    checks.refusals(checks.folder("flat"), checks.folder("flat-imported"))
    finish(checks.complaints, f"{checks.done} folders of others are taken up")


if __name__ == "__main__":
    main()
