"""agreement.py - a step on n ranks against the same step on one rank.

One rank takes the samples of all ranks as micro-batches, one after the other, in the order in which reductions add them up:
first by micro-batch, then by the rank's position along the mesh's `samples`. Both start from the same whole values.

Batches are lists of lists of lists: batches[step][micro_batch][sample] are inputs by name.
"""

import torch

from .layouts import starting_values
from .session import Ranks


def draw_batches(program, steps, draw):
    """Inputs of so many steps of `program`; draw(name, type) makes one."""
    count = max(run.first + run.count for stage in program.stages for run in stage.runs)
    kinds = {binding[1]: kind for stage in program.stages for function in stage.functions.values()
             for (_, kind), binding in zip(function.body.arguments, function.reads) if binding and binding[0] == "input"}
    samples = range(program.mesh.count(program.samples))
    return [[[{name: draw(name, kind) for name, kind in kinds.items()} for _ in samples] for _ in range(count)]
            for _ in range(steps)]


def train(program, batches, numbers, seed=0):
    """The whole values after these steps, and with them the loss of an evaluation after the first."""
    ranks = Ranks(program, starting_values(program, seed), numbers)
    with torch.no_grad():
        for step, batch in enumerate(batches):
            ranks.step(batch)
            if step == 0:
                ranks.evaluate(batch[0])
    return ranks.whole()


def train_alone(program, batches, numbers, seed=0):
    """The same by a program of one rank."""
    micro_batches = len(batches[0]) * len(batches[0][0])
    own = max(run.first + run.count for run in program.stages[0].runs)
    if program.mesh.size != 1 or own != micro_batches:
        raise ValueError(f"expects one rank that takes {micro_batches} micro-batches a step, but got {program.mesh.size} that "
                         f"take {own}")
    ranks = Ranks(program, starting_values(program, seed), numbers)
    losses = []
    with torch.no_grad():
        for step, batch in enumerate(batches):
            ranks.step([[sample] for samples in batch for sample in samples])
            for sample in batch[0] if step == 0 and program.stages[0].evaluation() else []:
                ranks.evaluate([sample])
                losses.append(ranks.ranks[0].states["eval_loss"])
    result = ranks.whole()
    if losses:
        result["eval_loss"] = mean_of(losses, numbers)
    return result


def mean_of(losses, numbers):
    """As ranks form it: a sum in their order, times a constant in f32."""
    total = losses[0]
    for loss in losses[1:]:
        total = numbers.settle(total + loss, "f32")
    return numbers.settle(total * torch.tensor(1 / len(losses)).double(), "f32")


def differences(ours, theirs, tolerance):
    """[complaint] of each value of one rank that n ranks lack or have otherwise, by more than `tolerance` times its largest
    element."""
    complaints = [f"no rank has {key}" for key in theirs if key not in ours]
    for key in theirs.keys() & ours.keys():
        off = difference(ours[key], theirs[key])
        if not off <= tolerance:
            complaints.append(f"{key} is off by {off:.3g} of its largest element")
    return sorted(complaints)


def difference(value, expected):
    """The largest difference, of the largest expected element; infinite where only one of two is NaN."""
    if not expected.numel():
        return 0.0
    value, expected = value.double(), expected.double()
    if (value.isnan() != expected.isnan()).any():
        return float("inf")
    off, scale = (value - expected).abs().nan_to_num().max(), expected.abs().nan_to_num().max()
    return float(off / scale) if scale else float(off)


def random_inputs(seed=1, ids=4):
    """Draws inputs: floats, and integers below `ids`."""
    generator = torch.Generator().manual_seed(seed)

    def draw(name, kind):
        if kind.element.startswith("i"):
            return torch.randint(0, ids, kind.shape, generator=generator)
        return torch.randn(kind.shape, generator=generator, dtype=torch.float64)
    return draw
