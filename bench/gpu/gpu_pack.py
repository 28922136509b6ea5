"""gpu_pack.py - gather what a GPU machine needs for a round: tools, programs, data, what the CPU computed.

The machine has CUDA, PyTorch and a C++ runtime of its own, but no compiler of ours and no network.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

import gpu_models

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD_DIR", os.path.join(ROOT, "build"))
PYTHON = "/usr/bin/python3"
LIMIT = 64 << 20
STEPS = 20
ROUND = ("gpu_checks.py", "gpu_child.py", "gpu_facts.py", "gpu_ladder.py", "gpu_models.py", "gpu_results.py", "gpu_round.py",
         "gpu_speed.py", "gpu_summary.py", "gpu_torch.py", "trace_table.py")
EXAMPLES = ("export.py", "gpt.py", "llama.py", "mlp.py", "safetensors_io.py", "speech.py", "vit.py")
SYSTEM = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.", "libpthread.", "librt.", "libstdc++", "libgcc_s")


def tool(name):
    return os.path.join(BUILD, "bin", name)


def libraries(binary):
    """Shared objects that `binary` needs and that every system does not have."""
    found = []
    for line in subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        if "=>" in words and not words[0].startswith(SYSTEM):
            if words[2] == "not":
                sys.exit(f"gpu-test: {binary} needs {words[0]}, which is not here")
            found.append(words[2])
    return found


def copy_tools(folder):
    """The runtime, and this very round."""
    for name in ("bin", "lib"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    # Ranks find one another over Gloo before NCCL does.
    plugins = [os.path.join(BUILD, "lib", f"libds-{name}.so") for name in ("cuda", "gloo")]
    for plugin in plugins:
        if not os.path.exists(plugin):
            sys.exit(f"gpu-test: this build has no {os.path.basename(plugin)}: build where "
                     "CUDA 13's headers and Gloo are")
    for source in (tool("ds-run"), *plugins):
        target = os.path.join(folder, "bin" if source.endswith("ds-run") else "lib", os.path.basename(source))
        shutil.copy2(source, target)
        subprocess.run(["strip", target], check=True)
        for library in libraries(source):
            shutil.copy2(library, os.path.join(folder, "lib"))
    here = os.path.dirname(os.path.abspath(__file__))
    for name in ROUND:
        shutil.copy2(os.path.join(here, name), folder)
    for name in EXAMPLES:
        shutil.copy2(os.path.join(ROOT, "examples", name), folder)
    shutil.copy2(os.path.join(ROOT, "script", "gpu-test"), folder)


def compile_model(arguments, target, program, cluster=None):
    """ds-opt; None, or why it refused. A program for GPUs is planned for those of `cluster`: without one predictions would use
    rates of the machine at hand."""
    base = program.removesuffix(".dsx")
    plan = ["--plan-json", f"{base}.plan.json", "--trace", f"{base}.trace.json", "--cluster", cluster] if target != "cpu" else []
    result = subprocess.run([tool("ds-opt"), *arguments, "--target", target, "--emit=program", "-o", program, *plan],
                            capture_output=True, text=True)
    if result.returncode != 0:
        return (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[0]
    if plan:
        keep_planned(f"{base}.trace.json", f"{base}.planned.json")
    return None


def keep_planned(trace, path):
    """Of a planned trace the commands of a step: [name, predicted seconds]."""
    with open(trace) as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    with open(path, "w") as file:
        json.dump([[event["name"], event["dur"] * 1e-6] for event in events if event.get("ph") == "X"], file)
    os.remove(trace)


def pack_example(name, model, target, cluster, folder, work):
    """An example: its program for the GPU, its weights and data, and the losses of the CPU."""
    export = subprocess.run([PYTHON, "-W", "ignore", os.path.join(ROOT, "examples", "export.py"), *model["example"],
                             "--out", work], check=True, capture_output=True, text=True).stdout.split("\n")
    archive, inputs = export[0], export[1].split()
    data = archive.replace(".pt", ".data.safetensors")
    config = os.path.join(work, "ds_config.json")
    with open(config, "w") as file:
        json.dump(model["config"], file)
    ranks = ["--ranks", str(model["ranks"])] if "ranks" in model else []
    arguments = [archive, "--config", config, *inputs, *ranks]
    cpu, log = os.path.join(work, "cpu.dsx"), os.path.join(work, "log.jsonl")
    refused = compile_model(arguments, "cpu", cpu) or compile_model(arguments, target, f"{folder}/{name}.dsx", cluster)
    if refused:
        return refused
    shutil.copy2(data, os.path.join(folder, f"{name}.data.safetensors"))
    nvme = ["--nvme", work] if gpu_models.keeps_on_nvme(name) else []
    subprocess.run([tool("ds-run"), cpu, *ranks, *nvme, "--data", data, "--steps", str(STEPS), "--log-jsonl", log],
                   check=True, capture_output=True)
    with open(log) as file:
        losses = [json.loads(line)["loss"] for line in file]
    with open(os.path.join(folder, f"{name}.cpu.json"), "w") as file:
        json.dump({"losses": losses}, file)
    return None


def pack_hf(name, model, target, cluster, folder, work):
    """A model from a config.json: its program alone."""
    paths = {}
    for key in ("hf", "config"):
        paths[key] = os.path.join(work, "config.json" if key == "hf" else "ds_config.json")
        with open(paths[key], "w") as file:
            json.dump(model[key], file)
    return compile_model([paths["hf"], "--config", paths["config"]], target, f"{folder}/{name}.dsx", cluster)


def digest(folder):
    """What a pack is known by: of all its files' names and bytes."""
    sums = hashlib.sha256()
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            with open(os.path.join(path, name), "rb") as file:
                sums.update(os.path.relpath(file.name, folder).encode() + b"\0" + file.read())
    return sums.hexdigest()[:12]


