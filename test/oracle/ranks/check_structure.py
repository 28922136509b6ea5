#!/usr/bin/python3
"""check_structure.py - what ranks that share a layer exchange, however its weights are called and laid out.

    check_structure.py --out DIR [KIND ...]      needs ds-opt on PATH

Blocks of blocks.py, of sizes at which an exchange takes longer than it waits, on two ranks. One layer more is so many exchanges more, and
every way in which a block can be written has those of the first, with no matrix whole.
"""

import argparse
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from archives import input_arguments  # noqa: E402
from ranks.blocks import BATCH, Pictures, Way, Words  # noqa: E402
from ranks.check_cuts import exchanges_of, whole_matrices  # noqa: E402
from ranks.compiling import compile_ranks, ds_opt  # noqa: E402

WAYS = (Way("apart", False), Way("fused", False), Way("shuffled", True), Way("by heads", False), Way("apart", True))
KINDS = {"gpt": Words, "llama": Words, "grouped": Words, "gemma": Words, "encoder": Words, "vit": Pictures, "encoder-decoder": Words, "mixer": Pictures}
# A sum forward and one backward for each pair of products, or a gather and a scattered sum each.
PAIRS = {"encoder-decoder": 3}


def count(folder, kind, layers, way):
    """[exchanges, whole matrices] with norms whole, then cut along the sequence."""
    model = KINDS[kind](kind, layers, way)
    inputs, archive, text = model.inputs(), os.path.join(folder, "model.pt"), os.path.join(folder, "model.mlir")
    os.makedirs(folder, exist_ok=True)
    torch.jit.trace(model, tuple(inputs.values()), check_trace=False).save(archive)
    ds_opt(archive, *(part for spec in input_arguments(inputs) for part in ("--input", spec)), "--phase=model", "-o", text)
    found = []
    for rows in (False, True):
        config = {"train_micro_batch_size_per_gpu": BATCH, "optimizer": {"type": "AdamW"},
                  "tensor_parallel": {"autotp_size": 2, "sequence_parallel": rows}}
        stage = compile_ranks(text, config, 2, folder).stages[0]
        found.append((exchanges_of(stage), whole_matrices(stage)))
    return found


def check(out, kind):
    """[complaints] about one kind of block."""
    pairs, complaints = PAIRS.get(kind, 2), []
    expected = ({"all_reduce": 2 * pairs}, {"all_gather": 2 * pairs, "reduce_scatter": 2 * pairs})
    one = count(os.path.join(out, f"{kind}-one"), kind, 1, WAYS[0])
    for number, way in enumerate(WAYS[:3] if kind in ("gemma", "mixer") else WAYS):
        two = count(os.path.join(out, f"{kind}-{number}"), kind, 2, way)
        for (first, _), (second, whole), wanted, name in zip(one, two, expected, ("norms whole", "norms cut")):
            added = {key: second[key] - first[key] for key in set(first) | set(second) if second[key] != first[key]}
            if added != wanted or whole:
                complaints.append(f"{kind}, {way.projections}{', flipped' * way.flipped}, {name}: a layer adds {added}, not {wanted}; "
                                  f"whole: {whole}")
    print(f"{kind}: {2 * pairs} sums a layer, or as many gathers and scattered sums" if not complaints else "\n".join(complaints), flush=True)
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    args = parser.parse_args()
    torch.manual_seed(0)
    return 1 if any([check(args.out, kind) for kind in args.kinds or KINDS]) else 0


if __name__ == "__main__":
    sys.exit(main())
