"""gpu_ladder.py - one feature after the other, from everything off to everything on.

The first rung waits for each command and uses neither graphs nor cuDNN nor cuBLASLt's GELU and gradients of biases. Each further rung switches one
thing on, on top of those that held so far; small models are trained on it, and their losses held to the CPU's and to
PyTorch's on this GPU. A rung that loses a model which the last one had is left out of all that follows.
"""

import json
import math
import os
import shutil

import gpu_models

OFF = {"DS_CUDA_CHECK": "1", "DS_CUDA_GRAPH": "0", "DS_CUDNN": "0", "DS_CUDA_GELU": "0", "DS_CUDA_BGRAD": "0",
       "DS_CUPTI": "0", "DS_POISON": "0"}
CUPTI_ON = {"DS_CUPTI": None}  # a traced run finds the library by itself


def is_narrow(name):
    return bool(gpu_models.MODELS[name].get("bf16"))


def uses_cudnn(name):
    return is_narrow(name) or gpu_models.family(name) in ("vit", "speech")


# name, what is switched, which models notice, whether it stays on
RUNGS = [("off", {}, None, True), ("running freely", {"DS_CUDA_CHECK": "0"}, None, True),
         ("graph", {"DS_CUDA_GRAPH": "1"}, None, True), ("cuDNN", {"DS_CUDNN": None}, uses_cudnn, True),
         ("GELU in products", {"DS_CUDA_GELU": "1"}, is_narrow, True),
         ("gradients of biases in products", {"DS_CUDA_BGRAD": "1"}, is_narrow, True), ("poison", {"DS_POISON": "1"}, None, False)]
CLOSER = 4  # failures that are run again to hear more of them
ENOUGH = 3  # models that fail on a rung before any works there: the others are left out
LIMITS = {False: {"the CPU": 1e-4, "PyTorch": 1e-3}, True: {"the CPU": 2e-2, "PyTorch": 2e-2}}  # by 16 bits


def relative(a, b):
    """The largest relative difference; infinite where there are fewer steps, or no numbers."""
    if len(a) != len(b) or not all(map(math.isfinite, [*a, *b])):
        return math.inf
    return max((abs(x - y) / max(abs(y), 1e-12) for x, y in zip(a, b)), default=0.0)


def switched(environment, change):
    """None takes a variable away: the library is then looked for as usual."""
    return {key: value for key, value in {**environment, **change}.items() if value is not None}


def losses_of(records):
    return [record.get("loss", math.nan) for record in records]


def examples(r):
    """Small models on one GPU, the smallest first."""
    return [name for name in r.models if "example" in gpu_models.MODELS[name] and "ranks" not in gpu_models.MODELS[name]]


def expected_losses(r, name):
    with open(r.path(f"{name}.cpu.json")) as file:
        return json.load(file)["losses"]


def torch_losses(r, name):
    """A step: what PyTorch computes on this GPU from the same weights and data."""
    model, expected = gpu_models.MODELS[name], expected_losses(r, name)
    settings = {"weights": r.path(f"{name}.safetensors"), "data": r.path(f"{name}.data.safetensors"), "steps": len(expected),
                "bf16": is_narrow(name), "config": model["config"], "example": model["example"]}

    def judge(r, ended):
        if not ended.ok:
            r.results.failure(f"PyTorch {name}", ended.err)
            return r.outcome("skipped", ended.describe())
        losses = json.loads(ended.out.splitlines()[-1])["losses"]
        return r.outcome("ok", f"{relative(losses, expected):.1e} from our CPU's losses", losses=losses)
    return r.job(f"PyTorch {name}", 120, [r.python, r.path("gpu_torch.py"), "losses", json.dumps(settings)], {}, judge)


def refused_graph(records):
    """Why the last step was not started as a graph, as the log says; None if it was, or if the log says nothing of it."""
    last = records[-1] if records else {}
    return None if last.get("graph", True) else last.get("graph_reason") or "the log has no reason"


