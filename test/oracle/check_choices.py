#!/usr/bin/python3
"""check_choices.py - one choice of what is kept is never slower than one mechanism alone.

    check_choices.py --out DIR

Pairs of a model and a budget, each decided several times over the same estimate of what is live: by recomputation alone, by
copies to the host alone, and by both together.  The seconds are those of the busiest of compute and links, as `residency` of ds.decisions of the
module has them.  Together must never be slower, faster on most of the first ten pairs, and by a hundredth in their median.  Each line
ends with what is won over the best mechanism alone, and with what a choice at the solver's bound would win: no choice wins more.

Models on four ranks at stage 3 are also decided as DeepCompile's passes do one after another (arXiv 2504.09983, section 4): which
gathered parameters stay is decided behind all else, of the memory that is left.  One choice must never be slower than that, and
faster somewhere.

Two pairs are planned to the end, by all mechanisms and by recomputation alone: a simulated step that all have made must not be the
longer one, whatever the estimate said.
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
MODELS = {"gpt2": (GPT, 8, 1024, 1), "narrow": (NARROW, 16, 1024, 1), "llama": (LLAMA, 2, 2048, 1),
          "gpt2 on 4": (GPT, 4, 1024, 4), "llama on 4": (LLAMA, 1, 2048, 4)}
CLUSTER, SLOW_LINK = "h100-80g", "4x-rtx3090"  # on whose link gathers are dear
# Shares of what the fastest choice takes beside what none can give up. A wide model hides all of its copies behind its products.
SHARES = {"gpt2": [0.5, 0.4, 0.3, 0.2], "narrow": [0.5, 0.4, 0.3, 0.2], "llama": [0.5, 0.2],
          "gpt2 on 4": [0.8, 0.6, 0.4], "llama on 4": [0.8, 0.6, 0.4]}
FINISHED = [("gpt2", 0.2), ("llama", 0.4)]
MODES = {"both": ("choose", "calls=true"), "recompute": ("keep", "calls=true"), "offload": ("choose", "calls=false"),
         "in turn": ("choose", "calls=true apart=true")}


def cluster_of(name):
    return CLUSTER if MODELS[name][3] == 1 else SLOW_LINK


def shard(name, out):
    """The model of `name` with its training, in phase fused."""
    model, batch, length, ranks = MODELS[name]
    config, training, ir = (os.path.join(out, f"{name}.{end}") for end in ("config.json", "ds.json", "mlir"))
    with open(config, "w") as file:
        json.dump(model, file)
    with open(training, "w") as file:
        json.dump({"train_micro_batch_size_per_gpu": batch, "bf16": {"enabled": True}, "loss_chunks": 8,
                   "zero_optimization": {"stage": 3 if ranks > 1 else 0}, "compile": {"offload_activation": "auto"}}, file)
    subprocess.run(["ds-opt", config, "--config", training, "--input", f"input_ids={batch}x{length}xi64", "--cluster", cluster_of(name),
                    "--ranks", str(ranks), "--emit=ir", "--phase=fused", "-o", ir], check=True, stderr=subprocess.DEVNULL)
    with open(ir) as file:
        return file.read()


def decide(name, text, mode, memory):
    """What is expected of `mode` within `memory` bytes: its figures by name."""
    activations, options = MODES[mode]
    text = text.replace("activations = choose", f"activations = {activations}")
    done = subprocess.run(["ds-opt", "-", f"--ds-set-machine=cluster={cluster_of(name)} memory={memory or 1 << 60}", f"--ds-rematerialize-cheap={options}"], input=text,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_choices.py: {done.stderr}")
    found = done.stdout[done.stdout.index("residency = {"):].splitlines()[0]

    def figure(key):
        printed = re.search(rf"\b{key} = (\S+?)[ ,}}]", found)
        return printed.group(1) if printed else "0"  # the default, which is not printed

    return {"fits": "fits = true" in found, "bytes": int(figure("expected_bytes")), "seconds": float(figure("expected_seconds")),
            "bound": float(figure("bound_seconds"))}


def finished_step(name, text, activations, memory, out):
    """Seconds of the simulated step of the plan that fits `memory`, infinite where none does."""
    plan = os.path.join(out, f"{name}.plan.json")
    done = subprocess.run(["ds-opt", "-", "--cluster", cluster_of(name), "--ranks", str(MODELS[name][3]), "--memory", str(memory),
                           "--emit=plan", "--plan-json", plan, "-o", os.devnull],
                          input=text.replace("activations = choose", f"activations = {activations}"),
                          capture_output=True, text=True)
    if done.returncode == 4:
        return float("inf")
    if done.returncode != 0:
        sys.exit(f"check_choices.py: {done.stderr}")
    with open(plan) as file:
        return json.load(file)["predicted"]["step_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    complaints, gains, turns = [], [], []
    for name in MODELS:
        text = shard(name, args.out)
        free, least = decide(name, text, "both", 0), decide(name, text, "both", 1)
        for share in SHARES[name]:
            memory = least["bytes"] + int(share * (free["bytes"] - least["bytes"]))
            found = {mode: decide(name, text, mode, memory) for mode in MODES if mode != "in turn" or MODELS[name][3] > 1}
            if not found["both"]["fits"]:
                complaints.append(f"{name}, {share:.0%}: does not fit though less does")
            others = {mode: figures["seconds"] if figures["fits"] else float("inf")
                      for mode, figures in found.items() if mode != "both"}
            gain = min(others.values()) / found["both"]["seconds"] - 1
            most = min(others.values()) / found["both"]["bound"] - 1
            print(f"{name}, {share:.0%}: {found['both']['seconds']:.4f} s, " +
                  ", ".join(f"{mode} {seconds:.4f} s" for mode, seconds in others.items()) + f": {gain:.1%} of {most:.1%}", flush=True)
            if "in turn" in others:
                turns.append(others["in turn"] / found["both"]["seconds"] - 1)
            else:
                gains.append(gain)
            if (name, share) in FINISHED:
                joint, alone = (finished_step(name, text, activations, memory, args.out) for activations in ("choose", "keep"))
                print(f"{name}, {share:.0%}, planned: {joint:.4f} s, recompute {alone:.4f} s: {alone / joint - 1:.1%}", flush=True)
                if joint > alone:
                    complaints.append(f"{name}, {share:.0%}: planned, slower than recomputation alone")
            if gain < -1e-9:
                complaints.append(f"{name}, {share:.0%}: slower than {min(others, key=others.get)}")
    if sum(gain > 0 for gain in gains) < 6:
        complaints.append(f"faster on {sum(gain > 0 for gain in gains)} of {len(gains)} pairs alone")
    if statistics.median(gains) < 0.01:
        complaints.append(f"faster by {statistics.median(gains):.1%} in the median alone")
    if max(turns) <= 0:
        complaints.append("nowhere faster than decisions in turn")
    finish(complaints, f"{len(gains) + len(turns)} choices are never slower than one mechanism alone")


if __name__ == "__main__":
    main()
