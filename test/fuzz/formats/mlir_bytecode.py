"""MLIR bytecode of every phase: sections keep their lengths, so that what is inside is read."""

import os

from . import Format, change_bytes, quietly
from .mlir_text import command_of, make_modules, weighted

MAGIC = b"ML\xefR"


def read_varint(data, at):
    """(value, place behind it) of a variable integer: the lowest bits of the first byte tell how many bytes there are."""
    first = data[at]
    if first & 1:
        return first >> 1, at + 1
    if first == 0:
        return int.from_bytes(data[at + 1:at + 9], "little"), at + 9
    count = (first & -first).bit_length()
    return int.from_bytes(data[at:at + count], "little") >> count, at + count


def sections(data):
    """[(number, begin, end)] of the sections' contents."""
    _, at = read_varint(data, 4)
    at = data.index(b"\0", at) + 1
    found = []
    while at < len(data):
        number, isAligned = data[at] & 0x7F, data[at] & 0x80
        length, at = read_varint(data, at + 1)
        if isAligned:
            alignment, at = read_varint(data, at)
            while at % alignment:
                at += 1
        found.append((number, at, at + length))
        at += length
    return found


def change(draw, data, path):
    """Bytes within a section, or, seldom, of the frame around them."""
    data = bytearray(data)
    if draw.random() < 0.15:
        return change_bytes(draw, bytes(data))
    parts = [part for part in sections(data) if part[2] > part[1]]
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        _, begin, end = draw.choice(parts)
        at = draw.randrange(begin, end)
        way = draw.randrange(5)
        if way == 0:
            data[at] ^= 1 << draw.randrange(8)
        elif way == 1:
            data[at] = draw.choice([0, 1, 2, 3, 5, 0x7F, 0x80, 0xFE, 0xFF, draw.randrange(256)])
        elif way == 2:
            data[at] = (data[at] + draw.choice([2, 4, -2, -4])) % 256  # another index, of as many bytes
        elif way == 3:
            other = draw.randrange(begin, end)
            data[at], data[other] = data[other], data[at]
        else:
            size = min(draw.choice([2, 4, 8]), end - at)
            data[at:at + size] = bytes(draw.randrange(256) for _ in range(size))
    return bytes(data)


def make(folder):
    paths = []
    for path in make_modules(folder):
        code = os.path.join(folder, os.path.basename(path) + "bc")
        quietly(["ds-opt", path, "--emit-bytecode", "-o", code])
        with open(code, "rb") as file:
            data = file.read()
        assert data.startswith(MAGIC) and sections(data)[-1][2] == len(data), f"{code} is not bytecode as this module knows it"
        paths.append(code)
    return Format(weighted(paths), change, lambda path: (command_of(path), None))
