#!/usr/bin/python3
"""offload.py - what a step costs whose optimizer states live on the host, or on NVMe, and how fast they are updated there.

    bench/offload.py [--nvme DIR] [--rounds 2] [--steps 8]

GPT 6 x 384 (vocabulary 50304, T=256, B=4), accumulation 4, AdamW, clipping 1.0, fp32.  In each round the programs take turns, and the
median step of each counts; wanted: at most 1.2 of the step without offload.  The update of the table of tokens, the largest kernel
of the host stream, comes from a trace: bytes that it reads and writes a second, beside PyTorch's copy of as many (wanted: 85 %) and
its AdamW on as many elements (wanted: a third of its time), with as many threads.  Writes build/bench/offload.json and offload.md.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

import openblas
import step

# Copies and updates as many elements as the table of tokens has, the best of ten.
TORCH = """
import json, sys, time, torch
elements, bytes, threads = map(int, sys.argv[1:])
torch.set_num_threads(threads)
def best(action):
    times = []
    for _ in range(10):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)
a, b = torch.ones(bytes // 8), torch.zeros(bytes // 8)
parameter = torch.nn.Parameter(torch.ones(elements))
parameter.grad = torch.ones(elements)
print(json.dumps({"copy": best(lambda: b.copy_(a)), "adamw": min(
    best(torch.optim.AdamW([parameter], lr=1e-4, foreach=each).step) for each in (False, True))}))
"""


def compile_programs(files, args, out):
    """A program for each home of the optimizer's states, and its arenas."""
    with open(files["config"]) as file:
        config = json.load(file)
    homes = {"device": None, "cpu": {"device": "cpu"}}
    if args.nvme:
        os.makedirs(args.nvme, exist_ok=True)
        homes["nvme"] = {"device": "nvme", "nvme_path": args.nvme}
    programs = {}
    for home, offload in homes.items():
        changed = {**config, "gradient_accumulation_steps": 4,
                   "zero_optimization": {"offload_optimizer": offload} if offload else {}}
        paths = {part: os.path.join(out, f"{home}.{part}") for part in ("json", "dsx", "plan.json")}
        with open(paths["json"], "w") as file:
            json.dump(changed, file)
        shapes = [word for name in "xy" for word in ("--input", f"{name}=4x256xi64")]
        step.run(["ds-opt", files["archive"], "--config", paths["json"], *shapes, "--plan-json", paths["plan.json"], "--emit=program",
                  "-o", paths["dsx"]])
        with open(paths["plan.json"]) as file:
            programs[home] = {"program": paths["dsx"], "arenas": json.load(file)["ranks"][0]["arenas"], "seconds": []}
    return programs


def run_program(program, files, args, *more):
    """Seconds of its steps but for the first ones."""
    step.run(["ds-run", program, "--data", files["tokens"], "--token-dtype", "u16", "--steps", str(args.steps), "--log-jsonl",
              files["log"], *more])
    with open(files["log"]) as file:
        return [json.loads(line)["step_seconds"] for line in file][args.drop:]


def largest_update(program, files, args, out):
    """Bytes, and least seconds, of the largest kernel of the host stream."""
    trace = os.path.join(out, "trace.json")
    run_program(program, files, args, "--trace", trace)
    with open(trace) as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    hosts = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"].startswith("host")
             and "copy" not in e["args"]["name"]}
    slices = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) in hosts and e.get("args", {}).get("bytes")]
    most = max(e["args"]["bytes"] for e in slices)
    return most, min(e["dur"] for e in slices if e["args"]["bytes"] == most) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvme", metavar="DIR")
    parser.add_argument("--out", default=os.path.join(step.ROOT, "build", "bench"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--drop", type=int, default=2, help="steps of each run that do not count")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.clip, args.dtype, args.loss_chunks = 1.0, "fp32", "auto"
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    step.use_build()
    if not shutil.which("ds-run"):
        sys.exit("offload.py: no ds-run; run script/build first")
    out = os.path.join(args.out, "offload")
    os.makedirs(out, exist_ok=True)
    model = step.MODELS["gpt6"]
    files = step.prepare(model, args, out)
    programs = compile_programs(files, args, out)
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        for program in programs.values():
            program["seconds"].append(statistics.median(run_program(program["program"], files, args)))
    moved, seconds = largest_update(programs["cpu"]["program"], files, args, out)
    openblas.use_fastest()
    found = json.loads(subprocess.run([step.TORCH, "-W", "ignore", "-c", TORCH, str(model["vocab"] * model["width"]), str(int(moved)),
                                       str(args.threads)], stdout=subprocess.PIPE, text=True, check=True).stdout)
    best = {home: min(program["seconds"]) for home, program in programs.items()}
    lines = ["| states | step | ratio (wanted: 1.2) | device | host | NVMe |", "|---|---|---|---|---|---|"]
    for home, program in programs.items():
        sizes = " | ".join(f"{program['arenas'][space] / 1e6:.0f} MB" for space in ("device", "host", "nvme"))
        lines.append(f"| {home} | {best[home]:.3f} s | {best[home] / best['device']:.2f} | {sizes} |")
    update = {"bytes": moved, "seconds": seconds, "copy_seconds": found["copy"], "torch_adamw_seconds": found["adamw"]}
    lines += ["", f"Update of the table of tokens: {seconds * 1e3:.1f} ms, {moved / seconds / 1e9:.1f} GB/s; a copy "
              f"{moved / found['copy'] / 1e9:.1f} GB/s, share {found['copy'] / seconds:.0%} (wanted: 85 %); torch.optim.AdamW "
              f"{found['adamw'] * 1e3:.1f} ms, {found['adamw'] / seconds:.1f} times as long (wanted: 3)."]
    step.write_results(args.out, "offload", {"programs": programs, "update": update}, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
