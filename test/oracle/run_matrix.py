#!/usr/bin/python3
"""run_matrix.py - every trick that saves memory, under every setting, against the run without it.

    run_matrix.py --out DIR [--only WORD ...] [--steps 20]

GPT and Llama, fp32, bf16 and fp16 with overflows, accumulation 1 and 4, clipping on and off, stages 0 to 3, one and two ranks; of
each the run that keeps everything on the device, and beside it one run for each trick.  Losses, norms, skipped steps and weights
must be equal to the bit.  DIR/matrix.jsonl gets a line as soon as a run is done; runs that have one are not repeated, so that the
matrix can be stopped and gone on with.  --only takes rows whose name has all the words: `--only gpt nvme fp16`.
"""

import argparse
import contextlib
import itertools
import json
import os
import shutil
import sys

from trials import Trials

TYPES = {"fp32": {}, "bf16": {"bf16": {"enabled": True}}, "fp16": {"fp16": {"enabled": True, "initial_scale_power": 40}}}
MODELS = {"gpt": ["--traced", "--size", "tiny", "--layers", "4", "--context", "128", "--length", "128"],
          "llama": ["--traced", "--size", "tiny", "--layers", "4", "--context", "128", "--length", "128"]}


def offload(section, device="cpu", **more):
    return {"zero": {section: {"device": device, **more}}}


# What is changed of the configuration, and of its zero_optimization.
TRICKS = {
    "number_checkpoints": {"activation_checkpointing": {"number_checkpoints": 2}},
    "interval": {"pipeline": {"activation_checkpoint_interval": 1}},
    "selective": {"activation_checkpointing": {"granularity": "selective"}},
    "layers": {"activation_checkpointing": {"layers": [1, 2]}},
    "ops": {"activation_checkpointing": {"ops": ["matmul", "attention"]}},
    "cpu_checkpointing": {"activation_checkpointing": {"cpu_checkpointing": True}},
    "offload_activation": {"compile": {"offload_activation": True}},
    "offload_param": offload("offload_param"),
    "offload_optimizer": offload("offload_optimizer"),
    "early_updates": offload("offload_optimizer", super_offload=True),
    "offload_half": offload("offload_optimizer", ratio=0.5),
    "offload_nvme": offload("offload_optimizer", "nvme"),
}


def settings():
    for model, kind, accumulation, clipping, stage, ranks in itertools.product(MODELS, TYPES, (1, 4), (0.0, 1.0), range(4), (1, 2)):
        changes = {**TYPES[kind], "gradient_accumulation_steps": accumulation, "gradient_clipping": clipping}
        name = f"{model}-{kind}-acc{accumulation}-clip{clipping:g}-stage{stage}-ranks{ranks}"
        yield name, model, ranks, stage, changes


def is_possible(trick, stage):
    return trick not in ("offload_param", "offload_half") or stage == 3


class Matrix:
    """The rows that are done, and the means to do others."""

    def __init__(self, args):
        self.args, self.trials = args, {}
        self.path = os.path.join(args.out, "matrix.jsonl")
        os.makedirs(args.out, exist_ok=True)
        self.done = {}
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.done = {entry["name"]: entry for entry in map(json.loads, file)}

    def trials_of(self, model, ranks):
        if (model, ranks) not in self.trials:
            arguments = argparse.Namespace(**vars(self.args))
            arguments.name, arguments.out = model, os.path.join(self.args.out, model)
            arguments.accumulation, arguments.fake = 1, None
            os.makedirs(arguments.out, exist_ok=True)
            self.trials[model, ranks] = Trials(arguments, MODELS[model], ranks)
        return self.trials[model, ranks]

    def change(self, trick):
        """Keys at the top and keys of zero_optimization."""
        changed = dict(TRICKS[trick])
        zero = json.loads(json.dumps(changed.pop("zero", {})))
        for name, section in zero.items():
            if section["device"] == "nvme":
                section["nvme_path"] = os.path.join(os.path.abspath(self.args.out), f"nvme-{name}")
                os.makedirs(section["nvme_path"], exist_ok=True)
        return changed, zero

    def note(self, name, complaints):
        self.done[name] = {"name": name, "complaints": complaints}
        with open(self.path, "a") as file:
            file.write(json.dumps(self.done[name]) + "\n")
        print(f"{name}: {'; '.join(complaints) or 'equal'}", flush=True)

    def run(self, setting, tricks):
        """The runs of one setting that are still to be made."""
        name, model, ranks, stage, changes = setting
        kept, fault = self.train(model, ranks, "kept", {"stage": stage}, changes)
        for trick in tricks:
            top, zero = self.change(trick)
            other = None
            if kept:
                other, fault = self.train(model, ranks, trick, {"stage": stage, **zero}, {**changes, **top})
            complaints = kept.differences(other, trick) if other else [fault]
            if other and [step.get("skipped") for step in kept.log] != [step.get("skipped") for step in other.log]:
                complaints.append("other steps are skipped")
            self.note(f"{name}-{trick}", [text[:200] for text in complaints])

    def train(self, model, ranks, name, zero, changes):
        """A run, or none and what it ended with. Its commands and what they say stand in DIR/commands.log."""
        with open(os.path.join(self.args.out, "commands.log"), "w") as file, contextlib.redirect_stdout(file):
            try:
                return self.trials_of(model, ranks).train(name, zero, changes), None
            except SystemExit as end:
                code = end.code
        with open(os.path.join(self.args.out, "commands.log")) as file:
            said = [line.strip() for line in file if "error" in line]
        return None, f"{name}: {code}" + (f": {said[0]}" if said else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--config", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Run", "Inputs", "adamw.json"))
    args = parser.parse_args()
    matrix = Matrix(args)
    wanted = []
    for setting in settings():
        tricks = [trick for trick in TRICKS if is_possible(trick, setting[3])
                  and all(word in f"{setting[0]}-{trick}".split("-") or word == setting[0] for word in args.only)]
        wanted += [f"{setting[0]}-{trick}" for trick in tricks]
        left = [trick for trick in tricks if f"{setting[0]}-{trick}" not in matrix.done]
        if left:
            matrix.run(setting, left)
    faults = [name for name in wanted if matrix.done[name]["complaints"]]
    print(f"{len(wanted) - len(faults)} of {len(wanted)} runs are those without the trick")
    for section in "offload_optimizer", "offload_param":
        shutil.rmtree(os.path.join(args.out, f"nvme-{section}"), ignore_errors=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
