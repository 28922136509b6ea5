"""check_losses.py LOG - the losses of a log of ds-run fall, and none leaps.

A leap is a loss that is more than 0.8 above the mean of the five before it: batches of the demo's text differ by 0.4, while the one that
had a frame of stars and blanks in it was 4.6 above.
"""

import json
import statistics
import sys

LEAP, FALL, WINDOW = 0.8, 1.5, 5


def main():
    with open(sys.argv[1]) as file:
        losses = [json.loads(line)["loss"] for line in file if line.strip()]
    leaps = [f"step {i + 1}: {losses[i]}" for i in range(WINDOW, len(losses))
             if losses[i] > statistics.mean(losses[i - WINDOW:i]) + LEAP]
    if statistics.mean(losses[:WINDOW]) - statistics.mean(losses[-WINDOW:]) < FALL:
        leaps.append(f"the loss falls by less than {FALL}")
    print("\n".join(leaps) or "falls without a leap")
    return 1 if leaps else 0


if __name__ == "__main__":
    sys.exit(main())
