#!/usr/bin/python3
"""check_faults.py - kill or stop one of the ranks of a running job, at a time drawn by chance, and time its end.

    check_faults.py PROGRAM.dsx --data FILE --ranks 3 --repeats 20 --timeout 3

The job must end with exit code 7, name the rank, and do so within the time-out and a margin for a loaded machine.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time

MARGIN = 8.0  # seconds that a loaded machine may add to the time-out
FAULTS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def children(pid):
    """Process numbers of the ranks, in the order in which they were started."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(text) for text in file.read().split()]


def wait_for_steps(path, deadline):
    """Returns once the log has a line."""
    while time.monotonic() < deadline:
        if os.path.exists(path) and os.path.getsize(path):
            return
        time.sleep(0.01)
    sys.exit("no step within the time-out")


def strike(args, fault, rank, delay):
    """One job with one fault; returns the complaint, or nothing."""
    log = os.path.join(args.out, "faults.jsonl")
    if os.path.exists(log):
        os.remove(log)
    job = subprocess.Popen(["ds-run", args.program, "--ranks", str(args.ranks), "--timeout", str(args.timeout), "--data",
                            args.data, "--steps", "1000000", "--log-jsonl", log],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for_steps(log, time.monotonic() + 60)
    time.sleep(delay)
    os.kill(children(job.pid)[rank], FAULTS[fault])
    struck = time.monotonic()
    try:
        _, text = job.communicate(timeout=args.timeout + MARGIN)
    except subprocess.TimeoutExpired:
        job.kill()
        return "did not end"
    if job.returncode != 7:
        return f"exit code {job.returncode}: {text[-300:]}"
    if not re.search(rf"rank {rank}\b", text):
        return f"does not name rank {rank}: {text[-300:]}"
    print(f"{fault} rank {rank} after {delay:.3f} s: exit code 7 in {time.monotonic() - struck:.2f} s", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--timeout", type=int, default=3)
    args = parser.parse_args()
    draw = random.Random(1)
    complaints = []
    for fault in FAULTS:
        for _ in range(args.repeats):
            rank, delay = draw.randrange(args.ranks), draw.uniform(0, 0.3)
            complaint = strike(args, fault, rank, delay)
            if complaint:
                complaints.append(f"{fault} rank {rank} after {delay:.3f} s: {complaint}")
    if complaints:
        sys.exit("\n".join(complaints))
    print(f"{2 * args.repeats} of {2 * args.repeats} jobs ended as they should")


if __name__ == "__main__":
    main()
