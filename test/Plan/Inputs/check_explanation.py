"""check_explanation.py PLAN.json TRACE.json: what the explanation of a program's peak must hold, by the step's trace.

The values are the largest of the plan; what makes one has begun when the trace's curve is at its peak, and what uses it
last has not ended before; states have no life of their own.
"""
import json
import sys

with open(sys.argv[1]) as file:
    rank = json.load(file)["ranks"][0]
with open(sys.argv[2]) as file:
    events = json.load(file)["traceEvents"]
curve = [(e["args"]["value"], e["ts"]) for e in events if e["ph"] == "C" and e["name"] == "device bytes"]
most = max(curve)[0]
peak = next(time for value, time in curve if value == most)
slices = [event for event in events if event["ph"] == "X"]

explained = rank["peak_explained"]
values = explained["largest"]
assert 0 < len(values) <= 10
assert [v["bytes"] for v in values] == sorted((v["bytes"] for v in values), reverse=True)
assert values[0]["bytes"] >= rank["largest"][0]["bytes"]
assert " ".join(filter(None, [explained["op"], explained["layer"]])) + f" ({explained['segment']})" == rank["peak"]["at"]
for value in values:
    assert value["why"] and value["change"] and value["type"] and value["name"], value
    if not value["made_by"]:
        assert value["why"].startswith(("state", "input")), value
        continue
    made = [s for s in slices if s["name"] == value["made_by"] and s["ts"] <= peak + 2e-3]
    used = [s for s in slices if s["name"] == value["last_used_by"] and s["ts"] + s["dur"] >= peak - 2e-3]
    assert made and used, value
print(f"{len(values)} values explained")
