#!/usr/bin/python3
"""check_tensors.py - train models whose layers or sequences several ranks share, and compare each run with one rank.

    check_tensors.py --out DIR [--cover | --files] [--sequences] [--only WORD ...] [--fake libds-fake-cuda.so]

Jobs are settings of a table: a family of models, a mesh, a stage of ZeRO, accumulation, a type, what saves memory, dropout, and whether
norms are cut along the sequence.  With --sequences meshes are those of ranks that share sequences.  One rank runs with as many times the accumulation as there are data-parallel ranks, so that it sees
the same micro-batches.  Losses of 20 steps in fp32 must be those of one rank to 1e-6 at the first step and 1e-5 over all, in 16 bits
to a rounding; the same steps are skipped.  --cover takes jobs that have all pairs of settings, without it every job is run;
DIR/tensors.jsonl gets a line as soon as one is done, and what has one is not done again.

--files looks at what is written: weights that nothing has trained are one rank's file to the bit, those of a trained model have its names
and shapes; a checkpoint of any mesh is taken up by any other with the same values; evaluations and samples are one rank's.
"""

import argparse
import collections
import contextlib
import itertools
import json
import os
import shutil
import sys

import numpy as np

import checkpoint_io
import compare
import fake_cuda
import hf_variants
from commands import finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402
import safetensors_io  # noqa: E402

MICRO, SAMPLES = 2, 32
MODELS = {
    "gpt2": hf_variants.GPT2,  # fused projections, a tied table of 61 words
    "llama": {**hf_variants.LLAMA, "hidden_size": 64, "num_attention_heads": 8},  # two key heads, fewer than four ranks
    "phi3": {**hf_variants.config_of("phi3", "plain"), "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2},  # fused in unequal blocks
    "gemma2": {**hf_variants.config_of("gemma2", "plain"), "num_key_value_heads": 4},
    "bert": hf_variants.BERT,
    "vit": hf_variants.VIT,
    "mlp": None,  # examples/models/mlp.py
}
DROPS = {"gpt2": ("resid_pdrop", "embd_pdrop", "attn_pdrop"), "bert": ("hidden_dropout_prob", "attention_probs_dropout_prob")}
# Ranks that share layers, read other samples, share sequences, and have stages of layers.
Mesh = collections.namedtuple("Mesh", "tp dp sp pp", defaults=(1, 1, 1, 1))
MESHES = {"tp2": Mesh(tp=2), "tp4": Mesh(tp=4), "tp2-dp2": Mesh(tp=2, dp=2),
          "sp2": Mesh(sp=2), "sp4": Mesh(sp=4), "sp2-dp2": Mesh(dp=2, sp=2), "sp2-tp2": Mesh(tp=2, sp=2)}
TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}},
         # The first scales are beyond fp16, in the parts of some ranks before those of others.
         "fp16": {"fp16": {"enabled": True, "initial_scale_power": 28, "hysteresis": 1}}}
TOLERANCE = {"fp32": (1e-6, 1e-5), "bf16": (2 ** -8, 2 ** -6), "fp16": (2 ** -10, 2 ** -7)}  # step 1, later steps
SAVINGS = {"kept": {}, "recompute": {"pipeline": {"activation_checkpoint_interval": 1}},
           "optimizer": {"zero_optimization": {"offload_optimizer": {"device": "cpu"}}},
           "parameters": {"zero_optimization": {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}}}
LAYERS = {"model": tuple(MODELS), "mesh": tuple(mesh for mesh in MESHES if "sp" not in mesh), "stage": (0, 1, 2, 3), "accumulation": (1, 4), "type": tuple(TYPES),
          "saving": tuple(SAVINGS), "dropout": (False, True), "sequence": (None, False, True)}
SEQUENCES = {**LAYERS, "model": ("gpt2", "llama", "phi3", "gemma2", "bert"), "mesh": tuple(mesh for mesh in MESHES if "sp" in mesh), "sequence": (None,)}
LEAST_BYTES = 64  # that ranks which share layers exchange in a step: more than a few numbers of norms
BUCKETS = {"reduce_bucket_size": 5000, "allgather_bucket_size": 5000, "stage3_param_persistence_threshold": 100}


