#!/usr/bin/python3
"""check_cuts.py - what ranks that share layers cut of every archive, example and family, what they exchange, and that it trains as one rank.

    check_cuts.py --out DIR [--table FILE [--write]] [--all] {archives,families} [NAME ...]      needs ds-opt on PATH

For each model a line: how many parameters of two ranks have parts, which of two and more dimensions stay whole, and the exchanges along tp
of a step that is not accumulated, norms whole between layers; of a family also those that one layer more adds where it is eight times
as wide. The lines must be those of the table; --write makes it anew. Each model is trained on one mesh too, by turns, in f64, whatever
types the program has: losses, norm, weights and moments must agree with one rank's to 1e-9. --all takes every form and variant on
every mesh.
"""

import argparse
import collections
import glob
import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import archives  # noqa: E402
import check_archive  # noqa: E402
import example  # noqa: E402
import hf_variants  # noqa: E402
from ranks.agreement import differences, draw_batches, random_inputs, train, train_alone  # noqa: E402
from ranks.compiling import compile_ranks, ds_opt  # noqa: E402
from ranks.meetings import Mismatch  # noqa: E402
from ranks.program import axes_of  # noqa: E402
from ranks.values import Numbers  # noqa: E402

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import", "archives", "*.py")
CONFIG = {"gradient_clipping": 0.5, "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1}}}
BUCKETS = {"reduce_bucket_size": 3000, "stage3_param_persistence_threshold": 40}
# Ranks along tp and dp, the stage of ZeRO, accumulation, and whether norms are cut along the sequence: None leaves it open.
COUNTED = (2, 1, 0, 1, False)
MESHES = (COUNTED, (4, 1, 0, 2, None), (2, 2, 3, 1, True), (3, 1, 0, 1, None))  # three ranks divide hardly any width here
EXCHANGES = ("ds.all_reduce", "ds.all_gather", "ds.reduce_scatter")
ZERO = 1e-14  # the largest element of the moments of a gradient that is zero but for roundings, such as that of a bias of keys


class Model:
    """`path` is what ds-opt reads, `folder` has what is made of it, `batch` are a micro-batch's samples, and `ids` is above all whole
    numbers that the model takes. `larger` are the model of a larger size with one layer and with two."""

    def __init__(self, name, path, folder, batch, ids, larger=()):
        self.name, self.path, self.folder, self.batch, self.ids, self.larger = name, path, folder, batch, ids, larger

    def compile(self, mesh):
        tp, dp, stage, accumulation, rows = mesh
        config = {**CONFIG, "train_micro_batch_size_per_gpu": self.batch, "gradient_accumulation_steps": accumulation,
                  "zero_optimization": {"stage": stage, **(BUCKETS if stage == 3 else {})}}
        if tp > 1:
            config["tensor_parallel"] = {"autotp_size": tp, **({} if rows is None else {"sequence_parallel": rows})}
        return compile_ranks(self.path, config, tp * dp, self.folder)

    def line(self):
        """What the table says of the model."""
        stage = self.compile(COUNTED).stages[0]
        cut, whole, counts = sum(map(is_cut, parameters_of(stage))), whole_matrices(stage), exchanges_of(stage)
        added = collections.Counter()
        for number, model in enumerate(self.larger):
            added.update({name: count if number else -count for name, count in exchanges_of(model.compile(COUNTED).stages[0]).items()})
        return (f"{self.name}: {cut} cut{'; whole: ' * bool(whole)}{', '.join(whole)}; {listed(counts)}"
                + (f"; a layer: {listed(added)}" if self.larger else ""))

    def check(self, mesh):
        """[complaints] about training on a mesh."""
        numbers, name = Numbers(rounds=False), f"{self.name}, tp {mesh[0]} x dp {mesh[1]}, rows cut: {mesh[4]}"
        many = self.compile(mesh)
        batches = draw_batches(many, 2, random_inputs(ids=self.ids))
        alone = train_alone(self.compile((1, 1, 0, mesh[1] * mesh[3], None)), batches, numbers)
        compared = {key: value for key, value in alone.items() if not is_rounding(alone, key)}
        try:
            return [f"{name}: {text}" for text in differences(train(many, batches, numbers), compared, 1e-9)]
        except (Mismatch, ValueError) as error:
            return [f"{name}: {error}"]


def is_cut(state):
    return any("tp" in cut for cut in state.cuts)


def parameters_of(stage):
    return [state for state in stage.declared.values() if state.role == "parameter" and not state.bucket]


def whole_matrices(stage):
    return [state.key for state in parameters_of(stage) if not is_cut(state) and len(state.type.shape) > 1]


def exchanges_of(stage):
    """How many exchanges along tp the functions of a step have, by what they are."""
    return collections.Counter(op.name[len("ds."):] for function in stage.functions.values() if not function.is_evaluation()
                               for op in function.body.ops if op.name in EXCHANGES and "tp" in axes_of(op.get("axes")))


def listed(counts):
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count) or "no exchange"


