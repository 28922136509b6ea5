#!/usr/bin/python3
"""check_export.py - what ds-ckpt export writes is the model: PyTorch loads it, and a run starts from it.

    check_export.py gpt --out DIR
    check_export.py hf FAMILY/VARIANT... --out DIR

gpt: a bf16 run of two ranks at ZeRO 2; its masters must arrive to the bit, in one file or in many, rounded as PyTorch
rounds, and load into the example's module with strict=True.  hf: a program of a config.json; the folder must have the
published names, load with strict=True, and ds-run --weights must start from it with the loss that --resume goes on with.
Its config.json is the one that the program was made of, by way of the program and the checkpoint, to the byte, and the
folder alone makes the program anew; a program of an archive has none.
"""

import argparse
import json
import os
import shutil
import sys

import numpy as np
import torch

import check_hf
import checkpoint_io
import compare
import hf_models
import hf_variants
from check_archive import OPTIMIZERS
from commands import finish, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import export  # noqa: E402
import gpt  # noqa: E402
import safetensors_io  # noqa: E402


def load_folder(folder):
    """{name: array} of a model's folder, as Hugging Face's loaders find the files."""
    index = os.path.join(folder, "model.safetensors.index.json")
    if not os.path.exists(index):
        return safetensors_io.load(os.path.join(folder, "model.safetensors"))
    with open(index) as file:
        weight_map = json.load(file)["weight_map"]
    shards = {name: safetensors_io.load(os.path.join(folder, name)) for name in set(weight_map.values())}
    tensors = {name: shards[shard][name] for name, shard in weight_map.items()}
    assert sum(map(len, shards.values())) == len(tensors), "a file has a tensor that the index lacks"
    return tensors


def export_to(path, out, *options):
    shutil.rmtree(out, ignore_errors=True)
    run("ds-ckpt", "export", path, out, *options)
    return load_folder(out)


def load_strictly(model, tensors):
    """Loads with strict=True; constants that a module keeps beside its weights are none of them, as Hugging Face has it."""
    for module in model.modules():
        module._non_persistent_buffers_set.update(name for name in module._buffers if name == "future")
    model.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()}, strict=True)
    return model


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file)
    return path


def train_gpt(out):
    """A checkpoint of two ranks, and the loss of the step behind it."""
    archive, data, inputs = export.main(["gpt", "--out", out, "--data", "16", "--batch", "2"])
    config = write_json(os.path.join(out, "config.json"), {
        "train_batch_size": 4, "bf16": {"enabled": True}, "optimizer": OPTIMIZERS["AdamW"],
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 4096}})
    program, saves = os.path.join(out, "gpt.dsx"), os.path.join(out, "run")
    run("ds-opt", archive, "--config", config, "--ranks", 2, *(part for text in inputs for part in ("--input", text)),
        "--emit=program", "-o", program)
    shutil.rmtree(saves, ignore_errors=True)
    run("ds-run", program, "--ranks", 2, "--data", data, "--steps", 3, "--save", saves)
    return os.path.join(saves, "step-3")


