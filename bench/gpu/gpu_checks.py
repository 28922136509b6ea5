"""gpu_checks.py - what must hold of a run with all that works switched on: the same bits again, memory as planned, traces."""

import collections
import json
import math
import re
import shutil
import sys

import gpu_models
from gpu_ladder import LIMITS, examples, head_of, highest, losses_of, look_closer, relative, sanitizer_of
from trace_table import read_events, steps_of

REPEATED = ("mlp", "gpt-bf16", "llama-bf16", "vit-bf16", "speech", "gpt-fast-attention")
FAST_BITS = 1e-3  # relative, of losses in bf16 over ten steps
TWO = ("mlp", "llama-bf16")  # fp32 and 16 bits
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MEMORY = re.compile(r"device memory ([\d.]+) (\w+) in arenas of ([\d.]+) (\w+) planned, ([\d.]+) (\w+) beyond them")
OFF_BY = 0.02  # of all device memory


def chosen(r, wanted):
    """Those of `wanted` that were packed, else the first small model."""
    here = examples(r)
    return [name for name in wanted if name in here] or here[:1]


def repeats(name):
    """A step: losses and saved weights of two runs, every bit; losses to rounding where attention is fast."""
    def work(r):
        found = []
        for turn in (1, 2):
            weights = r.temporary(f"weights{turn}.safetensors")
            ended, records = r.ds_run(name, highest(r), extra=["--save-weights", weights], steps=10)
            if not ended.ok:
                return r.failed(f"repeats {name}", ended)
            with open(weights, "rb") as file:
                found.append((losses_of(records), file.read()))
        if gpu_models.is_fast(name):
            same = relative(found[0][0], found[1][0]) <= FAST_BITS
            return r.outcome("ok" if same else "failed", "losses of two runs with fast attention"
                             + (" agree" if same else f" differ by more than {FAST_BITS}")
                             + (", to the bit" if found[0] == found[1] else ""))
        return r.outcome("ok" if found[0] == found[1] else "failed", "losses and weights of two runs"
                         + ("" if found[0] == found[1] else " differ: " + ("losses" if found[0][0] != found[1][0] else "weights")))
    return work


def memory_of(stderr):
    """Bytes in arenas, planned, and beyond them, as ds-run's log says; None if it does not."""
    found = MEMORY.search(stderr)
    if not found:
        return None
    words = found.groups()
    return [float(words[i]) * UNITS[words[i + 1]] for i in (0, 2, 4)]


def planned_total(path):
    """Device bytes of the first rank's plan, with those beyond its arenas."""
    with open(path) as file:
        rank = json.load(file)["ranks"][0]
    return rank["arenas"]["device"] + sum(line["bytes"] for line in rank["memory"]
                                          if line["where"] == "device" and line["beyond_arenas"])


def judge_memory(r, name, stderr):
    """(holds, text, figures) of what a run of `name` took: the planned arenas, and no more beyond them than the plan leaves."""
    used = memory_of(stderr)
    if used is None:
        return False, "the log has no line on memory", {}
    planned = planned_total(r.path(f"{name}.plan.json"))
    off = (used[0] + used[2]) / planned - 1
    figures = {"arenas": used[0], "planned": used[1], "beyond": used[2], "planned_total": planned}
    return (used[0] == used[1] and off <= OFF_BY,
            f"arenas {used[0]:.4g} B of {used[1]:.4g}, {used[2]:.4g} beyond, {100 * off:+.1f} % off the plan's total, "
            f"limit {100 * OFF_BY:.0f} %", figures)


def memory(name):
    """A step: the arenas are the plan's, and all memory at most 2 % above it."""
    def work(r):
        ended, _ = r.ds_run(name, highest(r), steps=3)
        if not ended.ok:
            return r.failed(f"memory {name}", ended)
        holds, text, figures = judge_memory(r, name, ended.err)
        return r.outcome("ok" if holds else "failed", text, **figures)
    return work


def read_slices(path):
    """Commands of a trace in the order in which they began; how many of its steps have any."""
    steps = steps_of(read_events(path))
    return [event for step in steps for event in step], len(steps)


