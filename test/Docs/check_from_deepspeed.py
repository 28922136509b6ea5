"""check_from_deepspeed.py - docs/from-deepspeed.md says of keys what docs/config.md says, and its commands work.

    check_from_deepspeed.py ROOT DIR

Of every block of config.md some key must have a row. The page's configuration is planned, compiled and trained with a small model in DIR.
"""

import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

MODEL = {"model_type": "gpt2", "vocab_size": 64, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2}


def rows_of(page, heading):
    """The cells of the rows of each table that has this heading."""
    inside = False
    for line in page.splitlines():
        inside = line.startswith(heading) or (inside and line.startswith("|"))
        if inside and line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def known_keys(page):
    """Key with its block to the statuses that the reference gives it."""
    block, keys, blocks = "", {}, set()
    for line in page.split("<!-- generated")[1].splitlines():
        if line.startswith("### "):
            block = "" if "Top level" in line else line[5:-1] + "."
            blocks |= {block} - {""}
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
            keys.setdefault(block + cells[0].strip("`"), set()).add(cells[3])
    return keys, blocks


def check_rows(root):
    keys, blocks = known_keys((root / "docs/config.md").read_text())
    named = set()
    for cells in rows_of((root / "docs/from-deepspeed.md").read_text(), "| key | status |"):
        for key in re.findall(r"`([^`]+)`", cells[0]):
            named.add(key)
            if key not in keys:
                yield f"config.md has no {key}"
            elif cells[1] not in keys[key]:
                yield f"{key} is {cells[1]} here, and in config.md {', '.join(keys[key])}"
    for block in sorted(blocks):
        if not any((key + ".").startswith(block) for key in named):
            yield f"nothing is said of {block[:-1]}"


def check_commands(page, folder):
    (folder / "gpt2").mkdir(parents=True, exist_ok=True)
    (folder / "gpt2/config.json").write_text(json.dumps(MODEL))
    (folder / "ds_config.json").write_text(re.search(r"```json\n(.*?)```", page, re.S).group(1))
    random.seed(0)
    (folder / "train.bin").write_bytes(b"".join(struct.pack("<H", random.randrange(64)) for _ in range(4000)))
    commands = [line for line in re.findall(r"^    (ds-(?:opt|run) .*)$", page, re.M)]
    for command in commands:
        done = subprocess.run(command.replace("--steps 1000", "--steps 4"), shell=True, cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env={**os.environ})
        if done.returncode:
            yield f"{command}\n{done.stdout}exit code {done.returncode}"
    if len(commands) < 4:
        yield f"only {len(commands)} commands"


def main():
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    faults = [*check_rows(root), *check_commands((root / "docs/from-deepspeed.md").read_text(), folder)]
    print("\n".join(faults) or "keys are as config.md has them, and the commands work")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
