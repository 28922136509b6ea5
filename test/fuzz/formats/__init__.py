"""The formats that fuzz.py changes, one module each, whose make(folder) writes right files and returns a Format."""

import copy
import json
import subprocess
from dataclasses import dataclass
from typing import Callable

NUMBERS = [0, 1, 2, -1, 3, 7, 64, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63,
           2**64 - 1, 2**64, 10**30, -2**63, 0.5, 1e-300, 1e308, -1e308, 5e8, 1.5]
TEXTS = ["", " ", "x", "auto", "null", "true", "0", "-1", "1e9", "../../etc/passwd", "/dev/zero", "%s%n%x", "\u0000", "\u0001\u001b[2J",
         "\u00e9\u4e2d\U0001f600", "a" * 5000, "F32", "\ud7ff", "{}", "[", "\\", "\"", "nan", "inf"]
# JSON that no json.dumps writes.
RAW = ["NaN", "Infinity", "-Infinity", "1e999", "-0", "0x10", "01", "1.", "'x'", "truE", "", "{", "[" * 3000, "/* c */ 1", "1 // c\n",
       "\ufeff1", "1e-999", "123456789012345678901234567890", "\"\\ud800\"", "\"\\x\"", "\"\n\"", "undefined", "[1,]", "{\"a\":1,}"]


@dataclass
class Format:
    seeds: list  # paths of right files
    change: Callable  # (draw, bytes, path of the seed) -> bytes
    command: Callable  # path -> (command, file of standard input or None)
    right: frozenset = frozenset({0})  # how the seeds end


def quietly(command, **options):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)


def places(value, path=()):
    """The paths of everything in a JSON value, itself included."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, path + (key,))


def find(value, path):
    for key in path:
        value = value[key]
    return value


def other_value(draw, value, others):
    """Something that stands where `value` stood: near it, of its type, or of another."""
    near = []
    if isinstance(value, bool):
        near = [not value]
    elif isinstance(value, (int, float)):
        near = [value + 1, value - 1, -value, value * 2, value / 2, str(value), float(value), value * 10**9]
    elif isinstance(value, str):
        near = [value + "x", value[:-1], value.upper(), value * 3, value + "\u0000", [value]]
    elif isinstance(value, list):
        near = [value + value[:1], value[:-1], value[::-1], [], value * 2, [value], {str(k): v for k, v in enumerate(value)}]
    elif isinstance(value, dict):
        near = [{}, [], list(value), {**value, "x": 1}, {"x": value}]
    wild = [draw.choice(NUMBERS), draw.choice(TEXTS), None, True, [], {}, [[]], draw.choice(others)]
    return draw.choice(near if near and draw.random() < 0.5 else wild)


class Raw(str):
    """Text that stands in the file as it is."""


def dump(draw, value):
    """JSON, in which Raw stands for itself, and sometimes a key stands twice."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        items = [f"{json.dumps(str(key))}: {dump(draw, item)}" for key, item in value.items()]
        if items and draw.random() < 0.02:
            items.append(draw.choice(items))
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dump(draw, item) for item in value) + "]"
    return json.dumps(value)


def change_json(draw, value, names=()):
    """`value` with one to three changes, as bytes. `names` are keys that its reader may know."""
    value = copy.deepcopy(value)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        paths = list(places(value))
        others = [find(value, path) for path in paths]
        path = draw.choice(paths)
        if not path:
            path = draw.choice(paths)
        holder, old = find(value, path[:-1]) if path else None, find(value, path)
        way = draw.randrange(10)
        if way == 0 and isinstance(old, dict):
            old[draw.choice(list(names) + TEXTS)] = copy.deepcopy(draw.choice(others + NUMBERS))
        elif way == 1 and path:
            del holder[path[-1]]
        elif way == 2 and path and isinstance(holder, dict):
            holder[draw.choice(list(names) + [str(path[-1]) + "x", str(path[-1])[:-1]] + TEXTS)] = holder.pop(path[-1])
        else:
            new = Raw(draw.choice(RAW)) if way == 3 else copy.deepcopy(other_value(draw, old, others))
            if path:
                holder[path[-1]] = new
            else:
                value = new
    try:
        text = dump(draw, value)
    except RecursionError:
        text = "[" * 100000
    data = text.encode("utf-8", "surrogatepass")
    return change_bytes(draw, data) if draw.random() < 0.1 else data


def change_bytes(draw, data):
    """`data` with one to four changes of bytes, or cut off, or with a part twice."""
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data)) if data else 0
        end = min(len(data), at + draw.choice([1, 2, 4, 8, 64, 4096]))
        way = draw.randrange(7)
        if way == 0 and data:
            data[at] ^= 1 << draw.randrange(8)
        elif way == 1 and data:
            data[at] = draw.choice([0, 0xFF, 0x7F, 0x80, draw.randrange(256)])
        elif way == 2:
            del data[at:end]
        elif way == 3:
            data[at:at] = data[at:end]
        elif way == 4:
            data[at:at] = bytes(draw.randrange(256) for _ in range(draw.choice([1, 2, 8, 300])))
        elif way == 5:
            del data[at:]
        else:
            data[at:end] = draw.choice([0, 0xFF]).to_bytes(1, "little") * (end - at)
    return bytes(data)
