"""gpu_round.py - what a GPU machine does with a folder that gpu-test has packed.

Every check is a line on stdout and an entry of the summary, the last line. A check that cannot be made because a tool
is missing is skipped and says so; anything else that does not hold is a failure.
"""

import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

import gpu_models
from gpu_ways import attention, gelu, relative, tokens

NO_GPU = 9
TIMEOUT = 240  # seconds of one run of anything


class Round:
    def __init__(self, folder, out, steps):
        self.folder, self.out, self.steps = folder, out, steps
        self.summary = {"checks": [], "figures": {}}
        os.makedirs(out, exist_ok=True)
        with open(os.path.join(folder, "models.json")) as file:
            packed = json.load(file)
        self.models, self.compile_seconds = packed["packed"], packed["compile_seconds"]

    def check(self, name, ok, text):
        """Notes a check: True, False, or None for one that was skipped."""
        word = {True: "ok", False: "FAILED", None: "skipped"}[ok]
        print(f"{word:8}{name}: {text}", flush=True)
        self.summary["checks"].append({"name": name, "result": word, "text": text})
        return ok

    def figure(self, name, value):
        self.summary["figures"][name] = value

    def path(self, name):
        return os.path.join(self.folder, name)

    def skip_beyond(self, devices, memory):
        """Skips the models that want more GPUs than there are, or more bytes than each of them has."""
        for name in list(self.models):
            ranks = gpu_models.MODELS[name].get("ranks", 1)
            wanted = planned_total(self.path(f"{name}.plan.json"))
            if ranks > devices:
                self.check(name, None, f"needs {ranks} GPUs, there {'is' if devices == 1 else 'are'} {devices}")
            elif wanted > memory:
                self.check(name, None, f"needs {wanted / (1 << 30):.1f} GiB, the GPU has {memory / (1 << 30):.1f}")
            else:
                continue
            self.models.remove(name)

    def ds_run(self, name, log, extra=(), data=None, steps=20, wrapper=(), environment=None):
        """Runs a packed program on the GPU; returns the finished process."""
        libraries = os.pathsep.join([self.path("lib"), *cuda_folders(), os.environ.get("LD_LIBRARY_PATH", "")])
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "DS_CACHE_DIR": os.path.join(self.out, "cache"),
                       **(environment or {})}
        command = [*wrapper, self.path("bin/ds-run"), self.path(f"{name}.dsx"), "--device", "cuda", "--data",
                   data or self.path(f"{name}.data.safetensors"), "--steps", str(steps), "--log-jsonl", log, *extra]
        if "ranks" in gpu_models.MODELS.get(name, {}):
            command += ["--ranks", str(gpu_models.MODELS[name]["ranks"])]
        try:
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired as error:
            return subprocess.CompletedProcess(command, 124, "", f"no end after {TIMEOUT} s: {error}")

    def trained(self, name, label, log, **options):
        """As ds_run; the log's records, or None and a failed check."""
        result = self.ds_run(name, log, **options)
        with open(os.path.join(self.out, f"{label}.stderr"), "w") as file:
            file.write(result.stderr)
        if result.returncode != 0:
            tail = " | ".join(result.stderr.strip().splitlines()[-3:])
            self.check(label, False, f"exit code {result.returncode}: {tail}")
            return None, result
        with open(log) as file:
            return [json.loads(line) for line in file], result


def cuda_folders():
    """Where NVIDIA's libraries may lie: the toolkit, and the wheels that PyTorch brings."""
    folders = [path for path in ("/usr/local/cuda/lib64", "/usr/local/cuda/lib") if os.path.isdir(path)]
    try:
        import importlib.util
        spec = importlib.util.find_spec("nvidia")
        for base in spec.submodule_search_locations if spec else []:
            folders += [path for path, _, names in os.walk(base) if any(".so" in name for name in names)]
    except (ImportError, AttributeError):
        pass
    return folders


def first_line(command):
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return (result.stdout.strip() or result.stderr.strip()).splitlines()[0] if result.returncode == 0 else None
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return None


def device(r):
    """What machine this is; whether ds-run finds a GPU at all."""
    r.figure("gpu", first_line(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]))
    r.figure("torch", first_line([sys.executable, "-c", "import torch; print(torch.__version__)"]))
    name = r.models[0] if r.models else "none"
    result = r.ds_run(name, os.path.join(r.out, "probe.jsonl"), steps=1)
    if result.returncode == NO_GPU and "no CUDA device" in result.stderr:
        message = [line for line in result.stderr.splitlines() if "no CUDA device" in line]
        r.check("device", False, message[0])
        return False
    r.check("device", True, str(r.summary["figures"]["gpu"]))
    r.skip_beyond(count_gpus(), gpu_bytes())
    return True


