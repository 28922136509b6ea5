#!/usr/bin/python3
"""check_data.py - train on data in one of its forms and on the same samples, cut out by numpy, as plain tensors.

    check_data.py CASE --out DIR

CASE says what files are written and how ds-run is told of them; a case knows from the description of the format alone
which samples the steps must read.  Both runs must print the same loss at each step, bit for bit, and PyTorch's loss on the
plain tensors must be that loss to 1e-4.  With --fake also a program for CUDA, on the device of host memory, must print it.
"""

import argparse
import json
import math
import os
import struct
from fractions import Fraction

import numpy as np

import compare
import ds_config
import example  # noqa: F401: finds export
import fake_cuda
import packed_gpt
import train_oracle
from commands import compile_program, finish, run

import export
import safetensors_io

LENGTH = 16  # tokens a sample, as the tiny GPT's context
MICRO, STEPS = 2, 7
CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Run", "Inputs", "plain.json")


def draw(count, seed):
    return np.random.default_rng(seed).integers(0, 64, count)


def windows(tokens):
    """(inputs, targets): LENGTH + 1 tokens at a stride of LENGTH."""
    count = (len(tokens) - 1) // LENGTH
    return (tokens[:count * LENGTH].reshape(count, LENGTH), tokens[1:count * LENGTH + 1].reshape(count, LENGTH))


def write_megatron(prefix, documents, dtype):
    """Each document of one sequence, but the first of two."""
    code = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}[dtype]
    sequences = [documents[0][:3], documents[0][3:], *documents[1:]]
    lengths = [len(sequence) for sequence in sequences]
    width = np.dtype(dtype).itemsize
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]) * width
    borders = [0, *range(2, len(sequences) + 1)]
    with open(prefix + ".bin", "wb") as file:
        for sequence in sequences:
            file.write(sequence.astype(dtype).tobytes())
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(sequences), len(borders)))
        for values, kind in ((lengths, "int32"), (starts, "int64"), (borders, "int64")):
            file.write(np.array(values, kind).tobytes())


def megatron(folder, dtype, suffix):
    tokens = draw(20 * LENGTH + 5, seed=3)
    write_megatron(os.path.join(folder, "pair"), np.split(tokens, [40, 41, 41, 200]), dtype)
    return ["--data", os.path.join(folder, "pair" + suffix)], windows(tokens)


def write_shards(folder):
    """Three files of three kinds, and their windows: none runs from one file into the next."""
    parts = [draw(count, seed) for seed, count in enumerate((5 * LENGTH + 9, 2 * LENGTH + 1, 4 * LENGTH + 2))]
    parts[0].astype("uint16").tofile(os.path.join(folder, "shard-000.bin"))
    with open(os.path.join(folder, "shard-001.bin"), "wb") as file:
        file.write(struct.pack("<256i", 20240801, 7, len(parts[1]), *[0] * 253) + parts[1].astype("uint32").tobytes())
    write_megatron(os.path.join(folder, "shard-002"), [parts[2]], "uint16")
    return [np.concatenate(column) for column in zip(*map(windows, parts))]


def shards(folder):
    return ["--data", os.path.join(folder, "shard-*.bin")], write_shards(folder)


def turns(weights, count):
    """The source of each of `count` positions: of the samples that may come, the one that must come first.

    Source k's j-th sample may come from (j - 1) / w_k, rounded down, and must come before j / w_k, rounded up.
    """
    weights = [Fraction(weight) / sum(map(Fraction, weights)) for weight in weights]
    given, order = [0] * len(weights), []
    for n in range(count):
        ready = [(math.ceil((given[k] + 1) / w), k) for k, w in enumerate(weights) if math.floor(given[k] / w) <= n]
        order.append(min(ready)[1])
        given[order[-1]] += 1
        assert all(abs(given[k] - (n + 1) * w) < 1 for k, w in enumerate(weights))
    return order


def blend(folder, spell):
    """Shards, a single file and one that is read several times; each is cut on its own."""
    code, short = draw(30 * LENGTH + 1, seed=7), draw(3 * LENGTH + 1, seed=8)
    code.astype("uint32").tofile(os.path.join(folder, "code.bin"))
    short.astype("uint32").tofile(os.path.join(folder, "short.bin"))
    weights = ["0.2", "0.35", "0.45"]
    samples = [windows(code), windows(short), windows(draw(9 * LENGTH + 1, seed=9))]
    for name, tokens in (("wiki-0", draw(9 * LENGTH + 1, seed=9)[:6 * LENGTH + 1]),
                         ("wiki-1", draw(9 * LENGTH + 1, seed=9)[6 * LENGTH:])):
        tokens.astype("uint32").tofile(os.path.join(folder, name + ".bin"))
    places, given = [], [0, 0, 0]
    for source in turns(weights, MICRO * STEPS):
        places.append((source, given[source] % len(samples[source][0])))
        given[source] += 1
    expected = [np.stack([samples[source][column][place] for source, place in places]) for column in (0, 1)]
    return spell(folder, list(zip(weights, ["code.bin", "short.bin", "wiki-*.bin"]))), expected


def on_the_line(folder, sources):
    text = ",".join(f"{weight}:{os.path.join(folder, name)}" for weight, name in sources)
    return ["--data", text, "--token-dtype", "u32"]


