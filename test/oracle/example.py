"""example.py - what checks that train an example share: the command line, and the example itself."""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402


def make_parser(doc):
    """A parser with the options of every check; what it does not know goes to examples/export.py."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--config", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--loss", choices=["cross_entropy", "mse"], help="of an example that returns logits")
    return parser


def make_example(args, rest, micro):
    """Exports it: the archive's path, the data's, and the --input values for micro-batches of `micro` samples."""
    logits = ["--logits"] if args.loss else []
    return export.main([args.name, "--out", args.out, "--data", str(args.samples), "--batch", str(micro), *logits, *rest])


def loss_options(args):
    """What ds-opt is to be told of the loss."""
    return ["--loss", args.loss] if args.loss else []
