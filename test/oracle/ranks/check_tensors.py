#!/usr/bin/python3
"""check_tensors.py - models whose layers n ranks of IR share against one rank.

    check_tensors.py --out DIR [--models gpt2,llama] [--all]      needs ds-opt on PATH

Families of config.json in f64, whatever types the program has: losses, norm, weights, moments and an evaluation must agree with one
rank's to 1e-9.  Each family has every mesh, with dropout and norms cut along the sequence or whole in turn; --all takes all of both.
"""

import argparse
import itertools
import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from hf_variants import config_of  # noqa: E402
from ranks.agreement import differences, draw_batches, random_inputs, train, train_alone  # noqa: E402
from ranks.compiling import compile_ranks  # noqa: E402
from ranks.meetings import Mismatch  # noqa: E402
from ranks.values import Numbers  # noqa: E402

GPT2_DROPS, BERT_DROPS = ("resid_pdrop", "embd_pdrop", "attn_pdrop"), ("hidden_dropout_prob", "attention_probs_dropout_prob")
# Of each family a configuration, what its dropout is called, and below what its whole numbers are.
MODELS = {
    "gpt2": (config_of("gpt2", "plain"), GPT2_DROPS, 61),
    "gpt2-untied": (config_of("gpt2", "untied"), GPT2_DROPS, 61),
    "llama": ({**config_of("llama", "plain"), "hidden_size": 64, "num_attention_heads": 8}, (), 61),  # two key heads
    "llama-tied": (config_of("llama", "padding"), (), 61),
    "gemma2": ({**config_of("gemma2", "plain"), "num_key_value_heads": 4}, (), 61),
    "gpt_neox": (config_of("gpt_neox", "plain"), (), 61),
    "falcon": (config_of("falcon_rw", "plain"), (), 61),  # slopes by head
    "bert": (config_of("bert", "plain"), BERT_DROPS, 61),
    "vit": (config_of("vit", "plain"), (), 5),
    "t5": (config_of("t5", "plain"), ("dropout_rate",), 61),
}
MESHES = {"tp2": (2, 1, 0), "tp4": (4, 1, 3), "tp2-dp2": (2, 2, 3), "tp2-dp2-stage1": (2, 2, 1)}  # tp, dp and the stage of ZeRO


class Family:
    def __init__(self, name, out):
        self.config, self.drops, self.ids = MODELS[name]
        self.name, self.folder, self.alone = name, os.path.join(out, name), {}

    def compile(self, ranks, drops, accumulation, **more):
        folder = os.path.join(self.folder, "drops" if drops else "plain")
        os.makedirs(folder, exist_ok=True)
        model = os.path.join(folder, "model")
        os.makedirs(model, exist_ok=True)
        with open(os.path.join(model, "config.json"), "w") as file:
            json.dump({**self.config, **dict.fromkeys(self.drops if drops else (), 0.25)}, file)
        config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": accumulation, "gradient_clipping": 0.5,
                  "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1}}, **more}
        return compile_ranks(os.path.join(model, "config.json"), config, ranks, folder)

    def check(self, mesh, drops, rows):
        """[complaints] about one mesh; `rows` says whether norms are cut along the sequence, None leaves it open."""
        tp, dp, stage = MESHES[mesh]
        zero = {"stage": stage, "reduce_bucket_size": 3000, "stage3_param_persistence_threshold": 40}
        tensors = {"autotp_size": tp, **({} if rows is None else {"sequence_parallel": rows})}
        numbers, program = Numbers(rounds=False), self.compile(tp * dp, drops, 2, zero_optimization=zero, tensor_parallel=tensors)
        key = dp, drops
        if key not in self.alone:
            batches = draw_batches(program, 2, random_inputs(ids=self.ids))
            self.alone[key] = batches, train_alone(self.compile(1, drops, 2 * dp), batches, numbers)
        batches, theirs = self.alone[key]
        name = f"{self.name}, {mesh}{', dropout' * drops}{'' if rows is None else f', rows cut: {rows}'}"
        if not any(state.cuts and "tp" in sum(state.cuts, []) for state in program.stages[0].declared.values()):
            return [f"{name}: no parameter is cut"]
        try:
            # A bias of keys adds the same to all scores of a row: its gradient is zero, and its moments are rounding.
            return [f"{name}: {text}" for text in differences(train(program, batches, numbers), theirs, 1e-9)
                    if not text.split()[0].endswith(("key.bias.exp_avg", "key.bias.exp_avg_sq"))]
        except (Mismatch, ValueError) as error:
            return [f"{name}: {error}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    complaints, count = [], 0
    for turn, name in enumerate(args.models):
        family = Family(name, args.out)
        every = itertools.product(MESHES, (False, True) if family.drops else (False,), (None, True, False))
        some = [(mesh, bool(family.drops) and (turn + index) % 2 == 0, (None, True, False)[(turn + index) % 3])
                for index, mesh in enumerate(MESHES)]
        for mesh, drops, rows in every if args.all else some:
            found = family.check(mesh, drops, rows)
            print("\n".join(found) or f"{name}, {mesh}{', dropout' * drops}, rows {rows}: agrees", flush=True)
            complaints += found
            count += 1
    print(f"{len(complaints)} complaints" if complaints else f"{count} programs agree with one rank")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
