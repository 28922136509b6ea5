#!/usr/bin/python3
"""check_sharded.py - N ranks at every stage of ZeRO against one rank that takes N times the micro-steps.

Drives ds-opt on the models below and runs what it prints in the interpreter, all ranks op by op side by side.  Parameters,
moments, loss, norm and rate must agree after every step; stages that reduce at the same moments must agree bit by bit.

    check_sharded.py [--ranks 3,2,40] [--steps 2]      needs ds-opt on PATH
"""

import argparse
import itertools
import os
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


def compile_step(training, *flags, ranks=1):
    mesh = f"ds.mesh @mesh axes [dp = {ranks}] samples dp zero dp\n" if ranks > 1 else ""
    text = f"module attributes {{ds.training = #ds.training<{training}>}} {{\n{mesh}{MODEL}}}\n"
    done = subprocess.run(["ds-opt", "-", "--ds-differentiate", "--ds-build-step", "--ds-simplify", *flags,
                           "--mlir-print-op-generic"], input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"ds-opt fails on {training}:\n{done.stderr}")
    return Module(done.stdout)


def collective(op, operands, ranks):
    """Results of all ranks for the operands of all ranks."""
    if op.name == "ds.all_gather":
        return [torch.cat(operands)] * ranks
    total = operands[0]
    for other in operands[1:]:  # in rank order, as the description says
        total = total + other
    return [total] * ranks if op.name == "ds.all_reduce" else list(total.chunk(ranks))


def run_segment(function, states, inputs):
    """Runs one function on all ranks; `states` and `inputs` have one dictionary per rank."""
    ranks = len(states)
    values = [{name: {"state": state, "input": given}[kind][key] for (name, _), (kind, key)
               in zip(function.arguments, function.argument_attributes)} for state, given in zip(states, inputs)]
    for op in function.ops:
        operands = [[own[operand] for operand in op.operands] for own in values]
        if op.name == "func.return":
            for state, results in zip(states, operands):
                state.update(zip((name for _, name in function.result_attributes), results))
            return
        if op.name in ("ds.all_gather", "ds.all_reduce", "ds.reduce_scatter"):
            results = [[value] for value in collective(op, [own[0] for own in operands], ranks)]
        elif op.name == "ds.local_shard":
            results = [[own[0].chunk(ranks)[rank]] for rank, own in enumerate(operands)]
        else:
            results = [OPS[op.name](op, *own) for own in operands]
            results = [own if isinstance(own, (tuple, list)) else [own] for own in results]
        for own, made in zip(values, results):
            for name, value, (shape, element) in zip(op.results, made, op.types):
                assert list(value.shape) == shape and value.dtype == dtype(element), f"{op.name} gives {value.shape}"
                own[name] = value


class Ranks:
    """The states of all ranks."""

    def __init__(self, module, ranks, start):
        self.module, self.ranks = module, ranks
        self.states = [{} for _ in range(ranks)]
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
                own[state.name] = value.chunk(ranks)[rank] if state.is_divided else value

    def step(self, batches):
        """batches[g][r]: inputs of micro-step g on rank r."""
        for index, inputs in enumerate(batches):
            name = "last" if index == len(batches) - 1 else "first" if index == 0 else "middle"
            run_segment(self.module.functions[name], self.states, inputs)

    def evaluate(self, inputs):
        run_segment(self.module.functions["evaluate"], self.states, inputs)

    def result(self):
        """Every state of the unsharded step, by its name there; asserts that ranks agree on what each has whole."""
        found = {}
        for state in self.module.states.values():
            if state.name not in self.states[0]:
                continue
            parts = [own[state.name] for own in self.states]
            if not state.is_divided and state.role != "gradient":
                assert all(torch.equal(parts[0], part) for part in parts), f"ranks differ in {state.name}"
            whole = torch.cat(parts) if state.is_divided else parts[0]
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


def check(optimizer, ranks, accumulation, steps, zero):
    """Trains `steps` steps on ranks and on one rank; returns the ranks' states."""
    where = f"{optimizer}, {ranks} ranks, accumulation {accumulation}, {zero}"
    common = OPTIMIZERS[optimizer]
    sharded = compile_step(f"{common}, gradient_accumulation_steps = {accumulation}, "
                           f"zero_optimization = {{{zero}}}", "--ds-shard-zero", "--ds-decompose", "--ds-simplify",
                           "--ds-verify-sharded", "--ds-rematerialize-cheap", ranks=ranks)
    single = compile_step(f"{common}, gradient_accumulation_steps = {accumulation * ranks}", "--ds-decompose")
    torch.manual_seed(3)
    start = {state.name: torch.randn(state.shape, dtype=torch.float64) for state in single.states.values()
             if state.role == "parameter"}
    start["rng"] = torch.tensor([11, 0])
    many, one = Ranks(sharded, ranks, start), Ranks(single, 1, start)
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="3,2,40", help="the first with every optimizer, the others with one")
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    count = 0
    small = "reduce_bucket_size = 220, stage3_param_persistence_threshold = 25"
    all_ranks = [int(ranks) for ranks in options.ranks.split(",")]
    for optimizer, ranks, accumulation in itertools.product(OPTIMIZERS, all_ranks, (1, 2, 4)):
        if ranks != all_ranks[0] and optimizer != next(iter(OPTIMIZERS)):
            continue
        results = []
        for stage in range(4):
            each = ", reduce_each_micro_step = true" if stage == 1 else ""
            results.append(check(optimizer, ranks, accumulation, options.steps, f"stage = {stage}, {small}{each}"))
            count += 1
        for result in results[2:]:
            for name, value in results[1].items():
                if not torch.equal(value, result[name]):
                    raise SystemExit(f"{optimizer}, {ranks} ranks, accumulation {accumulation}: stages differ in {name}")
        check(optimizer, ranks, accumulation, options.steps, f"stage = 1, {small}")
        check(optimizer, ranks, accumulation, options.steps, "stage = 3, stage3_param_persistence_threshold = 0")
        count += 2
    print(f"{count} sharded steps agree with one rank")


if __name__ == "__main__":
    with torch.no_grad():
        main()
