#!/usr/bin/python3
"""programs.py - give ds-run program files of which one field is changed and the checksum is right.

    programs.py --out DIR [--seeds NAME,...] [--fields PATTERN] [--count N] [--seed S] [--jobs N] [--fake LIBRARY]

Compiles small programs (once: DIR/seeds is kept), and runs one step of each mutation of them in a process of its own, with
limits of time and memory. The fields come from lib/Runtime/Program/program.fbs, so that a new one is covered at once: every
number, flag, string and list, those that the file leaves out because they have their default included. Machine code is
trusted: of `image` and `cubin` only the length changes.

Whatever is changed, ds-run refuses the file by name or runs it: it never dies by a signal, hangs, says that it has an
internal error, or lets a library speak. Files for which it did are kept in DIR/bad, and the exit code is 1. Equal seeds
and programs give equal files. Needs flatc, ds-opt and ds-run on PATH, and PyTorch for the seeds that are exported.
"""

import argparse
import concurrent.futures
import ctypes
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
from collections import Counter

from seeds import SEEDS, make_seed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = os.path.join(ROOT, "lib/Runtime/Program/program.fbs")
MAGIC = b"\x89DSX\r\n\x1a\n"
BITS = {"ubyte": 8, "ushort": 16, "uint": 32, "ulong": 64, "byte": -8, "short": -16, "int": -32, "long": -64}
CODE = {"image", "cubin"}
MEMORY, SECONDS = 3 << 30, 120

