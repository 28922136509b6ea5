#!/usr/bin/python3
"""check_ranks.py - train an example on N ranks at every stage of ZeRO, and compare every step with one rank.

    check_ranks.py gpt --traced --out DIR --config ds_config.json --ranks 2 --steps 5

One rank takes N times the micro-steps, so that both see the same global batches.  Stages 1, 2 and 3 must be bit-equal.
Unknown options go to examples/export.py.
"""

import argparse
import json
import os
import sys

import compare
import ds_config
from commands import compile_program, finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402

FIGURES = ("loss", "grad_norm")


def train(args, config, ranks, name):
    """The log of `args.steps` steps, one object a step."""
    paths = {key: os.path.join(args.out, f"{name}.{key}") for key in ("json", "dsx", "jsonl")}
    with open(paths["json"], "w") as file:
        json.dump(config, file, indent=2)
    compile_program(args.archive, paths["json"], args.inputs, paths["dsx"], ["--ranks", ranks])
    run("ds-run", paths["dsx"], "--ranks", ranks, "--data", args.data, "--steps", args.steps, "--log-jsonl",
        paths["jsonl"])
    return compare.read_log(paths["jsonl"])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--config", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--stages", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--step1", type=float, default=1e-6)
    parser.add_argument("--curve", type=float, default=1e-5)
    return parser.parse_known_args()


def with_zero(config, stage, accumulation):
    """The configuration at a stage; small buckets, so that there are several."""
    zero = {"stage": stage, "reduce_bucket_size": 20000, "allgather_bucket_size": 20000,
            "stage3_param_persistence_threshold": 100}
    return {**config, "gradient_accumulation_steps": accumulation, "zero_optimization": zero}


def main():
    args, rest = parse()
    config = ds_config.read(args.config, args.set)
    _, micro, accumulation = ds_config.batch_triple(config)
    config.pop("train_batch_size", None)
    args.archive, args.data, args.inputs = export.main([args.name, "--out", args.out, "--data", str(args.samples),
                                                        "--batch", str(micro), *rest])
    alone = train(args, {**config, "gradient_accumulation_steps": accumulation * args.ranks}, 1, "alone")
    logs = {stage: train(args, with_zero(config, stage, accumulation), args.ranks, f"stage{stage}")
            for stage in args.stages}
    complaints = []
    for stage, log in logs.items():
        worse, summary = compare.compare(log, alone, args.step1, args.curve)
        complaints += [f"stage {stage}: {line}" for line in worse]
        print(f"stage {stage}: {summary}")
    divided = [stage for stage in args.stages if stage > 0]
    for stage in divided[1:]:
        for step, (ours, first) in enumerate(zip(logs[stage], logs[divided[0]]), 1):
            complaints += [f"step {step}: {key} of stage {stage} is {ours[key]}, of stage {divided[0]} {first[key]}"
                           for key in FIGURES if ours[key] != first[key]]
    finish(complaints, f"{len(logs)} stages on {args.ranks} ranks agree with one rank")


if __name__ == "__main__":
    main()
