"""check_links.py TRACE SLOW_NETWORK SLOW_NODE: by how much longer each collective takes where the network, or the nodes' link, is slower."""
import collections
import json
import sys


def durations(path):
    """{row: [microseconds of each command but waits]}"""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    rows = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["cat"] != "wait":
            rows[names[event["pid"], event["tid"]]].append(event["dur"])
    return rows


def main():
    plain, network, node = map(durations, sys.argv[1:])
    for row in ("exchange", "gather", "transfer"):
        assert len(plain[row]) == len(network[row]) == len(node[row]) == 2, (row, plain, network, node)
        for before, far, near in zip(plain[row], network[row], node[row]):
            print(f"{row}: network +{far - before:.0f} us, node +{near - before:.0f} us")


main()