def count_gpus():
    """As nvidia-smi lists them; at least 1, for ds-run has found one."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        listed = ""
    return max(1, listed.count("GPU "))


def gpu_bytes():
    """Memory of the first GPU; without nvidia-smi as much as anybody wants."""
    line = first_line(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"])
    return int(line) << 20 if line and line.isdigit() else float("inf")


def numbers(r):
    """Losses against the CPU's, and every bit of two runs."""
    for name in [n for n in r.models if "example" in gpu_models.MODELS[n]]:
        with open(r.path(f"{name}.cpu.json")) as file:
            expected = json.load(file)["losses"]
        logs, saved = [], []
        for turn in (1, 2):
            weights = os.path.join(r.out, f"{name}.{turn}.safetensors")
            records, _ = r.trained(name, f"{name} run {turn}", os.path.join(r.out, f"{name}.{turn}.jsonl"),
                                   extra=["--save-weights", weights], steps=len(expected))
            if records is None:
                break
            logs.append([record["loss"] for record in records])
            with open(weights, "rb") as file:
                saved.append(file.read())
        if len(logs) < 2:
            continue
        limit = 2e-2 if gpu_models.MODELS[name].get("bf16") else 1e-4
        worst = relative(logs[0], expected)
        r.figure(f"{name} against the CPU", worst)
        r.check(f"{name} losses", worst <= limit, f"{worst:.2e} from the CPU's over {len(expected)} steps, limit {limit:g}")
        r.check(f"{name} repeats", logs[0] == logs[1] and saved[0] == saved[1], "losses and weights of two runs")


def poison(r):
    """The same losses when all memory outside planned lifetimes is NaN."""
    for name in [n for n in r.models if "example" in gpu_models.MODELS[n]]:
        runs = [r.trained(name, f"{name} poison {way}", os.path.join(r.out, f"{name}.poison.jsonl"), steps=3,
                          environment={"DS_POISON": way})[0] for way in ("0", "1")]
        if None not in runs:
            plain, poisoned = ([record["loss"] for record in records] for records in runs)
            r.check(f"{name} poison", plain == poisoned, "losses with memory outside lifetimes full of NaNs, and without")


def trace(r):
    """Commands in a trace by CUPTI are those in one by events, and take no longer in sum."""
    name = next((n for n in r.models if "example" in gpu_models.MODELS[n]), None)
    if name is None:
        return
    found = []
    for label, choice in (("cupti", None), ("events", "0")):
        path = os.path.join(r.out, f"{name}.{label}.trace.json")
        records, _ = r.trained(name, f"{name} trace {label}", os.path.join(r.out, "trace.jsonl"), steps=3,
                               extra=["--trace", path], environment={"DS_CUPTI": choice} if choice else {})
        if records is None:
            return
        with open(path) as file:
            events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
        found.append((sorted(event["name"] for event in events), sum(event["dur"] for event in events)))
    (names, microseconds), (others, more) = found
    r.figure(f"{name} traced microseconds by CUPTI and by events", [microseconds, more])
    r.check(f"{name} trace", not collections.Counter(names) - collections.Counter(others) and 0 < microseconds <= more,
            f"{len(names)} commands take {microseconds:.0f} us by CUPTI, {len(others)} take {more:.0f} us by events")


def torch(r):
    """Losses against PyTorch's on this GPU, from the same weights and data."""
    for name in [n for n in r.models if "torch" in gpu_models.MODELS[n]]:
        model = gpu_models.MODELS[name]
        weights = os.path.join(r.out, f"{name}.start.safetensors")
        records, _ = r.trained(name, f"{name} start", os.path.join(r.out, "start.jsonl"), steps=0,
                               extra=["--save-weights", weights])
        ours, _ = r.trained(name, f"{name} for torch", os.path.join(r.out, f"{name}.ours.jsonl"), steps=20)
        if records is None or ours is None:
            continue
        result = torch_run("losses", {"weights": weights, "data": r.path(f"{name}.data.safetensors"), "steps": 20,
                                      "bf16": bool(model.get("bf16")), "config": model["config"], **model["torch"]})
        if isinstance(result, str):
            r.check(f"{name} against PyTorch", None, result)
            continue
        worst = relative([record["loss"] for record in ours], result["losses"])
        limit = 2e-2 if model.get("bf16") else 1e-3
        r.check(f"{name} against PyTorch", worst <= limit, f"{worst:.2e} over 20 steps, limit {limit:g}")


def torch_run(what, settings):
    """What gpu_torch.py measures, or why it could not."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu_torch.py")
    try:
        result = subprocess.run([sys.executable, script, what, json.dumps(settings)], capture_output=True, text=True,
                                timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"PyTorch took more than {TIMEOUT} s"
    if result.returncode != 0:
        return "PyTorch: " + (result.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(result.stdout.splitlines()[-1])


UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MEMORY = re.compile(r"device memory ([\d.]+) (\w+) in arenas of ([\d.]+) (\w+) planned, ([\d.]+) (\w+) beyond them")


def memory_of(stderr):
    """Bytes in arenas, planned, and beyond them, as ds-run's log says."""
    found = MEMORY.search(stderr)
    if not found:
        return None
    words = found.groups()
    return [float(words[i]) * UNITS[words[i + 1]] for i in (0, 2, 4)]


