#!/usr/bin/python3
"""check_hf_shards.py - start a GPT-2 from shards as they are published, and compare with PyTorch.

The checkpoint has names without their first component, half-precision floats, the causal masks of old checkpoints, and
is cut into two files with an index.
"""

import argparse
import json
import os
import shutil

import numpy as np

import check_hf
import compare
import hf_variants
import train_oracle
from commands import finish

import safetensors_io


def write_shards(folder, weights):
    """model-0000N-of-00002.safetensors and the index."""
    names = sorted(weights)
    half = len(names) // 2
    index = {}
    for number, part in enumerate((names[:half], names[half:]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        safetensors_io.save(os.path.join(folder, file), {name: weights[name] for name in part})
        index.update({name: file for name in part})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": 1}, "weight_map": index}, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    config = hf_variants.config_of("gpt2", "plain")
    shutil.rmtree(args.out, ignore_errors=True)  # an earlier run's weights would be read as the model's
    model, batch = check_hf.write_model(args.out, config)
    os.remove(os.path.join(args.out, "model.safetensors"))
    model.half().float()  # what the checkpoint can say
    weights = {name.replace("transformer.", ""): value.detach().numpy().astype(np.float16)
               for name, value in train_oracle.all_parameters(model) if name != "lm_head.weight"}
    for layer in range(config["n_layer"]):
        weights[f"h.{layer}.attn.bias"] = np.tril(np.ones((1, 1, 16, 16), dtype=np.float32))
        weights[f"h.{layer}.attn.masked_bias"] = np.array(-1e4, dtype=np.float32)
    write_shards(args.out, weights)
    loss, _ = check_hf.step_of(model, batch)
    step, after = check_hf.compile_and_run(args.out, "config.json", "model")
    complaints = []
    if not compare.difference(step["loss"], loss) < 1e-5:
        complaints.append(f"loss {step['loss']} against {loss}")
    published = {name for name, _ in train_oracle.all_parameters(model)}
    if set(after) != published:
        complaints.append(f"saved under other names: {sorted(set(after) ^ published)}")
    finish(complaints, f"loss {loss:.6f} from shards")


if __name__ == "__main__":
    main()
