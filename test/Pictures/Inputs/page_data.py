"""page_data.py - print what a plan's page has been given to draw."""

import json
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
plan = json.loads(re.search(r'<script type="application/json" id="plan-data">(.*?)</script>', page, re.DOTALL).group(1))
print("model", plan["report"]["model"])
print("fits", plan["report"]["fits"])
categories = len(plan["categories"])
for index, (rank, timeline) in enumerate(zip(plan["report"]["ranks"], plan["timelines"])):
    curve = timeline["curve"]
    highest = max(sum(curve[at + 1:at + 1 + categories]) for at in range(0, len(curve), categories + 1))
    print(f"entry {index}: peak {rank['peak']}, of the curve {highest}, of the arena {timeline['arena']}")
    print("streams", *timeline["streams"])
    for column in ("layer", "segment", "name"):
        for number in dict.fromkeys(timeline["commands"][column]):
            print(column, plan["strings"][number])
    for number in dict.fromkeys(timeline["buffers"]["name"]):
        print("buffer", plan["strings"][number])
    for note in timeline["notes"]:
        print("note", note)
