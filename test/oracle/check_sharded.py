#!/usr/bin/python3
"""check_sharded.py - N ranks at every stage of ZeRO against one rank that takes N times the micro-steps.

Drives ds-opt on the models below and runs what it prints in the interpreter, all ranks op by op side by side.  Parameters,
moments, loss, norm and rate must agree after every step; stages that reduce at the same moments must agree bit by bit.

    check_sharded.py [--ranks 3,2,40] [--steps 2]      needs ds-opt on PATH

Ranks are those along dp, and on meshes of more axes those along one that divides what they have, or does not: parts in each of
several groups, parts along an axis whose ranks read the same samples.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from evaluate import OPS, Module, dtype  # noqa: E402

STATE = 'ds.state @{} role({}) {} init(#ds.init<{}, 0.0, 0.0>) home(device) : tensor<{}>\n'

# Parameters of a layer; one of 35 elements, one of fewer elements than ranks; a frozen one; one that is used in two
# layers (tied); one that nothing reads; dropout, whose numbers depend on the sample.
MODEL = "".join(STATE.format(name, role, flag, init, kind) for name, role, flag, init, kind in [
    ("wte", "parameter", "trainable", "zero", "7x5xf32"), ("h.0.w", "parameter", "trainable", "zero", "5x5xf32"),
    ("h.0.b", "parameter", "trainable", "zero", "5xf32"), ("h.0.s", "parameter", "trainable", "zero", "f32"),
    ("h.1.w", "parameter", "trainable", "zero", "40x5xf32"), ("h.1.f", "parameter", "", "zero", "40xf32"),
    ("h.1.o", "parameter", "trainable", "zero", "40x5xf32"), ("unused", "parameter", "trainable", "zero", "9xf32"),
    ("rng", "scalar", "", "zero", "2xi64")]) + """
