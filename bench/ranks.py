#!/usr/bin/python3
"""ranks.py - measure a training step on several ranks of this machine, one ZeRO stage after another.

    bench/ranks.py                       two ranks, stages 0 to 3, fp32; writes build/bench/ranks.json and ranks.md
    bench/ranks.py --type bf16 --rounds 3

Each round runs every stage once, as fresh processes on the same tokens, and one rank on its own with the same
micro-batch and one core, which is what a step would take if communication were free.  Medians of the steps after the
first ones, the best round of each; ratios are of one round, and the median of the rounds.  Exposed is the time in which
the compute stream of rank 0 waited for a collective.  CPU time that other processes took meanwhile is reported, for a busy machine measures nothing.
"""

import argparse
import json
import os
import statistics
import sys

import step

LIMIT = 1.10  # stage 3 against stage 0


def write_config(path, args, stage):
    config = {"train_micro_batch_size_per_gpu": args.batch, "gradient_accumulation_steps": args.accumulation,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}},
              "zero_optimization": {"stage": stage}}
    if args.type != "fp32":
        config[args.type] = {"enabled": True}
    with open(path, "w") as file:
        json.dump(config, file)


def compile_stage(files, args, stage, ranks):
    """The program of one stage; returns its path and the plan's bytes of model states."""
    config, program, plan = (os.path.join(args.out, f"ranks{ranks}-stage{stage}.{end}") for end in ("config.json", "dsx", "json"))
    write_config(config, args, stage)
    shape = f"{args.batch}x{args.length}xi64"
    step.run(["ds-opt", files["archive"], "--config", config, "--input", f"x={shape}", "--input", f"y={shape}", "--ranks",
              str(ranks), "--threads-per-rank", "1", "--emit=program", "-o", program, "--plan-json", plan])
    with open(plan) as file:
        states = json.load(file)["ranks"][0]["states"]
    return program, states


def measure(files, args, program, ranks):
    log = program.replace(".dsx", ".jsonl")
    result = step.run(["ds-run", program, "--ranks", str(ranks), "--data", files["tokens"], "--token-dtype", "u16",
                       "--steps", str(args.steps), "--log-jsonl", log], {"OMP_NUM_THREADS": "1"})
    with open(log) as file:
        lines = [json.loads(line) for line in file][args.drop:]
    middle = {key: statistics.median(line.get(key) or 0 for line in lines)
              for key in ("step_seconds", "comm_seconds", "comm_exposed_seconds", "comm_bytes")}
    return {**middle, "peak": lines[-1]["peak_bytes"]["device"], "others": result["others"], "loss": lines[-1]["loss"]}


def prepare(args):
    model = {**step.MODELS["gpt6"], "length": args.length, "batch": args.batch}
    args.clip, args.dtype = 1.0, "fp32"  # of a configuration that is not used here
    return step.prepare(model, args, args.out)


def against_stage_0(rounds, name):
    """Median over the rounds of a row's step against stage 0's of the same round: the machine's pace drifts between rounds."""
    return statistics.median(rows[name]["step_seconds"] / rows["stage 0"]["step_seconds"] for rows in rounds)


def best_of(rounds):
    return {name: min((rows[name] for rows in rounds), key=lambda row: row["step_seconds"]) for name in rounds[0]}


def table(rounds):
    lines = ["| | step | against stage 0 | in collectives | **exposed** | handed to collectives | states of a rank | arena | others' CPU |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, row in best_of(rounds).items():
        states = sum(value for key, value in row["states"].items() if key != "padding")
        lines.append(f"| {name} | {row['step_seconds']:.3f} s | {against_stage_0(rounds, name):.2f} | {row['comm_seconds']:.3f} s "
                     f"| **{row['comm_exposed_seconds']:.3f} s** | {row['comm_bytes'] / 2**20:.0f} MiB | {states / 2**20:.0f} MiB "
                     f"| {row['peak'] / 2**20:.0f} MiB | {row['others']:.0%} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(step.ROOT, "build", "bench", "ranks"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--stages", type=int, nargs="+", default=[0, 1, 2, 3], help="stage 0 among them")
    parser.add_argument("--type", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--drop", type=int, default=3, help="steps of each run that do not count")
    args = parser.parse_args()
    if 0 not in args.stages:
        parser.error("--stages: stage 0 must be among them, the others are compared with it")
    step.use_build()
    os.makedirs(args.out, exist_ok=True)
    files = prepare(args)
    programs = {"one rank alone": (*compile_stage(files, args, 0, 1), 1)}
    programs.update({f"stage {stage}": (*compile_stage(files, args, stage, args.ranks), args.ranks) for stage in args.stages})
    rounds = []
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        rounds.append({name: {**measure(files, args, program, ranks), "states": states}
                       for name, (program, states, ranks) in programs.items()})
    step.write_results(args.out, "ranks", rounds, table(rounds))
    if 3 in args.stages:
        print(f"stage 3 against stage 0: {against_stage_0(rounds, 'stage 3'):.2f} (limit {LIMIT})")


if __name__ == "__main__":
    main()
