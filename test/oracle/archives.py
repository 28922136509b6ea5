#!/usr/bin/python3
"""archives.py - build TorchScript archives from the model sources in test/Import/archives.

A model source defines make(), and may define inputs() (default: two rows of eight tokens below 32) and FORMS (default:
traced and scripted).  For each form this writes FORM/model.pt, data.safetensors and expected.json with the ds-opt
--input arguments and the loss that PyTorch gets.

    test/oracle/archives.py --out DIR SOURCE...
"""

import argparse
import importlib.util
import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
import safetensors_io  # noqa: E402

TYPE_NAMES = {torch.float32: "f32", torch.int64: "i64", torch.int32: "i32", torch.bool: "i1"}


def load_source(path):
    """The module at `path`, imported under its own name so that TorchScript can find its source."""
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def default_inputs():
    return {"x": torch.randint(0, 32, (2, 8)), "y": torch.randint(0, 32, (2, 8))}


def input_arguments(inputs):
    """What ds-opt has to be told of the inputs: name=shape x type, in MLIR's spelling."""
    return [f"{name}={'x'.join(map(str, value.shape))}x{TYPE_NAMES[value.dtype]}" for name, value in inputs.items()]


def build(source, directory, seed=0, forms=None):
    """Writes every form of the model at `source`, or so many, below `directory`; returns [(form, folder)]."""
    module = load_source(source)
    made = []
    for form in getattr(module, "FORMS", ("traced", "scripted"))[:forms]:
        torch.manual_seed(seed)
        model = module.make()
        inputs = getattr(module, "inputs", default_inputs)()
        if form == "traced":
            archive = torch.jit.trace(model, tuple(inputs.values()), check_trace=False)
        else:
            archive = torch.jit.script(model)
        folder = os.path.join(directory, form)
        os.makedirs(folder, exist_ok=True)
        archive.save(os.path.join(folder, "model.pt"))
        arrays = {name: value.numpy() for name, value in inputs.items()}
        safetensors_io.save(os.path.join(folder, "data.safetensors"), arrays)
        loss = float(model(*inputs.values()).detach())
        with open(os.path.join(folder, "expected.json"), "w") as file:
            json.dump({"inputs": input_arguments(inputs), "loss": loss}, file)
        made.append((form, folder))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    args = parser.parse_args()
    for source in args.sources:
        name = os.path.splitext(os.path.basename(source))[0]
        for form, folder in build(source, os.path.join(args.out, name)):
            with open(os.path.join(folder, "expected.json")) as file:
                print(f"{name} {form} {json.load(file)['loss']:.6f}")


if __name__ == "__main__":
    main()
