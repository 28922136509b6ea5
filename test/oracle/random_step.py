"""random_step.py - step functions that no model would write, for the passes that schedule.

A module has a few states, and segments that read some of them, compute, and give new values to some.  Everything that makes
buffers hard occurs often: values that are read again late, views of views, results that are parts of joins, operands that die
where a library writes, states that take each other's old values.  Sizes are small and values stay near 1.
"""

import random

# Shapes of one family share sizes, so that random values fit each other often.
SHAPES = [[4, 4], [4, 4], [2, 8], [8, 2], [16], [4], [], [2, 2, 4], [4, 8], [8, 4], [32], [1, 4], [4, 1], [2, 4, 4]]
SMALL = ["tanh", "sin", "cos", "neg", "abs", "sigmoid", "erf"]


def spell(shape, element="f32"):
    return "tensor<" + "".join(f"{size}x" for size in shape) + element + ">"


def count(shape):
    product = 1
    for size in shape:
        product *= size
    return product


class Segment:
    """The text of one function, one op at a time."""

    def __init__(self, rng, name, kind, states, inputs, read=0.8):
        self.rng, self.name, self.kind, self.states = rng, name, kind, states
        self.lines, self.values, self.ids = [], [], []
        self.arguments = []
        for state, shape in states.items():
            if rng.random() < read:
                self.arguments.append(f"%{state}: {spell(shape)} {{ds.state = @{state}}}")
                self.values.append((f"%{state}", shape))
        for name, shape, element in inputs:
            self.arguments.append(f'%{name}: {spell(shape, element)} {{ds.input = "{name}"}}')
            (self.values if element == "f32" else self.ids).append((f"%{name}", shape))

    def emit(self, text, shapes):
        """Adds `text`, an op with results of `shapes`; these join the values that later ops may read."""
        base = f"%v{len(self.lines)}"
        names = [base] if len(shapes) == 1 else [f"{base}#{index}" for index in range(len(shapes))]
        self.lines.append(f"{base}{f':{len(shapes)}' if len(shapes) > 1 else ''} = {text}")
        self.values += zip(names, shapes)
        return names[0]

    def pick(self, fits=lambda shape: True):
        """A value whose shape fits, late ones more often; None where there is none."""
        found = [value for value in self.values if fits(value[1])]
        return found[min(int(self.rng.expovariate(0.25)), len(found) - 1) * -1 - 1] if found else None

    def pick_like(self, shape):
        """A value of `shape`, made from another one if need be."""
        found = self.pick(lambda other: other == shape)
        if found and self.rng.random() < 0.9:
            return found[0]
        source = self.pick(lambda other: count(other) == count(shape) and other != shape)
        if source and self.rng.random() < 0.7:
            return self.emit(f"ds.reshape {source[0]} : {spell(source[1])} -> {spell(shape)}", [shape])
        source = self.pick(lambda other: len(other) <= len(shape) and shape[len(shape) - len(other):] == other)
        if source and source[1] != shape:
            dims = list(range(len(shape) - len(source[1]), len(shape)))
            return self.emit(f"ds.broadcast {source[0]} dims {dims} : {spell(source[1])} -> {spell(shape)}", [shape])
        return self.emit(f"ds.constant dense<{self.rng.choice(['0.5', '-0.25', '1.5'])}> : {spell(shape)}", [shape])

    def add_op(self):
        kinds = ["unary"] * 3 + ["binary"] * 5 + ["reshape", "transpose", "slice", "split", "pad", "reduce", "reduce",
                 "broadcast", "concat", "concat", "matmul", "matmul", "accumulate", "batched", "rows", "rows", "choice", "iota", "table", "losses"]
        getattr(self, "add_" + self.rng.choice(kinds))()

    def add_unary(self):
        name, shape = self.pick()
        self.emit(f"ds.{self.rng.choice(SMALL)} {name} : {spell(shape)}", [shape])

    def add_binary(self):
        name, shape = self.pick()
        other = self.pick_like(shape)
        self.emit(f"ds.{self.rng.choice(['add', 'sub', 'mul', 'max', 'min'])} {name}, {other} : {spell(shape)}", [shape])

    def add_reshape(self):
        name, shape = self.pick()
        fits = [other for other in SHAPES if count(other) == count(shape)] or [[count(shape)]]
        other = self.rng.choice(fits)
        self.emit(f"ds.reshape {name} : {spell(shape)} -> {spell(other)}", [other])

    def add_transpose(self):
        name, shape = self.pick()
        perm = self.rng.sample(range(len(shape)), len(shape))
        result = [shape[dim] for dim in perm]
        self.emit(f"ds.transpose {name} perm {perm} : {spell(shape)} -> {spell(result)}", [result])

    def window(self, shape):
        """(offsets, strides, sizes) of a window of `shape`."""
        steps = [self.rng.choice([1, 1, 2]) for _ in shape]
        sizes = [self.rng.randint(1, (size + step - 1) // step) for size, step in zip(shape, steps)]
        offsets = [self.rng.randint(0, size - (part - 1) * step - 1) for size, part, step in zip(shape, sizes, steps)]
        return offsets, steps, sizes

    def add_slice(self):
        name, shape = self.pick()
        offsets, steps, sizes = self.window(shape)
        self.emit(f"ds.slice {name} offsets {offsets} strides {steps} : {spell(shape)} -> {spell(sizes)}", [sizes])

    def add_pad(self):
        shape = self.rng.choice(SHAPES)
        offsets, steps, sizes = self.window(shape)
        name = self.pick_like(sizes)
        self.emit(f"ds.pad {name} offsets {offsets} strides {steps} : {spell(sizes)} -> {spell(shape)}", [shape])

    def add_split(self):
        found = self.pick(lambda shape: any(size > 1 for size in shape))
        if not found:
            return
        name, shape = found
        dim = self.rng.choice([dim for dim, size in enumerate(shape) if size > 1])
        first = self.rng.randint(1, shape[dim] - 1)
        parts = [shape[:dim] + [size] + shape[dim + 1:] for size in (first, shape[dim] - first)]
        self.emit(f"ds.split {name} dim {dim} : {spell(shape)} -> {', '.join(map(spell, parts))}", parts)

    def add_concat(self):
        found = self.pick(len)
        if not found:
            return
        dim = self.rng.randrange(len(found[1]))
        alike = [value for value in self.values if len(value[1]) == len(found[1]) and
                 value[1][:dim] + value[1][dim + 1:] == found[1][:dim] + found[1][dim + 1:]]
        parts = [found] + self.rng.choices(alike[-6:], k=self.rng.randint(0, 2))
        if sum(shape[dim] for _, shape in parts) > 16:
            return
        result = found[1][:dim] + [sum(shape[dim] for _, shape in parts)] + found[1][dim + 1:]
        names, types = ", ".join(name for name, _ in parts), ", ".join(spell(shape) for _, shape in parts)
        self.emit(f"ds.concat {names} dim {dim} : {types} -> {spell(result)}", [result])

    def add_reduce(self):
        found = self.pick(len)
        if not found:
            return
        name, shape = found
        dims = sorted(self.rng.sample(range(len(shape)), self.rng.randint(1, len(shape))))
        result = [size for dim, size in enumerate(shape) if dim not in dims]
        kind = self.rng.choice(["sum", "max", "min"])
        self.emit(f"ds.reduce {kind} {name} dims {dims} : {spell(shape)} -> {spell(result)}", [result])

    def add_broadcast(self):
        name, shape = self.pick(lambda shape: len(shape) <= 2)
        result = self.rng.choice([other for other in SHAPES if len(other) >= len(shape)])
        placements = [dims for dims in self.increasing(len(result), len(shape))
                      if all(size in (1, result[dim]) for size, dim in zip(shape, dims))]
        if placements:
            self.emit(f"ds.broadcast {name} dims {self.rng.choice(placements)} : {spell(shape)} -> {spell(result)}", [result])

    @staticmethod
    def increasing(rank, length, first=0):
        """All increasing lists of `length` dimensions below `rank`."""
        if length == 0:
            return [[]]
        return [[dim] + rest for dim in range(first, rank) for rest in Segment.increasing(rank, length - 1, dim + 1)]

    def add_matmul(self, accumulate=False):
        found = self.pick(lambda shape: len(shape) >= 2)
        if not found:
            return
        name, shape = found
        flip = len(shape) == 2 and self.rng.random() < 0.4
        rows, inner = (shape[-1], shape[-2]) if flip else (shape[-2], shape[-1])
        columns = self.rng.choice([4, rows, 2])
        right = self.rng.random() < 0.5
        other_shape = [columns, inner] if right else [inner, columns]
        other = self.pick_like(other_shape)
        result = shape[:-2] + [rows, columns]
        types, operands = f"{spell(shape)}, {spell(other_shape)}", f"{name}, {other}"
        if self.rng.random() < 0.3:
            operands += f" bias({self.pick_like([columns])})"
            types += f", {spell([columns])}"
        if accumulate:
            operands += f" into({self.pick_like(result)})"
            types += f" into {spell(result)}"
        flags = " transpose_lhs" * flip + " transpose_rhs" * right + " epilogue(relu)" * (self.rng.random() < 0.1)
        self.emit(f"ds.matmul {operands}{flags} : {types} -> {spell(result)}", [result])

    def add_accumulate(self):
        self.add_matmul(accumulate=True)

    def add_batched(self):
        lhs, rhs = self.pick_like([2, 2, 4]), self.pick_like([2, 4, 4])
        self.emit(f"ds.matmul {lhs}, {rhs} : {spell([2, 2, 4])}, {spell([2, 4, 4])} -> {spell([2, 2, 4])}", [[2, 2, 4]])

    def add_rows(self):
        """A value of each row and what becomes of the row with it, as in softmax."""
        found = self.pick(lambda shape: len(shape) >= 2)
        if not found:
            return
        name, shape = found
        split = self.rng.randint(0, len(shape) - 1)
        dims, lead = list(range(split, len(shape))), shape[:split]
        row = self.emit(f"ds.reduce max {name} dims {dims} : {spell(shape)} -> {spell(lead)}", [lead])
        row = self.emit(f"ds.sin {row} : {spell(lead)}", [lead])
        kept = self.emit(f"ds.broadcast {row} dims {list(range(split))} : {spell(lead)} -> {spell(shape)}", [shape])
        self.emit(f"ds.sub {name}, {kept} : {spell(shape)}", [shape])

    def add_choice(self):
        """Truth values that leave their kernel, so that buffers of one byte an element are among the others."""
        name, shape = self.pick(lambda shape: count(shape) == 16)
        other, index = self.pick_like(shape), len(self.lines)
        flat, truth, back = f"%f{index}", f"%c{index}", f"%b{index}"
        self.lines += [f"{truth} = ds.compare lt {name}, {other} : {spell(shape)}",
                       f"{flat} = ds.reshape {truth} : {spell(shape, 'i1')} -> {spell([8, 2], 'i1')}",
                       f"{back}s = ds.transpose {flat} perm [1, 0] : {spell([8, 2], 'i1')} -> {spell([2, 8], 'i1')}",
                       f"{back} = ds.not {back}s : {spell([2, 8], 'i1')}"]
        left, right = self.pick_like([2, 8]), self.pick_like([2, 8])
        self.emit(f"ds.select {back}, {left}, {right} : {spell([2, 8])}", [[2, 8]])

    def add_iota(self):
        shape = self.rng.choice([shape for shape in SHAPES if shape])
        self.emit(f"ds.iota dim {self.rng.randrange(len(shape))} start 1 step -1 : {spell(shape)}", [shape])

    def add_table(self):
        ids, (rows,) = self.ids[0]
        table = self.pick_like([8, 4])
        grad = self.pick_like([rows, 4])
        if self.rng.random() < 0.5:
            self.emit(f"ds.embedding {table}, {ids} : {spell([8, 4])}, {spell([rows], 'i64')} -> {spell([rows, 4])}", [[rows, 4]])
            return
        self.emit(f"ds.embedding_grad {ids}, {grad} into({table} : {spell([8, 4])}) : {spell([rows], 'i64')}, "
                  f"{spell([rows, 4])} -> {spell([8, 4])}", [[8, 4]])

    def add_losses(self):
        ids, (rows,) = self.ids[0]
        logits, lse, count, grad = (self.pick_like(shape) for shape in ([rows, 8], [rows], [], []))
        self.emit(f"ds.cross_entropy_grad {logits}, {ids}, {lse}, {count}, {grad} ignore_index -100 : "
                  f"({spell([rows, 8])}, {spell([rows], 'i64')}, {spell([rows])}, {spell([])}, {spell([])}) -> "
                  f"{spell([rows, 8])}", [[rows, 8]])

    def text(self):
        results, types = [], []
        for state, shape in self.states.items():
            if self.rng.random() < 0.7:
                results.append(self.pick_like(shape))
                types.append(f"{spell(shape)} {{ds.state = @{state}}}")
        plain = ", ".join(kind.split(" {")[0] for kind in types)
        body = "".join(f"    {line}\n" for line in self.lines)
        return (f"  func.func @{self.name}({', '.join(self.arguments)}) -> ({', '.join(types)}) "
                f"attributes {{ds.segment = #ds.segment<{WORKS[self.kind]}>}} {{\n{body}"
                f"    return{f' {chr(44).join(results)} : {plain}' if results else ''}\n  }}\n")


WORKS = {"first": "forward, backward", "last": "forward, backward, update"}


def random_module(seed, ops=24):
    """The text of a module in phase step."""
    rng = random.Random(seed)
    states = {f"s{index}": rng.choice(SHAPES) for index in range(rng.randint(2, 5))}
    states["s9"] = [4, 4]
    inputs = [("x", [4, 4], "f32"), ("ids", [4], "i64")]
    text = "module {\n"
    for name, shape in states.items():
        text += (f"  ds.state @{name} role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : {spell(shape)}\n")
    for kind in ("first", "last")[:rng.randint(1, 2)]:
        segment = Segment(rng, kind, kind, states, inputs)
        for _ in range(rng.randint(2, ops)):
            segment.add_op()
        text += segment.text()
    return text + "}\n"


# Every op of these has a gradient.
SMOOTH = ["unary"] * 2 + ["binary"] * 3 + ["reshape", "transpose", "slice", "split", "pad", "reduce", "broadcast", "concat",
                                           "matmul", "batched", "rows", "choice"]


def random_model(seed, ops=25):
    """The text of a module in phase model: the loss is a sum over what was computed last and over the parameters."""
    rng = random.Random(seed)
    states = {f"s{index}": rng.choice([shape for shape in SHAPES if shape]) for index in range(3)}
    segment = Segment(rng, "forward", "first", states, [("x", [4, 4], "f32")], read=1)
    parameters = [value for value in segment.values if value[0] != "%x"]
    for _ in range(rng.randint(3, ops)):
        getattr(segment, "add_" + rng.choice(SMOOTH))()
    total = segment.emit("ds.constant dense<0.5> : tensor<f32>", [[]])
    for name, shape in parameters + segment.values[-4:]:
        part = name
        if shape:
            part = segment.emit(f"ds.reduce sum {name} dims {list(range(len(shape)))} : {spell(shape)} -> tensor<f32>", [[]])
        total = segment.emit(f"ds.add {total}, {part} : tensor<f32>", [[]])
    declarations = "".join(f"  ds.state @{name} role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : "
                           f"{spell(shape)}\n" for name, shape in states.items())
    body = "".join(f"    {line}\n" for line in segment.lines)
    return (f"module {{\n{declarations}  func.func @forward({', '.join(segment.arguments)}) -> tensor<f32> {{\n{body}"
            f"    return {total} : tensor<f32>\n  }}\n}}\n")
