#!/usr/bin/python3
"""check_foreign.py - checkpoints of DeepSpeed and Hugging Face read without them, bit for bit.

    check_foreign.py values|refusals|damage --dump ds-foreign-dump --out DIR

`values` writes folders of every kind (deepspeed_files.py) and compares all that ds-foreign-dump reads of them with the
tensors that were cut; stages 1 to 3 also with a reading of the same files by zero_reference.py, which puts them
together as DeepSpeed's own script does. `refusals` makes folders wrong one by one and looks at the messages; `damage`
puts wrong values anywhere and wants each folder read or refused.
"""

import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import sys

import torch

import deepspeed_files as files
import zero_reference
from commands import finish
from foreign_edits import change, damage, folder_edits, optimizer_edits, other_edits

DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.bool: "BOOL", torch.int64: "I64",
          torch.uint8: "U8", torch.float64: "F64"}


def raw(tensor):
    """The bytes of a tensor in row-major order; numpy has no bfloat16."""
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.contiguous().view(torch.int16)
    return tensor.detach().contiguous().numpy().tobytes()


class Dump:
    """What ds-foreign-dump says of a folder."""

    def __init__(self, args, folder, chunk=0):
        out = os.path.join(args.out, "elements")
        done = subprocess.run([args.dump, folder, str(chunk), out], capture_output=True, text=True)
        self.code, self.message = done.returncode, done.stderr
        self.view = json.loads(done.stdout) if done.returncode == 0 else {}
        with open(out, "rb") as file:
            elements = file.read()
        self.bytes, place = {}, 0
        sizes = {"F32": 4, "F16": 2, "BF16": 2, "BOOL": 1, "I64": 8, "U8": 1, "F64": 8}
        for tensor in self.view.get("tensors", []):
            size = files.numel(tensor["shape"]) * sizes[tensor["dtype"]]
            self.bytes[tensor["name"], tensor["slot"]] = elements[place:place + size]
            place += size


def compare(dump, expected, what):
    """`expected`: (name, slot) -> (tensor, role)."""
    if dump.code != 0:
        return [f"{what}: {dump.message}"]
    complaints = []
    found = {(tensor["name"], tensor["slot"]): tensor for tensor in dump.view["tensors"]}
    if set(found) != set(expected):
        complaints.append(f"{what}: tensors {sorted(set(found) ^ set(expected))} are too many or too few")
    for key in set(found) & set(expected):
        tensor, role = expected[key]
        right = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "role": role}
        wrong = {name: found[key][name] for name in right if found[key][name] != right[name]}
        if wrong:
            complaints.append(f"{what}: {key} is {wrong}, not {right}")
        if dump.bytes[key] != raw(tensor):
            complaints.append(f"{what}: {key} has other elements")
    return complaints


def expected_of(training):
    expected = {(name, slot): (tensor, "parameter") for name, slots in training.states.items()
                for slot, tensor in slots.items()}
    expected.update({(name, "value"): (tensor, "frozen") for name, tensor in training.frozen.items()})
    expected.update({(name, "value"): (tensor, "buffer") for name, tensor in training.buffers.items()})
    return expected


def check_folder(args, what, root, training, description, scaled=True):
    complaints = []
    for chunk in (0, 5):  # whole, and in pieces that end anywhere
        dump = Dump(args, root, chunk)
        complaints += compare(dump, expected_of(training), f"{what}, {chunk}")
    if complaints:
        return complaints
    view = dump.view
    right = {"description": description, "optimizer": "AdamW", "tied": [["embed.weight", "head.weight"]],
             "scheduler": {"last_batch_iteration": 11, "base_lrs[0]": 0.001, "base_lrs[1]": 0.002, "_last_lr[0]": 0.0005,
                           "_last_lr[1]": 0.001}}
    complaints += [f"{what}: {name} is {view[name]}" for name, value in right.items() if view[name] != value]
    progress = {"steps": 12, "skippedSteps": 2, "samples": 96, "tokens": 98304, "optimizerSteps": 10}
    if "ZeRO-3 universal" in what:
        del progress["optimizerSteps"]  # the conversion drops it
    if view["progress"] != progress:
        complaints.append(f"{what}: progress {view['progress']}")
    scale = view.get("lossScale", {})
    if scaled and (scale.get("scale") != 4096 or not scale["isDynamic"] or scale["numbers"]["scale_window"] != 1000):
        complaints.append(f"{what}: loss scale {scale}")
    return complaints


