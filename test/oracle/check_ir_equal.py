#!/usr/bin/python3
"""check_ir_equal.py - run the functions of two files in the interpreter and compare what they return.

Both files hold modules in generic form, split by `// -----`, with functions of the same names and arguments: what a pass
made, and what it was made from.
"""

import argparse
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_ir_gradients import sample  # noqa: E402
from evaluate import Module, evaluate  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--tolerance", type=float, default=1e-6, help="constants are rounded to f32 in the IR")
    args = parser.parse_args()
    before, after = (open(path).read().split("// -----") for path in (args.before, args.after))
    compared, failed = 0, len(before) != len(after)
    for old, new in zip(map(Module, before), map(Module, after)):
        for name, function in old.functions.items():
            generator = torch.Generator().manual_seed(2)
            arguments = [sample(kind, generator) for _, kind in function.arguments]
            results = zip(evaluate(function, arguments), evaluate(new.functions[name], arguments))
            for index, (expected, value) in enumerate(results):
                off = float((expected - value).abs().max() / expected.abs().max())
                compared += 1
                if not off <= args.tolerance:
                    failed = True
                    print(f"@{name}: result {index} is off by {off:.3g}", file=sys.stderr)
    print(f"{compared} results compared")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
