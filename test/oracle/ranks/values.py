"""values.py - what each op computes, in numbers of the types that it says.

Values are PyTorch tensors, all floats in double precision. `Numbers(rounds=True)` rounds each result to its type: an op on
f32 or 16 bits gives the exact value, rounded once, by way of f32 for 16 bits, as the product's kernels widen them. So no
order of additions within an op shows, and ranks and one rank that do the same to the same parts get the same bits.
`Numbers(rounds=False)` rounds nothing: a sum in any order agrees to 1e-12, and a difference is a mistake.

The ops are those of evaluate.py, but for those with a region and those that n ranks must do as one rank does.
"""

import math
import re

import torch

import evaluate

from . import philox
from .ir import Dense

ROUNDED = {"f32": [torch.float32], "f16": [torch.float32, torch.float16], "bf16": [torch.float32, torch.bfloat16]}

# Ops whose results are elements of their operands, which have been rounded.
MOVES = {f"ds.{name}" for name in ("after", "axis_index", "broadcast", "collective_broadcast", "all_gather", "all_to_all", "concat",
                                   "local_shard", "load", "max", "min", "move", "neg", "pad", "presume", "reshape", "select",
                                   "slice", "split", "store", "transpose")}


class Numbers:
    def __init__(self, rounds):
        self.rounds, self.made = rounds, {}

    def settle(self, value, element):
        """`value` as a value of this element type."""
        if self.rounds and element in ROUNDED:
            for narrow in ROUNDED[element]:
                value = value.to(narrow)
            return value.double()
        return value

    def of_op(self, op, operands):
        """The results of an op that depends on its operands alone."""
        if not operands:  # constants are made once
            if op not in self.made:
                self.made[op] = [self.typed(op, OPS[op.name](op), op.types[0])]
            return self.made[op]
        results = OPS[op.name](op, *operands) if op.name in OPS else self.of_region(op, operands)
        results = results if isinstance(results, (tuple, list)) else [results]
        return [self.typed(op, value, kind) for value, kind in zip(results, op.types)]

    def typed(self, op, value, kind):
        if list(value.shape) != kind.shape:
            raise ValueError(f"{op.place}: {op.name} gives {list(value.shape)} where its type says {kind.shape}")
        if value.dtype != evaluate.dtype(kind.element):
            raise ValueError(f"{op.place}: {op.name} gives {value.dtype} where its type says {kind.element}")
        return value if op.name in MOVES else self.settle(value, kind.element)

    def of_region(self, op, operands):
        """What an op yields whose body reads its first operands."""
        if not op.regions:
            raise ValueError(f"{op.place}: no definition of {op.name}")
        block = op.regions[0]
        values = {name: value for (name, _), value in zip(block.arguments, operands)}
        for inner in block.ops:
            read = [values[name] for name in inner.operands]
            if inner.name == "ds.yield":
                return read
            inner.place = inner.place or op.place
            values.update(zip(inner.results, self.of_op(inner, read)))
        raise ValueError(f"{op.place}: {op.name} does not yield")


def constant(op):
    value, (shape, element) = op.get("value"), op.types[0]
    if not isinstance(value, Dense):
        raise ValueError(f"{op.place}: no reader of the constant {value}")
    body = value.body.strip()
    if body.startswith('"0x'):
        return packed(bytes.fromhex(body.strip('"')[2:]), element).reshape(shape)
    items = [evaluate.number(item) for item in re.findall(r"[^\[\],\s]+", body)]
    values = torch.tensor(items, dtype=torch.float64).to(evaluate.dtype(element))
    return values.expand(shape or [1]).reshape(shape) if len(items) == 1 else values.reshape(shape)


PACKED = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64,
          "i32": torch.int32}


def packed(data, element):
    """The elements of a constant that is printed as its bytes."""
    return torch.frombuffer(bytearray(data), dtype=PACKED[element]).to(evaluate.dtype(element))


