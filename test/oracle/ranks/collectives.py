"""collectives.py - what each collective gives to the ranks of a group, from its description.

A definition takes the tensors of the group in order and the op, and returns the group's results in order.
"""

import torch


def combine(values, op, numbers):
    """Element by element, in rank order; 16-bit numbers in f32, rounded at the end."""
    element = op.operand_types[0].element
    wide = "f32" if element in ("f16", "bf16") else element
    total = values[0]
    for value in values[1:]:
        total = numbers.settle(COMBINE[op.get("kind")](total, value), wide)
    return numbers.settle(total, element)


def all_gather(values, op, numbers):
    return [torch.cat(values)] * len(values)


def reduce_scatter(values, op, numbers):
    return list(combine(values, op, numbers).chunk(len(values)))


def all_reduce(values, op, numbers):
    return [combine(values, op, numbers)] * len(values)


def broadcast(values, op, numbers):
    return [values[op.get("root")]] * len(values)


def all_to_all(values, op, numbers):
    parts = [value.chunk(len(values)) for value in values]
    return [torch.cat([sent[rank] for sent in parts]) for rank in range(len(values))]


COMBINE = {"sum": torch.add, "max": torch.maximum, "min": torch.minimum}

COLLECTIVES = {"ds.all_gather": all_gather, "ds.reduce_scatter": reduce_scatter, "ds.all_reduce": all_reduce,
               "ds.collective_broadcast": broadcast, "ds.all_to_all": all_to_all}

MESSAGES = ("ds.send", "ds.recv")

BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i1": 1, "i8": 1}


def sent_bytes(op, ranks):
    """Bytes that one rank of a group of so many sends, as the descriptions count them."""
    if op.name == "ds.recv":
        return 0
    kind = op.operand_types[0]
    elements = 1
    for size in kind.shape:
        elements *= size
    size = BYTES[kind.element]
    return {"ds.all_gather": (ranks - 1) * elements * size, "ds.reduce_scatter": (ranks - 1) * elements // ranks * size,
            "ds.all_reduce": 2 * (ranks - 1) * -(-elements // ranks) * size,
            "ds.all_to_all": (ranks - 1) * elements // ranks * size}.get(op.name, elements * size)
