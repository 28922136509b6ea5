#!/usr/bin/python3
"""long_chain.py KIND COUNT - a model of COUNT ops, each of which reads the one before.

cheap: elementwise ops; counters: elementwise ops on counters, which are added in the end; views: transpositions and reshapes that
no view can follow, each of which a sum reads; shared: products with one weight, whose gradients add up.
"""

import sys

T, U = "tensor<4x8xf32>", "tensor<8x4xf32>"
kind, count = sys.argv[1], int(sys.argv[2])
lines, value, weight = [], "%w", T


def emit(text):
    global value
    value = f"%v{len(lines)}"
    lines.append(f"{value} = {text}")


if kind == "shared":
    weight = "tensor<8x8xf32>"
    value = "%x"
    for _ in range(count):
        emit(f"ds.matmul {value}, %w : {T}, {weight} -> {T}")
elif kind == "counters":
    emit(f"ds.iota dim 1 start 0 step 1 : {T}")
    for index in range(count):
        emit(f"ds.{('sin', 'neg')[index % 2]} {value} : {T}")
    emit(f"ds.mul {value}, %w : {T}")
else:
    for index in range(count):
        if kind == "cheap":
            emit(f"ds.{('sin', 'tanh', 'neg')[index % 3]} {value} : {T}")
        else:
            emit(f"ds.transpose {value} perm [1, 0] : {T} -> {U}")
            emit(f"ds.reshape {value} : {U} -> {T}")
emit(f"ds.mul {value}, {value} : {T}")
emit(f"ds.reduce sum {value} dims [0, 1] : {T} -> tensor<f32>")
body = "\n    ".join(lines)
print(f"""module {{
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : {weight}
  func.func @forward(%x: {T} {{ds.input = "x"}}, %w: {weight} {{ds.state = @w}}) -> tensor<f32> {{
    {body}
    return {value} : tensor<f32>
  }}
}}""")
