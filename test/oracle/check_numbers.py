#!/usr/bin/python3
"""check_numbers.py - every numeric option of ds-opt and ds-run refuses what is no number, by name and with exit code 2.

    check_numbers.py DIR

Needs no program and no PyTorch: a number is read before any file is.
"""

import subprocess
import sys
from pathlib import Path

NO_NUMBERS = ["", "-1", "+1", "010", "0x10", "1e", "7 ", " 7", "7k", "nan", "inf", "-inf", "18446744073709551616", "1" * 400]
NO_WHOLE_NUMBERS = NO_NUMBERS + ["1e3", "1.5"]
SHAPES = ["", "-1", "+1", "010", "0", "0x10", "1e3", "1.5", "7 ", "nan", "18446744073709551616"]


def refuse(command, option, value):
    """The command must end with exit code 2, naming the option and the value; what it says is a hint longer."""
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = outcome.stderr
    good = outcome.returncode == 2 and option in said and value[:40] in said and "hint" in said
    return [] if good else [f"{' '.join(command)[:200]!r}: exit code {outcome.returncode}: {said[:300]}"]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.json"
    config.write_text('{"model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 32, "n_layer": 1, "n_head": 2}')
    opt, run = ["ds-opt", str(config), "--emit=plan"], ["ds-run", str(folder / "none.dsx"), "--data", "none.npy"]
    cases = [(opt, option, NO_WHOLE_NUMBERS) for option in ("--ranks", "--threads-per-rank", "--loss-chunks")]
    cases += [(opt, "--memory", NO_NUMBERS + ["1e3", "0", "0.5", "8GB", "1.2.3MiB"])]
    cases += [(run, option, NO_WHOLE_NUMBERS) for option in ("--steps", "--seed", "--eval-every", "--ranks")]
    cases += [(run, "--ranks", ["0", "1025"]), (run, "--timeout", NO_NUMBERS + ["0", "1e7", "0.01"])]
    cases += [(["ds-run", "--calibrate=quick"], "--ranks", NO_WHOLE_NUMBERS + ["0", "1025"])]
    cases += [(["ds-run", "--calibrate=quick"], "--timeout", NO_NUMBERS + ["0"])]
    complaints, count = [], 0
    for command, option, values in cases:
        for value in values:
            # Only LLVM's library leaves an empty value behind "=" to us.
            spelt = [f"{option}={value}"] if command is opt else [option, value]
            complaints += refuse(command + spelt, option, value)
            count += 1
    for value in SHAPES:
        complaints += refuse(opt + ["--input", f"input_ids={value}x8xi64"], "--input", value)
        complaints += refuse(opt + ["--input", f"input_ids=8x{value}xi64"], "--input", value)
        archive = ["ds-import", str(config), "--input", f"x={value}x8xi64"]
        complaints += [] if value == "" else refuse(archive, "--input", value)
        count += 2
    print("\n".join(complaints) or f"{count} refused")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
