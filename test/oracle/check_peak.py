#!/usr/bin/python3
"""check_peak.py - the peak of a plan is what a run takes, to the byte.

Plans, compiles and runs each example on one rank and two and under two stages of ZeRO, and compares the plan's peak
and arena, and the sum of its parts, with the program's arena as ds-run maps it and logs it.
"""
import argparse
import json
import os
import subprocess
import sys


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.PIPE)


def check(out, inputs, ranks, stage):
    config, program, plan, log = (os.path.join(out, f"{ranks}-{stage}.{end}") for end in ("config", "dsx", "json", "jsonl"))
    with open(config, "w") as file:
        json.dump({"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
                   "zero_optimization": {"stage": stage}}, file)
    archive = next(os.path.join(out, name) for name in os.listdir(out) if name.endswith(".pt"))
    run("ds-opt", archive, "--config", config, *inputs, "--ranks", str(ranks), "--threads-per-rank", "1",
        "--emit=program", "-o", program, "--plan-json", plan)
    run("ds-run", program, "--ranks", str(ranks), "--data", archive.replace(".pt", ".data.safetensors"), "--steps", "1",
        "--log-jsonl", log)
    with open(plan) as file:
        planned = json.load(file)["ranks"][0]
    with open(log) as file:
        measured = [json.loads(line) for line in file][-1]["peak_bytes"]["device"]
    place = f"{archive}, {ranks} ranks, stage {stage}"
    assert planned["peak"]["bytes"] == planned["arenas"]["device"] == measured > 0, f"{place}: {planned}, {measured}"
    lines = [line for line in planned["memory"] if line["where"] == "device"]
    beyond = [line["bytes"] for line in lines if line["beyond_arenas"]]
    assert len(beyond) == 1 and sum(line["bytes"] for line in lines) == measured + beyond[0], f"{place}: {lines}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--examples", required=True)
    args = parser.parse_args()
    for name in ("gpt", "llama", "mlp", "speech", "vit"):
        out = os.path.join(args.out, name)
        export = subprocess.run([sys.executable, "-W", "ignore", os.path.join(args.examples, "export.py"), name, "--out",
                                 out, "--data", "8"], check=True, stdout=subprocess.PIPE, text=True)
        inputs = export.stdout.splitlines()[-1].split()
        for ranks, stage in ((1, 0), (2, 0), (2, 3)):
            check(out, inputs, ranks, stage)


main()