def memory(r):
    for name in r.models:
        path = os.path.join(r.out, f"{name} memory.stderr")
        data = tokens(r, name)
        records, result = r.trained(name, f"{name} memory", os.path.join(r.out, "memory.jsonl"), steps=3, data=data,
                                    extra=["--token-dtype", "u16"] if data else [])
        if records is None:
            continue
        used = memory_of(result.stderr)
        if used is None:
            r.check(f"{name} memory", False, f"no memory line in {path}")
            continue
        r.figure(f"{name} bytes", {"arenas": used[0], "planned": used[1], "beyond": used[2]})
        r.check(f"{name} memory", used[0] == used[1], f"arenas {used[0]:.4g} B of {used[1]:.4g}, beyond {used[2]:.4g}")
        planned = planned_total(r.path(f"{name}.plan.json"))
        off = abs(used[0] + used[2] - planned) / planned
        r.check(f"{name} total memory", off <= 0.02, f"{used[0] + used[2]:.4g} B, {100 * off:.1f} % off the plan's "
                f"{planned:.4g}, limit 2 %")


def planned_total(path):
    """Device bytes of the first rank's plan, with those beyond its arenas."""
    with open(path) as file:
        rank = json.load(file)["ranks"][0]
    return rank["arenas"]["device"] + sum(line["bytes"] for line in rank["memory"] if line["where"] == "device")


def sanitizer(r):
    """compute-sanitizer on the small examples."""
    if not shutil.which("compute-sanitizer"):
        r.check("sanitizer", None, "compute-sanitizer is not here")
        return
    for name in [n for n in r.models if "example" in gpu_models.MODELS[n]]:
        for kind in ("memcheck", "racecheck"):
            wrapper = ["compute-sanitizer", "--tool", kind, "--error-exitcode", "99"]
            result = r.ds_run(name, os.path.join(r.out, "sanitizer.jsonl"), steps=2, wrapper=wrapper)
            lines = [line for line in (result.stdout + result.stderr).splitlines() if "ERROR SUMMARY" in line]
            r.check(f"{name} {kind}", result.returncode == 0, lines[-1] if lines else f"exit code {result.returncode}")


def speed(r):
    for name in [n for n in r.models if "hf" in gpu_models.MODELS[n]]:
        model = gpu_models.MODELS[name]
        started = time.perf_counter()
        records, _ = r.trained(name, f"{name} speed", os.path.join(r.out, f"{name}.jsonl"), steps=r.steps + 5,
                               data=tokens(r, name), extra=["--token-dtype", "u16"])
        if records is None:
            continue
        seconds = statistics.median(record["step_seconds"] for record in records[5:])
        ours = model["batch"] * model["length"] / seconds
        figures = {"compile_seconds": r.compile_seconds[name], "tokens_per_second": ours, "step_seconds": seconds, "wall_seconds": time.perf_counter() - started,
                   "tflops": ours * gpu_models.flops_per_token(model) * 1e-12,
                   "peak_bytes": records[-1].get("peak_bytes", {}).get("device")}
        if model.get("compared"):
            compare_speed(r, name, figures)
        r.figure(name, figures)


def compare_speed(r, name, figures):
    """Adds to `figures` what PyTorch takes, eager and compiled, and holds ours to it."""
    model, ours = gpu_models.MODELS[name], figures["tokens_per_second"]
    for way, limit in (("eager", 1.5), ("compile", 1.0)):
        settings = {key: model[key] for key in ("batch", "length", "layers", "heads", "width", "vocab")}
        other = figures[way] = torch_run("speed", {**settings, "steps": r.steps, "compile": way == "compile"})
        if isinstance(other, str):
            r.check(f"{name} against {way}", None, other)
            continue
        ratio = ours / other["tokens_per_second"]
        r.check(f"{name} against {way}", ratio >= limit,
                f"{ours:.0f} tokens/s, {ratio:.2f} x PyTorch's {other['tokens_per_second']:.0f}, aim {limit}")
    if isinstance(figures["eager"], dict):
        share = figures["peak_bytes"] / figures["eager"]["peak_bytes"]
        r.check(f"{name} peak memory", share <= 0.8, f"{share:.2f} x PyTorch's, aim 0.8")


def run(folder, out, parts, steps):
    """Runs the parts; returns the exit code."""
    if not os.path.exists(os.path.join(folder, "models.json")):
        sys.exit(f"gpu-test: {folder} was not made by gpu-test --pack")
    r = Round(folder, out, steps)
    found = device(r)
    for part in [numbers, attention, gelu, poison, trace, torch, memory, sanitizer, speed] if found else []:
        if part.__name__ not in parts:
            continue
        try:
            part(r)
        except Exception as error:  # one part's mistake must not cost the others their turn on the machine
            r.check(part.__name__, False, f"{type(error).__name__}: {error}")
    failed = sum(check["result"] == "FAILED" for check in r.summary["checks"])
    r.summary["failed"] = failed
    with open(os.path.join(out, "summary.json"), "w") as file:
        json.dump(r.summary, file, indent=1)
    print(json.dumps(r.summary))
    return NO_GPU if not found else 1 if failed else 0
