#!/usr/bin/python3
"""check_resume.py - a run that was interrupted goes on as if it had not been.

    check_resume.py gpt --out DIR --config ds_config.json --types fp32,fp16 --stages 0,2 --ranks 1,2 --accumulation 1,3

One run makes 2 * N steps and saves behind N and 2 * N.  Another goes on from the first checkpoint.  Losses, norms, rates and
loss scales of the second half, and all tensors of the last checkpoint, must be equal to the bit.

With --reshape, a checkpoint is written in the form of all given ranks and stages, and each form is taken up by all others in turn
(or by every --stride-th): fp32 values must be equal to the bit behind no further step, N further steps must end with the same
values from every form, and have the losses of the unbroken run within the type's tolerance.  The global batch is that of --config for every number of ranks.
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
        """(complaints, number of pairs) of all settings against all others.

        All settings take up one checkpoint, behind no further step, and save it as their own: the same values in as many forms, equal
        to the bit. From each form each setting then goes on; what it ends with is, to the bit, what it ends with from its own form. So
        one run a pair shows that all values were read, for a value that was not would end as another.
        """
        settings = [(stage, ranks) for ranks in self.args.ranks for stage in self.args.stages if ranks > 1 or stage == 0]
        steps, complaints, pairs = self.args.steps, [], 0
        first = self.program(kind, *settings[-1], 1)
        whole, saves = self.train(first, settings[-1][1], 2 * steps, "whole", "--save-every", steps)
        origin = os.path.join(saves, f"step-{steps}")
        values, forms = checkpoint_io.load(origin)[1], {}
        for stage, ranks in settings:
            _, same = self.train(self.program(kind, stage, ranks, 1), ranks, steps, "same", "--resume", origin)
            forms[stage, ranks] = os.path.join(same, f"step-{steps}")
            complaints += [f"{kind} as stage {stage}, {ranks} ranks: {tensor} differs" for tensor in checkpoint_io.differences(
                values, checkpoint_io.load(forms[stage, ranks])[1])]
        for target in settings:
            folder, ends = self.program(kind, *target, 1), {}
            # A run's own form comes first, to compare the others with.
            for source in [target] + [other for other in settings if other != target][:: self.args.stride]:
                name = f"{kind} from stage {source[0]}, {source[1]} ranks to stage {target[0]}, {target[1]} ranks"
                rest, later = self.train(folder, target[1], 2 * steps, "on", "--resume", forms[source])
                found, _ = compare.compare(rest, whole[steps:], *TOLERANCE[kind])
                complaints += [f"{name}: {text}" for text in found]
                end = checkpoint_io.load(os.path.join(later, f"step-{2 * steps}"))[1]
                ends.setdefault("own", end)
                complaints += [f"{name}: {tensor} differs" for tensor in checkpoint_io.differences(ends["own"], end)]
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
        return finish(complaints, f"{done} pairs resume with the same values")
    for settings in itertools.product(args.types, args.stages, args.ranks, args.accumulation):
        if settings[1] == 0 or settings[2] > 1:
            complaints += runs.resume(*settings)
            done += 1
    finish(complaints, f"{done} runs go on as if never interrupted")


if __name__ == "__main__":
    main()
