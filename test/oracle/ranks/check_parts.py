#!/usr/bin/python3
"""check_parts.py - what the interpreter of ranks is made of, against published numbers, PyTorch and plain arithmetic."""

import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import evaluate  # noqa: E402
from ranks import philox  # noqa: E402
from ranks.ir import Op, Type, read_modules  # noqa: E402
from ranks.layouts import Gathered, Holding, Layout  # noqa: E402
from ranks.mesh import Mesh  # noqa: E402
from ranks.values import OPS, Numbers, attention_grad  # noqa: E402

import numpy as np  # noqa: E402


def check_philox():
    """The known answers of the authors' library, and elements by number."""
    for counter, key, expected in [
            ([0] * 4, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
            ([0xFFFFFFFF] * 4, 0xFFFFFFFFFFFFFFFF, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
            ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], 0x299F31D0A4093822, "d16cfe09 94fdcceb 5001e420 24126ea1")]:
        words = philox.philox4x32([np.array([word], dtype=np.uint64) for word in counter], key)
        assert [f"{int(word[0]):08x}" for word in words] == expected.split(), words
    whole = philox.uniform(7, 5, 3, np.arange(40))
    assert np.array_equal(philox.uniform(7, 5, 3, [13, 2, 39]), whole[[13, 2, 39]])
    assert len(set(whole)) == 40 and 0 <= whole.min() and whole.max() < 1


def check_mesh():
    """The example of Mesh.h."""
    mesh = Mesh(["pp", "dp.node", "dp.local", "tp"], [2, 2, 2, 2])
    assert mesh.coordinates(13) == [1, 1, 0, 1]
    assert mesh.group(13, ("dp",)) == mesh.group(13, ("dp.local", "dp.node")) == [9, 11, 13, 15]
    assert mesh.position(13, ("dp",)) == 2 and mesh.count(["dp", "tp"]) == 8 and mesh.count(["sp"]) == 1


def check_layouts():
    """Heads of a fused projection, also where there are fewer key heads, and words that do not divide."""
    mesh = Mesh(["dp", "tp"], [2, 2])
    heads = Layout([12, 2], [[], ["tp"], [], []], view=[3, 2, 2, 2])  # 3 x 2 heads of 2 rows
    rows = torch.arange(24).reshape(12, 2)
    assert torch.equal(heads.elements(mesh, 0).reshape(-1, 2), rows[[0, 1, 4, 5, 8, 9]])
    assert torch.equal(heads.elements(mesh, 3).reshape(-1, 2), rows[[2, 3, 6, 7, 10, 11]])
    assert heads.part_shape(mesh) == [6, 2] and Layout([4, 2], [["tp"], []]).part_shape(mesh) == [2, 2]
    fewer = Layout([8, 2], [["tp"], []], pieces=[4, 2, 2])
    assert torch.equal(fewer.elements(mesh, 1), rows[[2, 3, 5, 7]]) and fewer.part_shape(mesh) == [4, 2]
    padded = Layout([5, 2], [["dp", "tp"], []], view=[8, 2])
    assert padded.part_shape(mesh) == [2, 2] and padded.elements(mesh, 2).tolist() == [[8, 9], [-1, -1]]
    words = Layout([8, 2], [["dp", "tp"], []], existing=5)
    assert words.elements(mesh, 2).tolist() == [[8, 9], [-1, -1]] and words.elements(mesh, 3).max() == -1
    gathered = Gathered("words", [5, 2], torch.float64)
    for rank in range(4):
        own = words.elements(mesh, rank).reshape(-1)
        here = (own >= 0).nonzero()[:, 0]
        gathered.add(Holding("words", [5, 2], here, own[here]), own.double(), rank)
    assert torch.equal(gathered.whole(), torch.arange(10.0).double().reshape(5, 2))


def check_rounding():
    """1 + 2^-8 is between two numbers of bf16; 2049 is one of f32, not of f16."""
    numbers, value = Numbers(rounds=True), torch.tensor([1 + 2 ** -8, 1 + 3 * 2 ** -8, 2049.0], dtype=torch.float64)
    assert numbers.settle(value, "bf16").tolist() == [1.0, 1 + 2 ** -6, 2048.0]
    assert numbers.settle(value, "f16").tolist() == [1 + 2 ** -8, 1 + 3 * 2 ** -8, 2048.0]
    assert numbers.settle(value, "f32").tolist() == value.tolist()
    assert numbers.settle(torch.tensor(1 / 3).double(), "f64") == torch.tensor(1 / 3).double()
    assert torch.equal(Numbers(rounds=False).settle(value, "bf16"), value)


def check_attention():
    """With keys of two ranks, the gradients from the combined result are those of all keys."""
    generator = torch.Generator().manual_seed(2)
    q, k, v, grad = (torch.randn(shape, generator=generator, dtype=torch.float64)
                     for shape in ([2, 5, 4, 3], [2, 6, 2, 3], [2, 6, 2, 3], [2, 5, 4, 3]))
    op = Op("ds.attention", [], [])
    slopes = torch.tensor([0.5, 0.25, 2.0, 1.0], dtype=torch.float64)
    for attributes, added in (({}, []), ({"window": 3, "cap": 0.7}, [slopes])):
        op.attributes = {"scale": 0.5, "causal": True, **attributes}
        out, lse = evaluate.attention(op, q, k, v, *added)
        expected = evaluate.attention_grad(op, q, k, v, out, lse, grad, *added)
        for ours, theirs in zip(attention_grad(op, q, k, v, out, lse, grad, *added), expected):
            assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    op.attributes = {"scale": 0.5}
    out, lse = evaluate.attention(op, q, k, v)
    whole = evaluate.attention_grad(op, q, k, v, out, lse, grad)
    halves = [attention_grad(op, q, k[:, part], v[:, part], out, lse, grad) for part in (slice(0, 3), slice(3, 6))]
    assert torch.allclose(halves[0][0] + halves[1][0], whole[0])
    for index in (1, 2):
        assert torch.allclose(torch.cat([halves[0][index], halves[1][index]], 1), whole[index])


