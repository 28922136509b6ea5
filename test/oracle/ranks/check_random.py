#!/usr/bin/python3
"""check_random.py - random programs of collectives over random meshes, against what NumPy makes of all ranks at once.

    check_random.py [--programs 60] [--ops 12] [--first 0]      needs ds-opt on PATH

The reference has no ranks: a value is one array whose first dimensions are the axes of the mesh, and a collective along a set
of axes works on these dimensions. Of a mesh with stages each stage has a text of its own, and some values go from one to
another by messages, others through collectives of several stages. The numbers are small integers, so that sums are exact.
"""

import argparse
import math
import os
import random
import subprocess
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ranks.ir import read_modules  # noqa: E402
from ranks.program import Program  # noqa: E402
from ranks.session import Ranks  # noqa: E402
from ranks.values import Numbers  # noqa: E402


STAGES = ["pp", "depth"]  # names of the axis of stages: which one it is says the mesh's set


def random_mesh(rng):
    """[(name, size)] of one to four axes, 2 to 24 ranks; sub-axes come in pairs."""
    while True:
        axes = [(rng.choice(STAGES), rng.choice([2, 3]))] if rng.random() < 0.4 else []
        axes += rng.choice([[("dp", rng.choice([2, 3, 4]))], [("dp.node", 2), ("dp.local", rng.choice([2, 3]))], []])
        axes += [("sp", 2)] if rng.random() < 0.3 else []
        axes += rng.choice([[("tp", rng.choice([2, 3]))], [("tp.head", 2), ("tp.copy", 2)], []])
        if 2 <= math.prod(size for _, size in axes) <= 24:
            return axes


def spell(shape):
    return f"tensor<{''.join(f'{size}x' for size in shape)}i64>"


