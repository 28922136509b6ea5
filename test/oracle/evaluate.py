"""evaluate.py - an interpreter of the tensor phases of ds in PyTorch.

Reads what `ds-opt --mlir-print-op-generic` prints and evaluates functions on tensors, one op after the other, all floats
in double precision, so that two spellings of one formula agree to rounding and differences are mistakes.  Gradient ops
are defined as what torch.autograd says of the op they belong to; everything else is written from its description.
"""

import math
import re
import struct

import torch

from picture_layers import batch_norm, batch_norm_grad, conv, conv_grad_input, conv_grad_weight

OP = re.compile(r'^\s*(?:(%\w+)(?::(\d+))? = )?"([\w.]+)"\(([^()]*)\)(?: <\{(.*)\}>)?(?: \{.*\})? : \((.*)\) -> (.*)$')
FUNC = re.compile(r'^\s*"func.func"\(\) <\{(.*)\}> \(\{$')
TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)>")
WORD = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}


def parse_type(text):
    """(shape, element) of a tensor type."""
    sizes, element = TENSOR.fullmatch(text.strip()).groups()
    return [int(size) for size in sizes.split("x")[:-1]], element


def dtype(element):
    if element in WORD:
        return torch.float64
    return torch.bool if element == "i1" else torch.int64


class Op:
    """One operation: results, name, operands, attribute text, result types."""

    def __init__(self, match):
        name, count, self.name, operands, attributes, _, results = match.groups()
        count = int(count or 1) if name else 0
        self.results = [name] if count == 1 else [f"{name}#{index}" for index in range(count)]
        self.operands = [operand.strip() for operand in operands.split(",") if operand.strip()]
        self.attributes = attributes or ""
        self.types = [parse_type(found.group(0)) for found in TENSOR.finditer(results)]

    def get(self, key, default=None):
        """The attribute as a number, a list of numbers, or a word (of an enum)."""
        found = re.search(rf"(?:^|, ){key} = (array<i\d+(?:: ([^>]*))?>|#ds(?:<\w+ |\.\w+<)(\w+)>|[^,]+)", self.attributes)
        if not found:
            return default
        text, items, word = found.groups()
        if text.startswith("array"):
            return [int(item) for item in (items or "").split(",") if item.strip()]
        return word if word else float(text.split(" : ")[0])

    def has(self, flag):
        return re.search(rf"(?:^|, ){flag}(?:,|$)", self.attributes) is not None


class Function:
    def __init__(self, header):
        self.name = re.search(r'sym_name = "([^"]+)"', header).group(1)
        self.arguments, self.ops = [], []
        self.argument_attributes = self.read_attributes("arg_attrs", header)
        self.result_attributes = self.read_attributes("res_attrs", header)
        segment = re.search(r"#ds\.segment<([\w, ]+)>", header)
        self.segment = segment.group(1) if segment else None

    @staticmethod
    def read_attributes(key, header):
        """[(kind, name)] such as ("state", "w"), ("input", "x") or ("gradient", "w"); None where there is none."""
        found = re.search(rf"{key} = \[(.*?)\](?:,|$)", header)
        entries = re.findall(r"\{([^{}]*)\}", found.group(1)) if found else []
        parsed = []
        for entry in entries:
            match = re.search(r'ds\.(\w+) = (?:(?:#ds\.(\w+)<)?@"?([\w.$-]+)"?|"([^"]*)")', entry)
            parsed.append((match.group(2) or match.group(1), match.group(3) or match.group(4)) if match else None)
        return parsed


class State:
    def __init__(self, attributes):
        self.name = re.search(r'sym_name = "([^"]+)"', attributes).group(1)
        self.role = re.search(r"role = #ds(?:<\w+ |\.\w+<)(\w+)>", attributes).group(1)
        start = re.search(r"#ds\.init<constant, ([^,]*),", attributes)
        self.start = float(start.group(1)) if start else 0.0
        owner = re.search(r"owner = @\"?([\w.$-]+)\"?", attributes)
        self.owner = owner.group(1) if owner else None
        bucket = re.search(r"bucket = @\"?([\w.$-]+)\"?", attributes)
        self.bucket = bucket.group(1) if bucket else None
        shards = re.search(r"shards = \[([^\]]*)\]", attributes)
        self.shards = re.findall(r"#ds\.axes<([^>]*)>", shards.group(1)) if shards else []  # of a bucket's: one set of axes
        self.is_divided = shards is not None
        self.trainable = re.search(r"(?:^|, )trainable(?:,|$)", attributes) is not None
        self.shape, self.element = parse_type(re.search(r"type = (tensor<[^>]*>)", attributes).group(1))