# What ds-run may answer, by exit code: the message must match. 0: the change left a program that runs, if with other
# numbers; 2: it keeps states on NVMe, and needs an option; 3: it asks for other data, ranks or weights than it is given; 4: for more memory than there is; 6: for a file
# that is not there; 8: it trains, and its loss is no number; 9: it is made for another machine.
ALLOWED = {
    0: "", 2: r"names no directory", 3: "", 4: r"bytes", 5: r"\.dsx: ", 6: r"No such file|cannot open", 8: r"step 1: the (loss|gradient)|overflow",
    9: r"made for|lacks|workspace|oneDNN|threads|NVMe",
}
FORBIDDEN = re.compile(r"internal error|terminate called|what\(\)|libgomp|runtime error|Sanitizer|dlopen|Aborted")


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

    def seal(self, tree, stem):
        """The bytes of a program file that holds `tree`; None where it has no form in FlatBuffers."""
        with open(stem + ".json", "w") as file:
            file.write(json.dumps(tree))  # dump() would do it in Python
        done = subprocess.run(["flatc", "-b", "-o", os.path.dirname(stem), SCHEMA, stem + ".json"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise ValueError(done.stdout)
        with open(stem + ".bin", "rb") as file:
            payload = file.read()
        checksum = XXH3(payload, len(payload), self.version)
        return MAGIC + struct.pack("<IIQQ", self.version, 0, len(payload), checksum) + payload


XXH3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
XXH3.restype, XXH3.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def change_number(draw, value, kind, others):
    if kind in ("double", "float"):
        return draw.choice([0.0, 1.0, -1.0, -value, value * 2, 1e308, -1e308, 1e-308, float("nan"), float("inf"), float("-inf"),
                            draw.choice(others)])
    bits = BITS[kind]
    low, high = (0, (1 << bits) - 1) if bits > 0 else (-(1 << (-bits - 1)), (1 << (-bits - 1)) - 1)
    known = [0, 1, 2, -1, value + 1, value - 1, -value, value * 2, value // 2, value ^ (1 << draw.randrange(abs(bits))),
             low, high, high - 1, high // 2, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1,
             draw.choice(others), draw.choice(others), draw.choice(others), draw.randrange(10), draw.randint(low, high)]
    return draw.choice([number for number in known if low <= number <= high and number != value])


def change_list(draw, items, isCode, kind):
    """Another length, or another order; None for an empty list of tables, which has no entry to repeat."""
    if not items:
        return {"[string]": [""], "[ubyte]": [0], "[uint]": [4], "[long]": [1], "[ulong]": [64]}.get(kind)
    ways = [items[:-1], items[:len(items) // 2], [], items + items[-1:], items[1:]]
    if not isCode and len(items) > 1:
        at = draw.randrange(len(items))
        swapped = list(items)
        other = draw.randrange(len(items))
        swapped[at], swapped[other] = swapped[other], swapped[at]
        ways += [items[:at] + items[at + 1:], items[:at] + [items[at]] + items[at:], swapped]
    return draw.choice([way for way in ways if way != items])


def change_text(draw, text, others):
    return draw.choice([t for t in ["", "x", text + "x", text[:-1], "../" + text, text + "\u0001", "y" * 5000, "%s%n", "\u00e9" * 9,
                                    draw.choice(others), draw.choice(others)] if t != text])


def mutate(program, draw):
    """(what was changed, the tree)."""
    tree = json.loads(program.text)
    place = draw.choice(program.paths)
    found, kind = find(tree, place), program.kinds[place]
    holder, key = draw.choice(found)
    before, others = holder[key], [h[k] for h, k in found]
    if kind in program.types:  # one that may be absent
        del holder[key]
        return f"{place}: {str(before)[:60]!r}, now absent", tree
    if kind.startswith("["):
        holder[key] = change_list(draw, before, key in CODE, kind)
        if holder[key] is None:
            return mutate(program, draw)
        return f"{place}: {len(before)} entries, now {len(holder[key])}", tree
    if kind == "bool":
        holder[key] = not before
    elif kind == "string":
        holder[key] = change_text(draw, before, others)
    else:
        holder[key] = change_number(draw, before, kind, others)
    return f"{place}: {str(before)[:60]!r}, now {str(holder[key])[:60]!r}", tree


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setsid()


def judge(command, environment, memory):
    """(exit code, or "hang"; what is wrong with the answer, or None)."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                             preexec_fn=limit if memory else os.setsid)
    try:
        printed, said = (stream.decode(errors="replace") for stream in child.communicate(timeout=SECONDS))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return "hang", f"no end within {SECONDS} s"
    code = child.returncode
    if code not in ALLOWED:
        return code, said[-2000:] or "no message"
    if FORBIDDEN.search(said) or not re.search(ALLOWED[code], said):
        return code, f"message: {said[-2000:]}"
    errors = [line for line in said.splitlines() if "error: " in line]
    if code != 0 and (not errors or max(map(len, errors)) > 20000):
        return code, f"no message of one line: {said[-2000:]}"
    return code, None


class Round:
    """The mutations of some seeds, shared out to workers."""

    def __init__(self, args):
        self.args = args
        self.bad = os.path.join(args.out, "bad")
        self.seeds = []
        for name in args.seeds:
            folder = os.path.join(args.out, "seeds", name)
            seed = make_seed(name, folder, args.fake)
            self.seeds.append((name, seed, Program(seed.program, folder, args.fields)))

    def complain_about_seeds(self):
        for name, seed, program in self.seeds:
            code, wrong = judge(seed.command(self.args.ds_run, seed.program), seed.environment, self.args.limits)
            if code != 0 or wrong:
                sys.exit(f"{name}: the program itself ends with {code}: {wrong}")

    def run(self, number):
        """The outcome of mutation `number`: (exit code, complaint or None)."""
        draw = random.Random(f"{self.args.seed} {number}")
        name, seed, program = self.seeds[number % len(self.seeds)]
        what, tree = mutate(program, draw)
        stem = os.path.join(self.args.out, "work", f"case-{number}")
        path = stem + ".dsx"
        try:
            with open(path, "wb") as file:
                file.write(program.seal(tree, stem))
            for _ in range(3):  # ranks that a busy machine starts too late have not read the program yet
                code, wrong = judge(seed.command(self.args.ds_run, path), seed.environment, self.args.limits)
                if not wrong or "come to the rendezvous" not in wrong:
                    break
            if wrong:
                shutil.copy(path, self.bad)
                wrong = f"case {number} of {name}: {what}\n  exit code {code}: {wrong.strip()}"
            return code, wrong
        except ValueError as error:
            return "unformed", f"case {number} of {name}: {what}: {error}"
        finally:
            for suffix in (".json", ".bin", ".dsx", ".after.safetensors"):
                if os.path.exists(stem + suffix):
                    os.remove(stem + suffix)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=lambda text: text.split(","), default=None, help=", ".join(SEEDS))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation: to see one again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fields", default="", metavar="PATTERN", help="only fields whose path matches, as kernels|params")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--ds-run", default="ds-run")
    parser.add_argument("--no-limits", dest="limits", action="store_false", help="of memory: sanitizers need more")
    parser.add_argument("--fake", default="", metavar="LIBRARY", help="libds-fake-cuda.so, for the seeds for CUDA")
    args = parser.parse_args()
    args.seeds = args.seeds or [name for name in SEEDS if args.fake or "cuda" not in name]
    args.out = os.path.abspath(args.out)
    return args


def main():
    args = parse()
    for folder in ("work", "bad", "seeds"):
        os.makedirs(os.path.join(args.out, folder), exist_ok=True)
    work = Round(args)
    work.complain_about_seeds()
    counts, complaints = Counter(), 0
    numbers = itertools.chain(range(args.first, args.first + args.count))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for code, wrong in pool.map(work.run, numbers):
            counts[str(code)] += 1
            if wrong:
                complaints += 1
                print(wrong, flush=True)
    print(f"{args.count} programs of {len(work.seeds)} seeds: " +
          ", ".join(f"{counts[code]} x exit {code}" for code in sorted(counts)))
    print(f"{complaints} answers that ds-run must not give")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
