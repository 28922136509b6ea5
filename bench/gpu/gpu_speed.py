"""gpu_speed.py - how fast: steps beside PyTorch's, the dearest commands beside their predicted times, single figures.

Everything runs in the environment of the highest rung of the ladder.
"""

import collections
import gzip
import json
import os
import statistics
import time

import gpu_models
from gpu_checks import judge_memory, planned_total, read_slices
from gpu_ladder import head_of, highest, losses_of, look_closer, relative
from gpu_results import CLUSTER, TRACE

DEAREST = 20
MICRO = 60  # seconds of all single figures together
WARM = 5  # steps of a measured run that do not count
AIMS = {"compile": 1.0, "eager": 1.5}  # what matters more comes first
CALIBRATION = ("launches", "copies", "host", "context", "rows", "attention", "functions", "products-bf16", "products-fp32")
WAYS = {"graph": {"DS_CUDA_GRAPH": "0"}, "cuDNN": {"DS_CUDNN": "0"}, "GELU in products": {"DS_CUDA_GELU": "0"},
        "gradients of biases in products": {"DS_CUDA_BGRAD": "0"}}


def measured(r, large):
    """Models that are measured for speed; the large ones come last and once."""
    return [name for name in r.models if "hf" in gpu_models.MODELS[name] and "checked" not in gpu_models.MODELS[name]
            and bool(gpu_models.MODELS[name].get("large")) == large]


def gpu_bytes(r):
    """Memory of the first GPU as nvidia-smi told; without it as much as anybody wants."""
    rows = r.results.records.get("facts nvidia-smi", {}).get("data", {}).get("gpus", [])
    text = rows[0].get("memory.total", "") if rows else ""
    return int(text) << 20 if text.isdigit() else float("inf")


def too_large(r, name):
    """Why the GPU cannot hold a model, or None."""
    wanted, there = planned_total(r.path(f"{name}.plan.json")), gpu_bytes(r)
    return f"needs {wanted / (1 << 30):.1f} GiB, the GPU has {there / (1 << 30):.1f}" if wanted > there else None


def seconds_of(records):
    return statistics.median(record["step_seconds"] for record in records[min(WARM, len(records) - 1):])


def ours(name, environment):
    """A step: the median step of a model, its rate and its memory."""
    def work(r):
        reason = too_large(r, name)
        if reason:
            return r.outcome("skipped", reason)
        model, began = gpu_models.MODELS[name], time.monotonic()
        ended, records = r.ds_run(name, environment, steps=r.steps + WARM)
        if not ended.ok:
            return r.failed(f"speed {name}", ended)
        seconds = seconds_of(records)
        rate = gpu_models.step_tokens(model) / seconds
        figures = {"step_seconds": seconds, "tokens_per_second": rate, "first_step_seconds": records[0]["step_seconds"],
                   "startup_seconds": records[0].get("startup_seconds"), "losses": losses_of(records)[:5],
                   "tflops": rate * gpu_models.flops_per_token(model) * 1e-12,
                   "wall_seconds": round(time.monotonic() - began, 1), "log": records[-1], "head": head_of(ended.err),
                   "predicted_seconds": predicted_seconds(r, name), "compile_seconds": r.packed["compile_seconds"].get(name)}
        figures["memory_holds"], figures["memory_text"], figures["memory"] = judge_memory(r, name, ended.err)
        return r.outcome("ok", f"{seconds * 1e3:.2f} ms a step (predicted {figures['predicted_seconds'] * 1e3:.2f}), "
                         f"{rate:.0f} tokens/s, {figures['tflops']:.0f} TFLOP/s", **figures)
    return work


def predicted_seconds(r, name):
    with open(r.path(f"{name}.plan.json")) as file:
        return json.load(file)["predicted"]["step_seconds"]


def pair(slices, planned, steps):
    """[(name, measured seconds, predicted or None, times a step)]: commands by name, the dearest first. Times are sums over a
    step, of those that the plan gives this name, too."""
    found, expected = collections.defaultdict(list), collections.defaultdict(list)
    for event in slices:
        found[event["name"]].append(event["dur"] * 1e-6)
    for name, seconds in planned:
        expected[name].append(seconds)
    rows = []
    for name, seconds in found.items():
        theirs = expected.get(name, [])
        rows.append((name, sum(seconds) / steps, sum(theirs) if theirs else None, round(len(seconds) / steps)))
    return sorted(rows, key=lambda row: -row[1])


def dearest(name, environment):
    """A step: the commands that take longest, measured by a trace, beside what the plan said."""
    def work(r):
        reason, path = too_large(r, name), r.temporary("speed.trace.json")
        if reason:
            return r.outcome("skipped", reason)
        ended, _ = r.ds_run(name, {key: value for key, value in environment.items() if key != "DS_CUPTI"},
                                  extra=["--trace", path], steps=4)
        if not ended.ok:
            return r.failed(f"dearest {name}", ended)
        with open(path, "rb") as file:
            r.results.store(TRACE, gzip.compress(file.read(), 9))
        slices, traced = read_slices(path)
        planned = []
        if os.path.exists(r.path(f"{name}.planned.json")):
            with open(r.path(f"{name}.planned.json")) as file:
                planned = json.load(file)
        rows = pair(slices, planned, max(1, traced))
        total = sum(row[1] for row in rows)
        return r.outcome("ok", f"{len(rows)} kinds of commands take {total * 1e3:.2f} ms a step",
                         commands=[list(row) for row in rows[:DEAREST]], total_seconds=total, planned_commands=len(planned))
    return work


