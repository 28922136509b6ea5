#!/usr/bin/python3
"""check_batch_norm.py - batch norms on several ranks, in evaluation, across checkpoints and where forward is recomputed.

    check_batch_norm.py --out DIR [--fake build/lib/libds-fake-cuda.so] test/Import/archives/residual_pictures.py

The statistics that are kept are states of the model: whatever is recomputed, saved or spread over ranks, they must be
what one rank that keeps everything has. Losses and weights are compared to 1e-6, the buffers among them. With --fake the
program for CUDA runs on that device as well.
"""

import argparse
import json
import os

import numpy as np
import torch

import archives
import compare
import fake_cuda
from commands import compile_program, finish, run

import safetensors_io

SGD = {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}}


class Runs:
    """Runs of one archive, each in a folder of its own."""

    def __init__(self, archive, data, out):
        self.archive, self.data, self.out = archive, data, out

    def compile(self, name, micro, accumulation=1, ranks=1, config=None, target="cpu"):
        folder = os.path.join(self.out, name)
        os.makedirs(folder, exist_ok=True)
        path, program = os.path.join(folder, "ds_config.json"), os.path.join(folder, "model.dsx")
        with open(path, "w") as file:
            json.dump({"train_micro_batch_size_per_gpu": micro, "gradient_accumulation_steps": accumulation, "optimizer": SGD,
                       **(config or {})}, file)
        compile_program(self.archive, path, [f"x={micro}x3x32x32xf32", f"y={micro}xi64"], program,
                        ["--ranks", ranks, "--target", target])
        return folder, program

    def train(self, name, micro, steps=3, more=(), **options):
        """The log and the weights of a run, which is compiled for it."""
        folder, program = self.compile(name, micro, **options)
        log, after = os.path.join(folder, "log.jsonl"), os.path.join(folder, "after.safetensors")
        run("ds-run", program, "--ranks", options.get("ranks", 1), "--data", self.data, "--steps", steps, "--log-jsonl", log,
            "--save-weights", after, *more)
        return compare.read_log(log), safetensors_io.load(after)


def differences(ours, theirs):
    """The largest relative differences of a loss and of a tensor, and where that is."""
    losses = max(compare.difference(a["loss"], b["loss"]) for a, b in zip(ours[0], theirs[0]))
    off, where = 0.0, ""
    for name, value in theirs[1].items():
        mine, value = ours[1][name].astype(np.float64), value.astype(np.float64)
        here = float(np.linalg.norm(mine - value)) / max(float(np.linalg.norm(value)), 1e-6 * value.size ** 0.5)
        off, where = (here, name) if here > off else (off, where)
    return losses, off, where


def expect_equal(complaints, what, ours, theirs, losses=1e-6, tensors=1e-5):
    apart, off, where = differences(ours, theirs)
    print(f"{what}: losses {apart:.1e}, tensors {off:.1e} ({where})")
    if not (apart <= losses and off <= tensors):
        complaints.append(f"{what}: losses differ by {apart:.3g}, {where} by {off:.3g}")


def check_ranks(runs, complaints):
    """Synchronised, two ranks are one with all samples; each for itself, they are not, and keep the same numbers."""
    whole = runs.train("whole", 4, accumulation=2)
    sync = {"sync_batch_norm": True}
    for stage in (0, 2):
        config = {**sync, "zero_optimization": {"stage": stage}, "zero_allow_untested_optimizer": True}
        expect_equal(complaints, f"two ranks in step, stage {stage}",
                     runs.train(f"sync{stage}", 2, accumulation=2, ranks=2, config=config), whole)
    apart = runs.train("apart", 2, accumulation=2, ranks=2)
    if differences(apart, whole)[0] < 1e-4:
        complaints.append("ranks that take statistics of their own agree with one rank: the comparison sees nothing")


