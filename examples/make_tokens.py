#!/usr/bin/python3
"""make_tokens.py - turn text files into token streams that ds-run reads.

    examples/make_tokens.py --out build/demo [TEXT...]

Every byte is one token (vocabulary 256).  train.bin and held_out.bin are raw little-endian u16, as nanoGPT writes
them: of each file the last tenth is held out.  Without TEXT it takes the licence texts that Debian's base-files puts
into /usr/share/common-licenses on every machine: real English prose, the same bytes everywhere for one Debian release,
and nothing has to be shipped.  One version of each licence is taken, so that the held-out text is not in the other
part under another number, and only its words: indentation, rules and frames of dashes or stars go, for a sample of
nothing but spaces makes the loss leap.
"""

import argparse
import array
import os
import re
import sys

LICENCES = "/usr/share/common-licenses"
NAMES = ["Apache-2.0", "Artistic", "BSD", "CC0-1.0", "GFDL-1.3", "GPL-2", "GPL-3", "LGPL-2.1", "LGPL-3", "MPL-2.0"]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def words_of(text):
    """A licence without what is drawn on the page: no run of one sign but letters and digits, no indentation."""
    text = re.sub(rb"([^A-Za-z0-9\n])\1+", rb"\1", text)
    text = re.sub(rb"\n[ *=_-]+", b"\n", text)
    return re.sub(rb"\n{3,}", b"\n\n", text)


def tokens_of(text):
    """One little-endian u16 a byte."""
    tokens = array.array("H", list(text))
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens.tobytes()


def write(path, texts):
    with open(path + ".tmp", "wb") as file:
        for text in texts:
            file.write(tokens_of(text))
    os.replace(path + ".tmp", path)
    print(f"{path}: {sum(map(len, texts))} tokens")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--held-out", type=float, default=0.1, metavar="SHARE")
    args = parser.parse_args()
    texts = [read(path) for path in args.texts] or [words_of(read(os.path.join(LICENCES, name))) for name in NAMES]
    cuts = [len(text) - int(len(text) * args.held_out) for text in texts]
    os.makedirs(args.out, exist_ok=True)
    write(os.path.join(args.out, "train.bin"), [text[:cut] for text, cut in zip(texts, cuts)])
    write(os.path.join(args.out, "held_out.bin"), [text[cut:] for text, cut in zip(texts, cuts)])


if __name__ == "__main__":
    main()
