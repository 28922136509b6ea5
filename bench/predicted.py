#!/usr/bin/python3
"""predicted.py - what ds-opt predicts of a step beside what ds-run measures, on this machine.

    bench/predicted.py                              calibrates, then GPT, Llama and MLP on one rank and two
    bench/predicted.py --cluster here.json gpt-6x256
    bench/predicted.py --ranks 1 --details          with the time of each kind of command

Each model is planned for the calibrated machine, run, and its plan held against the run: the peak must be the arenas to
the byte, the step is the median after the first ones.  In each round the machine is calibrated, all ranks measuring at the
same time, and every model planned and run right after it: a figure of another hour is one of another machine where others
use it.  What counts is the median ratio of the rounds.  CPU time that others took in this machine meanwhile is reported.
Writes predicted.json and predicted.md.
"""

import argparse
import json
import os
import statistics
import sys

import step

MODELS = {  # family, size of the example, batch, length
    "gpt-6x256": ("gpt", "small", 4, 128),
    "llama-4x192": ("llama", "small", 4, 128),
    "gpt-6x384": ("gpt", "bench", 4, 256),
    "llama-6x384": ("llama", "bench", 4, 256),
    "mlp-784x512": ("mlp", "small", 64, 0),
}
SECONDS = 2  # that a run takes at least


