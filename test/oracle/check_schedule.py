#!/usr/bin/python3
"""check_schedule.py - random step functions, before and after they are scheduled and planned.

The reference is the interpreter on tensors.  What the passes made runs on one arena, byte for byte where the plan says: each
element holds its value at its first byte and NaN in the others, so that values of different types cannot overlap unseen, and
an allocation is NaN again after its last use.  A command that writes where it reads must be one that is allowed to:
a generated kernel only if perturbing an element it reads changes nothing outside the iteration that overwrites it.

    check_schedule.py --seeds 200 [--first 0] [--show]      needs ds-opt on PATH
"""

import argparse
import os
import re
import subprocess
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from evaluate import OPS, Module, Op, OP, dtype, evaluate, parse_type  # noqa: E402
from random_step import random_module  # noqa: E402

BYTES = {"f32": 4, "f64": 8, "i64": 8, "i32": 4, "i1": 1, "i8": 1}
# As the fused phase makes kernels and their order, but for what that asks of a whole step.
PIPELINES = ["--ds-normalize-shapes", "--ds-fuse-regions", "--ds-order-issue", "--ds-schedule-pipeline", "--ds-plan-memory"]
BUFFER = re.compile(r"!ds\.buffer<(tensor<[^>]*>), \[([^\]]*)\], \w+>")
COMMAND = re.compile(r'^\s*(?:(%\w+) = )?"ds\.(\w+)"\(([^()]*)\) <\{(.*)\}>(?: \{.*\})? : \((.*)\) -> (.*)$')


def run_ds_opt(text, *flags):
    done = subprocess.run(["ds-opt", "-", "--split-input-file", "--mlir-print-op-generic", *flags], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"ds-opt fails:\n{done.stderr}")
    if "were counted" in done.stderr:  # what is live in buffers is what was counted before
        raise SystemExit(f"ds-opt counts differently:\n{done.stderr}")
    return done.stdout.split("// -----")


class Buffer:
    """A strided window of the arena; offset and strides in bytes."""

    def __init__(self, offset, spelled):
        kind, strides = BUFFER.fullmatch(spelled.strip()).groups()
        self.shape, self.element = parse_type(kind)
        self.size = BYTES[self.element]
        self.offset, self.strides = offset, [int(step) * self.size for step in strides.split(",") if step.strip()]

    def window(self, arena, byte=0):
        return torch.as_strided(arena, self.shape, self.strides, self.offset + byte)

    def read(self, arena):
        value = self.window(arena).clone()
        if dtype(self.element) != torch.float64:
            assert not value.isnan().any(), "integers are read that nobody wrote"
        return value.to(dtype(self.element))

    def write(self, arena, value):
        for byte in range(1, self.size):
            self.window(arena, byte).fill_(float("nan"))
        self.window(arena).copy_(value.reshape(self.shape if value.numel() > 1 else []).to(torch.float64))

    def addresses(self):
        index = torch.zeros(self.shape, dtype=torch.int64)
        for dim, (size, step) in enumerate(zip(self.shape, self.strides)):
            index = index + (torch.arange(size) * step).reshape([-1 if d == dim else 1 for d in range(len(self.shape))])
        return set((index + self.offset).reshape(-1).tolist())


