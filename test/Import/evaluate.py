#!/usr/bin/python3
"""evaluate.py - run imported MLIR text with PyTorch and compare it with the archive's own forward.

An interpreter of the dialect's model phase that shares nothing with the compiler: what it computes from ds-import's
text and weights must be what the archive computes, and so must every parameter's gradient.

    evaluate.py IMPORTER MODEL.pt --input x=2x16xi64 ... [--loss cross_entropy|mse]
"""

import argparse
import json
import math
import os
import re
import struct
import subprocess
import tempfile

import numpy as np
import torch
from torch.nn import functional as F

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
         "i32": torch.int32, "i8": torch.int8, "ui8": torch.uint8, "i1": torch.bool}
UNARY = {"neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
         "rsqrt": torch.rsqrt, "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid, "sin": torch.sin,
         "cos": torch.cos, "floor": torch.floor, "not": torch.logical_not, "detach": torch.Tensor.detach}
COMPARE = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
SAFETENSORS = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I8": np.int8,
               "U8": np.uint8, "BOOL": np.bool_}


def divide(a, b):
    return torch.div(a, b, rounding_mode=None if a.is_floating_point() else "trunc")


BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": divide, "max": torch.maximum,
          "min": torch.minimum, "pow": torch.pow, "and": torch.logical_and, "or": torch.logical_or}


def parse_type(text):
    parts = re.fullmatch(r"tensor<(.*)>", text.strip()).group(1).split("x")
    return [int(part) for part in parts[:-1]], TYPES[parts[-1]]


def parse_types(text):
    return [parse_type(part) for part in re.findall(r"tensor<[^>]*>", text)]


def integers(text):
    return [int(item) for item in text.split(",") if item.strip()]


def field(op, name):
    return integers(re.search(name + r" \[([-\d, ]*)\]", op).group(1))


def number(op, name):
    found = re.search(name + r" (\S+)", op)
    return float(found.group(1)) if found else None


def parse_dense(text, shape, dtype):
    """The tensor of a `dense<...>` attribute."""
    if text.startswith('"0x'):
        data = bytearray.fromhex(text[3:-1])
        return torch.frombuffer(data, dtype=dtype).reshape(shape).clone()
    if text.startswith("["):
        return torch.tensor(eval(text.replace("true", "True").replace("false", "False")), dtype=dtype).reshape(shape)
    if text.startswith("0x"):
        size = len(text) // 2 - 1
        return torch.frombuffer(bytearray(int(text, 16).to_bytes(size, "little")), dtype=dtype)[0].expand(shape)
    value = {"true": True, "false": False}.get(text)
    value = (float(text) if dtype.is_floating_point else int(text)) if value is None else value
    if dtype.is_floating_point:  # The shortest spelling of the largest f32 lies just above it: round, do not check.
        return torch.full(shape, value, dtype=torch.float64).to(dtype)
    return torch.full(shape, value, dtype=dtype)


