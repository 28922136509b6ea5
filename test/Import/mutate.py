#!/usr/bin/python3
"""mutate.py - change one to four bytes of an archive at random, and see that the importer refuses it or is not misled.

    mutate.py IMPORTER MODEL.pt [--rounds N] [--seed S]

A mutant ends with a documented exit code; one that is accepted gives the text that the archive gives (the change was
in bytes that mean nothing). The importer itself may die of a signal: the process that calls it reports that.
"""

import argparse
import collections
import random
import subprocess
import sys
import tempfile

DOCUMENTED = {0, 3, 5, 6}


def run(importer, path):
    command = [importer, path, "--input=x=2x16xi64", "--input=y=2x16xi64"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("importer")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with open(args.model, "rb") as file:
        original = file.read()
    code, expected = run(args.importer, args.model)
    assert code == 0, code
    random.seed(args.seed)
    codes = collections.Counter()
    for number in range(args.rounds):
        mutant = bytearray(original)
        for _ in range(random.randint(1, 4)):
            mutant[random.randrange(len(mutant))] = random.randrange(256)
        with tempfile.NamedTemporaryFile(suffix=".pt") as file:
            file.write(mutant)
            file.flush()
            code, text = run(args.importer, file.name)
        codes[code] += 1
        if (code not in DOCUMENTED and code >= 0) or (code == 0 and text != expected):
            sys.exit(f"mutant {number} of seed {args.seed}: exit code {code}")
    print("no mutant was imported as something else; exit codes", dict(codes))


if __name__ == "__main__":
    main()