def trace(name):
    """A step: commands in a trace by CUPTI are those in one by events, each with a time, but for kernels that a product does the work
    of: these start nothing. Sums are told and not judged: of commands that take microseconds an event behind each, or a record of each,
    is most, and either sum may be several times the other."""
    def work(r):
        found = []
        for label, switch in (("CUPTI", None), ("events", "0")):
            path = r.temporary("small.trace.json")
            environment = {key: value for key, value in {**highest(r), "DS_CUPTI": switch}.items() if value is not None}
            ended, _ = r.ds_run(name, environment, extra=["--trace", path], steps=3)
            if not ended.ok:
                return r.failed(f"trace {name} by {label}", ended)
            events, _ = read_slices(path)
            found.append((collections.Counter(event["name"] for event in events), [event["dur"] for event in events]))
        (names, times), (others, more) = found
        left_out = others - names
        good = (bool(times) and not names - others and all(name.split()[0] == "reduce" for name in left_out)
                and min(times + more) > 0)
        microseconds, more = sum(times), sum(more)
        return r.outcome("ok" if good else "failed", f"{names.total()} commands take {microseconds:.0f} us by CUPTI, "
                         f"{others.total()} take {more:.0f} us by events", microseconds=[microseconds, more])
    return work


def engines(name):
    """A step: a model's losses and gradient norms by cuDNN are those by the runtime's own kernels."""
    def work(r):
        found = []
        for switch in ({}, {"DS_CUDNN": "0"}):
            ended, records = r.ds_run(name, {**highest(r), **switch}, steps=3)
            if not ended.ok:
                return r.failed(f"engines {name}", ended)
            found.append((ended.err, losses_of(records), [record.get("grad_norm", math.nan) for record in records]))
        (said, *ours), (_, *others) = found
        far = [relative(*pair) for pair in zip(ours, others)]
        good = max(far) <= LIMITS[True]["the CPU"]
        if not good:
            r.results.failure(f"engines {name}", f"losses, norms: {ours}, without cuDNN {others}\n--- stderr\n{said}")
        return r.outcome("ok" if good else "failed", f"losses {far[0]:.1e} and norms {far[1]:.1e} from those without cuDNN", far=far, head=head_of(said))
    return work


def on_several(name):
    """A step: a model on several GPUs, where they are there."""
    def work(r):
        ranks = gpu_models.MODELS[name]["ranks"]
        gpus = count_gpus(r)
        if gpus < ranks:
            return r.outcome("skipped", f"needs {ranks} GPUs, there {'is' if gpus == 1 else 'are'} {gpus}")
        with open(r.path(f"{name}.cpu.json")) as file:
            expected = json.load(file)["losses"]
        ended, records = r.ds_run(name, highest(r), steps=len(expected))
        if not ended.ok:
            return r.failed(name, ended)
        limit, worst = 2e-2 if gpu_models.MODELS[name].get("bf16") else 1e-4, relative(losses_of(records), expected)
        return r.outcome("ok" if worst <= limit else "failed", f"{worst:.1e} from the CPU's losses, limit {limit:g}", far=worst)
    return work


def count_gpus(r):
    """As the driver counts them."""
    ended = r.child([sys.executable, r.path("gpu_facts.py"), "gpu"])
    return json.loads(ended.out)["count"] if ended.ok else 1


def checks(r):
    for name in chosen(r, REPEATED):
        if r.step(f"repeats {name}", repeats(name), 120)["state"] == "failed":
            look_closer(r, f"repeats {name}", name, highest(r))
    for name in chosen(r, TWO):
        r.step(f"memory {name}", memory(name), 120)
    for name in chosen(r, TWO[1:]):
        r.step(f"trace {name}", trace(name), 120)
    for name in [n for n in r.models if "checked" in gpu_models.MODELS[n]]:
        r.step(f"engines {name}", engines(name), 120)
    for name in [n for n in r.models if "ranks" in gpu_models.MODELS[n]]:
        r.step(f"several GPUs {name}", on_several(name), 120)


def sanitized(name, kind):
    """A step: compute-sanitizer finds nothing in a run that works."""
    def work(r):
        if not shutil.which("compute-sanitizer"):
            return r.outcome("skipped", "compute-sanitizer is not here")
        ended, _ = r.ds_run(name, highest(r), steps=2, wrapper=sanitizer_of(kind))
        if ended.why == "time":
            return r.outcome("skipped", ended.describe())
        if not ended.ok:
            r.results.failure(f"{kind} {name}", f"--- stdout\n{ended.out}--- stderr\n{ended.err}")
        lines = [line for line in (ended.out + ended.err).splitlines() if "ERROR SUMMARY" in line]
        return r.outcome("ok" if ended.ok else "failed", lines[-1].strip() if lines else ended.describe())
    return work


def sanitizer(r):
    for name in chosen(r, TWO):
        for kind in ("memcheck", "racecheck"):
            r.step(f"{kind} {name}", sanitized(name, kind), 120)
