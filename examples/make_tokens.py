#!/usr/bin/python3
"""make_tokens.py - turn text files into token streams that ds-run reads.

    examples/make_tokens.py --out build/demo [TEXT...]

Every byte is one token (vocabulary 256).  train.bin and held_out.bin are raw little-endian u16, as nanoGPT writes
them: of each file the last tenth is held out.  Without TEXT it takes the licence texts that Debian's base-files puts
into /usr/share/common-licenses on every machine: real English prose, the same bytes everywhere for one Debian release,
and nothing has to be shipped.  One version of each licence is taken, so that the held-out text is not in the other
part under another number.
"""

import argparse
import os

import numpy as np

LICENCES = "/usr/share/common-licenses"
NAMES = ["Apache-2.0", "Artistic", "BSD", "CC0-1.0", "GFDL-1.3", "GPL-2", "GPL-3", "LGPL-2.1", "LGPL-3", "MPL-2.0"]


def split(paths, held_out):
    """Two token arrays: the first part of every file, and the rest."""
    first, second = [], []
    for path in paths:
        tokens = np.fromfile(path, dtype=np.uint8).astype("<u2")
        cut = len(tokens) - int(len(tokens) * held_out)
        first.append(tokens[:cut])
        second.append(tokens[cut:])
    return np.concatenate(first), np.concatenate(second)


def write(path, tokens):
    tokens.tofile(path + ".tmp")
    os.replace(path + ".tmp", path)
    print(f"{path}: {len(tokens)} tokens")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--held-out", type=float, default=0.1, metavar="SHARE")
    args = parser.parse_args()
    train, held_out = split(args.texts or [os.path.join(LICENCES, name) for name in NAMES], args.held_out)
    os.makedirs(args.out, exist_ok=True)
    write(os.path.join(args.out, "train.bin"), train)
    write(os.path.join(args.out, "held_out.bin"), held_out)


if __name__ == "__main__":
    main()
