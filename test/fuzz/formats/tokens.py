""".bin token streams: raw, and with the header of llm.c."""

import json
import os
import struct

from . import Format, change_bytes, quietly
from .ds_config import PLAIN

MODEL = """
ds.state @t role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<96x8xf32>
func.func @forward(%x: tensor<2x4xi64> {ds.input = "x"}, %y: tensor<2x4xi64> {ds.input = "y"}, %t: tensor<96x8xf32> {ds.state = @t}) -> tensor<f32> {
  %e = ds.embedding %t, %x : tensor<96x8xf32>, tensor<2x4xi64> -> tensor<2x4x8xf32>
  %f = ds.reshape %e : tensor<2x4x8xf32> -> tensor<8x8xf32>
  %z = ds.reshape %y : tensor<2x4xi64> -> tensor<8xi64>
  %l, %lse, %n = ds.cross_entropy %f, %z ignore_index -100 : (tensor<8x8xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return %l : tensor<f32>
}
"""
TOKENS = [(k * 5 + k // 7) % 8 for k in range(64)]


def change(draw, data, path):
    data = bytearray(data)
    start = 1024 if "llmc" in path else 0
    wide = "u32" in path
    way = draw.randrange(6)
    if way == 0:
        return change_bytes(draw, bytes(data))
    if way == 1 and start:
        struct.pack_into("<I", data, 4 * draw.randrange(5), draw.choice([0, 1, 2, 20240520, 20240801, 63, 65, 2**31, 2**32 - 1, 0x10000]))
    elif way == 2:
        del data[draw.choice([start, start + 1, start + 2, start + 8, len(data) - 1, len(data) - 2, 3]):]
    elif way == 3:
        at = start + (4 if wide else 2) * draw.randrange(len(TOKENS))
        struct.pack_into("<I" if wide else "<H", data, at, draw.choice([8, 95, 96, 65535]))
    elif way == 4:
        data += bytes(draw.choice([1, 2, 3, 4096]))
    else:
        data[start:start] = bytes(draw.randrange(256) for _ in range(draw.choice([1, 2, 1024])))
    return bytes(data)


def make(folder):
    model, config, program = (os.path.join(folder, name) for name in ("model.mlir", "ds.config", "model.dsx"))
    with open(model, "w") as file:
        file.write(MODEL)
    with open(config, "w") as file:
        json.dump({**PLAIN, "gradient_accumulation_steps": 1, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}, file)
    quietly(["ds-opt", model, "--config", config, "--emit=program", "-o", program])
    files = {"raw-u16.bin": struct.pack("<64H", *TOKENS), "raw-u32.bin": struct.pack("<64I", *TOKENS),
             "llmc-u16.bin": struct.pack("<256i", 20240520, 1, 64, *[0] * 253) + struct.pack("<64H", *TOKENS),
             "llmc-u32.bin": struct.pack("<256i", 20240801, 7, 64, *[0] * 253) + struct.pack("<64I", *TOKENS)}
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)

    def command(path):
        kind = ["--token-dtype", "u32"] if "raw-u32" in path else []
        return ["ds-run", program, "--data", path, *kind, "--steps", "2"], None

    return Format([os.path.join(folder, name) for name in files], change, command)
