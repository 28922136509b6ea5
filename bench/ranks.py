#!/usr/bin/python3
"""ranks.py - measure a training step on several ranks of this machine, one ZeRO stage after another.

    bench/ranks.py                       two ranks, stages 0 to 3, fp32; writes build/bench/ranks.json and ranks.md
    bench/ranks.py --type bf16 --rounds 3
    bench/ranks.py --sharing --rounds 3  four ranks on all processors by mpirun and by --ranks, and one beside a busy process

Each round runs every stage once, as fresh processes on the same tokens, and one rank on its own with the same
micro-batch and one core, which is what a step would take if communication were free.  Medians of the steps after the
first ones, the best round of each; ratios are of one round, and the median of the rounds.  Exposed is the time in which
the compute stream of rank 0 waited for a collective.  With --sharing nothing is set that says how threads wait: runs take
turns, and ratios are again of one round.  CPU time that other processes took meanwhile is reported, for a busy machine measures nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import step

LIMIT = 1.10  # stage 3 against stage 0
MPIRUN_LIMIT, BUSY_LIMIT = 1.1, 2.2  # mpirun -n 4 against --ranks 4; beside one busy process against alone


def write_config(path, args, stage):
    config = {"train_micro_batch_size_per_gpu": args.batch, "gradient_accumulation_steps": args.accumulation,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}},
              "zero_optimization": {"stage": stage}}
    if args.type != "fp32":
        config[args.type] = {"enabled": True}
    with open(path, "w") as file:
        json.dump(config, file)


def compile_stage(files, args, stage, ranks, threads=1):
    """The program of one stage; returns its path and the plan's bytes of model states."""
    config, program, plan = (os.path.join(args.out, f"ranks{ranks}-stage{stage}.{end}") for end in ("config.json", "dsx", "json"))
    write_config(config, args, stage)
    shape = f"{args.batch}x{args.length}xi64"
    step.run(["ds-opt", files["archive"], "--config", config, "--input", f"x={shape}", "--input", f"y={shape}", "--ranks",
              str(ranks), "--threads-per-rank", str(threads), "--emit=program", "-o", program, "--plan-json", plan])
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
    args.clip, args.dtype, args.loss_chunks = 1.0, "fp32", "auto"  # of a configuration that is not used here
    return step.prepare(model, args, args.out)


def sharing_step(files, args, program, launch, ranks):
    """Seconds of a median step, with no word to OpenMP about threads and waiting."""
    log = program.replace(".dsx", ".sharing.jsonl")
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    command = [*launch, "ds-run", program, *ranks, "--data", files["tokens"], "--token-dtype", "u16", "--steps", str(args.steps),
               "--log-jsonl", log]
    subprocess.run(command, env=plain, check=True, stdout=subprocess.DEVNULL)
    with open(log) as file:
        return statistics.median([json.loads(line)["step_seconds"] for line in file][args.drop:])


def measure_sharing(files, args, alone, four):
    """One round: a rank alone, beside a process that computes, and four ranks by both launchers."""
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
    found = {"load": os.getloadavg()[0], "alone": sharing_step(files, args, alone, [], [])}
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    found["beside"] = sharing_step(files, args, alone, [], [])
    busy.kill()
    busy.wait()
    found["ranks"] = sharing_step(files, args, four, [], ["--ranks", "4"])
    found["mpirun"] = sharing_step(files, args, four, mpirun, [])
    return found


def report_sharing(args, files):
    threads = len(os.sched_getaffinity(0))
    alone, four = (compile_stage(files, args, 0, ranks, threads)[0] for ranks in (1, 4))
    rounds = [measure_sharing(files, args, alone, four) for _ in range(args.rounds)]
    mpirun = statistics.median(row["mpirun"] / row["ranks"] for row in rounds)
    beside = statistics.median(row["beside"] / row["alone"] for row in rounds)
    lines = ["| load before | alone | beside a busy process | --ranks 4 | mpirun -n 4 |", "|---|---|---|---|---|"]
    lines += [f"| {row['load']:.1f} | " + " | ".join(f"{row[key]:.3f} s" for key in ("alone", "beside", "ranks", "mpirun")) + " |"
              for row in rounds]
    lines += ["", f"mpirun -n 4 against --ranks 4: {mpirun:.2f} (limit {MPIRUN_LIMIT}); beside a busy process against alone: "
              f"{beside:.2f} (limit {BUSY_LIMIT})"]
    step.write_results(args.out, "sharing", rounds, "\n".join(lines) + "\n")


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
    parser.add_argument("--sharing", action="store_true", help="what is lost where others use the processors too")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--drop", type=int, default=3, help="steps of each run that do not count")
    args = parser.parse_args()
    if 0 not in args.stages:
        parser.error("--stages: stage 0 must be among them, the others are compared with it")
    step.use_build()
    os.makedirs(args.out, exist_ok=True)
    files = prepare(args)
    if args.sharing:
        return report_sharing(args, files)
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
