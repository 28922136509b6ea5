#!/usr/bin/python3
"""check_nodes.py - ranks of two nodes that a slow link joins (nodes.py): the numbers, and what the link is used for.

    check_nodes.py PROGRAM --data DATA --collectives BENCH

Four ranks of two nodes train with the losses of four ranks of one, to the bit. Groups along dp.local stay on their node,
and those along dp.node cross the link: nothing that crosses is faster than the link, and what stays inside is.
"""

import argparse
import json
import os
import re
import sys

from commands import finish, run
from nodes import Nodes

LINK = 20.0  # MB/s
STEPS = 3


def losses(path):
    with open(path) as log:
        return [line["loss"] for line in map(json.loads, log) if "loss" in line]


def check_training(nodes, args, complaints):
    """The same program on one node and on two."""
    logs = [f"{args.program}.{name}.jsonl" for name in ("one", "two")]
    for log in logs:
        if os.path.exists(log):
            os.remove(log)
    words = ["ds-run", args.program, "--data", args.data, "--steps", STEPS, "--log-jsonl"]
    run(*words, logs[0], "--ranks", 4)
    output = nodes.run(2, *words, logs[1])
    one, two = map(losses, logs)
    print(output)
    if len(one) != STEPS or one != two:
        complaints.append(f"one node: {one}, two nodes: {two}")


def check_groups(nodes, args, complaints):
    """Bandwidth of an all-gather along each axis, in MB/s that a rank receives."""
    output = nodes.run(2, args.collectives, "--mesh", "dp.node=2,dp.local=2", "--megabytes", 4, "--repeats", 3)
    print(output)
    if "transport gloo" not in output:
        complaints.append("ranks of two nodes do not use Gloo")
    rates = {axes: float(rate) for axes, rate in re.findall(r"^all_gather along (\S+) .* received +([0-9.]+) MB/s", output, re.M)}
    if set(rates) != {"dp.node", "dp.local", "dp.node,dp.local"}:
        sys.exit(f"collectives measured {sorted(rates)}")
    if 2 * rates["dp.node"] > 1.1 * LINK:  # two groups cross it at once
        complaints.append(f"two groups that cross the link received {rates['dp.node']} MB/s each over {LINK} MB/s")
    if rates["dp.local"] < 2 * LINK:
        complaints.append(f"a group inside a node received {rates['dp.local']} MB/s, as if it crossed the link of {LINK}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--data", required=True)
    parser.add_argument("--collectives", required=True)
    args = parser.parse_args()
    complaints = []
    with Nodes(LINK) as nodes:
        check_training(nodes, args, complaints)
        check_groups(nodes, args, complaints)
    finish(complaints, "two nodes train as one, and groups keep to their node")


if __name__ == "__main__":
    main()