def pytorch(name, way):
    """A step: the same model in PyTorch, eager or compiled."""
    def work(r):
        model = gpu_models.MODELS[name]
        settings = {key: model[key] for key in ("batch", "length", "layers", "heads", "width", "vocab", "hf")}
        ended = r.child([r.python, r.path("gpu_torch.py"), "speed",
                         json.dumps({**settings, "steps": r.steps, "compile": way == "compile"})])
        if not ended.ok:
            r.results.failure(f"PyTorch {way} {name}", ended.err)
            return r.outcome("skipped", ended.describe())
        figures = json.loads(ended.out.splitlines()[-1])
        text = f"{figures['step_seconds'] * 1e3:.2f} ms a step, {figures['tokens_per_second']:.0f} tokens/s"
        mine = r.results.records.get(f"speed {name}", {})
        if mine.get("state") == "ok":
            ratio = mine["data"]["tokens_per_second"] / figures["tokens_per_second"]
            figures["ratio"] = ratio
            text += f"; ours {ratio:.2f} x, aim {AIMS[way]}"
        return r.outcome("ok", text, **figures)
    return work


def speed_of(r, name, least):
    found = r.step(f"speed {name}", ours(name, highest(r)), 300, least)
    if found["state"] == "failed":
        look_closer(r, f"speed {name}", name, highest(r))
    if found["state"] == "ok":
        data = found["data"]
        r.step(f"memory {name}", lambda _: r.outcome("ok" if data["memory_holds"] else "failed", data["memory_text"]), 10)


def speed(r):
    for name in measured(r, False):
        speed_of(r, name, 20)
        r.step(f"dearest {name}", dearest(name, highest(r)), 200, 15)


def torch(r):
    for way in AIMS:
        for name in [n for n in measured(r, False) if gpu_models.MODELS[n]["compared"]]:
            r.step(f"PyTorch {way} {name}", pytorch(name, way), 300, 60)


def calibrate(part):
    """A step: one part of our own measurements; its figures join those of the cluster file."""
    def work(r):
        path, log = r.temporary("cluster.json"), r.temporary("calibration.jsonl")
        for old in (path, log):
            if os.path.exists(old):
                os.remove(old)
        quick = ["--calibrate=quick"] if r.quick else ["--calibrate"]
        ended = r.child([r.path("bin/ds-run"), *quick, "--device", "cuda", "--only", part, "-o", path, "--log-jsonl", log],
                        r.ds_environment(highest(r)))
        lines = []
        if os.path.exists(log):
            with open(log) as file:
                lines = [json.loads(line) for line in file if line.endswith("}\n")]
        if ended.why == "time":
            return r.outcome("skipped", ended.describe(), lines=lines)
        if not ended.ok:
            return r.failed(f"calibrate {part}", ended, lines=lines)
        with open(path) as file:
            figures = json.loads("".join(line for line in file if not line.lstrip().startswith("//")))
        text = "; ".join(f"{line['figure']} {line['text']}" for line in lines[:8])
        return r.outcome("ok", text, figures=figures, lines=lines)
    return work


def merge(into, more):
    for key, value in more.items():
        if isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def write_cluster(r):
    """The description that ds-opt --cluster reads: a built-in one, with what was measured in its place."""
    cluster = {}
    for part in CALIBRATION:
        merge(cluster, r.results.records.get(f"calibrate {part}", {}).get("data", {}).get("figures", {}))
    if cluster:
        heading = f"// Written by gpu-test on {time.strftime('%Y-%m-%d')}: what was measured, on top of \"base\".\n"
        r.results.store(CLUSTER, heading + json.dumps(cluster, indent=1) + "\n")


def micro(r):
    """The parts one after the other, the ones that plans need most first. What does not fit into MICRO seconds is left out, and its
    figures are those of the built-in description."""
    until = time.monotonic() + MICRO
    try:
        for part in CALIBRATION:
            left = until - time.monotonic()
            work = calibrate(part) if left > 1 else lambda r: r.outcome("skipped", f"the {MICRO} s of all parts are spent")
            r.step(f"calibrate {part}", work, max(left, 1))
    finally:
        write_cluster(r)


def without(name, feature):
    """A step: the same model with one feature off (or on, where the ladder left it out)."""
    def work(r):
        environment = highest(r)
        mine = r.results.records.get(f"speed {name}", {})
        if mine.get("state") != "ok":
            return r.outcome("skipped", "there is no run to compare with")
        if any(environment.get(key) == value for key, value in WAYS[feature].items()):
            return r.outcome("skipped", "the ladder left it off")
        ended, records = r.ds_run(name, {**environment, **WAYS[feature]}, steps=r.steps + WARM)
        if not ended.ok:
            return r.failed(f"{name} without {feature}", ended)
        seconds, far = seconds_of(records), relative(losses_of(records)[:5], mine["data"]["losses"])
        ratio = seconds / mine["data"]["step_seconds"]
        return r.outcome("ok" if far <= 2e-2 else "failed", f"{seconds * 1e3:.2f} ms a step, {ratio:.2f} x; losses "
                         f"{far:.1e} away, limit 2e-02", step_seconds=seconds, ratio=ratio, far=far)
    return work


def ways(r):
    for name in measured(r, False):
        for feature in WAYS:
            r.step(f"{name} without {feature}", without(name, feature), 200, 40)


def large(r):
    """Once each: a step, and its dearest commands."""
    for name in measured(r, True):
        speed_of(r, name, 30)
        r.step(f"dearest {name}", dearest(name, highest(r)), 200, 25)


def large_torch(r):
    """The same in PyTorch, where it can."""
    for way in AIMS:
        for name in [n for n in measured(r, True) if gpu_models.MODELS[n]["compared"]]:
            r.step(f"PyTorch {way} {name}", pytorch(name, way), 300, 120)
