#!/usr/bin/python3
"""check_training.py - export an example, train it with ds-opt and ds-run, and compare every step with PyTorch.

    check_training.py gpt --traced --out DIR --config ds_config.json --set optimizer.type=SGD --steps 20

Unknown options go to examples/export.py.  With --gradients it runs one step of plain SGD instead and compares the
gradient of every parameter.
"""

import json
import os

import numpy as np

import check_gradients
import compare
import ds_config
import example
import train_oracle
from commands import compile_program, finish, run

import safetensors_io

RATE = 1024.0  # a power of two, so large that the weights' rounding does not show in the gradients
PLAIN_SGD = {"optimizer": {"type": "SGD", "params": {"lr": RATE}}, "gradient_clipping": 0.0}


def weight_complaints(ours, theirs, tolerance):
    """Final weights by norm, relative to the norm of the whole model."""
    whole = float(np.sqrt(sum(np.square(value.astype(np.float64)).sum() for value in theirs.values())))
    complaints = []
    for name in sorted(ours):
        if name in theirs:
            off = float(np.linalg.norm(ours[name].astype(np.float64) - theirs[name]))
            if not off <= tolerance * whole:
                complaints.append(f"{name}: final weights differ by {off:.3g}, the model's norm is {whole:.3g}")
    return complaints


def check_curve(args, files, config):
    """The logs of both, step by step, and the final weights."""
    log, trainer = train_oracle.train(files["archive"], config, files["data"], args.steps, args.loss)
    complaints, summary = compare.compare(compare.read_log(files["log"]), log, args.step1, args.curve)
    complaints += weight_complaints(safetensors_io.load(files["after"]), trainer.weights(), args.curve)
    finish(complaints, summary)


def check_step(args, files, config):
    """The gradients that one step of plain SGD reveals."""
    _, trainer = train_oracle.train(files["archive"], config, files["data"], 1, args.loss)
    expected = trainer.named(trainer.gradients)
    complaints, seen = check_gradients.compare(safetensors_io.load(files["before"]),
                                               safetensors_io.load(files["after"]), expected, RATE, 1e-4)
    complaints += [f"{name}: not among the weights" for name in check_gradients.unseen(expected, seen)]
    finish(complaints, f"{len(seen)} gradients agree")


def parse():
    parser = example.make_parser(__doc__)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--step1", type=float, default=1e-5)
    parser.add_argument("--curve", type=float, default=1e-4)
    return parser.parse_known_args()


def main():
    args, rest = parse()
    config = ds_config.read(args.config, args.set)
    if args.gradients:
        config = {**config, **PLAIN_SGD}
        config.pop("scheduler", None)
    _, micro, _ = ds_config.batch_triple(config)
    archive, data, inputs = example.make_example(args, rest, micro)
    names = {"config": "ds_config.json", "program": "model.dsx", "before": "model.safetensors", "log": "log.jsonl",
             "after": "after.safetensors"}
    files = {key: os.path.join(args.out, name) for key, name in names.items()}
    files.update(archive=archive, data=data)
    with open(files["config"], "w") as file:
        json.dump(config, file, indent=2)
    compile_program(archive, files["config"], inputs, files["program"], example.loss_options(args))
    run("ds-run", files["program"], "--data", data, "--steps", 1 if args.gradients else args.steps, "--log-jsonl",
        files["log"], "--save-weights", files["after"])
    (check_step if args.gradients else check_curve)(args, files, config)


if __name__ == "__main__":
    main()
