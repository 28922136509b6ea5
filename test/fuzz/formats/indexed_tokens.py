"""Megatron's .idx, with the .bin that it is of, and blends of such files as JSON."""

import json
import os
import shutil
import struct

from . import NUMBERS, Format, change_bytes, change_json
from . import tokens

LENGTHS = [5, 0, 21, 38]  # 64 tokens


def index(code, width):
    starts, at = [], 0
    for length in LENGTHS:
        starts.append(at)
        at += length * width
    borders = [0, 1, 3, 4]
    return (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(LENGTHS), len(borders)) + struct.pack("<4i", *LENGTHS) +
            struct.pack("<4q", *starts) + struct.pack("<4q", *borders))


def change(draw, data, path):
    if path.endswith(".json"):
        return change_json(draw, json.loads(data), ["sources", "path", "weight", "token_dtype"])
    data = bytearray(data)
    if draw.random() < 0.3:
        return change_bytes(draw, bytes(data))
    # One field: version, type, counts, a length, a start, a border.
    at, kind = draw.choice([(9, "<Q"), (17, "<B"), (18, "<Q"), (26, "<Q"), *((34 + 4 * i, "<i") for i in range(4)),
                            *((50 + 8 * i, "<q") for i in range(4)), *((82 + 8 * i, "<q") for i in range(4))])
    bits = 8 * struct.calcsize(kind)
    old = struct.unpack_from(kind, data, at)[0]
    new = draw.choice([old + 1, old - 1, old * 2, *(int(number) for number in NUMBERS if isinstance(number, int))])
    struct.pack_into(kind.upper(), data, at, new % 2**bits)
    return bytes(data)


def make(folder):
    program = tokens.make(folder).command("x.bin")[0][1]
    for name, code, kind in (("u16", 8, "H"), ("i32", 4, "i")):
        with open(os.path.join(folder, name + ".bin"), "wb") as file:
            file.write(struct.pack(f"<64{kind}", *tokens.TOKENS))
        with open(os.path.join(folder, name + ".idx"), "wb") as file:
            file.write(index(code, struct.calcsize(kind)))
    with open(os.path.join(folder, "blend.json"), "w") as file:
        json.dump({"sources": [{"path": os.path.join(folder, "u16.idx"), "weight": 0.7},
                               {"path": os.path.join(folder, "raw-u32.bin"), "weight": 3, "token_dtype": "u32"}]}, file)

    def command(path):
        beside = path[:-4] + ".bin"
        if path.endswith(".idx") and not os.path.exists(beside):
            shutil.copy(os.path.join(folder, path[-7:-4] + ".bin"), beside)
        return ["ds-run", program, "--data", path, "--steps", "2", "--document-token", "3"], None

    return Format([os.path.join(folder, name) for name in ("u16.idx", "i32.idx", "blend.json")], change, command)
