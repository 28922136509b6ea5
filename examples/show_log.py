#!/usr/bin/python3
"""show_log.py - draw the loss curve of a ds-run log in the terminal.

    examples/show_log.py build/demo/log.jsonl
"""

import json
import sys

WIDTH = 60
ROWS = 16


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        log = [json.loads(line) for line in file if line.strip()]
    if not log:
        sys.exit("show_log.py: the log is empty")
    top = max(entry["loss"] for entry in log)
    for row in range(ROWS):
        first, last = row * len(log) // ROWS, max(row * len(log) // ROWS + 1, (row + 1) * len(log) // ROWS)
        part = log[first:last]
        loss = sum(entry["loss"] for entry in part) / len(part)
        print(f"steps {part[0]['step']:5d} - {part[-1]['step']:5d}  {loss:7.4f}  {'#' * round(WIDTH * loss / top)}")
    print(f"training loss {log[0]['loss']:.4f} at step 1, {log[-1]['loss']:.4f} at step {log[-1]['step']}")
    held_out = [entry for entry in log if entry.get("eval_loss") is not None]
    if held_out:
        print(f"held-out loss {held_out[-1]['eval_loss']:.4f} at step {held_out[-1]['step']}")


if __name__ == "__main__":
    main()
