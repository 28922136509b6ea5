#!/usr/bin/python3
"""check_hf_plan.py - a model from config.json and the same model as TorchScript archive are one model.

    check_hf_plan.py gpt2 plain [llama tied ...] --out DIR [--dropout P]

Both are planned and trained for some steps from the same checkpoint: the plans must be equal but for names, the losses
within 1e-6 (the archive's rotary tables are PyTorch's own) and without these bit by bit.  What PyTorch 1.13 does not know, rms_norm, is written into the archive's code as
a newer PyTorch writes it.
"""

import argparse
import json
import os
import zipfile

import numpy as np
import torch

import check_hf
import compare
import hf_gated
import hf_models
import hf_parts
import hf_variants
from commands import finish, run

import safetensors_io

TRAINING = {"train_micro_batch_size_per_gpu": check_hf.BATCH, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
            "optimizer": {"type": "AdamW", "params": {"lr": 0.01}}}
# Which layer an op belongs to is where it was written; a config.json and an archive are asked with other words.
NAMES = ("at", "model", "name", "layer", "by_layer", "inputs", "made_by", "last_used_by", "why", "change")
DROPOUTS = {"gpt2": ["resid_pdrop", "embd_pdrop", "attn_pdrop"], "llama": ["attention_dropout"]}
# Their archives have PyTorch's tables of the rotation, which differ in the last bits.
ROTARY = ("llama", "modernbert", "mistral", "qwen2", *hf_gated.KINDS, "starcoder2", "nemotron", "phi", "gptj", "falcon", "cohere")
# Their archives have another plan, and losses are compared alone. t5: they hold the buckets of all pairs of positions, which config.json
# has computed. cohere, granite: logits are multiplied, where config.json multiplies what the head reads; cohere's norms are spelled out.
# stablelm 12b: each head is normalised and scaled by itself, and the heads are joined again, where config.json joins the weights.
OTHERWISE = (("t5", "plain"), ("cohere", "plain"), ("granite", "plain"), ("stablelm", "12b"))


def define_rms_norm():
    """An operator newer::rms_norm, which RMSNorm calls from here on; the library must stay alive."""
    library = torch.library.Library("newer", "DEF")
    library.define("rms_norm(Tensor input, int[] normalized_shape, Tensor weight, float eps) -> Tensor")
    library.impl("rms_norm", lambda x, shape, weight, eps: weight * (
        x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)), "CPU")
    hf_models.RMSNorm.forward = lambda self, x: torch.ops.newer.rms_norm(x, self.weight.shape, self.weight, self.eps)
    hf_parts.RMSNormPlus.forward = lambda self, x: torch.ops.newer.rms_norm(x, self.weight.shape, 1.0 + self.weight, self.eps)
    return library


def write_archive(model, batch, path):
    archive = torch.jit.trace(model, batch, check_trace=False)
    archive.save(path + ".old")
    with zipfile.ZipFile(path + ".old") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            if not name.endswith(".debug_pkl"):
                new.writestr(name, old.read(name).replace(b"ops.newer.rms_norm", b"torch.rms_norm"))


def spell_input(name, value):
    return f"{name}={'x'.join(str(size) for size in value.shape)}x{'f32' if value.is_floating_point() else 'i64'}"


def without_names(plan):
    """The plan without what only says where a number comes from."""
    if isinstance(plan, list):
        return [without_names(item) for item in plan]
    if not isinstance(plan, dict):
        return plan
    kept = {key: without_names(value) for key, value in plan.items() if key not in NAMES}
    if "by_layer" in plan:
        kept["layers"] = sum(entry["bytes"] for entry in plan["by_layer"])
    if "memory" in plan:
        kept["memory"] = [without_names(line) for line in merge_layers(plan["memory"])]
    return kept


def merge_layers(lines):
    """Activations of all layers in one line: what two layers share is made by either of them."""
    of_layers = [line for line in lines if line["name"].startswith("activations")]
    values = sum(int(line["source"].rsplit(": ", 1)[1]) for line in of_layers)
    return [line for line in lines if line not in of_layers] + [
        {"name": "activations", "bytes": sum(line["bytes"] for line in of_layers), "source": f"values: {values}"}]