class Function:
    """The function of a module's text, with its states and arguments."""

    def __init__(self, text):
        self.states = dict(re.findall(r'ds\.state @"([^"]*)" (.*)', text))
        self.lines = []
        for line in text.splitlines():
            line = re.sub(r" loc\(#\w+\)$", "", line.strip())
            if line.startswith("func.func"):
                self.updated = re.findall(r'ds\.state = @"([^"]*)"', line.split(") -> ")[1])
                self.arguments = re.findall(r'(%\w+): (tensor<[^>]*>) \{ds\.(input|state) = @?"([^"]*)"\}', line)
            elif line.startswith("%"):
                self.lines.append(line)
            elif line.startswith("return"):
                self.result, *self.updates = re.findall(r"%[\w#]+", line)

    def run(self, values):
        """`values` by the name of the input or state. Returns the loss; `written` then has what states are given."""
        names = {}
        for argument, spelled, _, name in self.arguments:
            shape, dtype = parse_type(spelled)
            assert list(values[name].shape) == shape and values[name].dtype == dtype, (name, spelled)
            names[argument] = values[name]
        for line in self.lines:
            target, op = line.split(" = ", 1)
            results = self.evaluate(op, names)
            self.check(op, results)
            base = target.split(":")[0]
            for i, result in enumerate(results):
                names[base if len(results) == 1 else f"{base}#{i}"] = result
        self.written = {state: names[value] for state, value in zip(self.updated, self.updates)}
        return names[self.result]

    @staticmethod
    def check(op, results):
        """Results must have the types that the text says."""
        spelled = op.rsplit("->", 1)[-1] if "->" in op else op.rsplit(" : ", 1)[-1]
        types = parse_types(spelled)
        if op.startswith("ds.compare"):
            types = [(types[0][0], torch.bool)]
        for (shape, dtype), result in zip(types if len(types) >= len(results) else types * len(results), results):
            assert list(result.shape) == shape and result.dtype == dtype, (op, result.shape, result.dtype)

    def evaluate(self, op, names):
        mnemonic = re.match(r"ds\.(\w+)", op).group(1)
        operands = [names[name] for name in re.findall(r"%[\w#]+", op)]
        if mnemonic in UNARY:
            return [UNARY[mnemonic](operands[0])]
        if mnemonic in BINARY:
            assert operands[0].shape == operands[1].shape and operands[0].dtype == operands[1].dtype, op
            return [BINARY[mnemonic](*operands)]
        return getattr(self, "do_" + mnemonic)(op, operands, names)

    def do_constant(self, op, operands, names):
        value, spelled = re.fullmatch(r"ds\.constant dense<(.*)> : (tensor<.*>)", op).groups()
        return [parse_dense(value, *parse_type(spelled))]

    def do_iota(self, op, operands, names):
        (shape, dtype), = parse_types(op)
        dim, start, step = (int(number(op, name)) for name in ("dim", "start", "step"))
        count = (torch.arange(shape[dim]) * step + start).to(dtype)
        return [count.reshape([-1 if i == dim else 1 for i in range(len(shape))]).expand(shape)]

    def do_compare(self, op, operands, names):
        assert operands[0].shape == operands[1].shape and operands[0].dtype == operands[1].dtype, op
        return [COMPARE[op.split()[1]](*operands)]

    def do_select(self, op, operands, names):
        assert operands[0].dtype == torch.bool and operands[1].dtype == operands[2].dtype, op
        assert operands[0].shape == operands[1].shape == operands[2].shape, op
        return [torch.where(*operands)]

    def do_convert(self, op, operands, names):
        return [operands[0].to(parse_types(op)[-1][1])]

    def do_gelu(self, op, operands, names):
        return [F.gelu(operands[0], approximate="tanh" if op.startswith("ds.gelu tanh") else "none")]

    def do_broadcast(self, op, operands, names):
        dims, (shape, _) = field(op, "dims"), parse_types(op)[-1]
        assert dims == sorted(set(dims)), op
        apart = [1] * len(shape)
        for size, dim in zip(operands[0].shape, dims):
            apart[dim] = size
        return [operands[0].reshape(apart).expand(shape)]

    def do_reshape(self, op, operands, names):
        return [operands[0].reshape(parse_types(op)[-1][0])]

    def do_transpose(self, op, operands, names):
        return [operands[0].permute(field(op, "perm"))]

    def do_slice(self, op, operands, names):
        sizes = parse_types(op)[-1][0]
        index = tuple(slice(offset, offset + stride * (size - 1) + 1 if size else offset, stride)
                      for offset, stride, size in zip(field(op, "offsets"), field(op, "strides"), sizes))
        return [operands[0][index]]

    def do_pad(self, op, operands, names):
        (shape, dtype), x = parse_types(op)[-1], operands[0]
        index = tuple(slice(offset, offset + stride * (size - 1) + 1, stride)
                      for offset, stride, size in zip(field(op, "offsets"), field(op, "strides"), x.shape))
        result = torch.zeros(shape, dtype=dtype)
        result[index] = x
        return [result]

    def do_concat(self, op, operands, names):
        return [torch.cat(operands, int(number(op, "dim")))]

    def do_split(self, op, operands, names):
        dim = int(number(op, "dim"))
        return list(operands[0].split([shape[dim] for shape, _ in parse_types(op)[1:]], dim))

    def do_reduce(self, op, operands, names):
        kind, dims = op.split()[1], field(op, "dims")
        reduce = {"sum": lambda x: x.sum(dims, dtype=x.dtype), "max": lambda x: x.amax(dims),
                  "min": lambda x: x.amin(dims)}
        return [reduce[kind](operands[0])]

    def do_matmul(self, op, operands, names):
        flags = re.sub(r"\(.*?\)", "", op.split(" : ")[0])
        lhs, rhs = operands[:2]
        lhs = lhs.transpose(-1, -2) if "transpose_lhs" in flags else lhs
        rhs = rhs.transpose(-1, -2) if "transpose_rhs" in flags else rhs
        assert rhs.dim() == 2 or rhs.shape[:-2] == lhs.shape[:-2], op
        result = lhs @ rhs
        for name, added in zip(re.findall(r"(bias|into)\(", op), operands[2:]):
            assert list(added.shape) == (list(result.shape) if name == "into" else [result.shape[-1]]), op
            result = result + added
        return [torch.relu(result) if " relu" in flags else result]

    def do_softmax(self, op, operands, names):
        dim = int(number(op, "dim"))
        return [operands[0].log_softmax(dim) if "softmax log" in op else operands[0].softmax(dim)]

    def named(self, op, name, names):
        found = re.search(name + r"\((%[\w#]+)\)", op)
        return names[found.group(1)] if found else None

    def do_layer_norm(self, op, operands, names):
        x, dims = operands[0], int(number(op, "over"))
        over = list(range(x.dim() - dims, x.dim()))
        mean, variance = x.mean(over), x.var(over, unbiased=False)
        result = F.layer_norm(x, x.shape[-dims:], self.named(op, "weight", names), self.named(op, "bias", names),
                              number(op, "epsilon"))
        return [result, mean, (variance + number(op, "epsilon")).rsqrt()]

    def do_rms_norm(self, op, operands, names):
        x, dims, weight = operands[0], int(number(op, "over")), self.named(op, "weight", names)
        over = list(range(x.dim() - dims, x.dim()))
        rstd = (x.pow(2).mean(over, keepdim=True) + number(op, "epsilon")).rsqrt()
        result = x * rstd if weight is None else x * rstd * weight
        return [result, rstd.reshape(x.shape[:-dims])]

    def do_conv(self, op, operands, names):
        function = (F.conv1d, F.conv2d, F.conv3d)[operands[0].dim() - 3]
        return [function(*operands[:2], operands[2] if "bias(" in op else None, field(op, "stride"),
                         field(op, "padding"), field(op, "dilation"), int(number(op, "groups")))]

    def do_conv_grad_input(self, op, operands, names):
        weight, grad = operands
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[grad.dim() - 3]
        windows, shape = [field(op, name) for name in ("stride", "padding", "dilation")], parse_types(op)[-1][0]
        extra = [size - (length - 1) * stride + 2 * padding - dilation * (window - 1) - 1 for size, length, window, stride, padding,
                 dilation in zip(shape[2:], grad.shape[2:], weight.shape[2:], *windows)]
        stride, padding, dilation = windows
        return [function(grad, weight, None, stride, padding, extra, int(number(op, "groups")), dilation)]

    def do_batch_norm(self, op, operands, names):
        x, momentum = operands[0], number(op, "momentum")
        over = [dim for dim in range(x.dim()) if dim != 1]
        result = F.batch_norm(x, None, None, self.named(op, "weight", names), self.named(op, "bias", names), True, momentum,
                              number(op, "epsilon"))
        mean, variance = x.mean(over), x.var(over, unbiased=False)
        running = re.search(r"running\((%[\w#]+), (%[\w#]+)\)", op)
        kept = [names[name].clone() for name in running.groups()] if running else []
        if running:
            F.batch_norm(x, *kept, None, None, True, momentum, number(op, "epsilon"))
        return [result, mean, (variance + number(op, "epsilon")).rsqrt(), *kept]

    def do_attention(self, op, operands, names):
        q, k, v = (x.transpose(1, 2) for x in operands[:3])
        groups = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        scores = q @ k.transpose(-1, -2) * number(op, "scale")
        if self.named(op, "mask", names) is not None:
            scores = scores + self.named(op, "mask", names)
        if " causal" in op:
            rows, columns = scores.shape[-2:]
            hidden = torch.ones(rows, columns, dtype=torch.bool).triu(columns - rows + 1)
            scores = scores.masked_fill(hidden, -math.inf)
        return [(scores.softmax(-1) @ v).transpose(1, 2), scores.logsumexp(-1).float()]

    def do_embedding(self, op, operands, names):
        padding = number(op, "padding_index")
        return [F.embedding(operands[1], operands[0], padding_idx=None if padding is None else int(padding))]

    def do_cross_entropy(self, op, operands, names):
        logits, targets, *denominator = operands
        ignored = int(number(op, "ignore_index"))
        assert targets.dtype == torch.int64 and logits.dim() == 2 and targets.dim() == 1, op
        loss = F.cross_entropy(logits, targets, ignore_index=ignored, reduction="sum" if denominator else "mean")
        loss = loss / denominator[0] if denominator else loss
        return [loss.float(), logits.logsumexp(1).float(), (targets != ignored).sum().float()]


