""".npy files as training data: the magic, the version, the header's dictionary and the data."""

import json
import os
import struct

from . import Format, change_bytes
from .safetensors import floats
from .safetensors import make as make_safetensors

DESCR = ["<f4", ">f4", "<f8", "<f2", "<i8", "<i4", "|b1", "|u1", "<U4", "|O", "<c8", "f4", "<f40", "", "[('a', '<f4')]", "|V16"]
SHAPES = ["(4, 64)", "(4, 64,)", "4, 64", "()", "(256,)", "(64, 4)", "(-4, -64)", "(4, 64, 0)", "(4294967296, 4294967296)",
          "(18446744073709551616,)", "(2, 64)", "(4.0, 64)", "[4, 64]", "(4 , 64 )", "(4L, 64L)", "(" + "1, " * 3000 + "256)", "((4,), 64)",
          "None"]


def pack(text, content, version=(1, 0), pad=True):
    if pad:
        text += " " * (-(len(text) + 11) % 64) + "\n"
    data = text.encode("latin-1", "replace")
    length = struct.pack("<H" if version[0] == 1 else "<I", min(len(data), 65535))
    return b"\x93NUMPY" + bytes(version) + length + data + content


def header(descr="<f4", order="False", shape="(4, 64)", keys=("descr", "fortran_order", "shape")):
    return f"{{'{keys[0]}': '{descr}', '{keys[1]}': {order}, '{keys[2]}': {shape}, }}"


def change(draw, data, path):
    content = data[128:] if len(data) >= 128 else data
    content = floats(256)
    way = draw.randrange(9)
    if way == 0:
        return change_bytes(draw, data)
    if way == 1:
        return pack(header(descr=draw.choice(DESCR)), content)
    if way == 2:
        return pack(header(shape=draw.choice(SHAPES)), content)
    if way == 3:
        return pack(header(order=draw.choice(["True", "1", "None", "false", "'True'", ""])), content)
    if way == 4:
        return pack(header(), content, draw.choice([(1, 0), (2, 0), (3, 0), (0, 0), (4, 0), (255, 255), (1, 1)]))
    if way == 5:
        keys = ["descr", "fortran_order", "shape"]
        keys[draw.randrange(3)] = draw.choice(["descr", "shape", "x", "", "'", "\\x00", "a" * 70000])
        return pack(header(keys=keys), content)
    if way == 6:
        return pack(header(), draw.choice([content[:-1], content + b"\0" * 7, b"", content * 3]))
    if way == 7:
        text = header()
        at = draw.randrange(len(text))
        return pack(text[:at] + draw.choice(["", "{", "'", "(", "\\", "\n", "\0", "x" * 200]) + text[at + draw.randrange(3):], content)
    data = bytearray(data)
    data[8:10] = struct.pack("<H", draw.choice([0, 1, 10, 117, 119, 200, 65535]))
    return bytes(data)


def make(folder):
    make_safetensors(folder)
    right, wide = os.path.join(folder, "data.npy"), os.path.join(folder, "wide.npy")
    for path, version in ((right, (1, 0)), (wide, (2, 0))):
        with open(path, "wb") as file:
            file.write(pack(header(), floats(256), version))

    def command(path):
        return ["ds-run", os.path.join(folder, "model.dsx"), "--data", path, "--steps", "1"], None

    return Format([right, wide], change, command)
