#!/usr/bin/env python3
"""compare_commands.py - a plan's predicted commands beside those of a step that was measured.

    compare_commands.py JOB --write DIR                              writes the job's config.json and ds_config.json
    compare_commands.py JOB planned.json [trace.json] [--within 0.05]

`planned.json` is what ds-opt --plan-json wrote for a job of measured/h200-steps.json, `trace.json` what --trace did. Commands are matched by
name and bytes; what is in only one of both lists, or has another kernel (command_loads.REPLACED) or other operands since
(command_loads.RELAID), is not compared. Where that takes less than a hundredth of either list's time the whole step is compared as well, and
where a job has no list of commands or no trace is given, the step alone. A job whose program was measured again as a whole
has that step as `later_ms`, and is compared with it. Classes of commands have a bound of their own, but for those of which less than half of the
measured time is in both lists: most of their commands are part of others now. Exits with 1 where an error is above its bound, or where what matches
took less than half of the measured step, without what has other operands: then the job has to be measured again.
"""

import argparse
import collections
import json
import pathlib
import sys

import command_loads
import trace_table

MEASURED = pathlib.Path(__file__).resolve().parent / "measured"
GAP_SECONDS = 1.6e-6  # before each command, in no list of times
LEAST_SHARE = 0.5  # of the measured step, by commands that match, and of a class
CLASSES_WITHIN = 0.10
SAME_SHARE = 0.99  # of both lists' time, where the program is the one that was measured


def read_measured(job):
    """Seconds of each command by name and bytes, the gap before it counted, and the class of each."""
    found, classes = collections.defaultdict(list), {}
    for command, bytes_, us, load in command_loads.each_load(command_loads.Model(job), MEASURED / job["commands"]):
        found[(command, bytes_)].append(us * 1e-6 + GAP_SECONDS)
        classes[(command, bytes_)] = load["class"]
    return found, classes


def read_planned(path):
    """The same of a planned trace, whose durations have the gap in them."""
    found = collections.defaultdict(list)
    for event in trace_table.read_events(path):
        args = event.get("args", {})
        if event.get("ph") == "X" and "bytes" in args:
            found[(event["name"], int(args["bytes"]))].append(event["dur"] * 1e-6)
    return found


def match(planned, measured, classes):
    """Sums of both by class, over the commands that are in both and whose kernels are the same, and their number."""
    sums, count = {}, 0
    for key, times in measured.items():
        both = min(len(times), len(planned.get(key, [])))
        if both == 0 or key[0].split()[0] in command_loads.REPLACED or classes[key] in command_loads.RELAID:
            continue
        total = sums.setdefault(classes[key], [0.0, 0.0])
        total[0] += sum(planned[key][:both])
        total[1] += sum(times[:both])
        count += both
    return sums, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job")
    parser.add_argument("plan", nargs="?")
    parser.add_argument("trace", nargs="?")
    parser.add_argument("--write", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--within", type=float, default=0.05)
    args = parser.parse_args()
    job = next(job for job in json.loads((MEASURED / "h200-steps.json").read_text()) if job["job"] == args.job)
    if args.write:
        args.write.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "ds_config.json"):
            (args.write / name).write_text(json.dumps(job[name], indent=1))
        return
    step, failures = job["measured_ms"] * 1e-3, []
    last = job.get("later_ms", job["measured_ms"]) * 1e-3

    def compare(what, predicted, actual, within):
        error = predicted / actual - 1
        print(f"{args.job}: {what}: {predicted * 1e3:.2f} ms predicted, {actual * 1e3:.2f} measured, {100 * error:+.1f} %")
        if abs(error) > within:
            failures.append(what)

    is_same = True
    if job["commands"] and args.trace:
        (measured, classes), planned = read_measured(job), read_planned(args.trace)
        sums, count = match(planned, measured, classes)
        predicted, actual = (sum(each[side] for each in sums.values()) for side in (0, 1))
        all_planned, all_measured = (sum(map(sum, each.values())) for each in (planned, measured))
        for name, both in sums.items():
            whole = sum(sum(times) for key, times in measured.items() if classes[key] == name)
            if both[1] < LEAST_SHARE * whole:
                print(f"{args.job}: {name}: {both[1] * 1e3:.2f} of {whole * 1e3:.2f} ms measured are of commands that there are still")
            else:
                compare(name, *both, CLASSES_WITHIN)
        compare(f"{count} of {sum(map(len, measured.values()))} commands", predicted, actual, args.within)
        is_same = predicted > SAME_SHARE * all_planned and actual > SAME_SHARE * all_measured
        relaid = sum(sum(times) for key, times in measured.items() if classes[key] in command_loads.RELAID)
        if actual < LEAST_SHARE * (step - relaid):
            failures.append("too few commands are those that were measured")
    if is_same or "later_ms" in job:
        compare("the step", json.loads(pathlib.Path(args.plan).read_text())["predicted"]["step_seconds"], last, args.within)
    if failures:
        sys.exit(f"{args.job}: too far from what was measured: {', '.join(failures)}")


if __name__ == "__main__":
    main()