def read_safetensors(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    header.pop("__metadata__", None)
    result = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":
            value = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.bfloat16)
        else:
            value = torch.from_numpy(np.frombuffer(data[begin:end], SAFETENSORS[entry["dtype"]]).copy())
        result[name] = value.reshape(entry["shape"])
    return result


def run_importer(importer, model, inputs, loss=None):
    """The module's text and the weights by name."""
    with tempfile.NamedTemporaryFile() as weights:
        command = [importer, model, *(f"--input={text}" for text in inputs), f"--weights-fd={weights.fileno()}"]
        command += [f"--loss={loss}"] if loss else []
        done = subprocess.run(command, stdout=subprocess.PIPE, pass_fds=[weights.fileno()])
        if done.returncode:
            raise SystemExit(done.returncode)
        return done.stdout.decode(), read_safetensors(weights.name)


def make_inputs(specs, vocab):
    torch.manual_seed(7)
    result = {}
    for spec in specs:
        name, spelled = spec.split("=")
        shape, dtype = parse_type(f"tensor<{spelled}>")
        result[name] = (torch.randn(shape).to(dtype) if dtype.is_floating_point
                        else torch.randint(0, 2 if dtype == torch.bool else vocab, shape).to(dtype))
    return result


def reference_loss(model, inputs, loss):
    """What the archive computes."""
    schema = [argument.name for argument in model.forward.schema.arguments[1:]]
    output = model(**{name: value for name, value in inputs.items() if name in schema})
    values = output if isinstance(output, (tuple, list)) else list(output.values()) if isinstance(output, dict) else [output]
    if loss:
        label = next(value for name, value in inputs.items() if name not in schema)
        logits = values[0]
        if loss == "mse":
            return F.mse_loss(logits, label)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), label.reshape(-1).long())
    return next(value for value in values if isinstance(value, torch.Tensor) and value.numel() == 1 and value.is_floating_point())