class Stage:
    """The text of one stage, and its values: names to arrays whose first dimensions are the other axes."""

    def __init__(self, number):
        self.number, self.lines, self.values, self.results = number, [], {}, []

    def add(self, text, array):
        """A line that gives a new value."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}" if array is not None else text)
        if array is not None:
            self.values[name] = array

    def add_start(self, axes):
        """A number of its own for each element of each rank."""
        shape = [size for _, size in axes]
        count = self.number * math.prod(shape) * 24 + np.arange(math.prod(shape)).reshape(shape) * 24
        names = ", ".join(dict.fromkeys(name.split(".")[0] for name, _ in axes))
        self.lines += [f"%i = ds.axis_index ({names}) : tensor<i64>" if axes else "%i = ds.constant dense<0> : tensor<i64>",
                       f"%first = ds.constant dense<{self.number * math.prod(shape) * 24}> : tensor<i64>",
                       "%size = ds.constant dense<24> : tensor<i64>", "%own = ds.mul %i, %size : tensor<i64>",
                       "%at = ds.add %own, %first : tensor<i64>",
                       "%wide = ds.broadcast %at dims [] : tensor<i64> -> tensor<24xi64>",
                       "%count = ds.iota dim 0 start 0 step 1 : tensor<24xi64>"]
        self.add("ds.add %wide, %count : tensor<24xi64>", count[..., None] + np.arange(24))

    def text(self, with_stages):
        attributes = f" attributes {{ds.segment = #ds.segment<stage {self.number}, chunk 0, forward>}}" if with_stages else ""
        names = list(self.values)
        types = ", ".join(spell(self.values[name].shape[-1:]) for name in names)
        body = "".join(f"    {line}\n" for line in self.lines)
        return (f"  func.func @stage{self.number}() -> ({types}){attributes} {{\n{body}"
                f"    return {', '.join(names)} : {types}\n  }}\n")


def groups(array, dims):
    """`array` with the dimensions `dims`, of ranks, as one in front."""
    moved = np.moveaxis(array, dims, range(len(dims)))
    return moved.reshape(math.prod(array.shape[dim] for dim in dims), *moved.shape[len(dims):])


def ungroup(array, like, dims):
    """The inverse of `groups`, of an array with the ranks of `like`."""
    split = array.reshape(*[like.shape[dim] for dim in dims], *array.shape[1:])
    return np.moveaxis(split, range(len(dims)), dims)


def reference(kind, array, dims, root):
    """What `kind` gives all ranks. The group is dimension 0 of `whole`, the elements are the last."""
    whole = groups(array, dims)
    count, size = len(whole), whole.shape[-1]
    if kind == "all_gather":
        result = np.broadcast_to(np.concatenate(list(whole), -1), (*whole.shape[:-1], count * size))
    elif kind == "collective_broadcast":
        result = np.broadcast_to(whole[root], whole.shape)
    elif kind == "all_to_all":
        parts = whole.reshape(*whole.shape[:-1], count, size // count)  # [from, ..., to, element]
        result = np.moveaxis(np.moveaxis(parts, -2, 0), 1, -2).reshape(whole.shape)
    elif kind == "local_shard":
        result = np.stack([whole[rank][..., rank * (size // count):(rank + 1) * (size // count)] for rank in range(count)])
    else:
        reduced = {"sum": np.sum, "max": np.max, "min": np.min}[kind.split()[1]](whole, 0)
        parts = reduced.reshape(*reduced.shape[:-1], count, size // count) if "scatter" in kind else None
        result = np.broadcast_to(reduced, whole.shape) if parts is None else np.moveaxis(parts, -2, 0)
    return ungroup(np.ascontiguousarray(result), array, dims)


KINDS = ["all_gather", "collective_broadcast", "all_to_all", "local_shard"] + [
    f"{name} {kind}" for name in ("all_reduce", "reduce_scatter") for kind in ("sum", "max", "min")]


class Generator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.axes = random_mesh(self.rng)
        self.has_stages = self.axes[0][0] in STAGES
        self.others = self.axes[1:] if self.has_stages else self.axes
        self.stages = [Stage(number) for number in range(self.axes[0][1] if self.has_stages else 1)]
        for stage in self.stages:
            stage.add_start(self.others)

    def pick_axes(self, axes):
        """A spelling of some axes, in any order, and their dimensions among `axes`."""
        chosen = self.rng.sample(axes, self.rng.randint(1, len(axes)))
        names = [name for name, _ in chosen]
        for whole in ("dp", "tp"):  # sub-axes that are all there may be named as one
            parts = [name for name, _ in axes if name.startswith(whole + ".")]
            if parts and set(parts) <= set(names) and self.rng.random() < 0.5:
                names = [name for name in names if name not in parts] + [whole]
        return f"({', '.join(names)})", sorted(axes.index(axis) for axis in chosen)

    def spell_op(self, kind, value, shape, names, result, root):
        mnemonic, _, reduction = kind.partition(" ")
        text = f"ds.{mnemonic} {reduction + ' ' if reduction else ''}{value}{f' root {root}' if 'broadcast' in kind else ''} along {names}"
        changes = mnemonic in ("all_gather", "reduce_scatter", "local_shard")
        return f"{text} : {spell(shape)}" + (f" -> {spell(result)}" if changes else "")

    def fits(self, kind, size, count):
        if kind == "all_gather":
            return size * count <= 96
        return size % count == 0 if kind.split()[0] in ("all_to_all", "local_shard", "reduce_scatter") else True

    def add_within(self):
        """A collective of one stage's ranks, along axes other than the pipeline's."""
        stage, kind = self.rng.choice(self.stages), self.rng.choice(KINDS)
        value, array = self.rng.choice(list(stage.values.items()))
        if self.others:
            names, dims = self.pick_axes(self.others)
            count = math.prod(array.shape[dim] for dim in dims)
            if self.fits(kind, array.shape[-1], count):
                root = self.rng.randrange(count)
                result = reference(kind, array, dims, root)
                stage.add(self.spell_op(kind, value, array.shape[-1:], names, result.shape[-1:], root), result)

    def add_across(self):
        """A collective along the pipeline's axis and perhaps others, at which all stages meet."""
        kind = self.rng.choice(KINDS)
        size = self.rng.choice([array.shape[-1] for array in self.stages[0].values.values()])
        chosen = [self.rng.choice([name for name, array in stage.values.items() if array.shape[-1] == size] or [None])
                  for stage in self.stages]
        names, dims = self.pick_axes(self.axes)
        count = math.prod(self.axes[dim][1] for dim in dims)
        if None in chosen or 0 not in dims or not self.fits(kind, size, count):
            return
        root = self.rng.randrange(count)
        array = np.stack([stage.values[name] for stage, name in zip(self.stages, chosen)])
        result = reference(kind, array, dims, root)
        for stage, name in zip(self.stages, chosen):
            stage.add(self.spell_op(kind, name, [size], names, result.shape[-1:], root), result[stage.number])

    def add_message(self):
        source, target = self.rng.sample(self.stages, 2)
        value, array = self.rng.choice(list(source.values.items()))
        source.add(f"ds.send {value} to {target.number} along {self.axes[0][0]} : {spell(array.shape[-1:])}", None)
        target.add(f"ds.recv from {source.number} along {self.axes[0][0]} : {spell(array.shape[-1:])}", array)

    def make(self, ops):
        for _ in range(ops):
            self.rng.choice([self.add_within] * 2 + [self.add_across, self.add_message] * self.has_stages)()
        axes = ", ".join(f"{name} = {size}" for name, size in self.axes)
        stages = f" stages {self.axes[0][0]}" if self.has_stages else ""
        return f"module {{\n  ds.mesh @mesh axes [{axes}]{stages}\n" + "".join(stage.text(self.has_stages) for stage in self.stages) + "}\n"

    def complaints(self, module):
        """What the interpreter gives otherwise."""
        ranks = Ranks(Program(module), {}, Numbers(rounds=True))
        ranks.step([[{}] * 24])
        shape = [size for _, size in self.axes]
        for rank in ranks.ranks:
            place = list(np.unravel_index(rank.number, shape))
            stage = self.stages[place.pop(0) if self.has_stages else 0]
            for (name, array), value in zip(stage.values.items(), rank.results[f"stage{stage.number}"]):
                if not np.array_equal(array[tuple(place)], value.numpy()):
                    yield f"mesh {self.axes}: {name} of stage {stage.number} on rank {rank.number} is {value.tolist()}, not {array[tuple(place)]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--ops", type=int, default=12)
    args = parser.parse_args()
    generators = [Generator(seed) for seed in range(args.first, args.first + args.programs)]
    text = "// -----\n".join(generator.make(args.ops) for generator in generators)
    done = subprocess.run(["ds-opt", "-", "--split-input-file", "--mlir-print-op-generic"], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"ds-opt fails:\n{done.stderr}")
    complaints = [text for generator, module in zip(generators, read_modules(done.stdout)) for text in generator.complaints(module)]
    values = sum(len(stage.values) for generator in generators for stage in generator.stages)
    print("\n".join(complaints[:10]) or f"{values} values of {len(generators)} programs are what NumPy says")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
