#!/usr/bin/python3
"""check_calibration.py - every figure of cluster descriptions that ds-run --calibrate wrote is there and positive.

usage: check_calibration.py ONE_RANK.json TWO_RANKS.json
"""
import json
import re
import sys

DEVICE = ["launch_seconds", "memory_bytes_per_second", "cached_bytes_per_second", "column_bytes_per_second",
          "update_bytes_per_second", "vector_flops", "division_additions", "root_additions", "row_seconds", "peak_flops",
          "matmul_flops", "matmul_shapes", "attention_shapes", "function_bytes_per_second"]
COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "all_to_all", "send_receive"]


def read(path):
    with open(path) as file:
        return json.loads(re.sub(r"^\s*//.*$", "", file.read(), flags=re.M))


def check_positive(value, place):
    if isinstance(value, dict):
        for key, member in value.items():
            check_positive(member, f"{place}.{key}")
    elif isinstance(value, list):
        assert value, f"{place} is empty"
        for member in value:
            check_positive(member, place)
    elif isinstance(value, (int, float)):
        assert value > 0, f"{place} is {value}"


def check(cluster, ranks):
    check_positive(cluster, "")
    device = cluster["device"]
    missing = [key for key in DEVICE if key not in device]
    assert not missing, f"missing: {missing}"
    for kind in ("peak_flops", "matmul_flops", "matmul_shapes"):
        assert set(device[kind]) == {"fp32", "fp16", "bf16"}, f"{kind}: {set(device[kind])}"
    assert len(device["function_bytes_per_second"]) == 7
    assert cluster["devices_per_node"] == ranks and cluster["host"]["cores"] % ranks == 0
    assert {"memory_bytes", "to_device_bytes_per_second", "memory_bytes_per_second"} <= set(cluster["host"])
    if ranks > 1:
        assert set(cluster["inside"]["collective_bytes_per_second"]) == set(COLLECTIVES)


check(read(sys.argv[1]), 1)
check(read(sys.argv[2]), 2)
