#!/usr/bin/python3
"""step.py - measure a training step of ds-run against PyTorch eager, side by side on this machine.

    bench/step.py                     both models, writes build/bench/step.json and step.md
    bench/step.py gpt6 --rounds 5     one model, more rounds
    bench/step.py words --loss-chunks 1   a model that is mostly vocabulary, its logits stored whole
    bench/step.py --tune              programs with the forms of products that ds-run --tune finds fastest here
    bench/step.py gpt6 --dtype bf16   16-bit parameters and products, against PyTorch under torch.autocast

Each round runs ds-run and then PyTorch in its variants as fresh processes on the same tokens, drops the first steps of
each, and keeps the median of the rest; the best round of each counts.  PyTorch is taken at its best: OpenBLAS in its
OpenMP flavour (anything else is refused) with its fastest kernels for this processor (openblas.py), AdamW with and without foreach, glibc's allocator as it is and told to keep
what it has; its fastest variant is the step time's reference and its smallest one the memory's.  CPU time that other
processes took meanwhile is reported with each figure, for a busy machine measures nothing.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import openblas

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TORCH = openblas.TORCH
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184",
               "MALLOC_TOP_PAD_": "67108864"}
MODELS = {
    "gpt6": {"title": "GPT 6 x 384, vocabulary 50304, T=256, B=4", "size": "bench", "length": 256, "batch": 4,
             "layers": 6, "width": 384, "vocab": 50304, "time_limit": 0.8, "memory_limit": 0.6, "bf16_limit": 0.6},
    "words": {"title": "GPT 6 x 256, vocabulary 50257, T=256, B=8", "size": "words", "length": 256, "batch": 8,
              "layers": 6, "width": 256, "vocab": 50257, "time_limit": 0.8, "memory_limit": 0.6, "bf16_limit": 0.6},
    "gpt2": {"title": "GPT-2 124M, T=256, B=2", "size": "gpt2", "length": 256, "batch": 2,
             "layers": 12, "width": 768, "vocab": 50257, "time_limit": 0.8, "memory_limit": 0.75, "bf16_limit": 0.6},
}
DEFAULT = ["gpt6", "gpt2"]


def busy_seconds():
    """CPU seconds that all processes of the machine have used so far."""
    with open("/proc/stat") as file:
        fields = [int(text) for text in file.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def run(command, environment=None, **options):
    """Runs to the end; returns stdout, wall seconds, peak resident bytes, and the CPU share others took meanwhile."""
    before, started = busy_seconds(), time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})}, **options)
    output = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"step.py: exit code {child.returncode} of {' '.join(command)}")
    others = max(0.0, busy_seconds() - before - usage.ru_utime - usage.ru_stime) / (wall * os.cpu_count())
    return {"output": output, "wall": wall, "peak": usage.ru_maxrss * 1024, "others": others}


def flops_per_step(model):
    """Of the matrix products: 2 a parameter and token forward, twice that backward, and the two of attention."""
    tokens = model["length"] * model["batch"]
    weights = 12 * model["layers"] * model["width"] ** 2 + model["vocab"] * model["width"]
    attention = 2 * model["layers"] * model["length"] * model["width"]
    return 3 * 2 * tokens * (weights + attention)


def bf16_instructions():
    """What this processor multiplies bf16 with; the limit for bf16 is meant for AMX."""
    with open("/proc/cpuinfo") as file:
        flags = set(next(line for line in file if line.startswith("flags")).split())
    return "AMX" if "amx_bf16" in flags else "AVX512-BF16" if "avx512_bf16" in flags else "none"


def sgemm_rate(out):
    """GFLOP/s of oneDNN's own fp32 products, two threads."""
    binary = os.path.join(out, "sgemm")
    subprocess.run(["c++", "-O2", "-std=c++17", os.path.join(ROOT, "bench", "sgemm.cpp"), "-o", binary, "-ldnnl"],
                   check=True)
    return max(float(run([binary], stderr=subprocess.DEVNULL)["output"]) for _ in range(3))


