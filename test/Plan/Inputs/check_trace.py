"""check_trace.py TRACE.json [PLAN.json]: what a trace of a planned step must hold. Prints its rows and what is on them.

Slices on one row do not overlap; every arrow from an event ends no earlier than it begins, and at the end of a wait; the
curve of reserved bytes reaches the plan's peak and no more, and its categories add up to it.
"""
import collections
import json
import sys


def slices_of(events):
    rows = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0, event
            rows[event["pid"], event["tid"]].append(event)
    return rows


def check_rows(rows):
    for row, slices in rows.items():
        for before, after in zip(slices, slices[1:]):
            # Times have three decimals of a microsecond.
            assert after["ts"] >= before["ts"] + before["dur"] - 2e-3, (row, before, after)


def check_arrows(events, rows):
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert begins.keys() == ends.keys()
    for number, end in ends.items():
        assert begins[number]["ts"] <= end["ts"] + 2e-3, end
        stood = [each for each in rows[end["pid"], end["tid"]] if each["cat"] == "wait"]
        assert any(abs(each["ts"] + each["dur"] - end["ts"]) < 2e-3 for each in stood), end
    return len(ends)


def check_memory(events, plan):
    curves = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            curves[event["name"]].append(event["args"]["value"])
    total = curves.pop("device bytes")
    parts = [values for name, values in curves.items() if name.startswith("device ")]
    assert [sum(values) for values in zip(*parts)] == total
    if plan:
        assert max(total) == plan["ranks"][0]["peak"]["bytes"], (max(total), plan["ranks"][0]["peak"])
    return int(max(total))


def main():
    with open(sys.argv[1]) as file:
        events = json.load(file)["traceEvents"]
    plan = None
    if len(sys.argv) > 2:
        with open(sys.argv[2]) as file:
            plan = json.load(file)
    rows = slices_of(events)
    check_rows(rows)
    print("arrows:", check_arrows(events, rows))
    print("peak:", check_memory(events, plan))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for row, slices in sorted(rows.items()):
        print(f"row {names[row]}: " + " | ".join(dict.fromkeys(each["name"] for each in slices)))
    if plan:
        end = max(each["ts"] + each["dur"] for slices in rows.values() for each in slices)
        print("step as predicted:", abs(end * 1e-6 / plan["predicted"]["step_seconds"] - 1) < 1e-3)


main()
