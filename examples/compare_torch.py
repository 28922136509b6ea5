#!/usr/bin/python3
"""compare_torch.py - time the demo's model in PyTorch beside the log of ds-run.

    examples/compare_torch.py build/demo/log.jsonl --data build/demo/train.bin [--steps 20]

PyTorch runs examples/gpt.py in eager mode (bench/torch_step.py), with AdamW in both of its forms, of which the faster one counts.
Both sides are medians after the first three steps, in fp32, with the demo's batch and a thread for each processor that this process
may use.  One ran after the other, on whatever else the machine was doing: bench/step.py measures properly.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
WARM_UP = 3
LONGEST = 120  # seconds


def median_after_warm_up(seconds):
    return statistics.median(seconds[WARM_UP:] or seconds)


def time_torch(data, steps, *flags):
    """What bench/torch_step.py prints for the demo's model."""
    command = [sys.executable, "-W", "ignore", os.path.join(ROOT, "bench/torch_step.py"), "--size", "small", "--data", data,
               "--length", "128", "--batch", "8", "--steps", str(steps), *flags]
    threads = {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **threads}, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        sys.exit(f"compare_torch.py: {steps} steps of PyTorch took more than {LONGEST} s: something else has the processors")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    with open(args.log) as file:
        ours = median_after_warm_up([json.loads(line)["step_seconds"] for line in file if line.strip()])
    runs = [time_torch(args.data, args.steps, *flags) for flags in ([], ["--foreach"])]
    theirs = min(median_after_warm_up(run["seconds"]) for run in runs)
    parameters, threads = runs[0]["parameters"], runs[0]["threads"]
    print(f"a step of {parameters / 1e6:.1f} M parameters: ds-run {ours:.3f} s, PyTorch (eager, {threads} threads) {theirs:.3f} s")
    print(f"ratio {ours / theirs:.2f}" + ("" if ours < theirs else ": PyTorch was the faster one here"))


if __name__ == "__main__":
    main()
