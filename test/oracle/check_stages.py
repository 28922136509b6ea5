#!/usr/bin/python3
"""check_stages.py - train models whose layers are stages of a pipeline, and compare each run with one stage.

    check_stages.py --out DIR [--cover | --files] [--only WORD ...] [--fake libds-fake-cuda.so]

Jobs are settings of a table: a family of models, a mesh, a schedule, a stage of ZeRO, accumulation, a type, what saves memory, and dropout.
One stage runs on the same mesh but for its stages, with the same micro-batches.  Where no parameter is on two stages, no layer on several ranks and nothing is clipped,
losses and weights of all steps must be the same to the bit; otherwise losses in fp32 to 1e-6, in 16 bits to a rounding; the same steps are
skipped.  --files looks at what is written, as check_tensors.py does.  --cover takes jobs that have all pairs of settings, without it every job is run; DIR/stages.jsonl gets a line as soon as one is
done, and what has one is not done again.
"""

import argparse
import os
import sys

import check_tensors as tensors
import compare
import hf_variants
from commands import finish

import safetensors_io

MODELS = {
    "llama": {**hf_variants.LLAMA, "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 3, "tie_word_embeddings": False},
    "gpt2": {**hf_variants.GPT2, "n_layer": 3},  # a table on two stages, and clipping
    "bert": hf_variants.BERT,
}
TIED = ("gpt2", "bert")
MESHES = {"pp2": tensors.Mesh(pp=2), "pp3": tensors.Mesh(pp=3), "pp4": tensors.Mesh(pp=4), "pp2-dp2": tensors.Mesh(pp=2, dp=2),
          "pp2-tp2": tensors.Mesh(pp=2, tp=2), "pp2-sp2": tensors.Mesh(pp=2, sp=2), "pp2-tp2-dp2": tensors.Mesh(pp=2, tp=2, dp=2)}
LEVELS = {"model": tuple(MODELS), "mesh": tuple(MESHES), "schedule": ("1f1b", "gpipe"), "stage": (0, 1, 2, 3), "accumulation": (1, 3, 8),
          "type": tuple(tensors.TYPES), "saving": tuple(tensors.SAVINGS), "dropout": (False, True)}


def is_possible(job):
    return ((job["saving"] != "parameters" or job["stage"] == 3) and (not job["dropout"] or job["model"] in tensors.DROPS)
            and (job["stage"] in (0, 3) or "dp2" in job["mesh"] or "sp2" in job["mesh"]) and (job["mesh"] != "pp4" or job["model"] == "gpt2"))


def name_of(job):
    words = [job["model"], job["mesh"], job["schedule"], f"stage{job['stage']}", f"acc{job['accumulation']}", job["type"], job["saving"]]
    return "-".join(words + ["dropout"] * job["dropout"])


def configuration(job, mesh):
    config = tensors.configuration(mesh, job["stage"], job["accumulation"], [tensors.TYPES[job["type"]], tensors.SAVINGS[job["saving"]]])
    if job["model"] not in TIED:
        config["gradient_clipping"] = 0
    if mesh.pp > 1:
        config["pipeline"]["schedule"] = job["schedule"]
    return config, tensors.ranks_of(mesh)


class Jobs(tensors.Jobs):
    """As those of shared layers, of another table."""

    def __init__(self, args):
        super().__init__(args, "stages.jsonl")

    def train(self, model, name, config, ranks):
        """The log of a run and the file of its weights."""
        weights = os.path.join(model.folder, name + ".weights.safetensors")
        program = model.compile(name, config, ranks)
        return model.run(program, ranks, name, "--steps", self.args.steps, "--save-weights", weights), weights

    def check(self, job):
        model, mesh = self.model(job["model"], job["dropout"]), MESHES[job["mesh"]]
        name = name_of(job)
        log, weights = self.train(model, name, *configuration(job, mesh))
        reference, expected = self.train(model, name + ".one", *configuration(job, mesh._replace(pp=1)))
        found = [] if log else ["nothing is logged"]
        # How layers are cut among ranks is chosen for each stage by itself, and where the host adds up what has 16 bits, a sum that goes on in
        # one kernel is not rounded, while one that waits for the norm of all stages is.
        # On the fake device rows of an embedding are added up one by one: those of a last micro-batch by themselves, for they wait for the update.
        if (self.args.fake and job["accumulation"] > 1) or job["model"] in TIED or "tp2" in job["mesh"] or "sp2" in job["mesh"] or (job["type"] != "fp32" and job["saving"] in ("optimizer", "parameters")):
            found += compare.compare(tensors.taken(log), tensors.taken(reference), *tensors.TOLERANCE[job["type"]])[0]
        else:
            found += [f"step {a['step']}: loss {a['loss']!r} against {b['loss']!r}" for a, b in zip(log, reference) if a["loss"] != b["loss"]][:1]
            ours, theirs = safetensors_io.load(weights), safetensors_io.load(expected)
            found += [f"{key} differs" for key in theirs if ours[key].tobytes() != theirs[key].tobytes()][:1]
        return found + tensors.skips(log, reference, job["type"])

    def name_of(self, job):
        return name_of(job)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--cover", action="store_true")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--fake", metavar="LIBRARY", help="programs for CUDA, on the fake device")
    args = parser.parse_args()
    tensors.MODELS.update(MODELS)
    jobs = Jobs(args)
    if args.files:
        names = [name for name in MODELS if not args.only or name in args.only]
        meshes = {"one": tensors.Mesh(), **{mesh: MESHES[mesh] for mesh in ("pp2", "pp3", "pp2-dp2")}}
        finish([text for name in names for text in tensors.written(jobs, name, meshes)], f"{len(names)} models write what one stage writes")
        return
    every = list(tensors.all_jobs(LEVELS, is_possible))
    wanted = [job for job in (tensors.cover(every) if args.cover else every) if all(word in name_of(job) for word in args.only)]
    faults = [f"{name_of(job)}: {text}" for job in wanted for text in jobs.run(job)]
    finish(faults, f"{len(wanted)} jobs train as on one stage")


if __name__ == "__main__":
    main()
