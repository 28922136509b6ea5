"""safetensors files as weights and as training data: the header's fields, its length, and bytes of either part."""

import json
import os
import struct

from . import NUMBERS, TEXTS, Format, change_bytes, change_json, quietly
from .ds_config import MODEL, PLAIN

DTYPES = ["F32", "F64", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL", "F8_E4M3", "U64", "f32", "F4"]


def write(path, tensors, metadata=None):
    """`tensors`: name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def floats(count):
    return struct.pack(f"<{count}f", *(((k * 37) % 101 - 50) / 64 for k in range(count)))


def change_entry(draw, header):
    """One field of one tensor, as a reader would have to notice it."""
    names = [name for name in header if name != "__metadata__"]
    entry = header[draw.choice(names)]
    way = draw.randrange(6)
    if way == 0:
        entry["dtype"] = draw.choice(DTYPES)
    elif way == 1:
        entry["shape"] = draw.choice([entry["shape"][::-1], entry["shape"] + [1], entry["shape"] + [0], [], [draw.choice(NUMBERS)] * 2,
                                      [1] * 5000, [2**32, 2**32], entry["shape"][:-1]])
    elif way == 2:
        entry["data_offsets"][draw.randrange(2)] = draw.choice(NUMBERS + [entry["data_offsets"][0] + 4])
    elif way == 3:
        entry["data_offsets"] = [number + draw.choice([-4, 1, 4]) for number in entry["data_offsets"]]
    elif way == 4:
        header[draw.choice(TEXTS + names)] = json.loads(json.dumps(entry))
    else:
        header["__metadata__"] = draw.choice([{"a": 1}, [], {"": ""}, {"k": "v" * 100000}, None])
    return json.dumps(header).encode()


def change(draw, data, path):
    size = struct.unpack("<Q", data[:8])[0]
    text, content = data[8:8 + size], data[8 + size:]
    way = draw.randrange(8)
    if way == 0:
        return change_bytes(draw, data)
    if way == 1:
        return struct.pack("<Q", draw.choice([0, 1, 7, size - 1, size + 1, 100_000_000, 100_000_001, 2**63, 2**64 - 1,
                                              len(data) - 8, len(data)])) + data[8:]
    if way == 2:
        return struct.pack("<Q", size) + text + draw.choice([content[:-1], content + b"\0", content[:4], b"", content * 2])
    if way in (3, 4, 5):
        text = change_entry(draw, json.loads(text))
    elif way == 6:
        text = change_json(draw, json.loads(text), ["dtype", "shape", "data_offsets", "__metadata__"])
    else:
        text = draw.choice([b" ", b"\n", b"\t"]) * draw.choice([1, 8, 5000]) + text + b" " * draw.randrange(9)
    return struct.pack("<Q", len(text)) + text + content


def make(folder):
    model, config = os.path.join(folder, "model.mlir"), os.path.join(folder, "ds.config")
    program = os.path.join(folder, "model.dsx")
    with open(model, "w") as file:
        file.write(MODEL)
    with open(config, "w") as file:
        json.dump({**PLAIN, "gradient_accumulation_steps": 1, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}, file)
    quietly(["ds-opt", model, "--config", config, "--emit=program", "-o", program])
    right = os.path.join(folder, "data.safetensors")
    weights = os.path.join(folder, "weights.safetensors")
    write(right, {"x": ("F32", [4, 64], floats(256))}, {"format": "pt"})
    write(weights, {"w": ("F32", [2, 64], floats(128))})

    def command(path):
        isWeights = "weights" in os.path.basename(path)
        files = ["--data", right, "--weights", path] if isWeights else ["--data", path, "--weights", weights]
        return ["ds-run", program, *files, "--steps", "1"], None

    return Format([right, weights], change, command)