def relative(a, b):
    scale = b.double().norm().item()
    error = (a.double() - b.double()).norm().item()
    return error / scale if scale > 1e-12 else error


def compare(importer, path, specs, loss=None, vocab=16, tolerance=1e-5):
    """Imports, evaluates and compares; returns the text."""
    text, weights = run_importer(importer, path, specs, loss)
    function = Function(text)
    inputs = make_inputs(specs, vocab)
    model = torch.jit.load(path)
    expected = reference_loss(model, inputs, loss).reshape([])
    values = dict(weights)
    parameters = dict(model.named_parameters())
    for name, declaration in function.states.items():
        if " trainable" in declaration:
            values[name] = values[name].clone().requires_grad_()
    actual = function.run({**values, **inputs})
    assert relative(actual, expected) <= tolerance, f"loss {actual.item()} where PyTorch has {expected.item()}"
    buffers = dict(model.named_buffers())
    for name, value in function.written.items():
        assert relative(value.double(), buffers[name].double()) <= tolerance, f"buffer {name} differs"
    expected.backward()
    actual.backward()
    gradients = 0
    # Where the true gradient is zero (the bias of attention keys) both hold rounding errors of what cancelled.
    noise = 1e-6 * math.sqrt(sum(p.grad.double().pow(2).sum().item() for p in parameters.values() if p.grad is not None))
    for name, declaration in function.states.items():
        if " trainable" not in declaration:
            continue
        theirs = parameters[name].grad
        aliases = re.search(r'aliases \[([^\]]*)\]', declaration)
        for alias in re.findall(r'"([^"]*)"', aliases.group(1)) if aliases else []:
            if alias in parameters and parameters[alias] is not parameters[name] and parameters[alias].grad is not None:
                theirs = parameters[alias].grad if theirs is None else theirs + parameters[alias].grad
        ours = values[name].grad
        if theirs is None or ours is None:
            assert theirs is None or theirs.abs().max() == 0 or ours is not None, f"no gradient for {name}"
            assert ours is None or ours.abs().max() == 0 or theirs is not None, f"a gradient for {name}"
            continue
        difference = (ours.double() - theirs.double()).norm().item()
        assert difference <= noise or relative(ours, theirs) <= 1e-4, f"gradient of {name} differs by {relative(ours, theirs)}"
        gradients += 1
    return text, actual.item(), gradients


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("importer")
    parser.add_argument("model")
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--loss")
    parser.add_argument("--vocab", type=int, default=16)
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    _, loss, gradients = compare(args.importer, args.model, args.input, args.loss, args.vocab)
    print(f"loss {loss:.6f} and {gradients} gradients agree")


if __name__ == "__main__":
    main()
