#!/usr/bin/python3
"""check_choices.py - one choice of what is kept is never slower than one mechanism alone.

    check_choices.py --out DIR

Ten pairs of a model and a budget, each decided three times over the same estimate of what is live: by recomputation alone, by
copies to the host alone, and by both together.  The seconds are those of the busiest of compute and links, as ds.residency of the
module has them.  Together must never be slower, faster on most pairs, and by a fiftieth in the median.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

from commands import finish

GPT = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
LLAMA = {"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5504, "num_hidden_layers": 16,
         "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False}
NARROW = {**GPT, "n_embd": 512, "n_head": 8}
MODELS = {"gpt2": (GPT, 8, 1024), "narrow": (NARROW, 16, 1024), "llama": (LLAMA, 2, 2048)}
CLUSTER = "h100-80g"
# Shares of what the fastest choice takes beside what none can give up. A wide model hides all of its copies behind its products.
SHARES = {"gpt2": [0.5, 0.4, 0.3, 0.2], "narrow": [0.5, 0.4, 0.3, 0.2], "llama": [0.5, 0.2]}
MODES = {"both": ("choose", "true"), "recompute": ("keep", "true"), "offload": ("choose", "false")}


def shard(name, out):
    """The model of `name` with its training, in phase sharded."""
    model, batch, length = MODELS[name]
    config, training, ir = (os.path.join(out, f"{name}.{end}") for end in ("config.json", "ds.json", "mlir"))
    with open(config, "w") as file:
        json.dump(model, file)
    with open(training, "w") as file:
        json.dump({"train_micro_batch_size_per_gpu": batch, "bf16": {"enabled": True}, "loss_chunks": 8,
                   "compile": {"offload_activation": "auto"}}, file)
    subprocess.run(["ds-opt", config, "--config", training, "--input", f"input_ids={batch}x{length}xi64", "--cluster", CLUSTER,
                    "--ranks", "1", "--emit=ir", "--phase=sharded", "-o", ir], check=True, stderr=subprocess.DEVNULL)
    with open(ir) as file:
        return file.read()


def decide(text, mode, memory):
    """What is expected of `mode` within `memory` bytes: its figures by name."""
    activations, calls = MODES[mode]
    text = text.replace('activations = "choose"', f'activations = "{activations}"')
    done = subprocess.run(["ds-opt", "-", f"--ds-rematerialize-cheap=cluster={CLUSTER} memory={memory} calls={calls}"], input=text,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_choices.py: {done.stderr}")
    found = done.stdout[done.stdout.index("ds.residency"):].splitlines()[0]

    def figure(name):
        return re.search(rf"\b{name} = (\S+?)[ ,}}]", found).group(1)

    return {"fits": figure("fits") == "true", "bytes": int(figure("expected_bytes")), "seconds": float(figure("expected_seconds"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    complaints, gains = [], []
    for name in MODELS:
        text = shard(name, args.out)
        free, least = decide(text, "both", 0), decide(text, "both", 1)
        for share in SHARES[name]:
            memory = least["bytes"] + int(share * (free["bytes"] - least["bytes"]))
            found = {mode: decide(text, mode, memory) for mode in MODES}
            if not found["both"]["fits"]:
                complaints.append(f"{name}, {share:.0%}: does not fit though less does")
            alone = [found[mode]["seconds"] if found[mode]["fits"] else float("inf") for mode in ("recompute", "offload")]
            gain = min(alone) / found["both"]["seconds"] - 1
            print(f"{name}, {share:.0%}: {found['both']['seconds']:.4f} s, recomputation alone {alone[0]:.4f} s, host alone "
                  f"{alone[1]:.4f} s: {gain:.1%}", flush=True)
            gains.append(gain)
            if gain < -1e-9:
                complaints.append(f"{name}, {share:.0%}: slower than one mechanism alone")
    if sum(gain > 0 for gain in gains) < 6:
        complaints.append(f"faster on {sum(gain > 0 for gain in gains)} of {len(gains)} pairs alone")
    if statistics.median(gains) < 0.02:
        complaints.append(f"faster by {statistics.median(gains):.1%} in the median alone")
    finish(complaints, f"{len(gains)} choices are never slower than one mechanism alone")


if __name__ == "__main__":
    main()
