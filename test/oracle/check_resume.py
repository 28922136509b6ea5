#!/usr/bin/python3
"""check_resume.py - a run that was interrupted goes on as if it had not been.

    check_resume.py gpt --out DIR --config ds_config.json --types fp32,fp16 --stages 0,2 --ranks 1,2 --accumulation 1,3

One run makes 2 * N steps and saves behind N and 2 * N.  Another goes on from the first checkpoint.  Losses, norms, rates and
loss scales of the second half, and all tensors of the last checkpoint, must be equal to the bit.

With --reshape, checkpoints of all given ranks and stages are taken up by all others in turn (or by every --stride-th): fp32
values must be equal to the bit behind no further step, and N further steps must have the losses of the unbroken run within
the type's tolerance.  The global batch is that of --config for every number of ranks.
"""

import itertools
import json
import os
import shutil

import checkpoint_io
import compare
import ds_config
import example
from check_ranks import SMALL_BUCKETS, TOLERANCE, TYPES, numbers
from commands import compile_program, finish, run

KEYS = ("loss", "grad_norm", "lr", "loss_scale", "skipped")


def parse():
    parser = example.make_parser(__doc__)
    parser.add_argument("--ranks", type=numbers, default=[1, 2])
    parser.add_argument("--stages", type=numbers, default=[0, 1, 2, 3])
    parser.add_argument("--types", type=lambda text: text.split(","), default=["fp32"])
    parser.add_argument("--accumulation", type=numbers, default=[1])
    parser.add_argument("--reshape", action="store_true")
    parser.add_argument("--stride", type=int, default=1)
    return parser.parse_known_args()


class Runs:
    def __init__(self, args, rest):
        self.args, self.rest = args, rest
        self.config = ds_config.read(args.config, args.set)
        self.global_batch = self.config.get("train_batch_size")
        self.examples, self.programs = {}, {}

    def example(self, micro):
        """The example for micro-batches of this size; its data are the same for all."""
        if micro not in self.examples:
            args = self.args.__class__(**{**vars(self.args), "out": os.path.join(self.args.out, f"batch{micro}")})
            self.examples[micro] = example.make_example(args, self.rest, micro)
        return self.examples[micro]

    def program(self, kind, stage, ranks, accumulation):
        """(program, data) for these settings; each is compiled once."""
        key = (kind, stage, ranks, accumulation)
        if key not in self.programs:
            micro = self.global_batch // ranks // accumulation
            archive, _, inputs = self.example(micro)
            folder = os.path.join(self.args.out, f"{kind}-stage{stage}-ranks{ranks}-accumulation{accumulation}")
            os.makedirs(folder, exist_ok=True)
            config = {**self.config, **TYPES[kind], "gradient_accumulation_steps": accumulation,
                      "zero_optimization": {**SMALL_BUCKETS, "stage": stage}}
            path = os.path.join(folder, "config.json")
            with open(path, "w") as file:
                json.dump(config, file, indent=2)
            compile_program(archive, path, inputs, os.path.join(folder, "model.dsx"), ["--ranks", ranks])
            self.programs[key] = folder
        return self.programs[key]

    def train(self, folder, ranks, steps, name, *options):
        """Runs it: (log, folder of its checkpoints)."""
        saves, log = os.path.join(folder, name), os.path.join(folder, name + ".jsonl")
        shutil.rmtree(saves, ignore_errors=True)
        if os.path.exists(log):
            os.remove(log)
        _, data, _ = self.example(self.global_batch)
        run("ds-run", os.path.join(folder, "model.dsx"), "--ranks", ranks, "--data", data, "--steps", steps, "--log-jsonl", log,
            "--save", saves, "--keep", 9, *options)
        return compare.read_log(log) if os.path.getsize(log) else [], saves

    def resume(self, kind, stage, ranks, accumulation):
        """The complaints about one run that goes on as itself."""
        folder = self.program(kind, stage, ranks, accumulation)
        steps = self.args.steps
        name = f"{kind} stage {stage}, {ranks} ranks, accumulation {accumulation}"
        whole, saves = self.train(folder, ranks, 2 * steps, "whole", "--save-every", steps, "--shuffle", "--seed", 3)
        rest, later = self.train(folder, ranks, 2 * steps, "rest", "--resume", os.path.join(saves, f"step-{steps}"))
        complaints = [] if [line["step"] for line in rest] == list(range(steps + 1, 2 * steps + 1)) else [
            f"{name}: steps {[line['step'] for line in rest]}"]
        complaints += [f"{name}: step {a['step']}: {a} against {b}" for a, b in zip(whole[steps:], rest)
                       if any(a.get(key) != b.get(key) for key in KEYS)]
        a, b = (checkpoint_io.load(os.path.join(path, f"step-{2 * steps}")) for path in (saves, later))
        complaints += [f"{name}: {tensor} differs" for tensor in checkpoint_io.differences(a[1], b[1])]
        if a[0]["data"] != b[0]["data"]:
            complaints.append(f"{name}: {a[0]['data']} against {b[0]['data']}")
        return complaints

    def reshape(self, kind):
        """(complaints, number of pairs) of all settings against all others."""
        settings = [(stage, ranks) for ranks in self.args.ranks for stage in self.args.stages if ranks > 1 or stage == 0]
        steps, complaints, pairs = self.args.steps, [], 0
        saved = {}
        for stage, ranks in settings:
            log, saves = self.train(self.program(kind, stage, ranks, 1), ranks, 2 * steps, "whole", "--save-every", steps)
            saved[stage, ranks] = log, os.path.join(saves, f"step-{steps}")
        for index, (source, target) in enumerate(itertools.product(settings, settings)):
            if index % self.args.stride:
                continue
            (log, path), folder = saved[source], self.program(kind, target[0], target[1], 1)
            name = f"{kind} from stage {source[0]}, {source[1]} ranks to stage {target[0]}, {target[1]} ranks"
            values = checkpoint_io.load(path)[1]
            _, same = self.train(folder, target[1], steps, "same", "--resume", path)
            complaints += [f"{name}: {tensor} differs" for tensor in checkpoint_io.differences(
                values, checkpoint_io.load(os.path.join(same, f"step-{steps}"))[1])]
            rest, _ = self.train(folder, target[1], 2 * steps, "on", "--resume", path)
            found, _ = compare.compare(rest, log[steps:], *TOLERANCE[kind])
            complaints += [f"{name}: {text}" for text in found]
            pairs += 1
        return complaints, pairs


def main():
    args, rest = parse()
    runs = Runs(args, rest)
    complaints, done = [], 0
    if args.reshape:
        for kind in args.types:
            found, pairs = runs.reshape(kind)
            complaints += found
            done += pairs
        return finish(complaints, f"{done} pairs go on with the same values")
    for settings in itertools.product(args.types, args.stages, args.ranks, args.accumulation):
        if settings[1] == 0 or settings[2] > 1:
            complaints += runs.resume(*settings)
            done += 1
    finish(complaints, f"{done} runs go on as if never interrupted")


if __name__ == "__main__":
    main()