def as_json(folder, sources):
    path = os.path.join(folder, "blend.json")
    with open(path, "w") as file:
        json.dump({"sources": [{"path": name, "weight": float(weight), "token_dtype": "u32"} for weight, name in sources]},
                  file)
    return ["--data", path]


END, IGNORED = 5, -100  # the token behind which another document begins; what the loss leaves out


def documents(folder, *flags):
    """Windows in which each document is looked at alone."""
    tokens = draw(16 * LENGTH + 1, seed=11)
    tokens[3 * LENGTH + 4:3 * LENGTH + 6] = END  # an empty document
    tokens[5 * LENGTH - 1] = END  # a window's last token
    tokens.astype("uint16").tofile(os.path.join(folder, "packed.bin"))
    x, y = windows(tokens)
    y, positions, numbers = y.copy(), np.zeros_like(x), np.zeros_like(x)
    for row in range(len(x)):
        ends = [*np.flatnonzero(x[row] == END) + 1, LENGTH]
        y[row][x[row] == END] = IGNORED
        for number, (begin, end) in enumerate(zip([0, *ends], ends)):
            positions[row, begin:end] = np.arange(end - begin)
            numbers[row, begin:end] = number
    return ["--data", os.path.join(folder, "packed.bin"), "--document-token", END, *flags], (x, y, positions, numbers)


def masked(folder):
    """Tensors with a mask; where it is 0 stand targets that the model does not know."""
    x, y = windows(draw(20 * LENGTH + 1, seed=12))
    mask = np.random.default_rng(13).integers(0, 2, x.shape).astype(np.uint8)
    path = os.path.join(folder, "masked.safetensors")
    safetensors_io.save(path, {"x": x, "y": np.where(mask == 1, y, 4711), "loss_mask": mask})
    return ["--data", path], (x, np.where(mask == 1, y, IGNORED))


CASES = {
    "documents": lambda folder: (lambda flags, columns: (flags, columns[:2]))(*documents(folder)),
    "packed": lambda folder: documents(folder, "--reset-positions", "--reset-attention"),
    "masked": masked,
    "shards": shards,
    "blend": lambda folder: blend(folder, on_the_line),
    "blend-file": lambda folder: blend(folder, as_json),
    "megatron-u16": lambda folder: megatron(folder, "uint16", ".idx"),
    "megatron-i32": lambda folder: megatron(folder, "int32", ".bin"),
    "megatron-u8": lambda folder: megatron(folder, "uint8", ""),
}


def train(args, name, *data):
    log = os.path.join(args.out, name + ".jsonl")
    text = run("ds-run", args.program, *data, "--steps", STEPS, "--log-jsonl", log)
    return [record["loss"] for record in compare.read_log(log)], text


def train_on_cuda(args, archive, inputs, *data):
    """The losses of the same model compiled for CUDA, on the fake device."""
    args.program = os.path.join(args.out, "cuda.dsx")
    compile_program(archive, CONFIG, inputs, args.program, ["--target", "cuda:sm_90"])
    fake_cuda.translate(args.program, args.out)
    fake_cuda.use(args.fake, args.out, 1)
    return train(args, "cuda", "--device", "cuda", *data)[0]


def make_program(args):
    """The tiny GPT, or for packed documents one that takes what there is to know of them; its path and inputs."""
    if args.case == "packed":
        archive = os.path.join(args.out, "packed.pt")
        packed_gpt.save(archive)
        inputs = [f"{name}={MICRO}x{LENGTH}xi64" for name in ("x", "y", "position_ids", "document_ids")]
    else:
        archive, _, inputs = export.main(["gpt", "--out", args.out, "--batch", str(MICRO)])
    compile_program(archive, CONFIG, inputs, args.program)
    return archive, inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--out", required=True)
    parser.add_argument("--fake", metavar="LIBRARY", help="libds-fake-cuda.so")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    args.program = os.path.join(args.out, "packed.dsx" if args.case == "packed" else "gpt.dsx")
    archive, inputs = make_program(args)

    flags, columns = CASES[args.case](args.out)
    plain = os.path.join(args.out, "plain.safetensors")
    names = ("x", "y", "position_ids", "document_ids")
    safetensors_io.save(plain, {name: np.ascontiguousarray(column, np.int64) for name, column in zip(names, columns)})
    ours, text = train(args, "ours", *flags)
    expected, _ = train(args, "expected", "--data", plain)
    complaints = [f"step {step + 1}: loss {a}, expected {b}" for step, (a, b) in enumerate(zip(ours, expected)) if a != b]
    complaints += [] if len(set(expected)) == STEPS else ["the samples' losses do not tell them apart"]
    log, _ = train_oracle.train(archive, ds_config.read(CONFIG), plain, STEPS)
    complaints += [f"step {step + 1}: loss {a}, PyTorch's {b['loss']}" for step, (a, b) in enumerate(zip(ours, log))
                   if compare.difference(a, b["loss"]) > 1e-4]
    if args.fake:
        cuda = train_on_cuda(args, archive, inputs, *flags)
        complaints += [f"step {step + 1}: loss {b} on CUDA, {a} on the CPU" for step, (a, b) in enumerate(zip(ours, cuda))
                       if compare.difference(a, b) > 1e-4]
    finish(complaints, text + f"{STEPS} steps read the samples expected")


if __name__ == "__main__":
    main()
