#!/usr/bin/python3
"""residency.py - step time over memory: ds-run under ever smaller budgets, PyTorch with ever more blocks checkpointed.

    bench/residency.py                writes build/bench/residency.json, residency.md and residency.svg
    bench/residency.py --rounds 5     more rounds

One GPT whose memory is mostly what forward makes for backward.  ds-run is given all memory, then ever less beside the states, until
no plan fits; its bytes are the arena.  PyTorch runs with torch.utils.checkpoint around 0, 2, 4 and all of its blocks; its bytes are
the process's peak less what it had before there was a model, with glibc's allocator as it is.  Both train the same tokens in turn,
and the best round of each point counts.  For each of PyTorch's points stands the time of ds-run's that takes no more memory.
"""

import argparse
import json
import os
import subprocess
import sys

import step

MODEL = {"title": "GPT 6 x 256, vocabulary 256, T=128, B=16", "size": "small", "length": 128, "batch": 16, "vocab": 256}
SHARES = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15]
CHECKPOINTED = [0, 2, 4, 6]


def plan(files, name, memory=None):
    """A program that takes at most `memory` bytes: its path and its plan, or None where nothing fits."""
    shape = f"{MODEL['batch']}x{MODEL['length']}xi64"
    program, report = files["program"].replace(".dsx", f"-{name}.dsx"), files["program"].replace(".dsx", f"-{name}.json")
    command = ["ds-opt", files["archive"], "--config", files["config"], "--input", f"x={shape}", "--input", f"y={shape}",
               "--emit=program", "-o", program, "--plan-json", report]
    done = subprocess.run(command + (["--memory", str(memory)] if memory else []), capture_output=True, text=True)
    if done.returncode == 4:
        return None
    if done.returncode != 0:
        sys.exit(f"residency.py: {done.stderr}")
    with open(report) as file:
        return {"program": program, "plan": json.load(file)}


def arena(point):
    return point["plan"]["ranks"][0]["arenas"]["device"]


def plans(files):
    """The programs of all budgets that differ, the largest first; bytes of states beside them."""
    free = plan(files, "all")
    states = sum(free["plan"]["ranks"][0]["states"].values())
    points = [free]
    for share in SHARES:
        found = plan(files, f"{round(100 * share)}", states + int(share * (arena(free) - states)))
        if found is None:
            break
        if arena(found) < arena(points[-1]):
            points.append(found)
    return points, states


def measure(points, files, args):
    """Seconds of a step of each point, and of PyTorch's with their bytes; the best of all rounds."""
    ours, theirs = [[] for _ in points], [[] for _ in CHECKPOINTED]
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        for index, point in enumerate(points):
            ours[index].append(step.measure_ours({**files, "program": point["program"]}, args))
        for index, blocks in enumerate(CHECKPOINTED):
            theirs[index].append(step.measure_torch(MODEL, files, args, False, False, ["--checkpoint", str(blocks)]))
    if any(abs(a - b) > 1e-3 * abs(b) for runs in theirs for a, b in zip(ours[0][0]["losses"], runs[0]["losses"])):
        sys.exit("residency.py: the losses differ, so the steps are not the same work")
    if any(run["losses"] != ours[0][0]["losses"] for runs in ours for run in runs):
        sys.exit("residency.py: a budget changes the losses")
    return ([{"bytes": arena(point), "seconds": min(run["median"] for run in runs)} for point, runs in zip(points, ours)],
            [{"bytes": min(run["peak"] - run["resident_before"] for run in runs), "seconds": min(run["median"] for run in runs),
              "blocks": blocks} for blocks, runs in zip(CHECKPOINTED, theirs)])


def fastest_within(points, limit):
    within = [point["seconds"] for point in points if point["bytes"] <= limit]
    return min(within) if within else None


def table(ours, theirs, states):
    free = ours[0]
    lines = [f"{MODEL['title']}, fp32; states {states / 2**20:.0f} MiB", "", "| ds-run | beside the states | step | of the free step |",
             "|---|---|---|---|"]
    for point in ours:
        share = (point["bytes"] - states) / (free["bytes"] - states)
        lines.append(f"| {point['bytes'] / 2**20:.0f} MiB | {share:.0%} | {point['seconds']:.4f} s | "
                     f"{point['seconds'] / free['seconds']:.2f} |")
    lines += ["", "| PyTorch, blocks checkpointed | peak | step | ds-run within that |", "|---|---|---|---|"]
    for point in theirs:
        best = fastest_within(ours, point["bytes"])
        beside = f"{best:.4f} s, {best / point['seconds']:.2f}" if best else "does not fit"
        lines.append(f"| {point['blocks']} | {point['bytes'] / 2**20:.0f} MiB | {point['seconds']:.4f} s | {beside} |")
    return "\n".join(lines) + "\n"


def drawing(ours, theirs):
    """Both curves as an SVG: bytes to the right, seconds upwards, from zero."""
    width, height, most = 640, 400, 1.05 * max(point["bytes"] for point in ours + theirs)
    slowest = 1.05 * max(point["seconds"] for point in ours + theirs)

    def curve(points, colour, name, row):
        spots = [(60 + point["bytes"] / most * (width - 80), height - 40 - point["seconds"] / slowest * (height - 60)) for point in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots)
        return (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'
                f'<text x="70" y="{30 + 18 * row}" fill="{colour}">{name}</text>')

    axes = (f'<path d="M60 20V{height - 40}H{width - 20}" fill="none" stroke="#888"/>'
            f'<text x="{width - 20}" y="{height - 22}" text-anchor="end">{most / 2**20:.0f} MiB</text>'
            f'<text x="8" y="24">{slowest:.2f} s</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="13">'
            f'<rect width="100%" height="100%" fill="#fff"/>{axes}{curve(ours, "#0b6bcb", "ds-run", 0)}'
            f'{curve(theirs, "#c84b31", "PyTorch, torch.utils.checkpoint", 1)}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(step.ROOT, "build", "bench"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--drop", type=int, default=3, help="steps of each run that do not count")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.clip, args.dtype, args.loss_chunks = 1.0, "fp32", "auto"
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    step.use_build()
    out = os.path.join(args.out, "residency")
    os.makedirs(out, exist_ok=True)
    files = step.prepare(MODEL, args, out)
    points, states = plans(files)
    ours, theirs = measure(points, files, args)
    step.write_results(args.out, "residency", {"states": states, "ds": ours, "torch": theirs}, table(ours, theirs, states))
    with open(os.path.join(args.out, "residency.svg"), "w") as file:
        file.write(drawing(ours, theirs))


if __name__ == "__main__":
    main()
