#!/usr/bin/env python3
"""fit_products.py - fits what the cost model says of products on tensor cores to measured ones, some jobs held out.

    fit_products.py [JOB...]      fits to these jobs of measured/h200-commands.csv (default: each choice of some), and tells the others' error

The model is lib/Cost/Products.cpp's: a rate within tiles, the share of it that tiles of 128 x 128 reach, the seconds before the first and
after the last tile, and the summands that a divided tile keeps. The rate of what lasts for 10 ms (`tile_flops`' last point) is that of the
one job that has such products.
"""

import csv
import itertools
import math
import pathlib
import sys

TABLE = pathlib.Path(__file__).resolve().parent / "measured" / "h200-commands.csv"
MULTIPROCESSORS, LONG_RATE, SHORT_SECONDS, LONG_SECONDS, BESIDE_RATE = 132, 745e12, 2e-3, 1e-2, 2.1e12
RATES, SHARES, FILLS, SUMMANDS = range(760, 850, 5), (0.85, 0.9, 0.95, 1.0), (3e-6, 4e-6, 5e-6, 6e-6, 7e-6), (2000, 2700, 4000)


def read_products():
    """Products of even rows: job, class, sizes, bytes beside them, seconds of one and their number."""
    with open(TABLE) as file:
        for row in csv.DictReader(file):
            if row["kind"] == "product" and not row["odd"]:
                yield (row["job"], row["class"], *(int(row[size]) for size in "mnk"), int(row["beside"] or 0), float(row["us"]) * 1e-6,
                       int(row["count"]))


def padded_flops(m, n, k, share, summands):
    """Operations when idle multiprocessors and tiles beyond the result count as work, by the best tile and division of sums."""
    best = math.inf
    for rows, columns, reached in ((128, 256, 1), (256, 128, 1), (128, 128, share)):
        tiles, parts = math.ceil(m / rows) * math.ceil(n / columns), 1
        while parts == 1 or k / parts >= summands:
            waves = math.ceil(tiles * parts / MULTIPROCESSORS)
            best = min(best, waves * MULTIPROCESSORS * 2 * rows * columns * k / reached / parts)
            parts += 1
    return best


def seconds_of(flops, beside, rate, fill):
    short = flops / rate
    place = min(max(math.log(short / SHORT_SECONDS) / math.log(LONG_SECONDS / SHORT_SECONDS), 0), 1)
    return flops / (rate + place * (LONG_RATE - rate)) + fill + beside / BESIDE_RATE


def fit(products):
    """The figures with the smallest mean square of relative errors, each product counted by the root of its share of time."""
    best = (math.inf,)
    for share, summands in itertools.product(SHARES, SUMMANDS):
        flops = [padded_flops(m, n, k, share, summands) for _, _, m, n, k, *_ in products]
        for rate, fill in itertools.product(RATES, FILLS):
            square = sum(math.sqrt(us * count) * math.log(seconds_of(each, beside, rate * 1e12, fill) / us) ** 2
                         for each, (*_, beside, us, count) in zip(flops, products))
            best = min(best, (square, rate, share, fill, summands))
    return best[1:]


def errors(products, figures):
    """The error of each class of each job, as a share of its time."""
    rate, share, fill, summands = figures
    sums = {}
    for job, kind, m, n, k, beside, us, count in products:
        total = sums.setdefault((job, kind), [0, 0])
        total[0] += count * seconds_of(padded_flops(m, n, k, share, summands), beside, rate * 1e12, fill)
        total[1] += count * us
    return {key: predicted / measured - 1 for key, (predicted, measured) in sums.items()}


def main(names):
    products = list(read_products())
    jobs = sorted({job for job, *_ in products})
    for some in [names] if names else [each for size in (1, 2, len(jobs)) for each in itertools.combinations(jobs, size)]:
        figures = fit([each for each in products if each[0] in some])
        print(f"fitted to {', '.join(some)}: {figures[0]} TFLOP/s, {figures[1]} of it in small tiles, {figures[2] * 1e6:.0f} us, "
              f"{figures[3]} summands")
        for (job, kind), error in errors(products, figures).items():
            print(f"  {'fitted  ' if job in some else 'held out'} {job} {kind}: {100 * error:+.1f} %")


if __name__ == "__main__":
    main(sys.argv[1:])