def check_gpt(out):
    path = train_gpt(out)
    manifest, kept = checkpoint_io.load(path)
    parameters = {entry["name"]: entry for entry in manifest["tensors"] if entry["role"] in ("parameter", "buffer")}
    exact = {name: kept[name] for name in parameters}
    complaints = [f"{name}: {entry['dtype']}, not the master" for name, entry in parameters.items() if entry["dtype"] != "F32"]
    folder = os.path.join(out, "exported")

    def differences(what, tensors, expected):
        return [f"{what}: {name} differs" for name in checkpoint_io.differences(tensors, expected)]

    plain = export_to(path, folder)
    if os.path.exists(os.path.join(folder, "config.json")):
        complaints.append("a program of an archive has a config.json")
    complaints += differences("one file", plain, exact)
    complaints += differences("many files", export_to(path, folder, "--max-shard-bytes", "20KB"), exact)
    if len(os.listdir(folder)) < 4:
        complaints.append(f"--max-shard-bytes 20KB: {sorted(os.listdir(folder))}")
    for option, kind in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        rounded = {name: torch.from_numpy(value).to(kind).float().numpy() for name, value in exact.items()}
        found = {name: value.astype(np.float32) for name, value in export_to(path, folder, "--dtype", option).items()}
        complaints += differences(option, found, rounded)
    tied = export_to(path, folder, "--tied")
    model = load_strictly(gpt.GPT(gpt.SIZES["tiny"]), tied)
    complaints += differences("module", {name: value.detach().numpy() for name, value in model.named_parameters()}, exact)
    if set(tied) - set(plain) != {"head.weight"} or set(plain) - set(tied):
        complaints.append(f"tied names: {sorted(set(tied) ^ set(plain))}")
    finish(complaints, f"{len(exact)} tensors of a GPT arrive")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check_folder_alone(at, settings):
    """[complaints] about a program that is made of the exported folder, through the text of the module."""
    text, again, log = (at["m.dsx"] + end for end in (".mlir", ".again.dsx", ".again.jsonl"))
    run("ds-opt", at["out"], "--config", settings, "--emit=ir", "--phase=step", "-o", text)
    run("ds-opt", text, "--config", settings, "--emit=program", "-o", again)
    run("ds-run", again, "--data", at["data.safetensors"], "--weights", at["out"], "--steps", 1, "--log-jsonl", log,
        "--save", at["run"] + "-again")
    complaints = []
    if compare.read_log(log)[0]["loss"] != compare.read_log(at["b.jsonl"])[0]["loss"]:
        complaints.append("the program of the exported folder has another loss")
    other = write_json(at["m.dsx"] + ".json", {"model_type": "other"})
    for options, expected in (((), at["config.json"]), (("--config", other), other)):
        export_to(at["run"] + "-again", at["out"] + "-again", *options)
        if read(os.path.join(at["out"] + "-again", "config.json")) != read(expected):
            complaints.append(f"export {options}: config.json is not {expected}")
    return complaints


def check_variant(folder, config):
    """[complaints] about a program of a config.json whose run is saved, exported and begun anew."""
    check_hf.write_model(folder, config)  # as many samples as a batch has: every step reads the same
    settings = write_json(os.path.join(folder, "ds_config.json"), {
        "train_micro_batch_size_per_gpu": check_hf.BATCH, "optimizer": OPTIMIZERS["AdamW"]})
    names = ("config.json", "m.dsx", "run", "data.safetensors", "out", "a.jsonl", "b.jsonl")
    at = {name: os.path.join(folder, name) for name in names}
    run("ds-opt", at["config.json"], "--config", settings, "--emit=program", "-o", at["m.dsx"])
    train = ("ds-run", at["m.dsx"], "--data", at["data.safetensors"])
    run(*train, "--weights", folder, "--steps", 2, "--save", at["run"])
    exported = export_to(at["run"], at["out"], "--max-shard-bytes", "24KiB")
    run(*train, "--resume", at["run"], "--steps", 3, "--log-jsonl", at["a.jsonl"])
    run(*train, "--weights", at["out"], "--steps", 1, "--log-jsonl", at["b.jsonl"])
    on, anew = (compare.read_log(at[name])[0]["loss"] for name in ("a.jsonl", "b.jsonl"))
    complaints = [] if on == anew else [f"--resume goes on with loss {on}, --weights starts with {anew}"]
    if read(os.path.join(at["out"], "config.json")) != read(at["config.json"]):
        complaints.append("config.json is another")
    complaints += check_folder_alone(at, settings)
    model = hf_models.make(config, 0)
    published = {name for name, _ in model.named_parameters()}  # each tensor once
    if set(exported) != published:
        complaints.append(f"names: {sorted(set(exported) ^ published)}")
    load_strictly(model, export_to(at["run"], at["out"], "--tied"))
    before = safetensors_io.load(os.path.join(folder, "model.safetensors"))
    if all((exported[name] == before[name]).all() for name in exported):
        complaints.append("nothing was trained")
    return complaints


def check_families(out, variants):
    complaints = []
    for text in variants:
        family, variant = text.split("/")
        found = check_variant(os.path.join(out, family, variant), hf_variants.config_of(family, variant))
        complaints += [f"{text}: {complaint}" for complaint in found]
    finish(complaints, f"{len(variants)} folders are what Hugging Face names them")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["gpt", "hf"])
    parser.add_argument("variants", nargs="*")
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    os.makedirs(args.out)
    if args.what == "gpt":
        check_gpt(args.out)
    else:
        check_families(args.out, args.variants)


if __name__ == "__main__":
    main()
