"""program.py - what a module says to its ranks: a mesh, and for each stage of a pipeline states, functions and a schedule.

A module without stages has one. Of a module with several, a stage has the segments of its number, the runs of its schedule
and the states that those functions name; stages that are modules of their own, nested, have what stands in them.
"""

import re
from collections import namedtuple

from .ir import Attr, read_modules
from .mesh import Mesh

Run = namedtuple("Run", "function first count")


class Function:
    """`reads` and `gives` say of each argument and result what it is: ("state", name), ("input", name) or None. `where` tells
    functions of one name on several stages apart."""

    def __init__(self, op, where=""):
        self.name, self.body = op.get("sym_name"), op.regions[0]
        self.reads = bindings(op.get("arg_attrs"), len(self.body.arguments))
        self.gives = bindings(op.get("res_attrs"), len(self.body.ops[-1].operands))
        self.stage, self.works = segment_of(op)
        for position, inner in enumerate(self.body.ops):
            inner.place = f"{where}@{self.name}, op {position}"

    def is_evaluation(self):
        return "evaluation" in self.works

    def states(self):
        return {name for kind, name in filter(None, self.reads + self.gives) if kind == "state"}


class State:
    """`cuts` are the axes that cut each dimension of `view`, which may have more rows than exist, and `pieces` what the cut dimension
    consists of. `key` names the whole value: a parameter's, scalar's or buffer's is its name; what belongs to a parameter is
    PARAMETER.SLOT, however it is called here; a bucket's has none of its own."""

    def __init__(self, op):
        self.name, self.role, self.slot = op.get("sym_name"), op.get("role"), op.get("slot")
        self.type, self.init, self.trainable = op.get("type"), op.get("init"), op.has("trainable")
        self.bucket, self.owner, self.gathered_from = op.get("bucket"), op.get("owner"), op.get("gathered_from")
        self.view, self.pieces = op.get("view") or self.type.shape, op.get("pieces")
        self.cuts = [axes_of(cut) for cut in op.get("shards", [])] or [[] for _ in self.view]
        self.key = f"{self.owner}.{self.slot}" if self.owner else self.name


class Bucket:
    def __init__(self, op):
        self.name, self.members, self.offsets = op.get("sym_name"), op.get("members"), op.get("offsets")


class Stage:
    """What the ranks of one stage run; `runs` are those of a step."""

    def __init__(self, number, ops, is_alone, where=""):
        states = [State(op) for op in ops if op.name == "ds.state"]
        self.buckets = {bucket.name: bucket for bucket in (Bucket(op) for op in ops if op.name == "ds.bucket")}
        functions = [Function(op, where) for op in ops if op.name == "func.func"]
        self.functions = {function.name: function for function in functions if is_alone or function.stage == number}
        self.declared = {state.name: state for state in states}
        named = {name for function in self.functions.values() for name in function.states()}
        members = {member for bucket in self.buckets.values() for member in bucket.members}
        self.states = {state.name: state for state in states
                       if state.name in named or (is_alone and state.name not in members)}
        self.runs = self.read_runs(number, [op for op in ops if op.name == "ds.schedule"], is_alone)

    def read_runs(self, number, schedules, is_alone):
        """Where there is no schedule, a step runs each function once, in the order of the text."""
        runs = [Run(self.functions[name], int(first), int(count))
                for schedule in schedules if is_alone or schedule.get("stage") == number
                for name, first, count in (re.match(r"@([\w.$-]+), first (\d+), count (\d+)", run.body).groups()
                                           for run in schedule.get("runs"))]
        if schedules:
            return runs
        return [Run(function, 0, 1) for function in self.functions.values() if not function.is_evaluation()]

    def evaluation(self):
        """The function that evaluates, or None."""
        return next((function for function in self.functions.values() if function.is_evaluation()), None)


class Program:
    """`samples` are the axes along which ranks read different samples, `pipeline` those along which they are of other stages."""

    def __init__(self, module):
        ops = module.regions[0].ops
        meshes = [op for op in ops if op.name == "ds.mesh"]
        nested = [op.regions[0].ops for op in ops if op.name == "builtin.module"]
        if nested and not meshes:
            meshes = [op for op in nested[0] if op.name == "ds.mesh"]
        self.mesh = Mesh(meshes[0].get("axes"), meshes[0].get("sizes")) if meshes else Mesh()
        self.samples, self.pipeline = (axes_of(meshes[0].get(key)) if meshes else [] for key in ("samples", "stages"))
        numbers = range(self.mesh.count(self.pipeline))
        if nested:
            if len(nested) != len(numbers):
                raise ValueError(f"the mesh {self.mesh} has {len(numbers)} stages, but {len(nested)} modules are there")
            bodies = dict((stage_number(body, position), body) for position, body in enumerate(nested))
            if sorted(bodies) != list(numbers):
                raise ValueError(f"the modules are of stages {sorted(bodies)}, but the mesh {self.mesh} has {len(numbers)}")
            self.stages = [Stage(number, bodies[number], True, f"stage {number} ") for number in numbers]
        else:
            self.stages = [Stage(number, ops, len(numbers) == 1) for number in numbers]
            unknown = [op.get("sym_name") for op in ops if op.name == "func.func" and segment_of(op)[0] not in numbers]
            if unknown:
                raise ValueError(f"@{unknown[0]} is of a stage that the mesh {self.mesh} does not have: `stages` names its axes")

    def stage_of(self, rank):
        return self.stages[self.mesh.position(rank, self.pipeline)]


def stage_number(ops, position):
    """Which stage a nested module is: its segments say it, or where there are none its position."""
    return next((segment_of(op)[0] for op in ops if op.name == "func.func" and op.has("ds.segment")), position)


def segment_of(op):
    """(the stage, the kinds of work) of a function; stage 0 where nothing is said."""
    words = op.get("ds.segment", Attr("", "")).body.replace(",", " ").split()
    numbers = {key: int(value) for key, value in zip(words, words[1:]) if key in ("stage", "chunk")}
    return numbers.get("stage", 0), {word for word in words if word.isalpha()} - {"stage", "chunk"}


def bindings(entries, count):
    found = [next(((key[len("ds."):], value) for key, value in entry.items() if key in ("ds.state", "ds.input")), None)
             for entry in entries or []]
    return found + [None] * (count - len(found))


def axes_of(attribute):
    """The names of an #ds.axes, or none."""
    if not isinstance(attribute, Attr):
        return []
    return [name.strip().strip('"') for name in attribute.body.split(",")]


def read_program(text):
    return Program(read_modules(text)[0])