def train(r, name, environment, rung):
    """A step: trains `name` and holds its losses to the others'."""
    label, expected = f"ladder {rung} {name}", expected_losses(r, name)
    log = r.temporary(f"{rung}.{name}.jsonl")
    if os.path.exists(log):
        os.remove(log)

    def judge(r, ended):
        if not ended.ok:
            return r.failed(label, ended)
        records, others = r.read_lines(log), {"the CPU": expected}
        if r.results.records.get(f"PyTorch {name}", {}).get("state") == "ok":
            others["PyTorch"] = r.results.records[f"PyTorch {name}"]["data"]["losses"]
        losses = losses_of(records)
        far = {other: relative(losses, theirs) for other, theirs in others.items()}
        wrong = [other for other, distance in far.items() if distance > LIMITS[is_narrow(name)][other]]
        text = ", ".join(f"{distance:.1e} from {other}" for other, distance in far.items())
        graph = refused_graph(records) if rung == "graph" else None
        if wrong or graph:
            text += f", limits {LIMITS[is_narrow(name)]}" if wrong else f"; no graph: {graph}"
            r.results.failure(label, f"{text}\nours {losses}\nothers {others}\n--- stderr\n{ended.err}")
        return r.outcome("failed" if wrong or graph else "ok", text, far=far, log=records[-1] if records else {},
                         head=head_of(ended.err))
    return r.job(label, 90, r.ds_command(name, log, steps=len(expected)), r.ds_environment(environment), judge)


def head_of(stderr):
    """ds-run's line on the device and its libraries."""
    return next((line for line in stderr.splitlines() if "device memory" in line), "")


def look_closer(r, label, name, environment):
    """After one of the first failures: each command waited for, so that the message names it; then under compute-sanitizer."""
    looked = [found[:-len(", memcheck")] for found in r.results.records if found.endswith(", memcheck")]
    if label not in looked and len(looked) >= CLOSER:
        return
    if environment.get("DS_CUDA_CHECK") != "1" and environment.get("DS_POISON") != "1":
        r.step(f"{label}, each command waited for", again(name, {**environment, "DS_CUDA_CHECK": "1"}, ()), 75)
    r.step(f"{label}, memcheck", again(name, environment, sanitizer_of("memcheck")), 120)


def sanitizer_of(kind):
    return ["compute-sanitizer", "--tool", kind, "--error-exitcode", "99", "--print-limit", "20"]


def again(name, environment, wrapper):
    """A step: two steps of a model, to hear more of a failure. What it finds is no failure of its own."""
    def work(r):
        if wrapper and not shutil.which(wrapper[0]):
            return r.outcome("skipped", f"{wrapper[0]} is not here")
        ended, _ = r.ds_run(name, environment, steps=3, wrapper=wrapper)
        said = f"--- stdout\n{ended.out}--- stderr\n{ended.err}"
        r.results.failure(f"looking closer at {name}: {' '.join(wrapper)} {environment}", said)
        summary = [line for line in (ended.out + ended.err).splitlines() if "ERROR SUMMARY" in line]
        return r.outcome("ok", "it says: " + (summary[-1].strip() if summary else ended.describe()))
    return work


def climb(r):
    """[(rung, {model: state}, whether it is kept)] and the environment of the highest rung; makes what is not made yet. A rung
    that no packed model would notice is kept, for users have it on."""
    environment, having, rungs = dict(OFF), [], []
    r.together([torch_losses(r, name) for name in examples(r)])
    for rung, change, notices, stays in RUNGS:
        trial, states = switched(environment, change), {}
        names = [name for name in examples(r) if notices is None or notices(name)]
        for some in (names[:ENOUGH], names[ENOUGH:]):
            for job, record in zip(some, r.together([train(r, name, trial, rung) for name in some])):
                states[job] = record["state"]
            for name in [name for name in some if states[name] == "failed"]:
                look_closer(r, f"ladder {rung} {name}", name, trial)
            if "ok" not in states.values():
                break
        good = {name for name, state in states.items() if state == "ok"}
        holds = not states or bool(good) and not any(name in states and name not in good for name in having)
        rungs.append((rung, states, holds))
        if holds and stays:
            environment, having = trial, set(having) | good
    return environment, rungs


def ladder(r):
    """All rungs, and a line on what is on from here."""
    environment, rungs = climb(r)
    tried = [(rung, holds) for rung, states, holds in rungs if states]
    held = [rung for rung, holds in tried if holds]
    state = "skipped" if not tried else "ok" if len(held) == len(tried) else "failed"
    r.step("ladder", lambda _: r.outcome(state, f"{len(held)} of {len(tried)} rungs hold: {', '.join(held) or 'none'}",
                                         environment=environment), 10)


def highest(r):
    """The environment that everything after the ladder runs with: of the rungs that were climbed. Without any, as users run."""
    found = r.results.records.get("ladder")
    environment = found["data"]["environment"] if found and examples(r) else {}
    return {**environment, "DS_POISON": "0"}
