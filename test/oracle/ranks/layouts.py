"""layouts.py - which elements of whole values a rank holds, to lay whole values out and to gather them again.

A state's declaration says what part of it a rank has: cuts by dimension, and of a bucket the places of its members' parts and
then its own cut. Both come to the same: a list of `Holding`s, which say by number which elements of which whole value lie
where. What lies between, the padding, is zero and in no whole value.
"""

import math
import zlib
from collections import namedtuple

import torch

import evaluate

# Elements `there` of the whole value `key`, of this shape, lie at `here`, both row-major.
Holding = namedtuple("Holding", "key shape here there")


class Layout:
    """How a value is cut. `view` is the shape in which `cuts` count, with the elements in the same order; of `existing` rows,
    fewer than the first dimension has, the others are padding. `pieces`, where there are any, make up the dimension that is cut:
    a rank has its part of each."""

    def __init__(self, shape, cuts, view=None, existing=None, pieces=None):
        self.view, self.cuts, self.pieces = list(view or shape), cuts, pieces
        self.existing = math.prod(shape) if existing is None else existing * math.prod(shape[1:])

        self.shape = shape

    def part_shape(self, mesh):
        """The shape of a rank's part: each dimension is the product of what is left of those of the view that make it."""
        left = [(size, size // mesh.count(axes)) for size, axes in zip(self.view, self.cuts)]
        if left:
            left[0] = self.existing // math.prod(self.view[1:]), left[0][1]  # of the first, what exists
        result = []
        for size in self.shape:
            whole = part = 1
            while left and (whole < size or left[0][0] == 1):
                (of_whole, of_part), *left = left
                whole, part = whole * of_whole, part * of_part
            result.append(part)
        return result

    def elements(self, mesh, rank):
        """The numbers of the elements that `rank` has, in the shape of its part; -1 stands for padding."""
        numbers = torch.arange(math.prod(self.view)).reshape(self.view)
        for dim, axes in enumerate(self.cuts):
            if axes:
                parts = [part_of(piece, mesh, rank, axes, dim) for piece in numbers.split(self.pieces or numbers.shape[dim], dim)]
                numbers = torch.cat(parts, dim)
        return torch.where(numbers < self.existing, numbers, -1)


def part_of(value, mesh, rank, axes, dim=0):
    """Part r of n equal parts along `dim`, r being the rank's position along `axes`."""
    count, size = mesh.count(axes), value.shape[dim]
    if size % count:
        raise ValueError(f"{count} ranks along {', '.join(axes)} do not divide {size} elements")
    return value.narrow(dim, mesh.position(rank, axes) * (size // count), size // count)


def layout_of(state):
    return Layout(state.type.shape, state.cuts, state.view, pieces=state.pieces)


def holdings(stage, state, mesh, rank):
    """What `state` holds on `rank`."""
    own = layout_of(state).elements(mesh, rank).reshape(-1)
    if not state.bucket:
        return [Holding(state.key, state.type.shape, (own >= 0).nonzero()[:, 0], own[own >= 0])]
    bucket, first, result = stage.buckets[state.bucket], int(own[0]), []
    for member, offset in zip(bucket.members, bucket.offsets):
        declared = stage.declared[member]
        there = layout_of(declared).elements(mesh, rank).reshape(-1)
        here = torch.arange(offset, offset + there.numel()) - first
        inside = (here >= 0) & (here < own.numel()) & (there >= 0)
        key = member if state.role == "parameter" else f"{member}.{state.slot}"
        if inside.any():
            result.append(Holding(key, declared.type.shape, here[inside], there[inside]))
    return result


def lay_out(state, held, mesh, wholes, numbers):
    """The part of `state` that a rank starts with, of which it holds `held`."""
    shape = layout_of(state).part_shape(mesh)
    part = torch.zeros(math.prod(shape), dtype=evaluate.dtype(state.type.element))
    for holding in held:
        part[holding.here] = wholes[holding.key].reshape(-1)[holding.there].to(part.dtype)
    return numbers.settle(part.reshape(shape), state.type.element)


class Gathered:
    """A whole value, as far as ranks have brought their parts."""

    def __init__(self, key, shape, dtype):
        self.key, self.shape = key, shape
        self.values = torch.zeros(math.prod(shape), dtype=dtype)
        self.ranks = torch.full([math.prod(shape)], -1)  # who brought each element

    def add(self, holding, part, rank):
        """Takes a part; complains where another rank has other bits."""
        there, values = holding.there, part.reshape(-1)[holding.here]
        known, old = self.ranks[there] >= 0, self.values[there]
        differs = known & ~((old == values) | (old != old) & (values != values))
        if differs.any():
            place = int(differs.nonzero()[0])
            raise ValueError(f"ranks {int(self.ranks[there][place])} and {rank} differ in element {int(there[place])} of "
                             f"{self.key}: {old[place].item()} and {values[place].item()}")
        self.values[there], self.ranks[there] = values, torch.where(known, self.ranks[there], rank)

    def whole(self):
        missing = (self.ranks < 0).nonzero()
        if len(missing):
            raise ValueError(f"no rank has element {int(missing[0])} of {self.key}")
        return self.values.reshape(self.shape)


def starting_values(program, seed=0):
    """A whole value for each key of `program`, the same for programs of one model however they are divided.

    Parameters are random, also those that would start with one number: nothing hides then. Masters are what the parameters
    are; generators have a seed that is not 0; all else starts as its state says."""
    result = {}
    for stage in program.stages:
        for state in stage.states.values():
            bucket = stage.buckets.get(state.bucket)
            for name in bucket.members if bucket else [state.owner]:
                parameter = stage.declared.get(name, state)
                key = state.key if not bucket else name if state.role == "parameter" else f"{name}.{state.slot}"
                source = parameter if state.role in ("parameter", "master") else state
                result[key] = start_of(source, state.role, parameter.type.shape if bucket else state.type.shape, seed)
    return result


def start_of(state, role, shape, seed):
    kind, *numbers = [word.strip() for word in state.init.body.split(",")]
    first, second = (float(number) for number in numbers)
    if role in ("parameter", "master"):
        generator = torch.Generator().manual_seed(zlib.crc32(state.name.encode()) + seed)
        scale = second if kind == "normal" else 0.1
        mean = first if kind in ("normal", "constant") else 0.0
        return torch.randn(shape, generator=generator, dtype=torch.float64) * scale + mean
    if role == "scalar" and shape == [2] and state.type.element == "i64":
        return torch.tensor([11 + seed, 0])
    return torch.full(shape, first if kind == "constant" else 0.0, dtype=evaluate.dtype(state.type.element))