def plan_and_train(folder, model, stem, inputs):
    """The plan, the log and the weights after some steps."""
    path = {key: os.path.join(folder, f"{stem}.{key}") for key in ("json", "dsx", "jsonl", "safetensors")}
    config = os.path.join(folder, "ds_config.json")
    with open(config, "w") as file:
        json.dump(TRAINING, file)
    run("ds-opt", os.path.join(folder, model), "--config", config, *inputs, "--weights", "none", "--plan-json",
        path["json"], "--emit=program", "-o", path["dsx"])
    run("ds-run", path["dsx"], "--data", os.path.join(folder, "data.safetensors"), "--weights",
        os.path.join(folder, "model.safetensors"), "--steps", 3, "--log-jsonl", path["jsonl"], "--save-weights",
        path["safetensors"])
    with open(path["json"]) as file:
        return without_names(json.load(file)), compare.read_log(path["jsonl"]), safetensors_io.load(path["safetensors"])


def differences(plans, logs, weights, tolerance):
    complaints = []
    if plans and plans[0] != plans[1]:
        complaints.append(f"plans differ:\n{json.dumps(plans[0], indent=1)}\n{json.dumps(plans[1], indent=1)}")
    for ours, theirs in zip(*logs):
        if compare.difference(ours["loss"], theirs["loss"]) > tolerance:
            complaints.append(f"step {ours['step']}: loss {ours['loss']} against {theirs['loss']}")
    if sorted(weights[0]) != sorted(weights[1]):
        complaints.append(f"names differ: {sorted(set(weights[0]) ^ set(weights[1]))}")
    if tolerance == 0.0:
        complaints += [f"{name}: differs" for name, value in weights[0].items()
                       if not np.array_equal(value, weights[1][name])]
    return complaints


def check(folder, family, variant, dropout):
    """[complaints] about one model, and what is to be said of it."""
    config = hf_variants.config_of(family, variant)
    config.update({key: dropout for key in DROPOUTS.get(family, [])})
    for key, fallback in (("activation_function", {"gpt2": "gelu_new", "gptj": "gelu_new", "gpt_neo": "gelu_new"}), ("hidden_act", {"phi": "gelu_new"})):
        if config.get(key, fallback.get(family)) == "gelu_new":
            config[key] = "gelu_pytorch_tanh"  # one operator; gelu_new is spelled out otherwise
    model, batch = check_hf.write_model(folder, config, 2 * check_hf.BATCH)
    batch = {name: value[:check_hf.BATCH] for name, value in batch.items()}
    write_archive(model, tuple(batch.values()), os.path.join(folder, "model.pt"))
    inputs = [part for name, value in batch.items() for part in ("--input", spell_input(name, value))]
    pairs = zip(plan_and_train(folder, "config.json", "built", []), plan_and_train(folder, "model.pt", "imported", inputs))
    plans, logs, weights = (tuple(pair) for pair in pairs)
    what = "two plans" if (family, variant) in OTHERWISE else "one plan"
    plans = () if (family, variant) in OTHERWISE else plans
    return (differences(plans, logs, weights, 1e-6 if family in ROTARY else 0.0),
            f"{what}, and after 3 steps the loss {logs[0][-1]['loss']} of both")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="FAMILY VARIANT")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--dropout", type=float, default=0.0)
    args = parser.parse_args()
    library = define_rms_norm()  # noqa: F841
    complaints, summary = [], ""
    for family, variant in zip(args.models[::2], args.models[1::2], strict=True):
        found, summary = check(os.path.join(args.out, f"{family}-{variant}"), family, variant, args.dropout)
        print(f"-- {family} {variant}: {summary}")
        complaints += [f"{family} {variant}: {text}" for text in found]
    finish(complaints, summary)


if __name__ == "__main__":
    main()
