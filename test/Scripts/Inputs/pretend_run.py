#!/usr/bin/python3 -S
"""pretend_run.py - takes ds-run's place in a rehearsal: the CPU's losses, memory as planned, a trace, figures."""

import argparse
import json
import os
import sys

parser = argparse.ArgumentParser()
parser.add_argument("program", nargs="?", default="")
for name in ("device", "data", "token-dtype", "log-jsonl", "ranks", "save-weights", "trace", "only", "o", "calibrate"):
    parser.add_argument(f"-{name}" if len(name) == 1 else f"--{name}", default="")
parser.add_argument("--steps", type=int, default=0)
args = parser.parse_args()

if args.calibrate:
    with open(args.o, "w") as file:
        file.write('// written\n{"base": "h100-80g", "device": {"launch_seconds": 1e-6}}\n')
    with open(args.log_jsonl, "w") as file:
        file.write('{"figure":"figure of %s","value":1,"text":"1 us","spread":0}\n' % args.only)
    sys.exit(0)

base = args.program.removesuffix(".dsx")
losses = [1.0] * args.steps
if os.path.exists(f"{base}.cpu.json"):
    with open(f"{base}.cpu.json") as file:
        losses = json.load(file)["losses"][:args.steps]
    if len(losses) > 2 and os.environ.get("PRETEND_LOSS", "cut") != "cut":
        losses[2] = float(os.environ["PRETEND_LOSS"])
with open(f"{base}.plan.json") as file:
    rank = json.load(file)["ranks"][0]
beyond = sum(line["bytes"] for line in rank["memory"] if line["where"] == "device" and line["beyond_arenas"])
arenas = f"{rank['arenas']['device']} B"
sys.stderr.write(f"ds-run: Pretended GPU; device memory {arenas} in arenas of {arenas} planned, "
                 f"{os.environ.get('PRETEND_BEYOND') or f'{beyond} B'} beyond them for context and libraries\n")
with open(args.log_jsonl, "w") as file:
    for index, loss in enumerate(losses[:-1] if os.environ.get("PRETEND_LOSS") == "cut" else losses):
        record = {"step": index + 1, "loss": loss, "grad_norm": 0.5, "step_seconds": 0.01}
        if os.environ.get("PRETEND_GRAPH"):
            record.update(graph=False, graph_reason=os.environ["PRETEND_GRAPH"])
        file.write(json.dumps(record) + "\n")
    if os.environ.get("PRETEND_LOSS") == "cut":
        file.write('{"step": 99, "lo')
with open(os.environ["DS_CACHE_DIR"] + "/choices", "a") as file:
    file.write("chosen\n")
if args.save_weights:
    with open(args.save_weights, "w") as file:
        file.write("weights")
if args.trace:
    events = [{"ph": "i", "name": f"step {step}", "ts": 1000 * step} for step in range(1, args.steps + 1)]
    events += [{"ph": "X", "name": "matmul a", "ts": 1000 * step + 10, "dur": 3} for step in range(2, args.steps + 1)]
    with open(args.trace, "w") as file:
        json.dump({"traceEvents": events}, file)
