#!/usr/bin/env python3
"""command_loads.py - what each measured command of a step is to the cost model: kind, class and sizes, beside its microseconds.

    command_loads.py > measured/h200-commands.csv

Reads the commands of four measured jobs (measured/h200-*.csv; h200-steps.json says which is of which model) and adds what a product or
attention is of, which their bytes and FLOPs alone do not say. Commands of different layers that are alike are one row, with their
number and the mean of their times. The table is the input of unittests/Cost/MeasuredTest.cpp: it is of the programs that ran, whatever
programs are compiled to since.
"""

import collections
import csv
import json
import pathlib
import re
import statistics
import sys

MEASURED = pathlib.Path(__file__).resolve().parent / "measured"
# Ops whose kernels are others since the jobs were measured, as "cross_entropy_backward". The figures of h200.json are of the new ones,
# and so nothing is checked against commands of the old ones, until the jobs are measured again.
REPLACED = ("embedding_backward",)
# Classes of commands whose operands programs lay otherwise since: rows of logits lie apart (ds-align-rows). What they took is the rate of
# odd rows in h200.json as before, but no program has them any more.
RELAID = ("products of the head with odd rows forward", "products of the head with odd rows backward")
SMALL_BYTES = 1 << 20  # what moves less is a launch and little else
COLUMNS = ["job", "class", "command", "count", "us", "kind", "bytes", "m", "n", "k", "odd", "beside", "heads", "positions", "width",
           "indices", "sums", "row_vectors", "replaced"]
TABLE_FUNCTIONS = ("embedding_forward", "embedding_backward")


