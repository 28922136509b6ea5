#!/usr/bin/env python3
"""trace_table.py - the commands of one step with bytes, FLOPs and microseconds, from a trace of several steps.

    trace_table.py trace.json[.gz] > commands.csv

A command's time is the median over the traced steps that have as many commands as the last one; commands are in the order in
which they began in that step.
"""

import bisect
import csv
import gzip
import json
import statistics
import sys


def read_events(path):
    """The events of a trace, packed or not."""
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as file:
        events = json.load(file)
    return events["traceEvents"] if isinstance(events, dict) else events


def steps_of(events):
    """Commands of each step that has any, in the order in which they began."""
    begins = sorted(event["ts"] for event in events if event.get("ph") == "i")
    steps = {}
    for event in sorted((event for event in events if event.get("ph") == "X"), key=lambda event: event["ts"]):
        steps.setdefault(bisect.bisect(begins, event["ts"]), []).append(event)
    return list(steps.values())


def streams_of(events):
    return {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event.get("name") == "thread_name"}


def main(path):
    events = read_events(path)
    steps, streams = steps_of(events), streams_of(events)
    alike = [step for step in steps if len(step) == len(steps[-1])]
    times = {}  # by stream, command and how often it came before
    for step in alike:
        seen = {}
        for event in step:
            key = (event["tid"], event["name"])
            seen[key] = seen.get(key, 0) + 1
            times.setdefault((*key, seen[key]), []).append(event["dur"])
    table, seen = csv.writer(sys.stdout, lineterminator="\n"), {}
    table.writerow(["command", "stream", "bytes", "flops", "us"])
    for event in alike[-1]:
        key = (event["tid"], event["name"])
        seen[key] = seen.get(key, 0) + 1
        args = event.get("args", {})
        table.writerow([event["name"], streams.get((event["pid"], event["tid"]), event["tid"]), int(args.get("bytes", 0)),
                        int(args.get("flops", 0)), round(statistics.median(times[(*key, seen[key])]), 3)])


if __name__ == "__main__":
    main(sys.argv[1])