class Kernel:
    """The body of a ds.kernel."""

    def __init__(self, header, lines):
        self.inputs = int(re.search(r"num_inputs = (\d+)", header).group(1))
        self.is_dynamic = "tensor<?x" in header
        self.lines = lines

    def run(self, values, extent):
        text = [line.replace("tensor<?x", f"tensor<{extent}x") for line in self.lines]
        has_arguments = "^bb0" in text[0]
        names = dict(zip(re.findall(r"(%\w+): tensor", text[0]), values)) if has_arguments else {}
        for line in text[has_arguments:]:
            op = Op(OP.match(line))
            operands = [names[operand] for operand in op.operands]
            if op.name == "ds.yield":
                return operands
            names[op.results[0]] = OPS[op.name](op, *operands)
            assert list(names[op.results[0]].shape) == op.types[0][0], line
        raise ValueError("a kernel does not yield")

    def iteration(self, shape):
        """For each element of a value of `shape`, the number of the iteration that it belongs to."""
        reductions = [re.search(r"dims = array<i64: ([^>]*)>.*\(tensor<([^>]*)>\)", line).groups()
                      for line in self.lines if '"ds.reduce"' in line]
        elements = 1
        for size in shape:
            elements *= size
        if not reductions:
            return torch.arange(elements).reshape(shape)
        dims, kind = reductions[0]
        full, _ = parse_type(f"tensor<{kind}>")
        lead = full[:len(full) - len(dims.split(","))]
        if int(dims.split(",")[0]) == 0 and lead:
            return torch.zeros(shape, dtype=torch.int64)  # columns: all at once
        rows = 1
        for size in lead:
            rows *= size
        return torch.arange(rows).repeat_interleave(max(elements // rows, 1)).reshape(shape)

    def may_overwrite(self, index, values, extent):
        """True if every output that depends on an element of input `index` belongs to that element's iteration."""
        base = self.run(values, extent)
        home = self.iteration(list(values[index].shape)).reshape(-1)
        for position in range(values[index].numel()):
            changed = values[index].clone().reshape(-1)
            changed[position] = changed[position] + 1.25 if changed.is_floating_point() else ~changed[position]
            moved = self.run([changed.reshape(value.shape) if k == index else value for k, value in enumerate(values)], extent)
            for before, after in zip(base, moved):
                places = self.iteration(list(before.shape)).reshape(-1)[(before != after).reshape(-1)]
                if (places != home[position]).any():
                    return False
        return True


class Planned:
    """A planned module: places, kernels and functions."""

    def __init__(self, text):
        self.kernels, self.functions, self.states = {}, {}, {}
        self.arena = torch.full([int(re.search(r'"ds\.arena"\(\) <{bytes = (\d+)', text).group(1)) + 64], float("nan"), dtype=torch.float64)
        lines, index = text.splitlines(), 0
        while index < len(lines):
            line, body = lines[index], []
            index += 1
            if '"ds.state"' in line:
                name, = re.findall(r'sym_name = "(\w+)"', line)
                kind, = re.findall(r"type = (tensor<[^>]*>)", line)
                self.states[name] = (int(re.search(r"\boffset = (\d+)", line).group(1)), kind)
            elif '"func.func"' in line or '"ds.kernel"' in line:
                while "})" not in lines[index]:
                    body.append(lines[index])
                    index += 1
                name, = re.findall(r'sym_name = "(\w+)"', line)
                if '"ds.kernel"' in line:
                    self.kernels[name] = Kernel(line, body)
                else:
                    self.functions[name] = (self.attributes(line), body)

    @staticmethod
    def attributes(header):
        """The attributes of a function's arguments."""
        found = re.search(r"arg_attrs = \[(.*?)\], f", header)
        return re.findall(r"\{([^{}]*)\}", found.group(1)) if found else []

    def place(self, attributes, spelled):
        """Where an argument lies."""
        state = re.search(r"ds\.state = @(\w+)", attributes)
        offset = self.states[state.group(1)][0] if state else int(re.search(r"ds\.offset = (\d+)", attributes).group(1))
        return Buffer(offset, spelled)

    def state(self, name):
        offset, kind = self.states[name]
        shape, _ = parse_type(kind)
        strides = [1] * len(shape)
        for dim in reversed(range(len(shape) - 1)):
            strides[dim] = strides[dim + 1] * shape[dim + 1]
        return Buffer(offset, f"!ds.buffer<{kind}, {strides}, device>")

    def run(self, name, inputs):
        attributes, body = self.functions[name]
        buffers, uses = {}, {}
        for (argument, spelled), given in zip(re.findall(r"(%\w+): (!ds\.buffer<[^>]*>[^>]*>)", body[0]), attributes):
            buffers[argument] = self.place(given, spelled)
            found = re.search(r'ds\.input = "(\w+)"', given)
            if found:
                buffers[argument].write(self.arena, inputs[found.group(1)])
        ops = [COMMAND.match(line) for line in body[1:] if COMMAND.match(line)]
        root = {}
        for position, op in enumerate(ops):
            result, mnemonic, operands, attributes, _, kind = op.groups()
            operands = [operand.strip() for operand in operands.split(",") if operand.strip()]
            if mnemonic == "alloc":
                buffers[result] = Buffer(int(re.search(r"offset = (\d+)", attributes).group(1)), kind)
                root[result] = result
            elif mnemonic == "view":
                source = buffers[operands[0]]
                buffers[result] = Buffer(source.offset + int(re.search(r"offset = (\d+)", attributes).group(1)) * source.size, kind)
                root[result] = root.get(operands[0])
            else:
                uses.update({root[operand]: position for operand in operands if root.get(operand)})
        for position, op in enumerate(ops):
            _, mnemonic, operands, attributes, _, _ = op.groups()
            if mnemonic in ("launch", "call"):
                self.execute(mnemonic, [buffers[operand.strip()] for operand in operands.split(",")], attributes)
            for name, last in uses.items():
                if last == position:
                    begin, size = buffers[name].offset, buffers[name].size
                    self.arena[begin:begin + max(len(buffers[name].addresses()) * size, 0)] = float("nan")

    def execute(self, mnemonic, buffers, attributes):
        if mnemonic == "launch":
            return self.launch(buffers, attributes)
        callee = re.search(r'callee = #ds.library<(\w+)>', attributes).group(1)
        params = [float(item.split(":")[0]) for item in re.search(r"params = \[([^\]]*)\]", attributes).group(1).split(",") if item]
        writes = [int(item) for item in re.search(r"writes = array<i64: ([^>]*)>", attributes).group(1).split(",")]
        values = [buffer.read(self.arena) if not (callee in ("copy", "fill") and index in writes) else None
                  for index, buffer in enumerate(buffers)]
        for index, buffer in enumerate(buffers):
            for target in writes:
                isAllowed = index == target or (callee == "cross_entropy_backward" and index == 0 and
                                                buffer.strides == buffers[target].strides and buffer.offset == buffers[target].offset)
                assert isAllowed or not buffer.addresses() & buffers[target].addresses(), f"{callee} writes what it reads"
        for target, value in zip(writes, CALLS[callee](params, *values)):
            buffers[target].write(self.arena, value)

    def launch(self, buffers, attributes):
        kernel = self.kernels[re.search(r"kernel = @(\w+)", attributes).group(1)]
        extent = re.search(r"extents = array<i64: (\d+)>", attributes)
        extent = int(extent.group(1)) if extent else None
        values = [buffer.read(self.arena) for buffer in buffers[:kernel.inputs]]
        if kernel.is_dynamic:
            values = [value.reshape(-1) if value.dim() else value for value in values]
        outputs = buffers[kernel.inputs:]
        for index, buffer in enumerate(buffers[:kernel.inputs]):
            for output in outputs:
                if buffer.addresses() & output.addresses():
                    same = (buffer.offset, buffer.strides, buffer.shape) == (output.offset, output.strides, output.shape)
                    assert same and kernel.may_overwrite(index, values, extent), "a kernel overwrites what it still reads"
        for first, second in ((a, b) for k, a in enumerate(outputs) for b in outputs[:k]):
            assert not first.addresses() & second.addresses(), "two outputs overlap"
        for output, value in zip(outputs, kernel.run(values, extent)):
            output.write(self.arena, value)


def call_matmul(params, lhs, rhs, result, *bias):
    lhs = lhs.transpose(-1, -2) if params[0] else lhs
    rhs = rhs.transpose(-1, -2) if params[1] else rhs
    total = lhs @ rhs + (bias[0] if bias else 0) + (result if params[2] else 0)
    return [torch.relu(total) if params[3] else total]


def call_embedding_backward(params, ids, grad, result):
    start = result.clone() if params[0] else torch.zeros_like(result)
    inside = ((ids >= 0) & (ids < len(result))).reshape(-1)
    return [start.index_add(0, ids.reshape(-1)[inside], grad.reshape(-1, result.shape[1])[inside])]


def call_cross_entropy_backward(params, logits, targets, lse, count, grad, result):
    hot = torch.nn.functional.one_hot(targets, logits.shape[1])
    return [(torch.exp(logits - lse[:, None]) - hot) * grad / count]


CALLS = {"matmul": call_matmul, "copy": lambda params, source, _: [source], "embedding_backward": call_embedding_backward,
         "fill": lambda params, _: [torch.tensor(params[0], dtype=torch.float64)],
         "embedding_forward": lambda params, table, ids, _: [table[ids]],
         "cross_entropy_backward": call_cross_entropy_backward}


def compare(before, after, seed):
    """What differs between the module and its planned form, or None."""
    reference, planned = Module(before), Planned(after)
    generator = torch.Generator().manual_seed(seed)
    states = {name: torch.rand(state.shape, generator=generator, dtype=torch.float64) + 0.25
              for name, state in reference.states.items()}
    for name, value in states.items():
        planned.state(name).write(planned.arena, value)
    inputs = {"x": torch.rand([4, 4], generator=generator, dtype=torch.float64), "ids": torch.tensor([3, 0, 3, 7])}
    for name, function in reference.functions.items():
        values = {**{("state", key): value for key, value in states.items()}, **{("input", key): value for key, value in inputs.items()}}
        results = evaluate(function, [values[attribute] for attribute in function.argument_attributes])
        planned.run(name, inputs)
        for (_, state), value in zip(function.result_attributes, results):
            states[state] = value
        for state, value in states.items():
            actual = planned.state(state).read(planned.arena)
            if not torch.allclose(actual, value, rtol=1e-9, atol=1e-9, equal_nan=True):
                return f"@{name} leaves state @{state} wrong"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--ops", type=int, default=24)
    parser.add_argument("--show", action="store_true", help="print the modules before and after")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.seeds)
    text = "// -----\n".join(random_module(seed, args.ops) for seed in seeds)
    before = run_ds_opt(text)
    after = run_ds_opt(text, *PIPELINES)
    failures = 0
    for seed, old, new in zip(seeds, before, after):
        try:
            fault = compare(old, new, seed)
        except AssertionError as error:
            fault = str(error)
        if fault or args.show:
            print(f"seed {seed}: {fault}", file=sys.stderr)
            failures += fault is not None
        if args.show:
            print(random_module(seed, args.ops), run_ds_opt(random_module(seed, args.ops), *PIPELINES, "--mlir-print-op-generic=false")[0])
    print(f"{len(seeds) - failures} of {len(seeds)} modules agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