def drawn(rng, op_id, elements):
    """The numbers in [0, 1) of elements of one draw."""
    numbers = philox.uniform(int(rng[0]), int(rng[1]), int(op_id), elements.reshape(-1).numpy())
    return torch.from_numpy(numbers).reshape(elements.shape)


def random_uniform(op, rng, *numbers):
    shape, _ = op.types[0]
    elements = numbers[0] if numbers else torch.arange(math.prod(shape)).reshape(shape)
    return drawn(rng, op.get("id"), elements + int(op.get("first")))


def embedding(op, table, ids):
    if not op.has("part"):
        return evaluate.embedding(op, table, ids)
    inside = (ids >= 0) & (ids < table.shape[0])
    return torch.where(inside[..., None], table[torch.where(inside, ids, 0)], 0.0)


def kept_factors(op, shape, rng, first=None):
    """What the probabilities of attention, of this shape, are multiplied by: 0 where they are dropped."""
    batch, heads, queries, keys = shape
    rows = torch.arange(batch)[:, None] * int(op.get("heads", heads)) + torch.arange(heads) + (0 if first is None else first)
    numbers = (rows[..., None] * queries + torch.arange(queries))[..., None] * keys + torch.arange(keys)
    probability = op.get("dropout")
    return (drawn(rng, op.get("dropout_id"), numbers) >= torch.tensor(probability).float()).double() / (1 - probability)


def attention(op, q, k, v, *added):
    groups = q.shape[2] // k.shape[2]
    keys, values = (x.repeat_interleave(groups, dim=2) for x in (k, v))
    scores = evaluate.attention_scores(op, q, keys, *(x for x in added if x.is_floating_point()))
    weights = torch.softmax(scores, -1)
    generator = [x for x in added if not x.is_floating_point()]
    if generator:
        weights = weights * kept_factors(op, weights.shape, *generator)
    return torch.einsum("bhts,bshd->bthd", weights, values), torch.logsumexp(scores, -1)


def dropout(op, x, rng):
    keep = (drawn(rng, op.get("id"), torch.arange(x.numel()).reshape(x.shape)) >= op.get("probability")) | x.isnan()
    return torch.where(keep, x / (1 - op.get("probability")), torch.zeros_like(x))


def attention_grad(op, q, k, v, out, lse, grad, *added):
    """From `out` and `lse` as they are given, which need not be of these keys alone."""
    groups = q.shape[2] // k.shape[2]
    keys, values = (x.repeat_interleave(groups, dim=2) for x in (k, v))
    leaves = [x.detach().requires_grad_() for x in (q, keys)]
    generator = [x for x in added if not x.is_floating_point()]
    with torch.enable_grad():
        scores = evaluate.attention_scores(op, *leaves, *(x for x in added if x.is_floating_point()))
    weights = torch.exp(scores.detach() - lse[..., None])
    kept = kept_factors(op, weights.shape, *generator) if generator else torch.ones_like(weights)
    below = (grad * out).sum(-1).permute(0, 2, 1)[..., None]
    scores_grad = weights * (torch.einsum("bthd,bshd->bhts", grad, values) * kept - below)
    query_grad, key_grad = torch.autograd.grad(scores, leaves, scores_grad)
    value_grad = torch.einsum("bhts,bthd->bshd", weights * kept, grad)
    return [query_grad] + [x.unflatten(2, (-1, groups)).sum(3) for x in (key_grad, value_grad)]


OPS = {**evaluate.OPS, "ds.constant": constant, "ds.random_uniform": random_uniform, "ds.dropout": dropout,
       "ds.embedding": embedding, "ds.attention": attention, "ds.attention_grad": attention_grad, "ds.presume": lambda op, truth, guess, wrong: truth,
       "ds.after": lambda op, value, event: value, "ds.store": lambda op, value: value,
       "ds.load": lambda op, value: value, "ds.move": lambda op, value: value}