def check_parts_of_draws():
    """A part of a value, and some heads of an attention, draw what the whole draws."""
    rng, op = torch.tensor([7, 5]), Op("ds.random_uniform", [], [])
    op.attributes, op.types = {"id": 3, "first": 0}, [Type([4, 6], "f32")]
    whole = OPS[op.name](op, rng)
    op.types = [Type([4, 2], "f32")]
    assert torch.equal(OPS[op.name](op, rng, torch.arange(24).reshape(4, 6)[:, 2:4]), whole[:, 2:4])
    generator = torch.Generator().manual_seed(2)
    q, k, v, grad = (torch.randn([2, 5, 4, 3], generator=generator, dtype=torch.float64) for _ in range(4))
    op = Op("ds.attention", [], [])
    op.attributes = {"scale": 0.5, "causal": True, "dropout": 0.4, "dropout_id": 2}
    out, lse = OPS["ds.attention"](op, q, k, v, rng)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    with torch.enable_grad():
        expected = torch.autograd.grad(OPS["ds.attention"](op, *leaves, rng)[0], leaves, grad)
    found = attention_grad(op, q, k, v, out, lse, grad, rng)
    assert all(torch.allclose(ours, theirs) for ours, theirs in zip(found, expected))
    op.attributes["heads"] = 4
    some = [x[:, :, 2:] for x in (q, k, v)]
    part, _ = OPS["ds.attention"](op, *some, rng, torch.tensor(2))
    assert torch.allclose(part, out[:, :, 2:])
    grads = attention_grad(op, *some, out[:, :, 2:], lse[:, 2:], grad[:, :, 2:], rng, torch.tensor(2))
    assert all(torch.allclose(ours, theirs[:, :, 2:]) for ours, theirs in zip(grads, expected))


def check_part_of_a_table():
    """Rows of another part are zeros: the parts add up to the whole."""
    table, ids = torch.arange(12.0).double().reshape(6, 2), torch.tensor([[0, 5], [2, 3]])
    op = Op("ds.embedding", [], [])
    op.attributes = {"part": True}
    halves = [OPS["ds.embedding"](op, table[first:first + 3], ids - first) for first in (0, 3)]
    assert torch.equal(halves[0] + halves[1], table[ids]) and (halves[0][0, 1] == 0).all()


def check_reader():
    """Every form that generic text has."""
    module, = read_modules('''"builtin.module"() ({
  "ds.state"() <{shards = [#ds.axes<dp.node, sp>, #ds<space device>], init = #ds.init<normal, 0.0, 1.0>, type = tensor<4x2xf32>, trainable}> : () -> ()
  "func.func"() <{arg_attrs = [{ds.input = "x"}], function_type = (tensor<2xf32>) -> tensor<f32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<2xf32>):
    %0:2 = "ds.split"(%arg0) <{dim = 0 : i64}> {ds.layer = "a, \\22b\\22 }> : (x)"} : (tensor<2xf32>) -> (tensor<1xf32>, tensor<1xf32>)
    %result, %kept = "ds.x"(%0#0, %0#1) <{epsilon = 1.5e-03 : f64, dims = array<i64: 1, -2>, none = array<i64>, value = dense<[1, 2]> : tensor<2xi64>}> : (tensor<1xf32>, tensor<1xf32>) -> (tensor<f32>, tensor<f32>)
    "func.return"(%kept) : (tensor<f32>) -> ()
  }) {ds.segment = #ds.segment<stage 1, chunk 0, forward>} : () -> ()
}) {ds.phase = #ds.phase<sharded>} : () -> ()
''')
    state, function = module.regions[0].ops
    assert state.get("shards")[0].body == "dp.node, sp" and state.get("shards")[1] == "device" and state.has("trainable")
    assert state.get("type") == Type([4, 2], "f32") and module.get("ds.phase").body == "sharded"
    split, other, end = function.regions[0].ops
    assert split.results == ["%0#0", "%0#1"] and split.get("dim") == 0 and split.types == [Type([1], "f32")] * 2
    assert split.get("ds.layer") == 'a, "b" }> : (x)'
    assert other.results == ["%result", "%kept"] and other.operands == split.results and other.get("dims") == [1, -2]
    assert other.get("none") == [] and other.get("epsilon") == 1.5e-3 and other.get("value").body == "[1, 2]"
    assert end.operands == ["%kept"] and function.get("arg_attrs") == [{"ds.input": "x"}]


def main():
    checks = [check_philox, check_mesh, check_layouts, check_rounding, check_attention, check_parts_of_draws, check_part_of_a_table,
              check_reader]
    for check in checks:
        check()
    print(f"{len(checks)} parts are right")


if __name__ == "__main__":
    main()
