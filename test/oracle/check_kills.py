#!/usr/bin/python3
"""check_kills.py - ds-opt and ds-run killed at many moments leave the old files or the new ones, and nothing else.

    check_kills.py DIR [--archive model.pt --input x=...]... [--times N]

Moments are spread over the time that an undisturbed run takes, whatever that is here.  ds-import must be gone with ds-opt.
What is about to take the place of an old file has a name of its own for a moment.  SIGKILL in just that moment leaves it: it
must be whole then.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

CONFIG = ('{"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_embd": 128, "n_layer": 3, "n_head": 2}')
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT]


def importers(folder):
    """Processes of ds-import that work for this test."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"ds-import") and any(str(folder).encode() in word for word in words):
            found.append(process.name)
    return found


def outlives(folder):
    """Whether one is still there once the kernel has had time to end it."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not importers(folder):
            return False
        time.sleep(0.02)
    return True


def is_new_file(path):
    """Whether `path` is what was to replace a file, and whole: the same again, for every run writes the same but for times."""
    target = re.fullmatch(r"\.(.+)\.[0-9a-f]{16}\.tmp", path.name)
    if not target:
        return False
    if target[1].endswith(".trace"):
        try:
            return bool(json.loads(path.read_text()))
        except ValueError:
            return False
    return path.read_bytes() == path.with_name(target[1]).read_bytes()


def check(name, command, folder, keep, times):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    begin = time.monotonic()
    subprocess.run(command, check=True, **quiet)
    whole = time.monotonic() - begin
    complaints, ended = [], 0
    for index in range(times):
        number = SIGNALS[index % len(SIGNALS)]
        process = subprocess.Popen(command, **quiet)
        time.sleep(whole * 1.1 * index / times)
        os.kill(process.pid, number)
        code = process.wait(timeout=60)
        ended += code < 0
        left = sorted(path.name for path in folder.iterdir() if path.name not in keep)
        if left and not (number == signal.SIGKILL and len(left) == 1 and is_new_file(folder / left[0])):
            complaints.append(f"{name}: {number.name} at moment {index} of {times} leaves {', '.join(left)}")
        for file in left:
            (folder / file).unlink()
        if outlives(folder):
            complaints.append(f"{name}: ds-import outlives {number.name} at moment {index} of {times}")
    print(f"{name}: {times} kills")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--archive")
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--times", type=int, default=12)
    args = parser.parse_args()
    folder = args.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(CONFIG)
    (folder / "tokens.bin").write_bytes(bytes(4096))
    program = ["ds-opt", "config.json", "--emit=program", "--plan-json", "plan.json", "--plan-html", "plan.html", "--trace",
               "plan.trace", "-o", "m.dsx"]
    train = ["ds-run", "m.dsx", "--data", "tokens.bin", "--token-dtype", "u16", "--steps", "1", "--save-weights",
             "after.safetensors", "--trace", "run.trace"]
    keep = {"config.json", "tokens.bin", "m.dsx", "plan.json", "plan.html", "plan.trace", "after.safetensors", "run.trace"}
    complaints = check("ds-opt", program, folder, keep, args.times) + check("ds-run", train, folder, keep, args.times)
    if args.archive:
        archive = folder / "model.pt"
        archive.write_bytes(Path(args.archive).read_bytes())
        inputs = [word for shape in args.input for word in ("--input", shape)]
        keep |= {"model.pt", "import.dsx", "import.safetensors"}
        command = ["ds-opt", str(archive), *inputs, "--emit=program", "-o", "import.dsx"]
        complaints += check("ds-import", command, folder, keep, args.times)
    print("\n".join(complaints) or "nothing left")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
