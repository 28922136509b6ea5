#!/usr/bin/python3
"""check_published.py - three steps of tiny models against those that the families' own published code made.

    check_published.py FIXTURE --out DIR FAMILY...

FIXTURE is what published_losses.py wrote on a machine that has transformers. From its config.json and values that follow from
names, in fp32 and without dropout: losses to 1e-6 and gradient norms to 1e-5, relatively.
"""

import argparse
import json
import os
import re
import sys

import compare
import published_losses
from commands import finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import safetensors_io  # noqa: E402


# Names that the installed version of transformers gives parameters, where published files have others: it renames them when it loads.
IN_FILES = {"gpt_neox": [("^lm_head.weight", "embed_out.weight")],
            "vit": [("^vit.layers", "vit.encoder.layer"), ("attention.q_proj", "attention.attention.query"),
                    ("attention.k_proj", "attention.attention.key"), ("attention.v_proj", "attention.attention.value"),
                    ("attention.o_proj", "attention.output.dense"), ("mlp.fc1", "intermediate.dense"), ("mlp.fc2", "output.dense")]}


def in_file(family, name):
    for pattern, replacement in IN_FILES.get(family, []):
        name = re.sub(pattern, replacement, name)
    return name


def write_job(folder, entry, optimizer):
    """config.json, weights by the rule, data, ds_config.json; nothing is clipped."""
    os.makedirs(folder, exist_ok=True)
    weights = {in_file(entry["config"]["model_type"], name): published_losses.values(name, shape)
               for name, shape in entry["parameters"].items()}
    safetensors_io.save(os.path.join(folder, "model.safetensors"), weights)
    safetensors_io.save(os.path.join(folder, "data.safetensors"), published_losses.batch_of(entry["head"]))
    training = {"train_micro_batch_size_per_gpu": published_losses.ROWS, "gradient_clipping": 0.0,
                "optimizer": {"type": "AdamW", "params": optimizer}}
    for name, value in (("config.json", entry["config"]), ("ds_config.json", training)):
        with open(os.path.join(folder, name), "w") as file:
            json.dump(value, file)


def check(folder, entry, optimizer):
    """[complaints] about one family."""
    write_job(folder, entry, optimizer)
    log, program = os.path.join(folder, "log.jsonl"), os.path.join(folder, "model.dsx")
    shape = f"{published_losses.ROWS}x{published_losses.LENGTH}xi64"
    tokens = {name: value for name, value in published_losses.batch_of(entry["head"]).items() if value.ndim == 2}
    names = [] if "image_size" in entry["config"] else tokens
    inputs = [part for name in names for part in ("--input", f"{name}={shape}")]
    run("ds-opt", os.path.join(folder, "config.json"), "--config", os.path.join(folder, "ds_config.json"), *inputs,
        "--emit=program", "-o", program)
    run("ds-run", program, "--data", os.path.join(folder, "data.safetensors"), "--weights", folder,
        "--steps", len(entry["losses"]), "--log-jsonl", log)
    complaints = []
    for key, name, bound in (("loss", "losses", 1e-6), ("grad_norm", "gradient_norms", 1e-5)):
        for step, (ours, theirs) in enumerate(zip((record[key] for record in compare.read_log(log)), entry[name], strict=True)):
            if not compare.difference(ours, theirs) < bound:
                complaints.append(f"{name} of step {step + 1}: {ours} against {theirs}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fixture")
    parser.add_argument("families", nargs="+")
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    with open(args.fixture) as file:
        fixture = json.load(file)
    complaints = []
    for family in args.families:
        found = check(os.path.join(args.out, family), fixture["families"][family], fixture["optimizer"])
        print(f"{family}: {'as published' if not found else 'differs'}")
        complaints += [f"{family}: {text}" for text in found]
    finish(complaints, f"{len(args.families)} families as published")


if __name__ == "__main__":
    main()