def prepare(model, args, out):
    """The archive, the tokens and the configuration; returns their paths."""
    export = [TORCH, "-W", "ignore", os.path.join(ROOT, "examples", "export.py"), "gpt", "--out", out, "--size",
              model["size"], "--length", str(model["length"]), "--batch", str(model["batch"])]
    run(export)
    tokens = os.path.join(out, "tokens.bin")
    script = (f"import numpy as n; n.random.default_rng(0).integers(0, {model['vocab']}, 400001)"
              f".astype('<u2').tofile({tokens!r})")
    run([TORCH, "-c", script])
    config = os.path.join(out, "ds_config.json")
    with open(config, "w") as file:
        json.dump({"train_micro_batch_size_per_gpu": model["batch"], "gradient_clipping": args.clip,
                   "bf16": {"enabled": args.dtype == "bf16"}, "loss_chunks": args.loss_chunks,
                   "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.1}}}, file)
    return {"archive": os.path.join(out, "gpt.pt"), "tokens": tokens, "config": config,
            "program": os.path.join(out, "gpt.dsx"), "log": os.path.join(out, "log.jsonl")}


def compile_program(model, files, more=()):
    """Seconds of ds-opt, from the archive to the program and its weights."""
    shape = f"{model['batch']}x{model['length']}xi64"
    command = ["ds-opt", files["archive"], "--config", files["config"], "--input", f"x={shape}", "--input",
               f"y={shape}", "--emit=program", "-o", files["program"], *more]
    return run(command)


def tune(model, files):
    """Compiles once more, with the fastest form of each product of the program that is there."""
    found = files["program"].replace(".dsx", ".tune.json")
    run(["ds-run", "--tune", files["program"], "-o", found])
    return compile_program(model, files, ["--tuning", found])


def summarise(seconds, drop):
    return {"median": statistics.median(seconds[drop:]), "best": min(seconds[drop:]), "first": seconds[0]}


def measure_ours(files, args):
    result = run(["ds-run", files["program"], "--data", files["tokens"], "--token-dtype", "u16", "--steps",
                  str(args.steps), "--log-jsonl", files["log"]])
    with open(files["log"]) as file:
        log = [json.loads(line) for line in file]
    result.update(summarise([entry["step_seconds"] for entry in log], args.drop), losses=[e["loss"] for e in log],
                  planned=log[-1].get("peak_bytes", {}).get("device"))
    return result


def measure_torch(model, files, args, foreach, keep, more=()):
    kernels = openblas.use_fastest()
    command = [TORCH, "-W", "ignore", os.path.join(ROOT, "bench", "torch_step.py"), "--size", model["size"], "--data",
               files["tokens"], "--length", str(model["length"]), "--batch", str(model["batch"]), "--steps",
               str(args.steps), "--clip", str(args.clip), "--dtype", args.dtype] + (["--foreach"] if foreach else []) + [*more]
    result = run(command, KEEP_MEMORY if keep else None)
    found = json.loads(result["output"].splitlines()[-1])
    if not any("openblas-openmp" in path for path in found["blas"]):
        sys.exit(f"step.py: PyTorch uses {found['blas']}; install libopenblas0-openmp and select it")
    result.update(summarise(found["seconds"], args.drop), losses=found["losses"], parameters=found["parameters"],
                  resident_before=found["resident_before"], kernels=kernels,
                  variant=f"{'foreach' if foreach else 'loop'}, {'kept' if keep else 'default'} memory")
    return result


def start_up(files):
    """Seconds from exec to the first step, beyond what reading the weights takes."""
    weights = files["program"].replace(".dsx", ".safetensors")
    started = time.perf_counter()
    with open(weights, "rb") as file:
        while file.read(1 << 24):
            pass
    reading = time.perf_counter() - started
    result = run(["ds-run", files["program"], "--data", files["tokens"], "--token-dtype", "u16", "--steps", "1",
                  "--log-jsonl", files["log"]])
    with open(files["log"]) as file:
        return result["wall"] - json.loads(file.readline())["step_seconds"] - reading


def measure_rounds(name, files, args):
    """All runs of both, in turn; refuses to go on if they do not train the same thing."""
    ours, theirs = [], []
    for number in range(args.rounds):
        print(f"{name}: round {number + 1} of {args.rounds}", file=sys.stderr)
        ours.append(measure_ours(files, args))
        for foreach, keep in ((False, False), (False, True), (True, False), (True, True)):
            theirs.append(measure_torch(MODELS[name], files, args, foreach, keep))
    tolerance = 1e-3 if args.dtype == "fp32" else 2e-2
    for a, b in zip(ours[0]["losses"], theirs[0]["losses"]):
        if abs(a - b) > tolerance * abs(b):
            sys.exit(f"step.py: the losses differ ({a} against {b}), so the steps are not the same work")
    return ours, theirs


def measure(name, args, rate):
    model, out = MODELS[name], os.path.join(args.out, name)
    os.makedirs(out, exist_ok=True)
    files = prepare(model, args, out)
    compiled = compile_program(model, files)
    if args.tune:
        compiled = tune(model, files)
    ours, theirs = measure_rounds(name, files, args)
    best, fastest = min(ours, key=lambda r: r["median"]), min(theirs, key=lambda r: r["median"])
    smallest = min(theirs, key=lambda r: r["peak"])
    flops = flops_per_step(model)
    return {"model": model["title"], "parameters": fastest["parameters"], "flops_per_step": flops,
            "ds_step_seconds": best["median"], "torch_step_seconds": fastest["median"], "torch_variant":
            fastest["variant"], "openblas_kernels": fastest["kernels"], "step_ratio": best["median"] / fastest["median"], "step_limit": model["time_limit" if args.dtype == "fp32" else "bf16_limit"], "dtype": args.dtype,
            "bf16_instructions": bf16_instructions(),
            "ds_peak_bytes": max(r["peak"] for r in ours), "ds_planned_bytes": best["planned"],
            "torch_peak_bytes": smallest["peak"], "torch_small_variant": smallest["variant"],
            "memory_ratio": max(r["peak"] for r in ours) / smallest["peak"], "memory_limit": model["memory_limit"],
            "sgemm_gflops": rate, "sgemm_share": flops / best["median"] / rate / 1e9,
            "torch_sgemm_share": flops / fastest["median"] / rate / 1e9,
            "compile_seconds": compiled["wall"], "compile_peak_bytes": compiled["peak"],
            "start_up_seconds": min(start_up(files) for _ in range(3)),
            "tuned": args.tune, "others_cpu_share": max(r["others"] for r in (best, fastest)), "clip": args.clip,
            "all_ds_seconds": [r["median"] for r in ours],
            "all_torch_seconds": [(r["variant"], r["median"], r["peak"]) for r in theirs]}


ROWS = [("numbers", lambda r: r["dtype"] + (", products tuned" if r["tuned"] else "") + (f", bf16 instructions: {r['bf16_instructions']}" if r["dtype"] == "bf16" else "")),
        ("step, ds-run", lambda r: f"{r['ds_step_seconds']:.3f} s"),
        ("step, PyTorch", lambda r: f"{r['torch_step_seconds']:.3f} s ({r['torch_variant']})"),
        ("kernels of OpenBLAS", lambda r: r["openblas_kernels"]),
        ("**step ratio**", lambda r: f"**{r['step_ratio']:.2f}** (limit {r['step_limit']})"),
        ("peak memory, ds-run", lambda r: f"{r['ds_peak_bytes'] / 2**20:.0f} MiB"),
        ("of that planned", lambda r: f"{(r['ds_planned_bytes'] or 0) / 2**20:.0f} MiB"),
        ("peak memory, PyTorch", lambda r: f"{r['torch_peak_bytes'] / 2**20:.0f} MiB ({r['torch_small_variant']})"),
        ("**memory ratio**", lambda r: f"**{r['memory_ratio']:.2f}** (limit {r['memory_limit']})"),
        ("share of oneDNN's sgemm rate, ds-run",
         lambda r: f"{r['sgemm_share']:.0%} of {r['sgemm_gflops']:.0f} GFLOP/s"),
        ("the same, PyTorch", lambda r: f"{r['torch_sgemm_share']:.0%}"),
        ("compiling", lambda r: f"{r['compile_seconds']:.2f} s"),
        ("start-up beyond reading the weights", lambda r: f"{r['start_up_seconds']:.2f} s"),
        ("CPU time of others meanwhile", lambda r: f"{r['others_cpu_share']:.0%}")]


def table(results):
    """The results as a markdown table, one column a model."""
    lines = ["| | " + " | ".join(r["model"] for r in results) + " |", "|---|" + "---|" * len(results)]
    lines += [f"| {title} | " + " | ".join(cell(r) for r in results) + " |" for title, cell in ROWS]
    return "\n".join(lines) + "\n"


def use_build():
    """Puts the tools of the build first on the path."""
    build = os.environ.get("BUILD_DIR", os.path.join(ROOT, "build"))
    os.environ["PATH"] = os.path.join(build, "bin") + ":" + os.environ["PATH"]


def write_results(folder, name, results, text):
    """NAME.json with the figures and NAME.md with their table, which is printed too."""
    with open(os.path.join(folder, f"{name}.json"), "w") as file:
        json.dump(results, file, indent=1)
    with open(os.path.join(folder, f"{name}.md"), "w") as file:
        file.write(text)
    print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "bench"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--drop", type=int, default=3, help="steps of each run that do not count")
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--loss-chunks", type=lambda text: text if text == "auto" else int(text), default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tune", action="store_true", help="let ds-run --tune choose how products are made")
    args = parser.parse_args()
    unknown = set(args.models) - set(MODELS)
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    use_build()
    if not shutil.which("ds-run"):
        sys.exit("step.py: no ds-run; run script/build first")
    os.makedirs(args.out, exist_ok=True)
    rate = sgemm_rate(args.out)
    results = [measure(name, args, rate) for name in args.models or DEFAULT]
    write_results(args.out, "step", results, table(results))


if __name__ == "__main__":
    main()
