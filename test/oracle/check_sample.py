#!/usr/bin/python3
"""check_sample.py - the tokens that a program chooses against those that PyTorch does.

    check_sample.py FAMILY --out DIR

The likeliest token each time, from a checkpoint, in several steps: behind prompts of one token and of many, and beyond a
sample's length, where the last tokens of the text are taken from position 0 on.  The program has two samples in a
micro-batch and, once more, its loss in two pieces; then two ranks that share all parameters (ZeRO 3): the same tokens, drawn
at a temperature too.
"""

import argparse
import json
import os
import shutil

import torch

import check_hf
import hf_models
import hf_variants
from check_archive import write_config
from commands import finish, run

LENGTH = 24  # beyond the 16 positions of a sample
PROMPTS = [[3], [5, 60, 7, 8, 11], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]]
DRAWN = ("--temperature", "3", "--top-k", "20", "--seed", "4")


def greedy(model, prompt, positions):
    """The tokens, and by how much the likeliest was ahead of the next at the least."""
    tokens, lead = list(prompt), float("inf")
    with torch.no_grad():
        for _ in range(LENGTH):
            window = torch.tensor([tokens[-positions:]])
            logits = model(window, None)[0, -1]
            best = torch.topk(logits, 2)
            lead = min(lead, float(best.values[0] - best.values[1]))
            tokens.append(int(best.indices[0]))
    return tokens, lead


def sample(folder, program, prompt, *options):
    log = os.path.join(folder, "sample.jsonl")
    if os.path.exists(log):
        os.remove(log)
    text = run("ds-run", program, "--weights", folder, "--sample-tokens", ",".join(map(str, prompt)), "--length", LENGTH,
               "--log-jsonl", log, *options)
    with open(log) as file:
        record = json.load(file)["sample"]
    printed = [int(token) for token in next(line for line in text.splitlines() if line[0].isdigit()).split(",")]
    assert printed == record["prompt_tokens"] + record["tokens"], (printed, record)
    return printed


def compile_model(folder, name, *extra):
    config, _ = write_config(folder, check_hf.BATCH)
    program = os.path.join(folder, name + ".dsx")
    run("ds-opt", os.path.join(folder, "config.json"), "--config", config, "--entry", "logits", *extra, "--emit=program",
        "-o", program)
    return program


def check(folder, config):
    model, _ = check_hf.write_model(folder, config)
    hf_models.loss_of = lambda logits, labels: logits
    model.eval()
    one = compile_model(folder, "one")
    pieces = compile_model(folder, "pieces", "--loss-chunks", 2)
    two = compile_model(folder, "two", "--ranks", 2, "--set", "zero_optimization.stage=3", "--set",
                        "zero_optimization.stage3_param_persistence_threshold=0", "--set",
                        "zero_allow_untested_optimizer=true")
    complaints, written = [], set()
    for prompt in PROMPTS:
        expected, lead = greedy(model, prompt, hf_variants.positions(config))
        written.update(expected[len(prompt):])
        if lead < 1e-5:
            complaints.append(f"{prompt}: two tokens are equally likely, by {lead}")
        for program in (one, pieces):
            if (got := sample(folder, program, prompt, "--temperature", 0)) != expected:
                complaints.append(f"{program}: {got}, but PyTorch {expected}")
    if len(written) < 3:
        complaints.append(f"the texts say too little: {written}")
    drawn = sample(folder, one, PROMPTS[1], *DRAWN)
    if sample(folder, one, PROMPTS[1], *DRAWN) != drawn:
        complaints.append("the same seed draws other tokens")
    if sample(folder, one, PROMPTS[1], *DRAWN[:-1], 5) == drawn:
        complaints.append("another seed draws the same tokens")
    if (got := sample(folder, two, PROMPTS[1], "--ranks", 2, *DRAWN)) != drawn:
        complaints.append(f"two ranks draw {got}, one {drawn}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=sorted(hf_variants.FAMILIES))
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    # A tied head likes the token best that it has read last: such a text tells little.
    variants = hf_variants.FAMILIES[args.family][1]
    config = hf_variants.config_of(args.family, "untied" if "untied" in variants else "plain")
    finish(check(args.out, config), "the same tokens")


if __name__ == "__main__":
    main()
