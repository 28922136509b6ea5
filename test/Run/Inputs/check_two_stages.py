#!/usr/bin/python3
"""check_two_stages.py - run the programs of two-stages.test, and compare logs, weights and checkpoints with the whole model's."""

import json
import subprocess

import numpy

TOLERANCE = 1e-6  # a few roundings of fp32, of sums whose addends have the same signs for the most part


def write_data():
    """64 samples of x [4] and t [3], with a relation that can be learned."""
    draw = numpy.random.default_rng(3)
    x = draw.standard_normal((64, 4), dtype="f4")
    t = numpy.tanh(x @ draw.standard_normal((4, 3)).astype("f4"))
    tensors, at, header = {"x": x, "t": t.astype("f4")}, 0, {}
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    with open("data.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(value.tobytes() for value in tensors.values()))


def run(program, ranks, *options):
    """What ds-run prints."""
    done = subprocess.run(["ds-run", program + ".dsx", "--ranks", str(ranks), "--timeout", "60", "--data", "data.safetensors", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, (program, options, done.stderr)
    return done.stdout


def log(file):
    with open(file) as lines:
        return [json.loads(line) for line in lines]


def weights(file):
    with open(file, "rb") as data:
        size = int.from_bytes(data.read(8), "little")
        header, body = json.loads(data.read(size)), data.read()
    return {name: numpy.frombuffer(body[slice(*entry["data_offsets"])], "f4") for name, entry in header.items() if name != "__metadata__"}


def same(a, b, tolerance):
    """Whether numbers are equal, or to `tolerance` of the larger."""
    return a == b if tolerance == 0 else abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-3)


def compare_logs(ours, theirs, tolerance):
    assert len(ours) == len(theirs) == 6, (len(ours), len(theirs))
    for a, b in zip(ours, theirs):
        for key in ("loss", "grad_norm", "lr", "eval_loss"):
            assert (key in a) == (key in b), (key, a, b)
            assert same(a.get(key, 0), b.get(key, 0), tolerance), (key, a["step"], a[key], b[key])


def compare_weights(ours, theirs, tolerance):
    """Weights have grown by sums of both signs: they are rounded as the largest element is."""
    a, b = weights(ours), weights(theirs)
    assert sorted(a) == sorted(b) == ["w0", "w1"], (sorted(a), sorted(b))
    for name, value in a.items():
        assert abs(value - b[name]).max() <= tolerance * abs(b[name]).max(), (name, value, b[name])


ALL = ["--steps", "6", "--seed", "5", "--eval-data", "data.safetensors", "--eval-every", "2"]


def check(stages, whole, ranks, tolerance):
    run(whole, 1, *ALL, "--log-jsonl", "whole.jsonl", "--save-weights", "whole.safetensors")
    losses = [line["loss"] for line in log("whole.jsonl")]
    assert losses[-1] < losses[0], losses
    out = run(stages, ranks, *ALL, "--log-jsonl", "stages.jsonl", "--log-ranks", "all", "--save-weights", "stages.safetensors",
              "--check-replicas", "1")
    assert "stage 1: " in out and "model       42 parameters" in out, out
    for name in ["stages.jsonl"] + [f"stages.rank{rank}.jsonl" for rank in range(1, ranks)]:
        compare_logs(log(name), log("whole.jsonl"), tolerance)  # by all ranks, though one stage alone has the loss
    compare_weights("stages.safetensors", "whole.safetensors", tolerance)
    # Saved after three steps by either, and resumed by either.
    for first, firstRanks, second, secondRanks in ((stages, ranks, stages, ranks), (stages, ranks, whole, 1), (whole, 1, stages, ranks)):
        folder = f"{first}-{second}"
        run(first, firstRanks, "--steps", "3", "--seed", "5", "--save", folder)
        run(second, secondRanks, *ALL, "--resume", folder, "--save-weights", "resumed.safetensors")
        compare_weights("resumed.safetensors", "whole.safetensors", tolerance)
    # A file of weights is of the whole model.
    for program, count in ((whole, 1), (stages, ranks)):
        run(program, count, "--weights", "whole.safetensors", "--eval-only", "--log-jsonl", f"{program}.eval.jsonl")
    a, b = log(f"{whole}.eval.jsonl")[0]["eval_loss"], log(f"{stages}.eval.jsonl")[0]["eval_loss"]
    assert same(a, b, tolerance), (a, b)


def check_plan():
    """A row for each stage, and what rank 0 sends as its log has it."""
    done = subprocess.run(["ds-opt", "two_each.mlir", "--emit=plan", "--plan-json", "plan.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    with open("plan.json") as file:
        plan = json.load(file)
    assert [(row["ranks"], row["stage"]) for row in plan["ranks"]] == [([0, 1], 0), ([2, 3], 1)], plan["ranks"]
    assert all(row["peak"]["bytes"] == row["arenas"]["device"] > 0 for row in plan["ranks"]), plan["ranks"]
    assert plan["mesh"] == {"dp": 2, "tp": 1, "pp": 2, "sp": 1} and plan["predicted"]["step_seconds"] > 0, plan
    sent = {kind: axes for kind, axes in plan["predicted"]["communication_bytes_by_axes"].items() if any(axes.values())}
    assert sent == log("stages.jsonl")[0]["communication_bytes_by_axes"], sent


write_data()
check("one_each", "whole2", 2, 0)
check("two_each", "whole4", 4, TOLERANCE)
check_plan()