class Bucket:
    def __init__(self, attributes):
        self.name = re.search(r'sym_name = "([^"]+)"', attributes).group(1)
        members = re.search(r"members = \[([^\]]*)\]", attributes).group(1)
        self.members = re.findall(r'@"?([\w.$-]+)"?', members)
        self.offsets = [int(item) for item in re.search(r"offsets = array<i64: ([^>]*)>", attributes).group(1).split(",")]

    def places(self):
        return zip(self.members, self.offsets)


class Module:
    def __init__(self, text):
        self.functions, self.states, self.buckets, function = {}, {}, {}, None
        for line in text.splitlines():
            header = FUNC.match(line)
            if header:
                function = Function(header.group(1))
                self.functions[function.name] = function
            elif line.lstrip().startswith("^bb0("):
                function.arguments = [(name, parse_type(kind))
                                      for name, kind in re.findall(r"(%\w+): (tensor<[^>]*>)", line)]
            elif '"ds.state"' in line:
                state = State(OP.match(line).group(5))
                self.states[state.name] = state
            elif '"ds.bucket"' in line:
                bucket = Bucket(OP.match(line).group(5))
                self.buckets[bucket.name] = bucket
            elif '"ds.mesh"' in line or '"ds.schedule"' in line:
                continue
            elif OP.match(line):
                function.ops.append(Op(OP.match(line)))