def is_possible(job):
    return ((job["saving"] != "parameters" or job["stage"] == 3) and (not job["dropout"] or job["model"] in DROPS)
            and (job["stage"] in (0, 3) or MESHES[job["mesh"]].dp * MESHES[job["mesh"]].sp > 1))


def pairs_of(job):
    return set(itertools.combinations(sorted((setting, str(level)) for setting, level in job.items()), 2))


def all_jobs(settings, is_possible=is_possible):
    for levels in itertools.product(*settings.values()):
        job = dict(zip(settings, levels))
        if is_possible(job):
            yield job


def cover(jobs):
    """Some of `jobs` that have all pairs of settings that any has, each the one with the most pairs that none before it has."""
    left = [(job, pairs_of(job)) for job in jobs]
    taken, seen, wanted = [], set(), set().union(*(pairs for _, pairs in left))
    while seen != wanted:
        job, pairs = max(left, key=lambda entry: len(entry[1] - seen))
        taken.append(job)
        seen |= pairs
    return taken


def name_of(job):
    words = [str(job[setting]) for setting in ("model", "mesh")] + [f"stage{job['stage']}", f"acc{job['accumulation']}", job["type"], job["saving"]]
    words += ["dropout"] * job["dropout"] + {None: [], False: ["rows-whole"], True: ["rows-cut"]}[job["sequence"]]
    return "-".join(words)


def words_of(job):
    """Those of its name, with the mesh as one: tp2dp2."""
    return name_of(job).replace(job["mesh"], job["mesh"].replace("-", "")).split("-")


def merge(into, more):
    for key, value in more.items():
        if isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = value
    return into


def ranks_of(mesh):
    return mesh.tp * mesh.dp * mesh.sp * mesh.pp


def configuration(mesh=Mesh(), stage=0, accumulation=1, changes=()):
    config = {"train_micro_batch_size_per_gpu": MICRO, "gradient_accumulation_steps": accumulation, "gradient_clipping": 1.0,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}},
              "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3, "warmup_num_steps": 5}},
              "zero_optimization": {"stage": stage, **BUCKETS}, "zero_force_ds_cpu_optimizer": False}
    if mesh.tp > 1:
        config["tensor_parallel"] = {"autotp_size": mesh.tp}
    if mesh.sp > 1:
        config["sequence_parallel_size"] = mesh.sp
    if mesh.pp > 1:
        config["pipeline"] = {"stages": mesh.pp}
    for change in changes:
        merge(config, json.loads(json.dumps(change)))
    return config


class Model:
    """A family with its data, and what was trained of it."""

    def __init__(self, name, dropout, args):
        self.args, self.folder = args, os.path.join(args.out, name + ("-dropout" if dropout else ""))
        os.makedirs(self.folder, exist_ok=True)
        self.options, self.results = [], {}
        if MODELS[name] is None:
            self.path, self.data, inputs = export.main([name, "--traced", "--out", self.folder, "--data", str(SAMPLES), "--batch", str(MICRO)])
            self.options = [part for text in inputs for part in ("--input", text)]
            return
        config = {**MODELS[name], **{key: 0.1 for key in DROPS.get(name, ()) if dropout}}
        self.path, self.data = (os.path.join(self.folder, file) for file in ("config.json", "data.safetensors"))
        with open(self.path, "w") as file:
            json.dump(config, file)
        safetensors_io.save(self.data, hf_variants.data(config, SAMPLES))

    def compile(self, name, config, ranks, *options):
        base = os.path.join(self.folder, name)
        with open(base + ".json", "w") as file:
            json.dump(config, file)
        target = ["--target", "cuda:sm_90"] if self.args.fake else []
        run("ds-opt", self.path, "--config", base + ".json", *self.options, "--ranks", ranks, *target, *options, "--plan-json", base + ".plan.json",
            "--emit=program", "-o", base + ".dsx")
        with open(base + ".plan.json") as file:
            sent = json.load(file)["predicted"].get("communication_bytes_by_axes", {})
        for key, axis in ("tensor_parallel", "tp"), ("sequence_parallel_size", "sp"):
            if key in config and sum(by_axes.get(axis, 0) for by_axes in sent.values()) < LEAST_BYTES:
                sys.exit(f"ranks along {axis} send {sent}: nothing is cut")
        if self.args.fake:
            fake_cuda.translate(base + ".dsx", self.folder)
            fake_cuda.use(self.args.fake, self.folder, ranks)
        return base + ".dsx"

    def run(self, program, ranks, name, *options):
        """The log of a run, which has a new file of this name."""
        log = os.path.join(self.folder, name + ".jsonl")
        if os.path.exists(log):
            os.remove(log)
        device = ["--device", "cuda"] if self.args.fake else []
        start = [] if "--resume" in options else ["--weights", "none", "--seed", 3]
        run("ds-run", program, "--ranks", ranks, *start, "--data", self.data, *device, "--log-jsonl", log, *options)
        return compare.read_log(log) if os.path.exists(log) and os.path.getsize(log) else []

    def train(self, name, config, ranks):
        """The log of 20 steps; of one rank each is made once."""
        key = json.dumps(config, sort_keys=True)
        if ranks > 1 or key not in self.results:
            name = name if ranks > 1 else f"one{len(self.results)}"
            self.results[key] = self.run(self.compile(name, config, ranks), ranks, name, "--steps", self.args.steps)
        return self.results[key]