def check_recomputed(runs, complaints):
    """What is recomputed counts once: the batches, and what is kept of them, are equal to the bit."""
    kept = runs.train("kept", 4, accumulation=3)
    config = {"activation_checkpointing": {"partition_activations": True}}
    expect_equal(complaints, "recomputed", runs.train("recomputed", 4, accumulation=3, config=config), kept, 0, 0)
    counts = {int(value) for name, value in kept[1].items() if name.endswith("num_batches_tracked")}
    if len(counts) != 1 or counts.pop() < 9:
        complaints.append(f"3 steps of 3 micro-batches have counted {counts}")


def check_resumed(runs, complaints):
    """Checkpoints have what is kept."""
    unbroken = runs.train("unbroken", 4, steps=4)
    saved = os.path.join(runs.out, "saved")
    runs.train("broken", 4, steps=2, more=("--save", saved))
    expect_equal(complaints, "resumed", runs.train("broken", 4, steps=4, more=("--resume", saved)), unbroken, 1, 0)


def check_evaluated(runs, complaints):
    """Evaluation is PyTorch's, with the statistics of training, and changes none."""
    folder, program = runs.compile("evaluated", 4)
    after = os.path.join(folder, "after.safetensors")
    run("ds-run", program, "--data", runs.data, "--steps", 3, "--save-weights", after)
    log = os.path.join(folder, "eval.jsonl")
    run("ds-run", program, "--data", runs.data, "--weights", after, "--eval-only", "--log-jsonl", log)
    model = torch.jit.load(runs.archive)
    values = {name: torch.from_numpy(value.copy()) for name, value in safetensors_io.load(after).items()}
    model.load_state_dict({name: values[name].reshape(held.shape) for name, held in model.state_dict().items()})
    model.eval()
    data = {name: torch.from_numpy(value.copy()) for name, value in safetensors_io.load(runs.data).items()}
    with torch.no_grad():
        batches = [model(data["x"][i:i + 4], data["y"][i:i + 4]).item() for i in range(0, len(data["y"]), 4)]
    with open(log) as file:
        ours = [entry for entry in map(json.loads, file) if "eval_loss" in entry][-1]["eval_loss"]
    theirs = sum(batches) / len(batches)
    print(f"evaluation: {ours} against {theirs}")
    if not compare.difference(ours, theirs) < 1e-5:
        complaints.append(f"evaluation gives {ours}, PyTorch {theirs}")


def check_fake_device(runs, complaints, fake):
    """Pooling and batch norms in kernels for CUDA, with the numbers of the CPU."""
    kept = runs.train("cpu", 4)
    folder, program = runs.compile("cuda", 4, target="cuda:sm_90")
    fake_cuda.translate(program, folder)
    fake_cuda.use(fake, folder, 1)
    log, after = os.path.join(folder, "log.jsonl"), os.path.join(folder, "after.safetensors")
    run("ds-run", program, "--device", "cuda", "--data", runs.data, "--steps", 3, "--log-jsonl", log, "--save-weights", after)
    expect_equal(complaints, "the fake device", (compare.read_log(log), safetensors_io.load(after)), kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--fake", metavar="LIBRARY")
    parser.add_argument("source", metavar="SOURCE")
    args = parser.parse_args()
    folder = dict(archives.build(args.source, args.out))["scripted"]
    data = os.path.join(args.out, "samples.safetensors")
    generator = np.random.default_rng(5)
    safetensors_io.save(data, {"x": generator.standard_normal((24, 3, 32, 32)).astype(np.float32),
                               "y": generator.integers(0, 10, 24).astype(np.int64)})
    runs, complaints = Runs(os.path.join(folder, "model.pt"), data, args.out), []
    for check in (check_ranks, check_recomputed, check_resumed, check_evaluated):
        check(runs, complaints)
    if args.fake:
        check_fake_device(runs, complaints, args.fake)
    finish(complaints, "batch norms agree")


if __name__ == "__main__":
    main()
