"""check_torch_viewer.py SNAPSHOT.pickle - a plan's snapshot through PyTorch's own reader of such files.

The functions of torch/cuda/_memory_viz.py that come with PyTorch 1.13 take the segments; later versions take the whole
snapshot. Their flame graphs count every byte of the segments once, by state; of two equal snapshots nothing is new.
"""

import contextlib
import importlib.util
import inspect
import io
import pickle
import sys
from pathlib import Path


def load_viewer():
    """The module by itself: importing torch.cuda takes seconds and nothing of it is needed."""
    path = Path(importlib.util.find_spec("torch").origin).parent / "cuda" / "_memory_viz.py"
    spec = importlib.util.spec_from_file_location("memory_viz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(graph):
    """(stack, bytes) of each line of a flame graph."""
    return [(stack, int(count)) for stack, count in (line.rsplit(" ", 1) for line in graph.splitlines())]


def main():
    viewer = load_viewer()
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    segments = snapshot["segments"]
    takes_all = "snapshot['segments']" in inspect.getsource(viewer.memory)
    argument = snapshot if takes_all else segments
    reserved = sum(segment["total_size"] for segment in segments)
    by_segment = lines_of(viewer.segments(argument, format_flamegraph=str))
    by_stream = lines_of(viewer.memory(argument, format_flamegraph=str))
    for graph in by_segment, by_stream:
        assert sum(count for _, count in graph) == reserved, (sum(count for _, count in graph), reserved)
    addresses = {f"stream_0;seg_{segment['address']}" for segment in segments}
    assert {";".join(stack.split(";")[:2]) for stack, _ in by_segment} == addresses, by_segment[:3]
    states = {stack.split(";")[1] for stack, _ in by_stream}
    assert states <= {"active_allocated", "inactive"} and "active_allocated" in states, states
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert viewer.compare(segments, segments, format_flamegraph=str) == ""
    assert told.getvalue().split() == ["only_before", "=", "[]", "only_after", "=", "[]"], told.getvalue()
    if hasattr(viewer, "stats"):
        stats = viewer.stats(segments)
        assert stats["total_size"].value == reserved and stats["segments"] == len(segments), stats
    print("PyTorch reads", len(segments), "segments")


main()