def number(text, element="f32"):
    """One element of a dense attribute; bits are those of the element type."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("0x"):
        raw = bytes.fromhex(text[2:]) + (bytes(2) if element == "bf16" else b"")
        return struct.unpack({2: ">e", 4: ">f", 8: ">d"}[len(raw)], raw)[0]
    return float(text)


def constant(op):
    shape, element = op.types[0]
    body = re.search(r"value = dense<(.*)> : tensor", op.attributes).group(1)
    items = [number(item, element) for item in re.findall(r"[^\[\],\s]+", body)]
    values = torch.tensor(items, dtype=torch.float64).to(dtype(element))
    return values.expand(shape or [1]).reshape(shape) if len(items) == 1 else values.reshape(shape)


def broadcast(op, x):
    shape = op.types[0][0]
    view = [1] * len(shape)
    for size, dim in zip(x.shape, op.get("dims")):
        view[dim] = size
    return x.reshape(view).expand(shape)


def matmul(op, lhs, rhs, *rest):
    lhs = lhs.transpose(-1, -2) if op.has("transpose_lhs") else lhs
    rhs = rhs.transpose(-1, -2) if op.has("transpose_rhs") else rhs
    *added, has_input = op.get("operandSegmentSizes")[2:]
    sums = torch.matmul(lhs, rhs)
    for operand in rest[:sum(added)]:
        sums = sums + operand
    result = EPILOGUES[op.get("epilogue", "none")](sums, *rest[-1:] if has_input else ())
    return [result, sums][:len(op.types)]


def window(op, shape):
    return tuple(slice(offset, offset + stride * (size - 1) + 1, stride)
                 for offset, stride, size in zip(op.get("offsets"), op.get("strides"), shape))


def pad(op, x):
    result = torch.zeros(op.types[0][0], dtype=x.dtype)
    result[window(op, x.shape)] = x
    return result


def iota(op):
    shape, element = op.types[0]
    dim = int(op.get("dim"))
    view = [1] * len(shape)
    view[dim] = shape[dim]
    line = torch.arange(shape[dim]) * int(op.get("step")) + int(op.get("start"))
    return line.to(dtype(element)).reshape(view).expand(shape)


def reduce(op, x):
    dims = op.get("dims")
    if not dims:
        return x
    return {"sum": torch.sum, "max": torch.amax, "min": torch.amin}[op.get("kind")](x, dim=dims)


def gelu(op, x):
    return torch.nn.functional.gelu(x, approximate="tanh" if op.has("tanh") else "none")


def gelu_grad(op, grad, x):
    return gradient_of(lambda leaf: gelu(op, leaf), grad, x)


def gradient_of(function, grad, x):
    """What autograd gives by `x`, where `grad` is what reaches function(x)."""
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(function(leaf), leaf, grad)[0]


def gelu_tanh(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


EPILOGUES = {"none": lambda sums: sums, "relu": torch.relu, "gelu": gelu_tanh,
             "gelu_gradient": lambda sums, x: gradient_of(gelu_tanh, sums, x)}


def softmax(op, x):
    return (torch.log_softmax if op.has("log") else torch.softmax)(x, dim=int(op.get("dim")))


def layer_norm(op, x, *rest):
    dims = list(range(x.dim() - int(op.get("num_dims")), x.dim()))
    mean = x.mean(dims, keepdim=True)
    rstd = torch.rsqrt(((x - mean) ** 2).mean(dims, keepdim=True) + op.get("epsilon"))
    result = (x - mean) * rstd
    _, has_weight, _ = op.get("operandSegmentSizes")
    for index, operand in enumerate(rest):
        result = result * operand if index == 0 and has_weight else result + operand
    return result, mean.reshape(op.types[1][0]), rstd.reshape(op.types[2][0])


def rms_norm(op, x, *weight):
    dims = list(range(x.dim() - int(op.get("num_dims")), x.dim()))
    rstd = torch.rsqrt((x * x).mean(dims, keepdim=True) + op.get("epsilon"))
    result = x * rstd
    return result * weight[0] if weight else result, rstd.reshape(op.types[1][0])


def capped(op, x):
    return op.get("cap") * torch.tanh(x / op.get("cap")) if op.get("cap") else x


def attention_scores(op, q, k, *added):
    """Of as many key heads as query heads; `added` are the mask, of rank 4, and the slopes, of rank 1."""
    scores = capped(op, torch.einsum("bthd,bshd->bhts", q, k) * op.get("scale"))
    rows, columns = scores.shape[2:]
    ahead = torch.arange(columns)[None] - torch.arange(rows)[:, None] - (columns - rows)
    for addend in added:
        scores = scores + (addend[:, None, None] * ahead if addend.dim() == 1 else addend)
    if op.has("causal"):
        scores = scores.masked_fill(ahead > 0, -math.inf)
    if op.get("window"):
        scores = scores.masked_fill(ahead.abs() >= op.get("window"), -math.inf)
    return scores


def attention(op, q, k, v, *added):
    groups = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(groups, dim=2) for x in (k, v))
    addends = [x for x in added if x.is_floating_point()]
    scores = attention_scores(op, q, k, *addends)
    weights = torch.softmax(scores, -1)
    for rng in added[len(addends):][:1]:  # of dropout
        weights = dropped(weights, rng, op.get("dropout_id"), op.get("dropout"))
    return torch.einsum("bhts,bshd->bthd", weights, v), torch.logsumexp(scores, -1)


def attention_grad(op, q, k, v, out, lse, grad, *added):
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(attention(op, *leaves, *added)[0], leaves, grad)


def cross_entropy(op, logits, targets, *denominator):
    logits = capped(op, logits)
    ignored = targets == int(op.get("ignore_index"))
    count = (~ignored).sum().to(logits.dtype)
    lse = torch.logsumexp(logits, 1)
    picked = logits.gather(1, targets.masked_fill(ignored, 0)[:, None])[:, 0]
    loss = (lse - picked).masked_fill(ignored, 0).sum() / (*denominator, count)[0]
    return loss if count else torch.zeros_like(loss), lse, count  # where nothing counts PyTorch's mean is NaN


def cross_entropy_grad(op, logits, targets, lse, count, grad):
    ignored = targets == int(op.get("ignore_index"))
    hot = torch.nn.functional.one_hot(targets.masked_fill(ignored, 0), logits.shape[1])
    logits = capped(op, logits)
    slope = 1 - (logits / op.get("cap")) ** 2 if op.get("cap") else 1
    return ((torch.exp(logits - lse[:, None]) - hot) * slope * grad / count).masked_fill(ignored[:, None], 0)


def embedding_grad(op, ids, grad, *accumulator):
    shape = op.types[0][0]
    result = accumulator[0].clone() if accumulator else torch.zeros(shape, dtype=grad.dtype)
    inside = ((ids >= 0) & (ids < shape[0])).reshape(-1)
    return result.index_add(0, ids.reshape(-1)[inside], grad.reshape(-1, shape[1])[inside])


def embedding(op, table, ids):
    padding = op.get("padding_index")
    return torch.nn.functional.embedding(ids, table, padding_idx=None if padding is None else int(padding))


def uniform(shape, rng, draw):
    """Not the generator of the description: any fixed function of seed, counter, op and element serves here."""
    generator = torch.Generator().manual_seed(int(rng[0]) * 7919 + int(rng[1]) * 104729 + int(draw))
    return torch.rand(shape, generator=generator, dtype=torch.float64)


def dropped(x, rng, draw, probability):
    keep = uniform(list(x.shape), rng, draw) >= probability
    return torch.where(keep, x / (1 - probability), torch.zeros_like(x))


def divide(op, a, b):
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def convert(op, x):
    element = op.types[0][1]
    if element == "i1":
        return x != 0
    return x.to(dtype(element))


COMPARE = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}

UNARY = {"neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "exp": torch.exp, "log": torch.log,
         "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid,
         "sin": torch.sin, "cos": torch.cos, "floor": torch.floor, "not": torch.logical_not, "add": torch.add,
         "sub": torch.sub, "mul": torch.mul, "max": torch.maximum, "min": torch.minimum, "pow": torch.pow,
         "and": torch.logical_and, "or": torch.logical_or, "select": torch.where}

def accumulate(op, gradient, kept=None):
    result = dtype(op.types[0][1])
    if kept is None:
        return gradient.to(result)
    wider = torch.promote_types(gradient.dtype, kept.dtype)
    return (kept.to(wider) + gradient.to(wider)).to(result)


OPS = {f"ds.{name}": (lambda function: lambda op, *operands: function(*operands))(function)
       for name, function in UNARY.items()}
OPS.update({
    "ds.div": divide, "ds.convert": convert, "ds.constant": constant, "ds.iota": iota, "ds.broadcast": broadcast,
    "ds.compare": lambda op, a, b: COMPARE[op.get("predicate")](a, b),
    "ds.reshape": lambda op, x: x.reshape(op.types[0][0]),
    "ds.transpose": lambda op, x: x.permute(op.get("perm")),
    "ds.slice": lambda op, x: x[window(op, op.types[0][0])],
    "ds.pad": pad, "ds.reduce": reduce, "ds.random_uniform": lambda op, rng: uniform(op.types[0][0], rng, op.get("id")),
    "ds.dropout": lambda op, x, rng: dropped(x, rng, op.get("id"), op.get("probability")),
    "ds.concat": lambda op, *pieces: torch.cat(pieces, int(op.get("dim"))),
    "ds.split": lambda op, x: x.split([kind[0][int(op.get("dim"))] for kind in op.types], int(op.get("dim"))),
    "ds.gelu": gelu, "ds.gelu_grad": gelu_grad,
    "ds.matmul": matmul, "ds.softmax": softmax, "ds.layer_norm": layer_norm, "ds.rms_norm": rms_norm,
    "ds.batch_norm": batch_norm, "ds.batch_norm_grad": batch_norm_grad, "ds.detach": lambda op, x: x.detach(),
    "ds.attention": attention, "ds.attention_grad": attention_grad, "ds.conv": conv,
    "ds.conv_grad_input": conv_grad_input, "ds.conv_grad_weight": conv_grad_weight, "ds.cross_entropy": cross_entropy,
    "ds.cross_entropy_grad": cross_entropy_grad, "ds.embedding": embedding,
    "ds.accumulate": accumulate, "ds.rank_mean": lambda op, value: value,
    "ds.advance": lambda op, generator: generator + torch.tensor([0, int(op.get("by"))]),
    "ds.sum_of_squares": lambda op, *tensors: sum((tensor.double() ** 2).sum() for tensor in tensors),
    "ds.embedding_grad": embedding_grad,
})


def evaluate(function, arguments):
    """The values that `function` returns for a list of argument values."""
    values = {name: value for (name, _), value in zip(function.arguments, arguments)}
    for op in function.ops:
        operands = [values[operand] for operand in op.operands]
        if op.name == "func.return":
            return operands
        results = OPS[op.name](op, *operands)
        results = results if isinstance(results, (tuple, list)) else [results]
        for name, value, (shape, element) in zip(op.results, results, op.types):
            assert list(value.shape) == shape, f"{op.name} gives {list(value.shape)} where its type says {shape}"
            assert value.dtype == dtype(element), f"{op.name} gives {value.dtype} where its type says {element}"
            values[name] = value
    raise ValueError(f"{function.name} does not return")
