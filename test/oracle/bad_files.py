#!/usr/bin/python3
"""bad_files.py - give a tool one damaged file after the other and hold it to its promise.

    bad_files.py weights WEIGHTS.safetensors -- ds-run PROGRAM.dsx --data D --weights @
    bad_files.py program PROGRAM.dsx                     -- ds-run @ --data D
    bad_files.py archive MODEL.pt                        -- ds-opt @ --config C ... -o OUT

Each case copies the file, damages it, and runs the command with @ replaced by the copy. The tool has to end with one of
the case's exit codes, name the file on stderr, and leave the outputs (--output, repeatable) as they were: absent.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys

CORRUPT, INVALID = 5, 3


def reheader(data, change):
    """A safetensors file whose header went through `change` (a dict in, a dict or text out)."""
    size = struct.unpack("<Q", data[:8])[0]
    header = change(json.loads(data[8:8 + size]))
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size:]


def first(header):
    """The name of the tensor that comes first in the data."""
    return min((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"])


def edit(**fields):
    """A change of the first tensor's entry."""
    def change(header):
        header[first(header)].update(fields)
        return header
    return change


def duplicate(header):
    text, name = json.dumps(header), first(header)
    return (text[:-1] + f", {json.dumps(name)}: {json.dumps(header[name])}}}").encode()


def rename(header):
    header["no.such.parameter"] = header.pop(first(header))
    return header


def transpose(header):
    name = max((n for n in header if len(header[n].get("shape", [])) == 2 and len(set(header[n]["shape"])) == 2))
    header[name]["shape"].reverse()
    return header


def shift(header):
    entry = header[first(header)]
    entry["data_offsets"] = [entry["data_offsets"][0] + 4, entry["data_offsets"][1] + 4]
    return header


WEIGHTS = [
    ("empty", lambda d: b"", CORRUPT), ("seven bytes", lambda d: d[:7], CORRUPT),
    ("cut in the header", lambda d: d[:100], CORRUPT), ("two bytes short", lambda d: d[:-2], CORRUPT),
    ("two bytes more", lambda d: d + b"xx", CORRUPT), ("header of 2^64 - 1", lambda d: b"\xff" * 8 + d[8:], CORRUPT),
    ("header over the limit", lambda d: struct.pack("<Q", 100_000_001) + d[8:], CORRUPT),
    ("header is one brace", lambda d: struct.pack("<Q", 1) + b"{" + d[9:], CORRUPT),
    ("header is no UTF-8", lambda d: d[:10] + b"\xff\xfe" + d[12:], CORRUPT),
    ("unknown dtype", lambda d: reheader(d, edit(dtype="F33")), CORRUPT),
    ("float offsets", lambda d: reheader(d, edit(data_offsets=[0.0, 4.0])), CORRUPT),
    ("negative dimension", lambda d: reheader(d, edit(shape=[-1])), CORRUPT),
    ("elements overflow", lambda d: reheader(d, edit(shape=[2**40, 2**40])), CORRUPT),
    ("bytes overflow", lambda d: reheader(d, edit(shape=[2**62])), CORRUPT),
    ("dimension of 2^64", lambda d: reheader(d, edit(shape=[2**64])), CORRUPT),
    ("offsets reversed", lambda d: reheader(d, edit(data_offsets=[64, 0])), CORRUPT),
    ("overlap and hole", lambda d: reheader(d, shift), CORRUPT),
    ("duplicate name", lambda d: reheader(d, duplicate), CORRUPT),
    ("a name that the model lacks", lambda d: reheader(d, rename), INVALID),
    ("another shape", lambda d: reheader(d, transpose), INVALID),
]


def flips(count):
    """Single-bit damages at places that a fixed seed draws; a place that nobody reads may go unnoticed."""
    def flip(index):
        def damage(data):
            draw = random.Random(index)
            place = draw.randrange(len(data))
            return data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1:]
        return damage
    return [(f"flipped bit, seed {i}", flip(i), None) for i in range(count)]


def cuts(count):
    return [(f"first {i}/{count}", (lambda i: lambda d: d[:len(d) * i // count])(i), CORRUPT) for i in range(count)]


KINDS = {
    "weights": WEIGHTS,
    "program": cuts(12) + [("text", lambda d: b"this is no program\n" * 20, CORRUPT)]
    + [(name, damage, CORRUPT) for name, damage, _ in flips(60)],
    "archive": cuts(8) + [("text", lambda d: b"import torch\n" * 20, CORRUPT)] + flips(24),
}


def check(command, name, expected, path, outputs):
    """What is wrong with how the tool took the damaged file at `path`, or None."""
    for output in outputs:
        if os.path.exists(output):
            os.remove(output)
    done = subprocess.run([path if part == "@" else part for part in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    allowed = [expected] if expected is not None else [0, CORRUPT, INVALID]
    if done.returncode not in allowed:
        return f"{name}: exit code {done.returncode}, not {allowed}\n{done.stderr}"
    if done.returncode == 0:
        return None
    if os.path.basename(path) not in done.stderr:
        return f"{name}: the message does not name the file\n{done.stderr}"
    left = [output for output in outputs if os.path.exists(output)]
    return f"{name}: left {', '.join(left)} behind" if left else None


def main():
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("file")
    parser.add_argument("--output", action="append", default=[])
    args = parser.parse_args(sys.argv[1:split])
    with open(args.file, "rb") as file:
        whole = file.read()
    stem, suffix = os.path.splitext(args.file)
    path = f"{stem}-damaged{suffix}"
    complaints = []
    for name, damage, expected in KINDS[args.kind]:
        with open(path, "wb") as file:
            file.write(damage(whole))
        complaint = check(sys.argv[split + 1:], name, expected, path, args.output)
        if complaint:
            complaints.append(complaint)
    print("\n".join(complaints) if complaints else f"{len(KINDS[args.kind])} damaged files refused as promised")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
