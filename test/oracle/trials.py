"""trials.py - programs of one example model under changed configurations, each compiled, trained and kept in a folder."""

import argparse
import json
import os
import sys

import numpy as np

import compare
import ds_config
import fake_cuda
from commands import run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402
import safetensors_io  # noqa: E402

SMALL_BUCKETS = {"reduce_bucket_size": 20000, "allgather_bucket_size": 20000, "stage3_param_persistence_threshold": 100}


def parse(description):
    """The arguments of a script that trains; unknown ones go to examples/export.py."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--config", required=True)
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--accumulation", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--fake", metavar="LIBRARY", help="libds-fake-cuda.so: programs for CUDA, on the fake device")
    return parser.parse_known_args()


class Result:
    """What one run left: its plan, log and weights."""

    def __init__(self, plan, log, weights):
        self.plan, self.log, self.weights = plan, log, weights

    def rank(self):
        return self.plan["ranks"][0]

    def arena(self):
        return self.rank()["arenas"]["device"]

    def sent(self, kind):
        return self.plan["predicted"]["communication_bytes"].get(kind, 0)

    def differences(self, other, name):
        """Complaints where the two runs are not equal to the bit."""
        for x, y in zip(self.log, other.log, strict=True):
            if any(x.get(key) != y.get(key) for key in ("loss", "grad_norm", "lr", "eval_loss")):
                return [f"{name}: step {x['step']} differs: {x} against {y}"]
        return [f"{name}: {tensor} differs" for tensor in self.weights if not np.array_equal(
            self.weights[tensor].view(np.uint8), other.weights[tensor].view(np.uint8))]


class Trials:
    """Runs of one model on one number of ranks."""

    def __init__(self, args, rest, ranks):
        self.args, self.ranks = args, ranks
        config = ds_config.read(args.config, [])
        self.base = {**config, "gradient_accumulation_steps": args.accumulation}
        batch = config["train_micro_batch_size_per_gpu"]
        self.archive, self.data, self.inputs = export.main([args.name, "--out", args.out, "--data", "32", "--batch", str(batch), *rest])
        # An emulated device would take most of its time for held-out data: two batches are more than one.
        self.held_out = self.take(2 * ranks * batch) if args.fake else self.data
        self.made = {}  # program: what it was made of

    def take(self, count):
        """A file of the first `count` samples."""
        path = os.path.join(self.args.out, f"held-out-{count}.safetensors")
        safetensors_io.save(path, {name: values[:count] for name, values in safetensors_io.load(self.data).items()})
        return path

    def train(self, name, zero, changes=None, memory=None, cluster=None, eval_every=1, options=()):
        """The result of one run; `zero` and `changes` replace keys of the configuration, and a description of a cluster that
        of this machine; `options` are further ones of ds-run."""
        folder = os.path.join(self.args.out, f"{name}-ranks{self.ranks}")
        os.makedirs(folder, exist_ok=True)
        config, program, plan, log, weights = (os.path.join(folder, part) for part in (
            "config.json", "model.dsx", "plan.json", "log.jsonl", "after.safetensors"))
        settings = {**self.base, **(changes or {}), "zero_optimization": {**SMALL_BUCKETS, **zero}}
        shapes = [part for text in self.inputs for part in ("--input", text)]
        target, device = (["--target", "cuda:sm_90"], ["--device", "cuda"]) if self.args.fake else ([], [])
        if self.made.get(program) != (settings, memory, cluster):  # run again in other surroundings it is the same program
            with open(config, "w") as file:
                json.dump(settings, file, indent=2)
            run("ds-opt", self.archive, "--config", config, *shapes, "--ranks", self.ranks, "--plan-json", plan,
                *(["--memory", memory] if memory else []), *(["--cluster", cluster] if cluster else []), *target, "--emit=program", "-o", program)
            if self.args.fake:
                fake_cuda.translate(program, folder)
            self.made[program] = settings, memory, cluster
        if self.args.fake:
            fake_cuda.use(self.args.fake, folder, self.ranks)
        run("ds-run", program, *device, "--ranks", self.ranks, "--data", self.data, "--steps", self.args.steps, "--eval-data", self.held_out,
            "--eval-every", eval_every, "--log-jsonl", log, "--save-weights", weights, *options)
        with open(plan) as file:
            return Result(json.load(file), compare.read_log(log), safetensors_io.load(weights))