class Jobs:
    def __init__(self, args, file="tensors.jsonl"):
        self.args, self.models, self.done = args, {}, {}
        os.makedirs(args.out, exist_ok=True)
        self.path = os.path.join(args.out, file)
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.done = {entry["name"]: entry["complaints"] for entry in map(json.loads, file)}

    def model(self, name, dropout=False):
        key = name, dropout
        if key not in self.models:
            self.models[key] = Model(name, dropout, self.args)
        return self.models[key]

    def check(self, job):
        """[complaints] about one job."""
        model, name = self.model(job["model"], job["dropout"]), name_of(job)
        mesh = MESHES[job["mesh"]]
        sequence = {} if job["sequence"] is None else {"tensor_parallel": {"sequence_parallel": job["sequence"]}}
        log = model.train(name, configuration(mesh, job["stage"], job["accumulation"], [TYPES[job["type"]], SAVINGS[job["saving"]], sequence]),
                          ranks_of(mesh))
        reference = model.train(name, configuration(accumulation=job["accumulation"] * mesh.dp, changes=[TYPES[job["type"]]]), 1)
        found, _ = compare.compare(taken(log), taken(reference), *TOLERANCE[job["type"]])
        return found + skips(log, reference, job["type"])

    def name_of(self, job):
        return name_of(job)

    def run(self, job):
        name = self.name_of(job)
        if name in self.done:
            return self.done[name]
        said = os.path.join(self.args.out, "commands.log")
        with open(said, "w") as file, contextlib.redirect_stdout(file):
            try:
                found = self.check(job)
            except SystemExit as end:
                found = [str(end.code)]
        if found and found[0].startswith("exit code"):
            with open(said) as file:
                found += [line.strip() for line in file if "error" in line][:3]
        self.done[name] = found
        with open(self.path, "a") as file:
            file.write(json.dumps({"name": name, "complaints": found}) + "\n")
        print(f"{name}: {'; '.join(found) or 'as one rank'}", flush=True)
        return found


def skips(log, reference, number_type):
    """[complaints] about which steps are skipped, and at which scale: in fp16 some are."""
    found = []
    for key in "skipped", "loss_scale":
        if [step.get(key) for step in log] != [step.get(key) for step in reference]:
            found.append(f"{key}: {[step.get(key) for step in log]} against {[step.get(key) for step in reference]}")
    if number_type == "fp16" and not any(step["skipped"] for step in reference):
        found.append("no step is skipped")
    return found


def taken(log):
    """The steps that were not skipped: the norm of the others is no number."""
    return [step for step in log if not step.get("skipped")]