def prepare(name, args):
    """Archive, data and configuration of a model; returns what ds-opt and ds-run are given."""
    family, size, batch, length = MODELS[name]
    out = os.path.join(args.out, name)
    os.makedirs(out, exist_ok=True)
    archive, data = (os.path.join(out, f"{family}{end}") for end in (".pt", ".data.safetensors"))
    if not (os.path.exists(archive) and os.path.exists(data)):
        step.run([step.TORCH, "-W", "ignore", os.path.join(step.ROOT, "examples", "export.py"), family, "--out", out,
                  "--size", size, "--batch", str(batch), "--data", str(64 * batch)])
    shapes = ["x=64x784xf32", "y=64xi64"] if family == "mlp" else [f"{key}={batch}x{length}xi64" for key in "xy"]
    config = os.path.join(out, "ds_config.json")
    with open(config, "w") as file:
        json.dump({"train_micro_batch_size_per_gpu": batch, "gradient_clipping": 1.0,
                   "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}, file)
    return {"out": out, "archive": archive, "data": data, "config": config,
            "inputs": [word for shape in shapes for word in ("--input", shape)]}


def calibrate(ranks, turn, args):
    """The cluster file for `ranks`, measured now unless one is given."""
    if args.cluster:
        return args.cluster
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, f"cluster{ranks}.{turn}.json")
    step.run(["ds-run", "--calibrate", "--ranks", str(ranks), "-o", path])
    return path


def plan(files, cluster, ranks, args):
    """Plans and compiles; returns the program, the plan and the planned trace."""
    program, plan_json, trace = (os.path.join(files["out"], f"ranks{ranks}{end}") for end in (".dsx", ".json", ".planned.json"))
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    command = ["ds-opt", files["archive"], "--config", files["config"], *files["inputs"], "--cluster", cluster, "--ranks",
               str(ranks), "--threads-per-rank", str(threads), "--emit=program", "-o", program, "--plan-json", plan_json]
    step.run(command + (["--trace", trace] if args.details else []))
    with open(plan_json) as file:
        return program, json.load(file), trace


def kind_of(name, category):
    """The kind of command a measured slice is: the function's name, or what fuses."""
    word = name.split()[0] if name else category
    return word if category in ("cpu_op", "collective") else "generated kernels"


def slices(path):
    with open(path) as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    return [event for event in events if event.get("ph") == "X" and event.get("pid") == 0]


def each_command(path, steps):
    """(kind, seconds) of each command of a step in the order of its trace, medians over the measured steps."""
    events = sorted(slices(path), key=lambda event: event["ts"])
    each = len(events) // steps
    return [(kind_of(events[index]["name"], events[index].get("cat", "")),
             statistics.median(event["dur"] for event in events[index::each][steps // 4:]) / 1e6) for index in range(each)]


def by_kind(measured, planned):
    """Seconds of each kind of command: measured, planned. A planned trace has the commands of the measured one, in order."""
    planned = sorted(slices(planned), key=lambda event: event["ts"])
    kinds = {}
    for (kind, seconds), event in zip(measured, planned):
        both = kinds.setdefault(kind, [0.0, 0.0])
        both[0] += seconds
        both[1] += event["dur"] / 1e6
    return kinds


def steps_for(predicted, args):
    """A step of a few milliseconds is at the mercy of whoever else wakes up: short steps are run for some seconds."""
    return max(args.steps, min(400, int(SECONDS / predicted)))


def measure(files, program, ranks, steps, args):
    log, trace = program.replace(".dsx", ".jsonl"), program.replace(".dsx", ".trace.json")
    command = ["ds-run", program, "--ranks", str(ranks), "--data", files["data"], "--steps", str(steps), "--log-jsonl", log]
    result = step.run(command + (["--trace", trace] if args.details else []))
    with open(log) as file:
        lines = [json.loads(line) for line in file]
    seconds = [line["step_seconds"] for line in lines[args.drop:]]
    return {"seconds": statistics.median(seconds), "peak": lines[-1]["peak_bytes"]["device"], "others": result["others"],
            "commands": each_command(trace, len(lines)) if args.details and ranks == 1 else []}


def compare(name, ranks, cluster, args):
    files = prepare(name, args)
    program, planned, trace = plan(files, cluster, ranks, args)
    predicted = planned["predicted"]["step_seconds"]
    if predicted is None:
        sys.exit("predicted.py: the plan has no step_seconds")
    run = measure(files, program, ranks, steps_for(predicted, args), args)
    return {"model": name, "ranks": ranks, "predicted": predicted, "measured": run["seconds"],
            "ratio": predicted / run["seconds"], "planned_peak": planned["ranks"][0]["peak"]["bytes"],
            "measured_peak": run["peak"], "others": run["others"],
            "kinds": by_kind(run["commands"], trace) if run["commands"] else {}}


def middle(turns):
    """The round with the median ratio (of an even number the lower one), and the ratios of all."""
    row = sorted(turns, key=lambda turn: turn["ratio"])[(len(turns) - 1) // 2]
    different = [turn for turn in turns if turn["planned_peak"] != turn["measured_peak"]]
    peaks = different[0] if different else row
    return {**row, "planned_peak": peaks["planned_peak"], "measured_peak": peaks["measured_peak"],
            "ratios": [turn["ratio"] for turn in turns], "others": max(turn["others"] for turn in turns)}


def table(rows):
    lines = ["| | ranks | predicted | measured | **ratio** | of all rounds | peak: plan, run | others' CPU |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        same = "equal" if row["planned_peak"] == row["measured_peak"] else f"{row['planned_peak']}, {row['measured_peak']}"
        lines.append(f"| {row['model']} | {row['ranks']} | {row['predicted'] * 1e3:.1f} ms | {row['measured'] * 1e3:.1f} ms "
                     f"| **{row['ratio']:.2f}** | {' '.join(f'{ratio:.2f}' for ratio in row['ratios'])} | {same} "
                     f"| {row['others']:.0%} |")
    for row in rows:
        for kind, (measured, predicted) in sorted(row["kinds"].items(), key=lambda item: -item[1][0]):
            if measured > 0.005 * row["measured"]:
                lines.append(f"| {row['model']}: {kind} | {row['ranks']} | {predicted * 1e3:.2f} ms | {measured * 1e3:.2f} ms "
                             f"| {predicted / measured:.2f} | | | |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--out", default=os.path.join(step.ROOT, "build", "bench", "predicted"))
    parser.add_argument("--cluster", help="a file that ds-run --calibrate wrote; default: calibrate now")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--drop", type=int, default=3, help="steps of each run that do not count")
    parser.add_argument("--details", action="store_true", help="compare each kind of command as well")
    parser.add_argument("--prepare", action="store_true", help="only write the models and their data")
    args = parser.parse_args()
    unknown = set(args.models) - set(MODELS)
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    step.use_build()
    names = args.models or list(MODELS)
    if args.prepare:
        for name in names:
            prepare(name, args)
        return
    rows = []
    for ranks in args.ranks:
        turns = {name: [] for name in names}
        for turn in range(args.rounds):
            cluster = calibrate(ranks, turn, args)
            for name in names:
                print(f"{name} on {ranks}, round {turn}", file=sys.stderr)
                turns[name].append(compare(name, ranks, cluster, args))
        rows += [middle(turns[name]) for name in names]
    step.write_results(args.out, "predicted", rows, table(rows))


if __name__ == "__main__":
    main()