func.func @forward(%x: tensor<2x4xi64> {ds.input = "x"}, %y: tensor<8x5xf32> {ds.input = "y"}, %wte: tensor<7x5xf32> {ds.state = @wte},
                   %w0: tensor<5x5xf32> {ds.state = @h.0.w}, %b0: tensor<5xf32> {ds.state = @h.0.b}, %s0: tensor<f32> {ds.state = @h.0.s},
                   %w1: tensor<40x5xf32> {ds.state = @h.1.w}, %f1: tensor<40xf32> {ds.state = @h.1.f}, %o1: tensor<40x5xf32> {ds.state = @h.1.o},
                   %rng: tensor<2xi64> {ds.state = @rng}) -> tensor<f32> {
  %e = ds.embedding %wte, %x : tensor<7x5xf32>, tensor<2x4xi64> -> tensor<2x4x5xf32>
  %h = ds.reshape %e : tensor<2x4x5xf32> -> tensor<8x5xf32>
  %t = ds.transpose %w0 perm [1, 0] : tensor<5x5xf32> -> tensor<5x5xf32>
  %p = ds.matmul %h, %t : tensor<8x5xf32>, tensor<5x5xf32> -> tensor<8x5xf32>
  %bb = ds.broadcast %b0 dims [1] : tensor<5xf32> -> tensor<8x5xf32>
  %q = ds.add %p, %bb : tensor<8x5xf32>
  %d = ds.dropout %q, %rng probability 2.500000e-01 id 3 : tensor<8x5xf32>, tensor<2xi64>
  %ss = ds.broadcast %s0 dims [] : tensor<f32> -> tensor<8x5xf32>
  %m = ds.mul %d, %ss : tensor<8x5xf32>
  %a = ds.tanh %m : tensor<8x5xf32>
  %u = ds.matmul %a, %w1 transpose_rhs : tensor<8x5xf32>, tensor<40x5xf32> -> tensor<8x40xf32>
  %fb = ds.broadcast %f1 dims [1] : tensor<40xf32> -> tensor<8x40xf32>
  %v = ds.mul %u, %fb : tensor<8x40xf32>
  %g = ds.tanh %v : tensor<8x40xf32>
  %o = ds.matmul %g, %o1 : tensor<8x40xf32>, tensor<40x5xf32> -> tensor<8x5xf32>
  %z = ds.matmul %o, %wte transpose_rhs : tensor<8x5xf32>, tensor<7x5xf32> -> tensor<8x7xf32>
  %back = ds.matmul %z, %wte : tensor<8x7xf32>, tensor<7x5xf32> -> tensor<8x5xf32>
  %r = ds.sub %back, %y : tensor<8x5xf32>
  %sq = ds.mul %r, %r : tensor<8x5xf32>
  %sum = ds.reduce sum %sq dims [0, 1] : tensor<8x5xf32> -> tensor<f32>
  return %sum : tensor<f32>
}
"""

OPTIMIZERS = {
    "adamw, clipped": 'gradient_clipping = 0.5, no_decay = ["b$"], optimizer = {type = adam, lr = 0.05, weight_decay = 0.1}',
    "sgd": 'optimizer = {type = sgd, lr = 0.01, momentum = 0.9, dampening = 0.5}',
    "adagrad": 'optimizer = {type = adagrad, lr = 0.05, initial_accumulator_value = 0.25}',
    "lion": 'optimizer = {type = lion, lr = 0.001, weight_decay = 0.1}',
}


class Mesh:
    """Ranks by coordinates along `axes`, of which the last is the fastest; `samples` and `zero` name some of them."""

    def __init__(self, axes, samples="dp", zero="dp"):
        self.axes, self.samples, self.zero = axes, samples, zero
        self.places = list(itertools.product(*(range(size) for size in axes.values())))
        self.groups = {}

    def text(self):
        sizes = ", ".join(f"{name} = {size}" for name, size in self.axes.items())
        return f"ds.mesh @mesh axes [{sizes}] samples ({self.samples}) zero ({self.zero})\n"

    def group(self, rank, names):
        """The ranks that differ from `rank` along the named axes alone, in order."""
        if (rank, names) not in self.groups:
            named = names.split(", ")
            others = [index for index, axis in enumerate(self.axes) if axis not in named and axis.split(".")[0] not in named]
            self.groups[rank, names] = [other for other, place in enumerate(self.places)
                                        if all(place[index] == self.places[rank][index] for index in others)]
        return self.groups[rank, names]

    def position(self, rank, names):
        return self.group(rank, names).index(rank)


def compile_step(training, *flags, mesh=""):
    text = f"module attributes {{ds.training = #ds.training<{training}>}} {{\n{mesh}{MODEL}}}\n"
    done = subprocess.run(["ds-opt", "-", "--ds-differentiate", "--ds-build-step", "--ds-simplify", *flags,
                           "--mlir-print-op-generic"], input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"ds-opt fails on {training}:\n{done.stderr}")
    return Module(done.stdout)


def axes_of(op):
    return re.search(r"axes = #ds\.axes<([^>]*)>", op.attributes).group(1)


def collective(op, operands, mesh):
    """Results of all ranks for the operands of all ranks."""
    results = []
    for rank in range(len(operands)):
        group = mesh.group(rank, axes_of(op))
        parts = [operands[other] for other in group]
        if op.name == "ds.all_gather":
            results.append(torch.cat(parts))
            continue
        total = parts[0]
        for other in parts[1:]:  # in rank order, as the description says
            total = total + other
        results.append(total if op.name == "ds.all_reduce" else total.chunk(len(group))[group.index(rank)])
    return results


def own_part(op, value, rank, mesh):
    return value.chunk(len(mesh.group(rank, axes_of(op))))[mesh.position(rank, axes_of(op))]


def run_segment(function, states, inputs, mesh):
    """Runs one function on all ranks; `states` and `inputs` have one dictionary per rank."""
    values = [{name: {"state": state, "input": given}[kind][key] for (name, _), (kind, key)
               in zip(function.arguments, function.argument_attributes)} for state, given in zip(states, inputs)]
    for op in function.ops:
        operands = [[own[operand] for operand in op.operands] for own in values]
        if op.name == "func.return":
            for state, results in zip(states, operands):
                state.update(zip((name for _, name in function.result_attributes), results))
            return
        if op.name in ("ds.all_gather", "ds.all_reduce", "ds.reduce_scatter"):
            results = [[value] for value in collective(op, [own[0] for own in operands], mesh)]
        elif op.name == "ds.local_shard":
            results = [[own_part(op, own[0], rank, mesh)] for rank, own in enumerate(operands)]
        else:
            results = [OPS[op.name](op, *own) for own in operands]
            results = [own if isinstance(own, (tuple, list)) else [own] for own in results]
        for own, made in zip(values, results):
            for name, value, (shape, element) in zip(op.results, made, op.types):
                assert list(value.shape) == shape and value.dtype == dtype(element), f"{op.name} gives {value.shape}"
                own[name] = value


class Ranks:
    """The states of all ranks."""

    def __init__(self, module, mesh, start):
        self.module, self.mesh = module, mesh
        self.states = [{} for _ in mesh.places]
        members = {name for bucket in module.buckets.values() for name in bucket.members}
        for state in module.states.values():
            if state.name in members:
                continue
            value = torch.full(state.shape, state.start, dtype=torch.float64).to(dtype(state.element))
            if state.bucket and state.role == "parameter":
                for name, offset in module.buckets[state.bucket].places():
                    value[offset:offset + start[name].numel()] = start[name].reshape(-1)
            elif state.name in start:
                value = start[state.name]
            for rank, own in enumerate(self.states):
                own[state.name] = self.part(state, value, rank)

    def part(self, state, value, rank):
        if not state.is_divided:
            return value
        axes = state.shards[0]
        return value.chunk(len(self.mesh.group(rank, axes)))[self.mesh.position(rank, axes)]

    def inputs(self, samples):
        """What each rank reads of what those along samples do."""
        return [samples[self.mesh.position(rank, self.mesh.samples)] for rank in range(len(self.states))]

    def step(self, batches):
        """batches[g][r]: inputs of micro-step g on rank r of those that read other samples."""
        for index, inputs in enumerate(batches):
            name = "last" if index == len(batches) - 1 else "first" if index == 0 else "middle"
            run_segment(self.module.functions[name], self.states, self.inputs(inputs), self.mesh)

    def evaluate(self, inputs):
        run_segment(self.module.functions["evaluate"], self.states, self.inputs(inputs), self.mesh)

    def result(self):
        """Every state of the unsharded step, by its name there; asserts that ranks agree on what each has whole."""
        found = {}
        for state in self.module.states.values():
            if state.name not in self.states[0]:
                continue
            parts = [own[state.name] for own in self.states]
            if not state.is_divided and state.role != "gradient":
                assert all(torch.equal(parts[0], part) for part in parts), f"ranks differ in {state.name}"
            whole = parts[0]
            if state.is_divided:
                wholes = [torch.cat([parts[other] for other in self.mesh.group(rank, state.shards[0])])
                          for rank in range(len(parts))]
                whole = wholes[0]
                assert all(torch.equal(whole, other) for other in wholes), f"groups differ in {state.name}"
            if not state.bucket:
                found[state.name] = whole
                continue
            suffix = state.name[len(state.bucket):]
            for name, offset in self.module.buckets[state.bucket].places():
                shape = self.module.states[name].shape
                count = torch.Size(shape).numel()
                found[name + ("" if state.role == "parameter" else suffix)] = whole[offset:offset + count].reshape(shape)
        return found


def differ(name, ours, theirs, where):
    error = float((ours.double() - theirs.double()).abs().max()) if ours.numel() else 0.0
    scale = float(theirs.double().abs().max()) if theirs.numel() else 0.0
    if error > 1e-7 * (1 + scale):  # constants are printed as what f32 has of them
        raise SystemExit(f"{where}: {name} differs by {error}")


def check(optimizer, mesh, accumulation, steps, zero):
    """Trains `steps` steps on ranks and on one rank; returns the ranks' states."""
    where = f"{optimizer}, {mesh.text()[:-1]}, accumulation {accumulation}, {zero}"
    ranks = len(mesh.group(0, mesh.samples))
    common = OPTIMIZERS[optimizer]
    sharded = compile_step(f"{common}, gradient_accumulation_steps = {accumulation}, "
                           f"zero_optimization = {{{zero}}}", "--ds-shard-zero", "--ds-decompose", "--ds-simplify",
                           "--ds-verify-sharded", mesh=mesh.text())
    single = compile_step(f"{common}, gradient_accumulation_steps = {accumulation * ranks}", "--ds-decompose")
    torch.manual_seed(3)
    start = {state.name: torch.randn(state.shape, dtype=torch.float64) for state in single.states.values()
             if state.role == "parameter"}
    start["rng"] = torch.tensor([11, 0])
    many, one = Ranks(sharded, mesh, start), Ranks(single, Mesh({"dp": 1}), start)
    for step in range(steps):
        samples = [{"x": torch.randint(0, 7, (2, 4)), "y": torch.randn(8, 5, dtype=torch.float64)}
                   for _ in range(ranks * accumulation)]
        many.step([samples[g * ranks:(g + 1) * ranks] for g in range(accumulation)])
        one.step([[sample] for sample in samples])
        many.evaluate(samples[:ranks])
        losses = []
        for sample in samples[:ranks]:
            one.evaluate([sample])
            losses.append(one.states[0]["eval_loss"])
        one.states[0]["eval_loss"] = sum(losses) * torch.tensor(1 / ranks, dtype=torch.float32).double()
        ours, theirs = many.result(), one.result()
        assert set(theirs) - set(ours) <= {name for name in theirs if name.endswith(".grad")}, set(theirs) - set(ours)
        for name, value in ours.items():
            if not name.endswith(".grad"):
                differ(name, value, theirs[name], f"{where}, step {step + 1}")
    return many.result()


