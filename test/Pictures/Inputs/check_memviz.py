"""check_memviz.py - read a plan's snapshot as PyTorch's memory visualiser does.

    check_memviz.py SNAPSHOT.json SNAPSHOT.pickle PLAN.json

Both files say the same; the pickle has no opcode that the visualiser's own reader lacks; the events can be replayed
forwards (no two allocations share a byte, and the most that lives is the plan's peak) and backwards from the blocks at
the end, as the visualiser does; and every allocation says what it is.
"""

import json
import pickle
import pickletools
import sys

# What unpickle() in torch/utils/viz/MemoryViz.js knows.
OPCODES = {"PROTO", "APPEND", "APPENDS", "LIST", "TUPLE", "NEWFALSE", "NEWTRUE", "NONE", "BINGET", "BININT", "BININT1",
           "BININT2", "EMPTY_DICT", "EMPTY_LIST", "FRAME", "LONG1", "LONG_BINGET", "MARK", "MEMOIZE", "BINPUT",
           "LONG_BINPUT", "SETITEMS", "SETITEM", "DICT", "SHORT_BINUNICODE", "BINUNICODE", "STOP", "EMPTY_TUPLE",
           "TUPLE1", "TUPLE2", "TUPLE3", "BINFLOAT"}
EVENT = {"action", "addr", "size", "stream", "time_us", "frames"}
# What torch.cuda.memory._snapshot() of PyTorch 2 gives, and what its _memory_viz.py and MemoryViz.js read.
SEGMENT = {"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type",
           "segment_pool_id", "is_expandable", "frames", "blocks"}
BLOCK = {"address", "size", "requested_size", "state", "frames"}
ACTIONS = {"segment_alloc", "alloc", "free_requested", "free_completed", "snapshot"}
CATEGORIES = {"parameters", "gradients", "optimizer", "activations", "communication", "workspace", "unknown"}


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(str(part) for part in what))


def check_opcodes(data):
    batch = 0
    for opcode, argument, place in pickletools.genops(data):
        check(opcode.name in OPCODES, "the visualiser does not know", opcode.name, "at", place)
        check(opcode.name != "PROTO" or 2 <= argument <= 4, "protocol", argument)
        # The visualiser passes what APPENDS appends as the arguments of one call.
        batch = 0 if opcode.name == "MARK" else batch + 1
        check(batch < 100000, "too much at once at", place)


def check_shape(snapshot):
    check({"segments", "device_traces"} <= set(snapshot), "keys", set(snapshot))
    for segment in snapshot["segments"]:
        check(SEGMENT <= set(segment), "a segment has", set(segment))
        check(segment["segment_pool_id"] in ([0, 0], (0, 0)), "a private pool", segment["segment_pool_id"])
        active = sum(block["size"] for block in segment["blocks"] if block["state"] == "active_allocated")
        check(active == segment["allocated_size"] == segment["active_size"] == segment["requested_size"], "sizes of", segment["address"])
        address = segment["address"]
        for block in segment["blocks"]:
            check(BLOCK <= set(block) and block["requested_size"] == block["size"], "a block has", block)
            check(block["address"] == address and block["size"] > 0, "blocks follow each other", block)
            check(block["state"] in ("active_allocated", "inactive"), "state", block["state"])
            check(block["frames"] or block["state"] == "inactive", "a block says what it is")
            address += block["size"]
        check(address == segment["address"] + segment["total_size"], "blocks fill their segment", segment["address"])
    for trace in snapshot["device_traces"]:
        for event in trace:
            check(EVENT <= set(event) and event["action"] in ACTIONS, "an event has", event)
            check(event.get("category", "unknown") in CATEGORIES, "category", event)
            check(event["action"] != "alloc" or event["frames"], "an allocation says what it is", event)
            check(all(set(frame) == {"filename", "line", "name"} for frame in event["frames"]), "frames", event)
        frees = [(event["action"], event["addr"]) for event in trace if event["action"].startswith("free")]
        check(frees[1::2] == [("free_completed", address) for _, address in frees[::2]], "a free is asked for and done at once")
        # Its legend fails where categories are without this one.
        check(any(event.get("category") == "unknown" for event in trace), "there is no unknown category")
        check(trace == sorted(trace, key=lambda event: event["time_us"]), "time goes backwards")


def replay(trace):
    """The most bytes that live at once, and what lives at the end."""
    segments, live, now, peak = {}, {}, 0, 0
    for event in trace:
        address, size = event["addr"], event["size"]
        if event["action"] == "segment_alloc":
            segments[address] = size
        elif event["action"] == "alloc":
            check(any(base <= address and address + size <= base + bytes for base, bytes in segments.items()), "outside", event)
            check(all(other + bytes <= address or address + size <= other for other, bytes in live.items()), "overlap", event)
            live[address] = size
            now += size
            peak = max(peak, now)
        elif event["action"] == "free_completed":
            check(live.pop(address) == size, "a free of another size", event)
            now -= size
    return peak, live


def rewind(snapshot, device):
    """From the blocks at the end backwards, as the visualiser finds the state at an event."""
    blocks = {block["address"]: block["size"] for segment in snapshot["segments"] if segment["device"] == device
              for block in segment["blocks"] if block["state"] == "active_allocated"}
    for event in reversed(snapshot["device_traces"][device]):
        if event["action"] == "free_completed":
            check(event["addr"] not in blocks, "lives already", event)
            blocks[event["addr"]] = event["size"]
        elif event["action"] == "alloc":
            check(blocks.pop(event["addr"], None) == event["size"], "is not there to be undone", event)
    check(not blocks, "lives before the beginning", blocks)


def main():
    text, data, plan = (open(path, "rb").read() for path in sys.argv[1:4])
    snapshot, plan = json.loads(text), json.loads(plan)
    check(pickle.loads(data) == snapshot, "the pickle says something else")
    check_opcodes(data)
    check_shape(snapshot)
    check(len(snapshot["device_traces"]) == len(plan["ranks"]), "one device for each entry of the ranks")
    for device, rank in enumerate(plan["ranks"]):
        peak, live = replay(snapshot["device_traces"][device])
        check(peak == rank["peak"]["bytes"], "the replay's peak is", peak, "and the plan's", rank["peak"]["bytes"])
        check(live, "states live at the end")
        rewind(snapshot, device)
        print("device", device, "peak", peak)


if __name__ == "__main__":
    main()
