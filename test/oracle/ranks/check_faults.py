#!/usr/bin/python3
"""check_faults.py - faults that are put into a step on n ranks, each of which must be found.

    check_faults.py --out DIR [--list]      needs ds-opt on PATH

A step of ZeRO 3 for four ranks runs on a mesh of two nodes, as it is and with one fault at a time: every collective is left
out, on all ranks or on one, has other axes, another kind, or is swapped with the next; windows and places in buckets are
moved; ranks draw the numbers of the first.  As it is it must agree with one rank to 1e-9; with a fault it must differ, or ranks must
not fit together.
"""

import argparse
import copy
import os
import re
import sys
from collections import Counter

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ranks.agreement import differences, draw_batches, random_inputs, train, train_alone  # noqa: E402
from ranks.collectives import COLLECTIVES  # noqa: E402
from ranks.compiling import compile_ranks  # noqa: E402
from ranks.ir import Attr, Op  # noqa: E402
from ranks.meetings import Mismatch  # noqa: E402
from ranks.mesh import Mesh  # noqa: E402
from ranks.values import Numbers  # noqa: E402

CONFIG = {"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.1, "optimizer": {"type": "AdamW", "params": {"lr": 0.05}},
          "zero_optimization": {"stage": 3, "reduce_bucket_size": 2000, "stage3_param_persistence_threshold": 50}}
RANKS, STEPS, ACCUMULATION = 4, 1, 2


def replaced(op, name, operands=None, **attributes):
    """Another op in the place of `op`."""
    new = Op(name, op.results, op.operands if operands is None else operands)
    new.types, new.operand_types, new.place = op.types, op.operand_types, op.place
    new.attributes = {**op.attributes, **attributes}
    return new


def left_out(op):
    """What keeps the types of a collective and sends nothing."""
    if op.name == "ds.all_gather":
        return replaced(op, "ds.concat", op.operands * RANKS, dim=0)
    return replaced(op, "ds.local_shard" if op.name == "ds.reduce_scatter" else "ds.reshape")


def faults_of_op(ops, position):
    """[(kind, the ops with a fault, whether one rank alone has it)]."""
    op = ops[position]

    def changed(*new):
        return ops[:position] + list(new) + ops[position + 1:]

    if op.name in COLLECTIVES:
        yield "left out", changed(left_out(op)), False
        yield "left out on one rank", changed(left_out(op)), True
        for axes in ("dp.node", "dp.local") if op.name == "ds.all_reduce" else ():  # of others the type says it
            yield "other axes", changed(replaced(op, op.name, axes=Attr("ds.axes", axes))), False
        if op.get("kind") == "sum":
            yield "maximum for sum", changed(replaced(op, op.name, kind="max")), False
        later = next((index for index in range(position + 1, len(ops)) if ops[index].name in COLLECTIVES), None)
        if later and not depends(ops, position, later):
            swapped = changed()
            swapped.insert(later, op)
            yield "swapped on one rank", sorted_by_need(swapped), True
    elif op.name == "ds.local_shard":
        yield "part of the first rank", changed(replaced(op, "ds.slice", offsets=[0], strides=[1])), False
    elif op.name == "ds.slice" and len(op.types[0].shape) == 1:
        (offset,), whole, size = op.get("offsets"), op.operand_types[0].shape[0], op.types[0].shape[0]
        moved = offset + 32 if offset + 32 + size <= whole else offset - 32
        if moved >= 0:
            yield "window moved", changed(replaced(op, op.name, offsets=[moved])), False


def depends(ops, first, later):
    """Whether the op at `later` needs the one at `first`, over those between."""
    made = set(ops[first].results)
    for op in ops[first + 1:later + 1]:
        if made & set(op.operands):
            made.update(op.results)
            if op is ops[later]:
                return True
    return False


def sorted_by_need(ops):
    """`ops` with each behind those whose results it reads, otherwise in their order."""
    known, result, waiting = {name for op in ops for name in op.operands} - {name for op in ops for name in op.results}, [], []
    for op in ops:
        waiting.append(op)
        moved = True
        while moved:
            ready = [each for each in waiting if set(each.operands) <= known]
            moved = bool(ready)
            result += ready
            known.update(name for each in ready for name in each.results)
            waiting = [each for each in waiting if each not in ready]
    return result


def faults(program):
    """(kind, what, program, whether one rank alone has it) of every fault."""
    stage = program.stages[0]
    for name, function in stage.functions.items():
        ops = function.body.ops
        for position, op in enumerate(ops):
            for kind, new, is_of_one in faults_of_op(ops, position):
                other = copy.copy(program)
                other.stages = [with_body(stage, name, new)]
                yield kind, f"{op.name} ({op.place})", other, is_of_one
    for bucket in stage.buckets.values():
        for index in range(len(bucket.members)):
            other = copy.copy(program)
            other.stages = [copy.copy(stage)]
            moved = copy.copy(bucket)
            moved.offsets = [offset + 32 * (position == index) for position, offset in enumerate(bucket.offsets)]
            other.stages[0].buckets = {**stage.buckets, bucket.name: moved}
            yield "place moved", f"{bucket.members[index]} in {bucket.name}", other, False


def with_body(stage, name, ops):
    """`stage` with other ops in its function `name`."""
    stage, function = copy.copy(stage), copy.copy(stage.functions[name])
    function.body = function.body._replace(ops=ops)
    stage.functions = {**stage.functions, name: function}
    stage.runs = [run._replace(function=stage.functions[run.function.name]) for run in stage.runs]
    return stage


class OfOneRank:
    """A program of which rank 1 runs another text."""

    def __init__(self, program, other):
        self.mesh, self.samples, self.stages, self.other = program.mesh, program.samples, program.stages, other

    def stage_of(self, rank):
        return (self.other if rank == 1 else self).stages[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--list", action="store_true", help="print how each fault is found")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "model.mlir")
    many, one = (compile_ranks(model, {**CONFIG, "gradient_accumulation_steps": accumulation}, ranks, args.out)
                 for ranks, accumulation in ((RANKS, ACCUMULATION), (1, RANKS * ACCUMULATION)))
    many.mesh = Mesh(["dp.node", "dp.local"], [2, 2])  # "dp" is both
    numbers, batches = Numbers(rounds=False), draw_batches(many, STEPS, random_inputs(ids=12))
    theirs = train_alone(one, batches, numbers)
    complaints, found = [f"without a fault: {text}" for text in differences(train(many, batches, numbers), theirs, 1e-9)], Counter()
    for kind, what, program, is_of_one in faults(many):
        try:
            ways = differences(train(OfOneRank(many, program) if is_of_one else program, batches, Numbers(rounds=False)), theirs, 1e-9)
            way = ways[0] if ways and not is_of_one else None
        except Mismatch as error:
            way = str(error).splitlines()[0]
        except (ValueError, IndexError, RuntimeError) as error:
            way = None if is_of_one else str(error)
        found[kind] += 1
        if args.list:
            print(f"{kind}, {what}: {way}")
        if not way:
            complaints.append(f"not found: {kind}, {what}")
    print("\n".join(complaints or [f"{kind}: {count} faults, each found" for kind, count in found.items()]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
