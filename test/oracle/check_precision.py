#!/usr/bin/python3
"""check_precision.py - train an example in f32 and in 16 bits, and hold the difference against PyTorch's.

    check_precision.py gpt --traced --out DIR --config ds_config.json

The noise of a run is the largest relative difference of its losses from those of the same run in f32. Modes are bf16,
fp16, and both by torch_autocast; PyTorch's noise is that of its autocast to bf16. Ours may be at most --multiple times as
large, in fp16 too, which has three more bits. Every mode must differ from f32 at all, or nothing was lowered.
"""

import json
import os

import compare
import ds_config
import example
import train_oracle
from commands import compile_program, finish, run

MODES = {"bf16": {"bf16": {"enabled": True}},
         "fp16": {"fp16": {"enabled": True, "initial_scale_power": 12}},
         "autocast-bf16": {"torch_autocast": {"enabled": True, "dtype": "bf16"}},
         "autocast-fp16": {"torch_autocast": {"enabled": True, "dtype": "fp16"}}}


def noise(losses, exact):
    return max(compare.difference(a, b) for a, b in zip(losses, exact))


def ours(args, folder, archive, data, inputs, config, name):
    """The losses of ds-run."""
    files = {kind: os.path.join(folder, f"{name}.{kind}") for kind in ("json", "dsx", "jsonl")}
    with open(files["json"], "w") as file:
        json.dump(config, file, indent=2)
    compile_program(archive, files["json"], inputs, files["dsx"], example.loss_options(args))
    run("ds-run", files["dsx"], "--data", data, "--steps", args.steps, "--log-jsonl", files["jsonl"])
    log = compare.read_log(files["jsonl"])
    skipped = sum(bool(entry.get("skipped")) for entry in log)
    assert not skipped, f"{name}: {skipped} steps were skipped, and cannot be compared"
    return [entry["loss"] for entry in log]


def parse():
    parser = example.make_parser(__doc__)
    parser.add_argument("--multiple", type=float, default=2.0)
    parser.add_argument("--modes", default=",".join(MODES))
    return parser.parse_known_args()


def main():
    args, rest = parse()
    config = ds_config.read(args.config, args.set)
    _, micro, _ = ds_config.batch_triple(config)
    archive, data, inputs = example.make_example(args, rest, micro)
    theirs = [[entry["loss"] for entry in train_oracle.train(archive, config, data, args.steps, args.loss, autocast=low)[0]]
              for low in (False, True)]
    limit = noise(theirs[1], theirs[0])
    exact = ours(args, args.out, archive, data, inputs, config, "f32")
    summary, complaints = [f"PyTorch's autocast differs by {limit:.2g}"], []
    for mode in args.modes.split(","):
        found = noise(ours(args, args.out, archive, data, inputs, {**config, **MODES[mode]}, mode), exact)
        summary.append(f"{mode} differs by {found:.2g}, {found / limit:.2f} times as much")
        if not 0 < found <= args.multiple * limit:
            complaints.append(f"{summary[-1]}, limit {args.multiple}")
    finish(complaints, "\n".join(summary))


if __name__ == "__main__":
    main()
