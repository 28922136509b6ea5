"""Holds the texts of plans and of --what-if to their JSON: check_peaks.py DIR BASIS...

Of each BASIS, DIR has a plan and the answer to --what-if, each as text and as JSON.
"""

import json
import re
import sys

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def check(text, number, unit, exact):
    """The figure `number` in `unit`, with one digit, is `exact` bytes."""
    shown = float(number) * UNITS[unit]
    assert abs(shown - exact) <= 0.051 * UNITS[unit], f"{text}: {number} {unit} stands for {exact} bytes"


def check_basis(folder, basis):
    plan = json.load(open(f"{folder}/{basis}.json"))
    peak, limit = plan["ranks"][0]["peak"]["bytes"], plan["memory_limit"]
    figures = r"([0-9.]+) ([KMG]?i?B)"
    fits = re.search(rf"^fits: {figures} of {figures}", open(f"{folder}/{basis}.txt").read(), re.M)
    check("peak", fits[1], fits[2], peak)
    check("limit", fits[3], fits[4], limit)

    table = json.load(open(f"{folder}/{basis}-table.json"))["what_if"]
    text = open(f"{folder}/{basis}-table.txt").read()
    check("limit of the table", *re.search(rf", limit {figures}$", text, re.M).groups(), limit)
    unit = re.search(r"peak ([MG]iB)", text)[1]
    rows = [line for line in text.splitlines() if re.search(r"  (yes|no)\b", line)]
    assert len(rows) == len(table) > 4
    for row, choice in zip(rows, table):
        check(row, re.search(r" x \d+ +([0-9.]+)", row)[1], unit, choice["peak_bytes"])
    present = [c for c in table if (c["zero_stage"], c["recompute"], c["optimizer"], c["micro_batch"]) == (2, "none", "cpu", 2)]
    assert [c["peak_bytes"] for c in present] == [peak], (present, peak)


for name in sys.argv[2:]:
    check_basis(sys.argv[1], name)
