#!/usr/bin/python3
"""storage.py - how fast what lies on NVMe is written and read, beside fio with the same block and depth on the same file.

    storage.py DIR [--bench build/bin/storage] [--megabytes 1024] [--block 1048576] [--depth 8] [--piece BYTES] [--rounds 9] [--threads]

Sequential and direct, through two pieces of registered memory in turn as a step moves states; a piece is twice what may be under way,
as a program has it.  fio does the same to that file with io_uring, registered memory and file, through /proc; the two take turns, and
turns at being first.  Our pieces have huge pages, as arenas do, and so have fio's where the system has as many set aside
(sysctl vm.nr_hugepages: a block in pages of 4 KiB is two requests to many disks); the first line says which it was.  Prints the median of each and of the rounds' ratios (wanted: 0.95).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def fio_memory(options):
    """fio's choice of memory: huge pages, where there are enough for a queue of blocks and one more page."""
    with open("/proc/meminfo") as file:
        found = {line.split(":")[0]: int(line.split()[1]) for line in file}
    free = found["HugePages_Free"] * found["Hugepagesize"] << 10
    return "mmaphuge" if free >= options.block * options.depth + (found["Hugepagesize"] << 10) else "malloc"


def fio(path, options, kind):
    """Bytes a second of one pass over the file."""
    done = subprocess.run(["fio", "--name=storage", f"--filename={path}", f"--size={options.bytes}", f"--bs={options.block}",
                           f"--iodepth={options.depth}", f"--rw={kind}", "--ioengine=io_uring", "--direct=1", "--fixedbufs", f"--iomem={options.iomem}",
                           "--registerfiles", "--allow_file_create=0", "--output-format=json"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"fio: exit code {done.returncode}\n{done.stdout}")
    return json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0][kind]["bw_bytes"]


class Ours:
    """The program with the storage arena, which does a pass when it is asked to."""

    def __init__(self, options, piece):
        command = [options.bench, options.folder, options.bytes, options.block, options.depth, piece] + ["threads"] * options.threads
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.move("write")  # the file system writes its own tables once
        folder = f"/proc/{self.process.pid}/fd"
        self.path = next(f"{folder}/{name}" for name in os.listdir(folder) if "/ds-storage-" in os.readlink(f"{folder}/{name}"))

    def move(self, kind):
        self.process.stdin.write(kind + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return float(line) if line else sys.exit("storage has ended")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bench", default="build/bin/storage")
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--block", type=int, default=1 << 20)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--piece", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", action="store_true")
    options = parser.parse_args()
    piece = options.piece or max(1 << 20, min(64 << 20, 2 * options.block * options.depth))
    options.bytes = (options.megabytes << 20) // piece * piece
    os.makedirs(options.folder, exist_ok=True)
    options.iomem = fio_memory(options)
    ours = Ours(options, piece)
    print(f"{options.bytes >> 20} MiB, blocks of {options.block} bytes, depth {options.depth}, pieces of {piece} bytes, "
          f"{options.rounds} rounds, fio in {'huge' if options.iomem == 'mmaphuge' else 'small'} pages")
    for kind in ("write", "read"):
        rates = {True: [], False: []}
        for number in range(2 * options.rounds):
            for isOurs in (number % 2 == 0, number % 2 == 1):
                time.sleep(0.5)  # what was written before is on its way still
                rates[isOurs].append(ours.move(kind) if isOurs else fio(ours.path, options, kind))
        ratios = [a / b for a, b in zip(rates[True], rates[False])]
        print(f"  {kind:5}  {statistics.median(rates[True]) / 1e9:6.2f} GB/s   fio {statistics.median(rates[False]) / 1e9:6.2f} GB/s   "
              f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    ours.process.stdin.close()
    ours.process.wait()


if __name__ == "__main__":
    main()
