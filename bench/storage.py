#!/usr/bin/python3
"""storage.py - how fast what lies on NVMe is written and read, beside fio with the same block and depth in the same folder.

    storage.py DIR [--bench build/bin/storage] [--megabytes 1024] [--block 1048576] [--depth 8] [--piece BYTES] [--rounds 7] [--threads]

Sequential and direct, through two pieces of registered memory in turn as a step moves states; a piece is twice what may be under way,
as a program has it.  fio writes and reads a file of the same size with io_uring, registered memory and file; it and we take turns.
Prints the median of each and of the rounds' ratios (wanted: 0.95).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def fio(options, kind):
    """Bytes a second of one pass over fio's file, which stays for the next one."""
    text = run("fio", "--name=storage", f"--filename={options.folder}/fio", f"--size={options.bytes}", f"--bs={options.block}",
               f"--iodepth={options.depth}", f"--rw={kind}", "--ioengine=io_uring", "--direct=1", "--fixedbufs", "--registerfiles",
               "--fallocate=posix", "--overwrite=0", "--output-format=json")
    return json.loads(text[text.index("{"):])["jobs"][0][kind]["bw_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bench", default="build/bin/storage")
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--block", type=int, default=1 << 20)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--piece", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", action="store_true")
    options = parser.parse_args()
    piece = options.piece or max(1 << 20, min(64 << 20, 2 * options.block * options.depth))
    options.bytes = (options.megabytes << 20) // piece * piece
    os.makedirs(options.folder, exist_ok=True)
    ours, theirs = {"write": [], "read": []}, {"write": [], "read": []}
    fio(options, "write")  # its file is there from now on, as ours is before a run
    for _ in range(options.rounds):
        once = json.loads(run(options.bench, options.folder, options.bytes, options.block, options.depth, piece, 1,
                              *(["threads"] if options.threads else [])))[0]
        for kind in ("write", "read"):
            ours[kind].append(once[kind])
            theirs[kind].append(fio(options, kind))
    os.unlink(f"{options.folder}/fio")
    print(f"{options.bytes >> 20} MiB, blocks of {options.block} bytes, depth {options.depth}, pieces of {piece} bytes, "
          f"{options.rounds} rounds")
    for kind in ("write", "read"):
        ratios = [a / b for a, b in zip(ours[kind], theirs[kind])]
        print(f"  {kind:5}  {statistics.median(ours[kind]) / 1e9:6.2f} GB/s   fio {statistics.median(theirs[kind]) / 1e9:6.2f} GB/s   "
              f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
