"""make_nanogpt.py DIR - a small checkpoint as nanoGPT writes it (out-shakespeare-char/ckpt.pt), and its data.

The keys and shapes are nanoGPT's, with the prefix that torch.compile gives; two layers stand in for six.
"""

import pathlib
import random
import sys

import numpy as np
import torch

LAYERS, WIDTH, HEADS, CONTEXT, VOCAB = 2, 32, 4, 256, 65


def shapes():
    yield "transformer.wte.weight", (VOCAB, WIDTH)
    yield "transformer.wpe.weight", (CONTEXT, WIDTH)
    for layer in range(LAYERS):
        block = f"transformer.h.{layer}"
        yield f"{block}.ln_1.weight", (WIDTH,)
        yield f"{block}.attn.c_attn.weight", (3 * WIDTH, WIDTH)
        yield f"{block}.attn.c_proj.weight", (WIDTH, WIDTH)
        yield f"{block}.ln_2.weight", (WIDTH,)
        yield f"{block}.mlp.c_fc.weight", (4 * WIDTH, WIDTH)
        yield f"{block}.mlp.c_proj.weight", (WIDTH, 4 * WIDTH)
    yield "transformer.ln_f.weight", (WIDTH,)


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "out-shakespeare-char").mkdir(parents=True)
    torch.manual_seed(0)
    model = {f"_orig_mod.{name}": torch.randn(shape) * 0.08 + (1 if ".ln_" in name else 0) for name, shape in shapes()}
    model["_orig_mod.lm_head.weight"] = model["_orig_mod.transformer.wte.weight"]
    sizes = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "block_size": CONTEXT, "bias": False, "vocab_size": VOCAB, "dropout": 0.0}
    torch.save({"model": model, "optimizer": {}, "model_args": sizes, "iter_num": 250, "best_val_loss": torch.tensor(4.2), "config": {}},
               folder / "out-shakespeare-char/ckpt.pt")
    random.seed(0)
    for name, count in (("train", 60000), ("val", 12000)):
        words = [[random.randrange(VOCAB) for _ in range(random.randrange(2, 6))] for _ in range(20)]
        tokens = [token for _ in range(count) for token in random.choice(words)][:count]
        np.array(tokens, dtype="<u2").tofile(folder / f"{name}.bin")


if __name__ == "__main__":
    main()
