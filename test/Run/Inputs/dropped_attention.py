"""dropped_attention.py DIR [[--within SHARE] FIRST OTHER...] - write fused.mlir and stored.mlir; or compare the runs of OTHER with that of FIRST."""

import json
import sys

sys.path.insert(0, __file__.rsplit("/test/", 1)[0] + "/examples")

HEAD = """\
ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
ds.state @w role(parameter) trainable init(#ds.init<normal, 1.0, 0.2>) home(device) : tensor<48x144xf32>
func.func @forward(%x: tensor<2x20x48xf32> {ds.input = "x"}, %rng: tensor<2xi64> {ds.state = @rng},
                   %w: tensor<48x144xf32> {ds.state = @w}) -> tensor<f32> {
  %qkv = ds.matmul %x, %w : tensor<2x20x48xf32>, tensor<48x144xf32> -> tensor<2x20x144xf32>
  %p:3 = ds.split %qkv dim 2 : tensor<2x20x144xf32> -> tensor<2x20x48xf32>, tensor<2x20x48xf32>, tensor<2x20x48xf32>
"""
HEADS = """\
  %{0}0 = ds.reshape %p#{1} : tensor<2x20x48xf32> -> tensor<2x20x3x16xf32>
  %{0} = ds.transpose %{0}0 perm [0, 2, 1, 3] : tensor<2x20x3x16xf32> -> tensor<2x3x20x16xf32>
"""
CORE = """\
  %s0 = ds.matmul %q, %k transpose_rhs : tensor<2x3x20x16xf32>, tensor<2x3x20x16xf32> -> tensor<2x3x20x20xf32>
  %scale = ds.constant dense<0.25> : tensor<2x3x20x20xf32>
  %s = ds.mul %s0, %scale : tensor<2x3x20x20xf32>
  %a = ds.softmax %s dim 3 : tensor<2x3x20x20xf32>
  %d = ds.dropout %a, %rng probability 0.3 id 4 : tensor<2x3x20x20xf32>, tensor<2xi64>
  %o = ds.matmul %d, %v : tensor<2x3x20x20xf32>, tensor<2x3x20x16xf32> -> tensor<2x3x20x16xf32>
  %sq = ds.mul %o, %o : tensor<2x3x20x16xf32>
  %l0 = ds.reduce sum %sq dims [0, 1, 2, 3] : tensor<2x3x20x16xf32> -> tensor<f32>
  %n = ds.constant dense<0.001> : tensor<f32>
  %l = ds.mul %l0, %n : tensor<f32>
"""
ALONE = "  return %l : tensor<f32>\n}\n"
TWICE = """\
  %all = ds.reduce sum %d dims [0, 1, 2, 3] : tensor<2x3x20x20xf32> -> tensor<f32>
  %zero = ds.constant dense<0.0> : tensor<f32>
  %none = ds.mul %all, %zero : tensor<f32>
  %both = ds.add %l, %none : tensor<f32>
  return %both : tensor<f32>
}
"""


def write(folder):
    text = HEAD + "".join(HEADS.format(name, number) for number, name in enumerate("qkv")) + CORE
    for name, end in (("fused", ALONE), ("stored", TWICE)):
        with open(f"{folder}/{name}.mlir", "w") as file:
            file.write(text + end)


def numbers(folder, name):
    import safetensors_io
    with open(f"{folder}/{name}.jsonl") as file:
        steps = [json.loads(line) for line in file]
    losses = [step[key] for step in steps for key in ("loss", "eval_loss")]
    return losses, safetensors_io.load(f"{folder}/{name}.out.safetensors")["w"]


def compare(folder, first, others, within=1e-5):
    import numpy
    losses, weights = numbers(folder, first)
    for name in others:
        wanted = not name.startswith("not-")
        name = name.removeprefix("not-")
        found, own = numbers(folder, name)
        same = numpy.allclose(losses, found, rtol=within) and numpy.allclose(weights, own, rtol=10 * within, atol=within)
        print(f"{name}: {'as' if same else 'differs from'} {first}")
        if same != wanted:
            sys.exit(f"{losses} {found} {abs(weights - own).max()}")


if len(sys.argv) == 2:
    write(sys.argv[1])
elif sys.argv[2] == "--within":
    compare(sys.argv[1], sys.argv[4], sys.argv[5:], float(sys.argv[3]))
else:
    compare(sys.argv[1], sys.argv[2], sys.argv[3:])
