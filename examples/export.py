#!/usr/bin/python3
"""export.py - write an example model as a TorchScript archive, and data to train it on.

    examples/export.py gpt --out build/demo --size small
    examples/export.py llama --out /tmp/x --traced --batch 4 --data 64

The same arguments give the same weights and data.  The archive is NAME.pt; --data N adds NAME.data.safetensors with N
samples, one tensor per argument of forward.
"""

import argparse
import os
import sys
from dataclasses import replace

import numpy as np
import torch

import gpt
import llama
import mlp
import safetensors_io
import speech
import vit

FAMILIES = {"gpt": (gpt, gpt.GPT, gpt.GPTLogits), "llama": (llama, llama.Llama, llama.LlamaLogits),
            "mlp": (mlp, mlp.MLP, mlp.MLPLogits), "speech": (speech, speech.Speech, speech.SpeechLogits),
            "vit": (vit, vit.ViT, vit.ViTLogits)}


def make_config(args):
    """The size's configuration with what the command line overrides."""
    config = FAMILIES[args.name][0].SIZES[args.size]
    wanted = {"layers": args.layers, "vocab": args.vocab, "context": args.context, "width": args.width,
              "bias": False if args.no_bias else None}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    unknown = [key for key in wanted if not hasattr(config, key)]
    if unknown:
        sys.exit(f"export.py: {args.name} has no {', '.join(unknown)}")
    return replace(config, **wanted)


def make_data(args, config, samples, length, seed):
    """Random samples, one tensor per argument: tokens and the next tokens, or vectors, images or
    spectrograms and their classes or values."""
    random = np.random.default_rng(seed)
    if args.name in ("speech", "vit"):
        return FAMILIES[args.name][0].make_data(config, random, samples)
    if args.name == "mlp":
        x = random.standard_normal((samples, config.inputs), dtype=np.float32)
        plane = random.standard_normal((config.inputs, config.classes), dtype=np.float32)
        y = np.tanh(x @ plane) if args.regression else np.argmax(x @ plane, axis=1).astype(np.int64)
        return {"x": x, "y": y}
    tokens = random.integers(0, config.vocab, (samples, length + 1), dtype=np.int64)
    return {"x": tokens[:, :-1].copy(), "y": tokens[:, 1:].copy()}


def make_archive(args, config, example):
    """The model as a ScriptModule: scripted keeps its control flow, traced records one run of it."""
    torch.manual_seed(args.seed)
    kind = FAMILIES[args.name][2 if args.logits else 1]
    model = kind(config)
    if not args.traced:
        return torch.jit.script(model)
    inputs = example[:1] if args.logits else example
    return torch.jit.trace(model, inputs, check_trace=False)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(FAMILIES))
    parser.add_argument("--out", required=True, metavar="DIR", help="where the files go")
    parser.add_argument("--size", default="tiny", choices=["tiny", "small", "bench", "words", "gpt2"])
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--scripted", action="store_true", help="torch.jit.script (the default)")
    form.add_argument("--traced", action="store_true", help="torch.jit.trace")
    parser.add_argument("--logits", action="store_true", help="forward(x) returns logits, not the loss")
    parser.add_argument("--regression", action="store_true", help="mlp's labels are vectors, for --loss mse")
    parser.add_argument("--no-bias", action="store_true", help="GPT without biases in its linear layers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=2, help="samples of the traced run and of --input")
    parser.add_argument("--data", type=int, default=0, metavar="N", help="write N random samples as well")
    parser.add_argument("--data-seed", type=int, default=1)
    for name in ("layers", "vocab", "context", "width"):
        parser.add_argument(f"--{name}", type=int, help="overrides the size's")
    parser.add_argument("--length", type=int, help="tokens a sample (default: the context)")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Exports by the command line or `arguments`; returns the archive's path, the data's and the --input values."""
    args = parse(arguments)
    if args.size not in FAMILIES[args.name][0].SIZES:
        sys.exit(f"export.py: {args.name} has no size {args.size}")
    config = make_config(args)
    length = args.length or getattr(config, "context", 0)
    example = make_data(args, config, args.batch, length, 0)
    archive = make_archive(args, config, tuple(torch.from_numpy(value) for value in example.values()))
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, f"{args.name}.pt")
    archive.save(path)
    data_path = None
    if args.data:
        data_path = os.path.join(args.out, f"{args.name}.data.safetensors")
        safetensors_io.save(data_path, make_data(args, config, args.data, length, args.data_seed))
    kind = {"float32": "f32", "int64": "i64"}
    inputs = [f"{key}={'x'.join(map(str, value.shape))}x{kind[str(value.dtype)]}" for key, value in example.items()]
    print(path)
    print(" ".join(f"--input {text}" for text in inputs))
    return path, data_path, inputs


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # TorchScript writes sets of names in the order of their hashes
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main()
