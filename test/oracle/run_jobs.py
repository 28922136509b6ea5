#!/usr/bin/python3
"""run_jobs.py - small jobs under settings drawn by chance, and plans of large models, none of which may break a tool.

    run_jobs.py --out DIR [--cover] [--only WORD ...] [--seed 1]

240 jobs: a model of two layers of each family that config.json describes, ranks, stages of ZeRO, accumulation, precision,
clipping, offload and optimizers.  Each is compiled and trained for two steps, and its losses must be numbers.  42 plans: published
sizes on up to 64 devices, which fit or are said not to.  A tool that is ended by a signal, takes longer than --limit, or has
another exit code than these is a fault.

DIR/jobs.jsonl gets a line as soon as a job is done; what has one is not done again.  --cover takes 40 jobs and 10 plans that have
as many pairs of settings as so few can have.  --only takes those whose name has all the words.
"""

import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys

import numpy as np

import hf_variants

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import safetensors_io  # noqa: E402

PRECISIONS = {"fp32": {}, "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 8}}}
OFFLOADS = {"kept": (), "optimizer": ("offload_optimizer",), "parameters": ("offload_param",), "all": ("offload_optimizer", "offload_param")}
OPTIMIZERS = ("Adam", "AdamW", "Lamb", "SGD", "Lion", "Adagrad")
SMALL_BUCKETS = {"reduce_bucket_size": 5000, "allgather_bucket_size": 5000, "stage3_param_persistence_threshold": 100}
# Those whose pairs with all other settings a few dozen jobs still have.
DRAWN = ("gpt2", "llama", "mistral", "qwen2", "gpt_neox", "bert")
JOBS = {"family": DRAWN, "ranks": (1, 2, 3, 4), "stage": (0, 1, 2, 3), "accumulation": (1, 2, 3),
        "precision": tuple(PRECISIONS), "clipping": (0.0, 1.0), "buckets": ("small", "chosen"), "offload": tuple(OFFLOADS),
        "optimizer": OPTIMIZERS}

# Published sizes; a plan takes sequences of 1024 tokens.
MODELS = {
    "gpt2-xl": {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 1600, "n_layer": 48, "n_head": 25},
    "pythia-1.4b": {"model_type": "gpt_neox", "vocab_size": 50304, "max_position_embeddings": 2048, "hidden_size": 2048,
                    "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 8192},
    "gpt-neox-20b": {"model_type": "gpt_neox", "vocab_size": 50432, "max_position_embeddings": 2048, "hidden_size": 6144,
                     "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576},
    "llama-2-7b": {"model_type": "llama", "vocab_size": 32000, "max_position_embeddings": 4096, "hidden_size": 4096,
                   "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008},
    "mistral-7b": {"model_type": "mistral", "vocab_size": 32000, "max_position_embeddings": 32768, "hidden_size": 4096,
                   "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                   "sliding_window": 4096},
    "qwen2-1.5b": {"model_type": "qwen2", "vocab_size": 151936, "max_position_embeddings": 32768, "hidden_size": 1536,
                   "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "intermediate_size": 8960,
                   "tie_word_embeddings": True},
    "bert-large": {"model_type": "bert", "vocab_size": 30522, "max_position_embeddings": 512, "hidden_size": 1024,
                   "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
}
PLANS = {"model": tuple(MODELS), "ranks": (1, 2, 8, 64), "stage": (0, 1, 2, 3), "accumulation": (1, 4),
         "precision": tuple(PRECISIONS), "clipping": (0.0, 1.0), "buckets": ("chosen",), "offload": tuple(OFFLOADS),
         "optimizer": OPTIMIZERS}


def is_possible(job):
    """Whether the tools say that they do this: docs/limits.md, docs/config.md."""
    return (job["stage"] == 3 or "offload_param" not in OFFLOADS[job["offload"]]) and (job["ranks"] == 1 or job["optimizer"] != "Lamb")


def draw(levels, count, seed):
    """`count` different jobs, each a level of every setting."""
    chance, jobs = random.Random(seed), []
    while len(jobs) < count:
        job = {setting: chance.choice(values) for setting, values in levels.items()}
        if "family" in job:
            job["variant"] = chance.choice([name for name in hf_variants.FAMILIES[job["family"]][1] if "long" not in name])
        if is_possible(job) and job not in jobs:
            jobs.append(job)
    return jobs


def pairs_of(job):
    return set(itertools.combinations(sorted((setting, str(level)) for setting, level in job.items() if setting != "variant"), 2))


def cover(jobs, count):
    """As many of `jobs`, each that with the most pairs of settings that none before it has."""
    left, taken, seen = list(jobs), [], set()
    while len(taken) < count:
        best = max(left, key=lambda job: len(pairs_of(job) - seen))
        left.remove(best)
        taken.append(best)
        seen |= pairs_of(best)
    return taken


def name_of(job):
    what = "model-" + job["model"] if "model" in job else f"{job['family']}-{job['variant']}"
    return (f"{what}-ranks{job['ranks']}-stage{job['stage']}-acc{job['accumulation']}-{job['precision']}-clip{job['clipping']:g}"
            f"-{job['buckets']}-{job['offload']}-{job['optimizer']}")


def configuration(job):
    zero = {"stage": job["stage"], **(SMALL_BUCKETS if job["buckets"] == "small" else {})}
    zero.update({section: {"device": "cpu"} for section in OFFLOADS[job["offload"]]})
    return {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": job["accumulation"],
            "gradient_clipping": job["clipping"], "optimizer": {"type": job["optimizer"], "params": {"lr": 1e-3, "weight_decay": 0.01}},
            "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False, "zero_optimization": zero,
            **PRECISIONS[job["precision"]]}


class Runner:
    """The jobs that are done, and the means to do others."""

    def __init__(self, out, limit):
        self.limit, self.out, self.path, self.done = limit, out, os.path.join(out, "jobs.jsonl"), {}
        os.makedirs(out, exist_ok=True)
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.done = {entry["name"]: entry["fault"] for entry in map(json.loads, file)}

    def call(self, allowed, *command):
        """None where the command ends with one of the exit codes, else what it did."""
        try:
            done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  errors="replace", timeout=self.limit)
        except subprocess.TimeoutExpired:
            return f"{command[0]}: still there after {self.limit} s"
        if done.returncode in allowed:
            return None
        said = [line for line in done.stderr.splitlines() if "error" in line]
        return f"{command[0]}: exit code {done.returncode}" + (f": {said[0][:300]}" if said else "")

    def write(self, job, model):
        """The model's config.json and the configuration, and a folder for both."""
        folder = os.path.join(self.out, name_of(job))
        os.makedirs(folder, exist_ok=True)
        for name, content in ("config.json", model), ("ds.json", configuration(job)):
            with open(os.path.join(folder, name), "w") as file:
                json.dump(content, file, indent=2)
        return [os.path.join(folder, name) for name in ("config.json", "ds.json", "model.dsx", "data.safetensors", "log.jsonl")]

    def train(self, job):
        model = hf_variants.config_of(job["family"], job["variant"])
        config, settings, program, data, log = self.write(job, model)
        chance, shape = np.random.default_rng(0), (24, hf_variants.positions(model))
        safetensors_io.save(data, {name: chance.integers(0, model["vocab_size"], shape) for name in ("input_ids", "labels")})
        fault = self.call((0,), "ds-opt", config, "--config", settings, "--ranks", job["ranks"], "--emit=program", "-o", program)
        fault = fault or self.call((0,), "ds-run", program, "--ranks", job["ranks"], "--data", data, "--steps", 2, "--log-jsonl", log)
        if fault:
            return fault
        with open(log) as file:
            losses = [json.loads(line)["loss"] for line in file]
        return None if len(losses) == 2 and all(map(math.isfinite, losses)) else f"losses {losses}"

    def plan(self, job):
        config, settings, *_ = self.write(job, MODELS[job["model"]])
        length = min(1024, hf_variants.positions(MODELS[job["model"]]))
        inputs = [word for name in ("input_ids", "labels") for word in ("--input", f"{name}=2x{length}xi64")]
        return self.call((0, 4), "ds-opt", config, "--config", settings, *inputs, "--ranks", job["ranks"], "--cluster", "dgx-a100",
                         "--emit=plan", "-o", os.devnull)

    def run(self, job):
        name = name_of(job)
        if name not in self.done:
            self.done[name] = self.plan(job) if "model" in job else self.train(job)
            with open(self.path, "a") as file:
                file.write(json.dumps({"name": name, "fault": self.done[name]}) + "\n")
            print(f"{name}: {self.done[name] or 'done'}", flush=True)
        return self.done[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--cover", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS")
    args = parser.parse_args()
    jobs, plans = draw(JOBS, 240, args.seed), draw(PLANS, 42, args.seed)
    if args.cover:
        jobs, plans = cover(jobs, 40), cover(plans, 10)
    runner, faults = Runner(args.out, args.limit), 0
    for kind, wanted in ("jobs", jobs), ("plans", plans):
        wanted = [job for job in wanted if all(word in name_of(job).split("-") or word == name_of(job) for word in args.only)]
        broken = [job for job in wanted if runner.run(job)]
        print(f"{len(wanted) - len(broken)} of {len(wanted)} {kind} are done")
        faults += len(broken)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
