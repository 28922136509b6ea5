"""check_copies.py PLAN.json TRACE.json: copies of a planned step, on a stream for each way.

Prints the bytes of each, and whether copies of both ways are under way at once. What a step waits for each adds up to what
it waits for copies.
"""
import json
import sys

with open(sys.argv[1]) as file:
    predicted = json.load(file)["predicted"]
with open(sys.argv[2]) as file:
    events = json.load(file)["traceEvents"]
parts = predicted["exposed_to_host_seconds"] + predicted["exposed_to_device_seconds"]
assert abs(parts - predicted["exposed_copy_seconds"]) <= 1e-9 * parts, predicted
rows = {e["args"]["name"]: (e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
spans = {}
for way in ("to_host", "to_device"):
    slices = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == rows[way] and e["cat"] != "wait"]
    assert slices and all(e["cat"] == "copy" for e in slices), way
    spans[way] = [(e["ts"], e["ts"] + e["dur"]) for e in slices]
    print(f"{way}: copies of {sum(e['args']['bytes'] for e in slices):.0f} bytes")
if any(a < d - 0.01 and c < b - 0.01 for a, b in spans["to_host"] for c, d in spans["to_device"]):
    print("both at once")
