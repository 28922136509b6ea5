"""program_tree.py - program files as trees of their fields, by lib/Runtime/Program/program.fbs."""

import ctypes
import json
import os
import re
import struct
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = os.path.join(ROOT, "lib/Runtime/Program/program.fbs")
MAGIC = b"\x89DSX\r\n\x1a\n"
CODE = {"image", "cubin"}


def schema():
    """{table: [(field, type)]} of the schema."""
    with open(SCHEMA) as file:
        text = re.sub(r"//[^\n]*", "", file.read())
    types = {}
    for name, body in re.findall(r"(?:table|struct)\s+(\w+)\s*\{([^}]*)\}", text):
        types[name] = re.findall(r"(\w+)\s*:\s*(\[?\w+\]?)", body)
    return types


def fields(types, value, kind="Program", path=""):
    """(path in the schema, holder, key, type) of everything in `value` that can be changed."""
    for name, field in types[kind]:
        place = f"{path}.{name}" if path else name
        if name in value:
            yield place, value, name, field
        inner = field.strip("[]")
        if field in types and name in value:
            yield from fields(types, value[name], field, place)
        if field.startswith("[") and name not in CODE:
            for index, item in enumerate(value.get(name, [])):
                if inner in types:
                    yield from fields(types, item, inner, place + "[]")
                else:
                    yield place + "[]", value[name], index, inner


def find(value, place):
    """(holder, key) of each thing at one path in the schema."""
    first, _, rest = place.partition(".")
    name = first.removesuffix("[]")
    items = value.get(name, [])
    if isinstance(items, dict):
        items = [items]
    if not rest:
        return [(items, index) for index in range(len(items))] if first != name else [(value, name)] if name in value else []
    return [pair for item in items for pair in find(item, rest)]


class Program:
    """A program file as a tree of its fields."""

    def __init__(self, path, folder, wanted):
        with open(path, "rb") as file:
            data = file.read()
        self.version = struct.unpack_from("<I", data, 8)[0]
        self.work, self.types = folder, schema()
        payload = os.path.join(folder, "payload.bin")
        with open(payload, "wb") as file:
            file.write(data[32:])
        subprocess.run(["flatc", "--json", "--strict-json", "--defaults-json", "--raw-binary", "-o", folder, SCHEMA, "--", payload],
                       check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "payload.json")) as file:
            self.text = file.read()
        self.kinds = {place: kind for place, _, _, kind in fields(self.types, json.loads(self.text))}
        self.paths = sorted(place for place in self.kinds if re.search(wanted, place))

    def seal(self, tree, stem, tools):
        """The bytes of a program file that holds `tree`. ValueError where it has no form in FlatBuffers."""
        with open(stem + ".json", "w") as file:
            file.write(json.dumps(tree))  # dump() would do it in Python
        done = tools.run(["flatc", "-b", "-o", os.path.dirname(stem), SCHEMA, stem + ".json"], 60)
        if done.code != 0:
            raise ValueError(f"flatc ends with {done.code}: {done.said}")
        with open(stem + ".bin", "rb") as file:
            payload = file.read()
        checksum = XXH3(payload, len(payload), self.version)
        return MAGIC + struct.pack("<IIQQ", self.version, 0, len(payload), checksum) + payload


XXH3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
XXH3.restype, XXH3.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