class Model:
    """The sizes of a model of steps.json, and its products by the last part of their names as (columns, rows) of the weight."""

    def __init__(self, job):
        config, training = job["config.json"], job["ds_config.json"]
        is_gpt = config["model_type"] == "gpt2"
        self.vocab, self.samples = config["vocab_size"], training["train_micro_batch_size_per_gpu"]
        self.positions = config["n_positions" if is_gpt else "max_position_embeddings"]
        self.hidden = config["n_embd" if is_gpt else "hidden_size"]
        self.heads = config["n_head" if is_gpt else "num_attention_heads"]
        self.tokens, h = self.samples * self.positions, self.hidden
        if is_gpt:
            self.weights = {"attn.c_attn": (3 * h, h), "attn.c_proj": (h, h), "mlp.c_fc": (4 * h, h), "mlp.c_proj": (h, 4 * h)}
        else:
            inner, kv = config["intermediate_size"], config["num_key_value_heads"] * (h // self.heads)
            self.weights = {"q_proj": (h, h), "k_proj": (kv, h), "v_proj": (kv, h), "o_proj": (h, h),
                            "gate_proj": (inner, h), "up_proj": (inner, h), "down_proj": (h, inner)}
        self.weights["lm_head"] = (self.vocab, h)
        self.gelu = {("mlp.c_fc", 0), ("mlp.c_proj", 1)} if is_gpt else set()  # whose input a product writes or reads

    def product(self, name, turn):
        """A forward product and its two gradients, of the input and of the weight, in the order in which a step has them."""
        tail = next(tail for tail in self.weights if name.endswith(tail))
        n, k = self.weights[tail]
        m, n, k = [(self.tokens, n, k), (self.tokens, k, n), (n, k, self.tokens)][turn]
        is_odd = tail == "lm_head" and self.vocab % 8 != 0
        beside = 2 * self.tokens * 4 * self.hidden if (tail, turn) in self.gelu else 0
        kind = "layers" if tail != "lm_head" else "the head"
        if beside:
            kind = "layers with GELU"
        if is_odd:
            kind = "the head with odd rows " + ("backward" if turn else "forward")
        return {"class": "products of " + kind, "kind": "product", "m": m, "n": n, "k": k, "beside": beside,
                "odd": ("operand" if turn else "result") if is_odd else ""}

    def attention(self, what):
        return {"class": what.replace("_", " "), "kind": what, "heads": self.samples * self.heads, "positions": self.positions,
                "width": self.hidden // self.heads}

    def lookup(self, what, name, table_bytes):
        """An embedding; the gradient of a tied table is added to what is there, so that only its rows are touched."""
        is_positions = name.endswith("wpe")
        rows = self.positions if is_positions else self.tokens
        moved = rows * self.hidden * 2
        is_whole = what == "embedding_backward" and is_positions
        return {"class": what.replace("_", " "), "kind": what, "indices": rows, "bytes": table_bytes if is_whole else 2 * moved + 8 * rows}


def classify(op, bytes_, in_update, sums):
    """Class of a generated kernel, or of a function that is known by its bytes alone."""
    if op in ("cross_entropy_forward", "cross_entropy_backward", "copy", "sum_of_squares"):
        return {"copy": "copies", "sum_of_squares": "squares of gradients"}.get(op, op.replace("_", " ")), op
    if in_update and bytes_ > SMALL_BYTES:
        return "update", "kernel"
    if bytes_ < SMALL_BYTES:
        return "small kernels", "kernel"
    if sums:
        return "gradients of gains and biases", "kernel"
    return ("norms" if op == "reduce" else "elementwise"), "kernel"


def sums_of(op, name, bytes_, flops, model):
    """How many sums a kernel adds up down columns; 0 where it adds along rows or not at all. A bias's gradient and the sum over samples
    do one operation for each byte that they read, or less; a gain's reads two 16-bit tensors, for a shift as well in layers of GPT."""
    if op != "reduce" or bytes_ < SMALL_BYTES:
        return 0
    if flops / bytes_ < 1.05:
        return 1
    reads_two = abs(bytes_ / (4 * model.tokens * model.hidden) - 1) < 0.01
    is_gradient = flops / bytes_ < 1.3 or "ln_" in name  # a norm of one tensor, written, does more for each
    if reads_two and is_gradient:
        return 2 if "ln_" in name else 1
    return 0


def read(path):
    """Commands of a table: name, bytes, FLOPs and the median of its times."""
    with open(path) as file:
        for row in csv.DictReader(file):
            times = [float(value) for key, value in row.items() if key.startswith("us")]
            yield row["command"], int(row["bytes"]), float(row["flops"]), statistics.median(times)


def each_load(model, path):
    """Name, bytes and microseconds of each command of a job, and what it is to the cost model."""
    turns, in_update = collections.Counter(), False
    for command, bytes_, flops, us in read(path):
        op, _, of = command.partition(" ")
        in_update = in_update or op == "select"
        load = {"bytes": bytes_}
        if op == "matmul":
            load.update(model.product(of, turns[of]))
            turns[of] += 1
        elif op.startswith("attention"):
            load.update(model.attention(op))
        elif op in TABLE_FUNCTIONS:
            load.update(model.lookup(op, of, bytes_))
        else:
            load["sums"] = sums_of(op, of, bytes_, flops, model)
            load["class"], load["kind"] = classify(op, bytes_, in_update, load["sums"])
            if load["class"] == "norms":
                load["row_vectors"] = model.hidden // 8
        load["replaced"] = "yes" if op in REPLACED else ""
        load["command"] = re.sub(r"\.\d+\.", ".N.", command)
        yield command, bytes_, us, load


def loads(name, model, path):
    """Rows of one job, those that are alike merged."""
    merged = {}
    for _, _, us, load in each_load(model, path):
        key = tuple(load.get(column) or "" for column in COLUMNS)
        merged.setdefault(key, (load, []))[1].append(us)
    for load, times in merged.values():
        yield {**load, "job": name, "count": len(times), "us": round(statistics.mean(times), 3)}


def main():
    jobs = json.loads((MEASURED / "h200-steps.json").read_text())
    table = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n", restval="")
    table.writeheader()
    for job in jobs:
        if job["commands"]:
            for row in loads(job["job"], Model(job), MEASURED / job["commands"]):
                table.writerow({key: value or "" for key, value in row.items()})


if __name__ == "__main__":
    main()