def check_zero(args):
    complaints = []
    for ranks in (1, 2, 3):
        for stage in (1, 2, 3):
            what, root = f"ZeRO {stage} of {ranks} ranks", os.path.join(args.out, f"zero{stage}x{ranks}")
            training = files.Training(10 * stage + ranks, torch.bfloat16 if stage == 1 else torch.float16)
            if stage == 3:
                files.write_sliced(root, training, ranks)
            else:
                files.write_flat(root, training, stage, ranks)
            complaints += check_folder(args, what, root, training, what)
            dump = Dump(args, os.path.join(root, "global_step12"))
            for name, tensor in zero_reference.fp32_state_dict(os.path.join(root, "global_step12")).items():
                name = training.tied.get(name, name)
                found = dump.bytes.get((name, "value"))
                if name in training.buffers:
                    tensor = tensor.to(training.buffers[name].dtype)  # DeepSpeed's script widens buffers
                if found != raw(tensor):
                    complaints.append(f"{what}: {name} is not what zero_to_fp32 makes of it")
    training = files.Training(77, torch.bfloat16)
    for what, options in (("elastic", {"elastic": True}), ("bf16", {"prefix": "bf16_"}), ("aliases", {"shared": False})):
        root = os.path.join(args.out, what)
        files.write_flat(root, training, 1, 3, **options)
        complaints += check_folder(args, what, root, training, "ZeRO 1 of 3 ranks", scaled=what != "bf16")
    return complaints


def check_universal(args):
    complaints = []
    for sliced in (False, True):
        what = "ZeRO-3 universal" if sliced else "universal"
        root, training = os.path.join(args.out, what), files.Training(5)
        files.write_universal(root, training, sliced)
        complaints += check_folder(args, what, root, training, "universal checkpoint")
        notes = {(tensor["name"], tensor["slot"]): tensor["notes"] for tensor in Dump(args, root).view.get("tensors", [])}
        right = {} if sliced else {"cat_dim": 0, "vocab_tensor": 1}
        if notes.get(("embed.weight", "exp_avg")) != right:
            complaints.append(f"{what}: notes {notes.get(('embed.weight', 'exp_avg'))}")
    return complaints


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw(tensor))]}
        data += raw(tensor)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def odd_weights():
    base = torch.randn(6, 4)
    return {"a": torch.randn(3, 5), "half": torch.randn(4).half(), "brain": torch.randn(2, 2).bfloat16(),
            "turned": base.t(), "column": base[:, 1], "same": base.t()[:2], "counts": torch.arange(5),
            "flags": torch.tensor([True, False]), "one": torch.tensor(3.5), "none": torch.empty(0, 4),
            "wide": torch.randn(2).double(), "parameter": torch.nn.Parameter(torch.randn(3)), "bytes": torch.arange(3).byte()}


def check_weights(args):
    complaints, weights = [], odd_weights()
    expected = {(name, "value"): (tensor, "parameter") for name, tensor in weights.items()}
    for kind in ("one file", "shards", "safetensors"):
        root = os.path.join(args.out, kind)
        os.makedirs(root)
        tied = {**weights, "again": weights["a"]}
        if kind == "one file":
            torch.save(tied, os.path.join(root, "pytorch_model.bin"))
        elif kind == "safetensors":
            write_safetensors(os.path.join(root, "model.safetensors"), weights)
            torch.save({}, os.path.join(root, "pytorch_model.bin"))  # is not looked at
        else:
            index = {name: f"pytorch_model-0000{1 + (name > 'h')}-of-00002.bin" for name in tied}
            for shard in set(index.values()):
                torch.save({name: tied[name] for name in tied if index[name] == shard}, os.path.join(root, shard))
            with open(os.path.join(root, "pytorch_model.bin.index.json"), "w") as file:
                json.dump({"metadata": {}, "weight_map": index}, file)
        for chunk in (0, 3):
            dump = Dump(args, root, chunk)
            complaints += compare(dump, expected, f"{kind}, {chunk}")
            if dump.view.get("tied") != ([] if kind == "safetensors" else [["a", "again"]]):
                complaints.append(f"{kind}: tied {dump.view.get('tied')}")
    return complaints


