"""session.py - a program on all ranks of its mesh: steps, evaluations, and its states as whole values.

    ranks = Ranks(read_program(text), starting_values(program), Numbers(rounds=True))
    ranks.step([[{"x": ...}, {"x": ...}]])     one micro-batch, on ranks that read two different samples
    ranks.whole()                              {"w": tensor, "w.exp_avg": tensor, "loss": tensor}

Of any phase whose values are tensors: step (one rank), sharded and resident. Each rank follows the schedule of its stage by
itself and meets others in collectives alone, so that stages may be at different micro-batches, as in a run.
"""

import functools

from .collectives import COLLECTIVES, MESSAGES
from .layouts import Gathered, holdings, lay_out, part_of
from .meetings import Call, Exchange, Meetings, Message

import torch


class Rank:
    """What one rank has: `states` by their names in its stage."""

    def __init__(self, program, number, wholes, numbers):
        self.mesh, self.number, self.numbers = program.mesh, number, numbers
        self.stage = program.stage_of(number)
        self.sample = self.mesh.position(number, program.samples)
        self.holdings = {state.name: holdings(self.stage, state, self.mesh, number) for state in self.stage.states.values()}
        self.states = {state.name: lay_out(state, self.holdings[state.name], self.mesh, wholes, numbers)
                       for state in self.stage.states.values()}
        self.results = {}  # of the last run of each function, by its name

    def follow(self, runs, samples_of):
        """Runs functions, each for its micro-batches; `samples_of(micro_batch)` are the inputs of all samples."""
        for function, first, count in runs:
            for micro_batch in range(first, first + count):
                given = samples_of(micro_batch)
                yield from self.call(function, given[self.sample] if given else {})

    def call(self, function, inputs):
        values = {}
        for (name, kind), binding in zip(function.body.arguments, function.reads):
            if binding is None:
                raise ValueError(f"@{function.name}: argument {name} is neither a state nor an input")
            values[name] = self.states[binding[1]] if binding[0] == "state" else inputs[binding[1]]
            if list(values[name].shape) != kind.shape:
                raise ValueError(f"@{function.name}: {binding[1]} is {list(values[name].shape)}, not {kind.shape}")
        results = yield from self.execute(function.body.ops, values)
        self.results[function.name] = results
        self.states.update({binding[1]: value for binding, value in zip(function.gives, results)
                            if binding and binding[0] == "state"})

    def execute(self, ops, values):
        """The values that the last of `ops` returns; yields what the rank waits for."""
        position = 0
        while ops[position].name != "func.return":
            op = ops[position]
            operands = [values[name] for name in op.operands]
            position += 1
            if op.name in COLLECTIVES:
                axes = self.mesh.resolve(names_of(op))
                result = yield Call(self.number, op, axes, self.mesh.group(self.number, axes), operands[0])
                values[op.results[0]] = self.numbers.typed(op, result, op.types[0])
            elif op.name in MESSAGES:
                side_by_side = exchange_at(ops, position - 1)
                position += len(side_by_side) - 1
                received = yield Exchange(self.number, [self.message(message, values) for message in side_by_side])
                for message, value in zip(side_by_side, received):
                    values.update(zip(message.results, [value]))
            else:
                own = self.of_rank(op, operands)
                results = self.numbers.of_op(op, operands) if own is None else [self.numbers.typed(op, own, op.types[0])]
                values.update(zip(op.results, results))
        return [values[name] for name in ops[position].operands]

    def message(self, op, values):
        axes = self.mesh.resolve(names_of(op))
        peer = self.mesh.group(self.number, axes)[op.get("peer")]
        return Message(self.number, op, axes, peer, values[op.operands[0]] if op.operands else None)

    def of_rank(self, op, operands):
        """What an op gives by which ranks differ, or None."""
        if op.name == "ds.axis_index":
            return torch.tensor(self.mesh.position(self.number, names_of(op)))
        if op.name == "ds.local_shard":
            return part_of(operands[0], self.mesh, self.number, names_of(op))
        return None


@functools.lru_cache(maxsize=None)
def names_of(op):
    """The axes that an op names."""
    return tuple(name.strip().strip('"') for name in op.get("axes").body.split(","))


def exchange_at(ops, first):
    """The messages from `first` on that stand side by side and are one exchange: along the same axes, none sending what
    another of them receives."""
    found, received = [], set()
    for op in ops[first:]:
        if op.name not in MESSAGES or names_of(op) != names_of(ops[first]) or received & set(op.operands):
            return found
        found.append(op)
        received.update(op.results)
    return found


class Ranks:
    def __init__(self, program, wholes, numbers):
        self.program, self.numbers = program, numbers
        self.meetings = Meetings(numbers)
        self.ranks = [Rank(program, number, wholes, numbers) for number in range(program.mesh.size)]

    def step(self, micro_batches):
        """One step: micro_batches[m][s] are the inputs of sample s of micro-batch m."""
        self.meetings.run({rank.number: rank.follow(rank.stage.runs, lambda m: micro_batches[m] if micro_batches else {})
                           for rank in self.ranks})

    def evaluate(self, samples):
        self.meetings.run({rank.number: rank.follow([(rank.stage.evaluation(), 0, 1)], lambda _: samples)
                           for rank in self.ranks if rank.stage.evaluation()})

    def whole(self):
        """Each whole value by its key. Gradients are left out: until they are reduced, ranks have addends of them, and what
        is `gathered_from` a state is a copy of it. Ranks that have the same elements must have the same bits."""
        gathered = {}
        for rank in self.ranks:
            for state in rank.stage.states.values():
                if state.role == "gradient" or state.gathered_from:
                    continue
                part = rank.states[state.name]
                for holding in rank.holdings[state.name]:
                    if holding.key not in gathered:
                        gathered[holding.key] = Gathered(holding.key, holding.shape, part.dtype)
                    gathered[holding.key].add(holding, part, rank.number)
        return {key: value.whole() for key, value in gathered.items()}