def folder_bytes(folder):
    return sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names)


def archive(folder):
    """The folder as one compressed file beside it; its path. It unpacks to the folder's name."""
    return shutil.make_archive(folder, "gztar", os.path.dirname(folder), os.path.basename(folder))


def pack(folder, target, cluster, names, compressed):
    """Fills `folder` with the models that `names` lists, or all, and makes one file of it if `compressed`; returns the exit code."""
    names = names.split(",") if names != "all" else [
        name for name, model in gpu_models.MODELS.items() if not model.get("rehearsal") and not model.get("more_than_80g")]
    unknown = [name for name in names if name not in gpu_models.MODELS]
    if unknown:
        sys.exit(f"gpu-test: unknown models: {', '.join(unknown)}")
    shutil.rmtree(folder, ignore_errors=True)
    copy_tools(folder)
    packed, refused, seconds = [], {}, {}
    for name in names:
        model = gpu_models.MODELS[name]
        work = os.path.join(BUILD, "gpu-pack", name)
        os.makedirs(work, exist_ok=True)
        started = time.perf_counter()
        reason = (pack_example if "example" in model else pack_hf)(name, model, target, cluster, folder, work)
        if "hf" in model:
            seconds[name] = time.perf_counter() - started
        if reason:
            refused[name] = reason
            print(f"gpu-test: {name} is left out: {reason}", file=sys.stderr)
        else:
            packed.append(name)
    with open(os.path.join(folder, "models.json"), "w") as file:
        json.dump({"packed": packed, "refused": refused, "target": target, "cluster": cluster, "compile_seconds": seconds,
                   "pack": digest(folder)}, file, indent=1)
    size = folder_bytes(folder)
    print(f"{folder}: {size / (1 << 20):.1f} MiB of {LIMIT >> 20}, models: {', '.join(packed) or 'none'}")
    if compressed:
        path = archive(folder)
        print(f"{path}: {os.path.getsize(path) / (1 << 20):.1f} MiB")
    return 1 if refused or size > LIMIT else 0