# Groups of two with parts each; parts along both of two axes, of which one has no addends, within and outside the other.
MESHES = [Mesh({"dp.node": 3, "dp.local": 2}, zero="dp.local"), Mesh({"dp": 2, "sp": 3}, zero="dp, sp"),
          Mesh({"sp": 3, "dp": 2}, zero="dp, sp"), Mesh({"dp": 2, "sp": 3}, zero="sp"), Mesh({"pp": 1, "dp": 3, "tp": 2})]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="3,2,40", help="the first with every optimizer, the others with one")
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    count = 0
    small = "reduce_bucket_size = 220, stage3_param_persistence_threshold = 25"
    all_ranks = [int(ranks) for ranks in options.ranks.split(",")]
    cases = [(optimizer, Mesh({"dp": ranks}), accumulation) for optimizer in OPTIMIZERS for ranks in all_ranks
             for accumulation in (1, 2, 4) if ranks == all_ranks[0] or optimizer == next(iter(OPTIMIZERS))]
    cases += [(next(iter(OPTIMIZERS)), mesh, accumulation) for mesh in MESHES for accumulation in (1, 2)]
    for optimizer, mesh, accumulation in cases:
        results = []
        for stage in range(4):
            each = ", reduce_each_micro_step = true" if stage == 1 else ""
            results.append(check(optimizer, mesh, accumulation, options.steps, f"stage = {stage}, {small}{each}"))
            count += 1
        for result in results[2:]:
            for name, value in results[1].items():
                if not torch.equal(value, result[name]):
                    raise SystemExit(f"{optimizer}, {mesh.text()[:-1]}, accumulation {accumulation}: stages differ in {name}")
        check(optimizer, mesh, accumulation, options.steps, f"stage = 1, {small}")
        check(optimizer, mesh, accumulation, options.steps, "stage = 3, stage3_param_persistence_threshold = 0")
        count += 2
    print(f"{count} sharded steps agree with one rank")


if __name__ == "__main__":
    with torch.no_grad():
        main()