def check_refusals(args):
    complaints, trace = [], os.path.join(args.out, "executed")
    right = os.path.join(args.out, "right")
    files.write_flat(right, files.Training(1), 2, 2)
    files.write_sliced(os.path.join(args.out, "sliced"), files.Training(1), 2)
    files.write_universal(os.path.join(args.out, "universal"), files.Training(1))
    cases = [(right, lambda root, name=name, edit=edit: change(root, f"global_step12/{name}", edit), code, text)
             for name, edit, code, text in optimizer_edits(trace)]
    cases += [(os.path.join(args.out, start), lambda root, name=name, edit=edit: change(root, name, edit), code, text)
              for start, name, edit, code, text in other_edits()]
    cases += [(right, lambda root, edit=edit: edit(os.path.join(root, "global_step12")), code, text)
              for edit, code, text in folder_edits()]
    for number, (start, edit, code, text) in enumerate(cases):
        root = os.path.join(args.out, f"wrong{number}")
        shutil.copytree(start, root)
        edit(root)
        dump = Dump(args, root)
        if dump.code != code or text not in dump.message:
            complaints.append(f"case {number}: expects {code} with {text!r}, but got {dump.code}: {dump.message}")
    if os.path.exists(trace):
        complaints.append("something in a file was executed")
    return complaints


def check_damage(args):
    """Folders with a few wrong values in one file: each is read or refused."""
    complaints, codes, draw = [], {}, random.Random(7)
    rights = []
    for name, write in (("flat", lambda root: files.write_flat(root, files.Training(1), 2, 2)),
                        ("sliced", lambda root: files.write_sliced(root, files.Training(1), 2)),
                        ("universal", lambda root: files.write_universal(root, files.Training(1)))):
        write(os.path.join(args.out, name))
        for folder, _, names in os.walk(os.path.join(args.out, name)):
            shallow = [file for file in names if file.endswith("_states.pt")]
            rights += [(name, os.path.join(folder, file)) for file in shallow or names if file.endswith(".pt")]
    deep = [path for path in rights if "zero" in os.path.basename(os.path.dirname(os.path.dirname(path[1])))]
    shallow = [path for path in rights if path not in deep]
    for number in range(args.count):
        name, path = draw.choice(deep if number % 10 == 0 else shallow)
        with open(path, "rb") as file:
            content = file.read()
        value = torch.load(path)
        for _ in range(draw.choice([1, 1, 2, 4])):
            if isinstance(value, dict):
                damage(draw, value)
        torch.save(value, path)
        code = Dump(args, os.path.join(args.out, name), draw.choice([0, 5])).code
        codes[code] = codes.get(code, 0) + 1
        if code not in (0, 3, 5):
            complaints.append(f"case {number}: {path}: exit code {code}")
        with open(path, "wb") as file:
            file.write(content)
    if set(codes) != {0, 3, 5}:
        complaints.append(f"exit codes {codes}: not every end was reached")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["values", "refusals", "damage"])
    parser.add_argument("--dump", required=True, help="path of ds-foreign-dump")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--count", type=int, default=200, help="damaged folders")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    os.makedirs(args.out)
    open(os.path.join(args.out, "elements"), "w").close()
    torch.manual_seed(3)
    files.pretend()
    if args.what == "damage":
        finish(check_damage(args), f"{args.count} read or refused")
    elif args.what == "refusals":
        finish(check_refusals(args), "all refused")
    else:
        finish(check_zero(args) + check_universal(args) + check_weights(args), "all equal")


if __name__ == "__main__":
    sys.exit(main())