def written(jobs, name, meshes):
    """[complaints] about what a model's programs write."""
    model, complaints = jobs.model(name), []
    programs, weights = {}, {}
    for mesh, shape in meshes.items():
        programs[mesh] = model.compile(mesh, configuration(shape, 3 if shape.dp > 1 else 0, 4 // shape.dp), ranks_of(shape))
    for mesh, shape in meshes.items():
        files = [os.path.join(model.folder, f"{mesh}.{steps}.safetensors") for steps in (0, 4)]
        saves = os.path.join(model.folder, f"{mesh}.saves")
        shutil.rmtree(saves, ignore_errors=True)
        model.run(programs[mesh], ranks_of(shape), mesh, "--steps", 0, "--save-weights", files[0])
        log = model.run(programs[mesh], ranks_of(shape), mesh, "--steps", 4, "--save-weights", files[1], "--save", saves, "--save-every", 2,
                        "--eval-data", model.data, "--eval-every", 2)
        weights[mesh] = [safetensors_io.load(file) for file in files], log
        (start, end), (first, last) = weights[mesh][0], weights["one"][0]
        complaints += [f"{mesh}: {key} starts otherwise" for key in first
                       if key not in start or start[key].tobytes() != first[key].tobytes() or start[key].shape != first[key].shape]
        complaints += [f"{mesh}: {key} is of no parameter" for key in start.keys() - first.keys()]
        complaints += [f"{mesh}: {key} is {end[key].shape} after 4 steps" for key in last if end[key].shape != last[key].shape]
        complaints += [f"{mesh}: {text}" for text in compare.compare(log, weights["one"][1], 1e-6, 1e-5)[0]]
        complaints += [f"{mesh}: evaluation {a['eval_loss']} against {b['eval_loss']} of step {a['step']}" for a, b in zip(log, weights["one"][1])
                       if "eval_loss" in b and not compare.difference(a.get("eval_loss"), b["eval_loss"]) < 1e-5]
    for (source, _), (target, shape) in itertools.product(meshes.items(), meshes.items()):
        origin = os.path.join(model.folder, f"{source}.saves", "step-2")
        saves = os.path.join(model.folder, "resumed.saves")
        shutil.rmtree(saves, ignore_errors=True)
        model.run(programs[target], ranks_of(shape), "resumed", "--steps", 2, "--resume", origin, "--save", saves)
        ours, theirs = (checkpoint_io.load(path)[1] for path in (os.path.join(saves, "step-2"), origin))
        complaints += [f"{key} of {source} is read otherwise by {target}" for key in checkpoint_io.differences(ours, theirs)]
        log = model.run(programs[target], ranks_of(shape), "resumed", "--steps", 4, "--resume", origin)
        complaints += [f"{source} to {target}: {text}" for text in compare.compare(log, weights["one"][1][2:], 1e-5, 1e-5)[0]]
    return complaints


def sampled(jobs, name, meshes):
    """[complaints] about texts that meshes write from one checkpoint."""
    model, texts = jobs.model(name), {}
    for mesh, shape in meshes.items():
        program = model.compile(f"{mesh}.sample", configuration(shape), ranks_of(shape), "--entry", "logits")
        if mesh == "one":
            weights = os.path.join(model.folder, "sample.safetensors")
            model.run(program, 1, "sample", "--steps", 4, "--save-weights", weights)
        text = run("ds-run", program, "--ranks", ranks_of(shape), "--weights", weights, "--sample-tokens", "3,5,7", "--length", 12, "--temperature", 3,
                   "--top-k", 20, "--seed", 4)
        texts[mesh] = next(line for line in text.splitlines() if line[0].isdigit())
    return [f"{name}: {mesh} writes {text}, one rank {texts['one']}" for mesh, text in texts.items() if text != texts["one"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--cover", action="store_true")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--sequences", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--fake", metavar="LIBRARY", help="programs for CUDA, on the fake device")
    args = parser.parse_args()
    jobs, settings = Jobs(args), SEQUENCES if args.sequences else LAYERS
    if args.files:
        meshes = {"one": Mesh(), **{mesh: MESHES[mesh] for mesh in settings["mesh"]}}
        names = [name for name in settings["model"] if not args.only or name in args.only]
        complaints = [text for name in names for text in written(jobs, name, meshes)]
        complaints += [text for name in ("gpt2", "llama") if name in names for text in sampled(jobs, name, meshes)]
        finish(complaints, f"{len(names)} models write what one rank writes")
        return
    every = list(all_jobs(settings))
    wanted = [job for job in (cover(every) if args.cover else every) if all(word in words_of(job) for word in args.only)]
    faults = [f"{name_of(job)}: {text}" for job in wanted for text in jobs.run(job)]
    finish(faults, f"{len(wanted)} jobs train as one rank")


if __name__ == "__main__":
    main()