def is_rounding(values, key):
    first = key.rsplit(".", 1)[0] + ".exp_avg"
    return key.rsplit(".", 1)[-1].startswith("exp_avg") and float(values[first].abs().max()) < ZERO


def imported(name, archive, inputs, folder, ids):
    path = os.path.join(folder, "model.mlir")
    ds_opt(archive, *(part for text in inputs for part in ("--input", text)), "--phase=model", "-o", path)
    return Model(name, path, folder, int(inputs[0].split("=")[1].split("x")[0]), ids)


def all_archives(out, names, every):
    """The sources of archives, by one of their forms, and the examples."""
    for source in sorted(glob.glob(SOURCES)):
        name = os.path.splitext(os.path.basename(source))[0]
        if names and name not in names:
            continue
        for form, folder in archives.build(source, os.path.join(out, name), forms=None if every else 1):
            expected, _ = check_archive.read_expected(folder)
            yield imported(f"{name} ({form})" if every else name, check_archive.paths(folder)["model"], expected["inputs"], folder, ids=4)
    for name in sorted(example.export.FAMILIES):
        if not names or name in names:
            folder = os.path.join(out, "examples", name)
            archive, _, inputs = example.export.main([name, "--out", folder, "--data", "2", "--batch", "2"])
            yield imported(f"examples/{name}.py", archive, inputs, folder, ids=4)


def all_families(out, names, every):
    """What config.json can say: each family, by one variant."""
    for family, (_, variants) in hf_variants.FAMILIES.items():
        for variant in list(variants) if every else list(variants)[:1]:
            name = f"{family}-{variant}" if every else family
            if names and name not in names:
                continue
            config, folder = hf_variants.config_of(family, variant), os.path.join(out, name)
            ids = 5 if "image_size" in config else config["vocab_size"]
            larger = [] if every else [configured(name, hf_variants.scaled(config, 8, layers), f"{folder}-{layers}", ids) for layers in (1, 2)]
            yield configured(name, config, folder, ids, larger)


def configured(name, config, folder, ids, larger=()):
    path = os.path.join(folder, "model", "config.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(config, file)
    return Model(name, path, folder, 2, ids, larger)


def read_table(path):
    with open(path) as file:
        return {line.split(":")[0]: line.strip() for line in file if line.strip()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--table", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("kind", choices=["archives", "families"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    torch.set_num_threads(1)
    models = {"archives": all_archives, "families": all_families}[args.kind](args.out, args.names, args.all)
    complaints, lines = [], {}
    for turn, model in enumerate(models):
        lines[model.name] = model.line()
        for mesh in MESHES if args.all else [MESHES[turn % len(MESHES)]]:
            complaints += model.check(mesh)
        print(lines[model.name], flush=True)
    if args.write:
        with open(args.table, "w") as file:
            file.write("".join(f"{line}\n" for line in lines.values()))
    table = read_table(args.table) if args.table else lines
    complaints += [f"{line}\n    the table says  {table.get(name)}" for name, line in lines.items() if table.get(name) != line]
    complaints += [f"{name} is no model any more" for name in table.keys() - lines.keys() if not args.names]
    print("\n".join(complaints) or f"{len(lines)} models are cut as the table says and train as one rank")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
