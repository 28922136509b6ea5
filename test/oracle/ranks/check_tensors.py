#!/usr/bin/python3
"""check_tensors.py - models whose layers or sequences n ranks of IR share against one rank.

    check_tensors.py --out DIR [--models gpt2,llama] [--all] {layers,sequences}      needs ds-opt on PATH

Families of config.json in f64, whatever types the program has: losses, norm, weights, moments and an evaluation must agree with one
rank's to 1e-9.  Each family has every mesh, with dropout and, where layers are shared, norms cut along the sequence or whole in turn;
--all takes all of both.
"""

import argparse
import collections
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
from ranks.program import axes_of  # noqa: E402
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
Mesh = collections.namedtuple("Mesh", "tp sp dp stage")  # ranks along axes, and the stage of ZeRO
MESHES = {"layers": {"tp2": Mesh(2, 1, 1, 0), "tp4": Mesh(4, 1, 1, 3), "tp2-dp2": Mesh(2, 1, 2, 3), "tp2-dp2-stage1": Mesh(2, 1, 2, 1)},
          "sequences": {"sp2": Mesh(1, 2, 1, 0), "sp4": Mesh(1, 4, 1, 3), "sp2-dp2": Mesh(1, 2, 2, 2), "sp2-dp2-stage1": Mesh(1, 2, 2, 1),
                        "sp2-tp2": Mesh(2, 2, 1, 3)}}
WITH_SEQUENCES = [name for name in MODELS if name != "vit"]  # 16 patches and a class are a sequence of 17


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

    def check(self, name, mesh, drops, rows):
        """[complaints] about one mesh; `rows` says whether norms are cut along the sequence, None leaves it open."""
        tp, sp, dp, stage = mesh
        zero = {"stage": stage, "reduce_bucket_size": 3000, "stage3_param_persistence_threshold": 40}
        shared = {"tensor_parallel": {"autotp_size": tp, **({} if rows is None else {"sequence_parallel": rows})}} if tp > 1 else {}
        shared.update({"sequence_parallel_size": sp, "loss_chunks": 3 if dp > 1 else 1} if sp > 1 else {})
        accumulation = 1 if sp > 1 and stage == 0 else 2  # gradients that are one value for several biases stay one
        numbers, program = Numbers(rounds=False), self.compile(tp * sp * dp, drops, accumulation, zero_optimization=zero, **shared)
        key = dp, accumulation, drops
        if key not in self.alone:
            batches = draw_batches(program, 2, with_few_labels(random_inputs(ids=self.ids)))
            self.alone[key] = batches, train_alone(self.compile(1, drops, accumulation * dp), batches, numbers)
        batches, theirs = self.alone[key]
        name = f"{self.name}, {name}{', dropout' * drops}{'' if rows is None else f', rows cut: {rows}'}"
        if tp > 1 and not any(state.cuts and "tp" in sum(state.cuts, []) for state in program.stages[0].declared.values()):
            return [f"{name}: no parameter is cut"]
        if sp > 1 and not all(exchanges_heads(function) for function in program.stages[0].functions.values()):
            return [f"{name}: rows are not exchanged for heads"]
        try:
            # A bias of keys adds the same to all scores of a row: its gradient is zero, and its moments are rounding.
            return [f"{name}: {text}" for text in differences(train(program, batches, numbers), theirs, 1e-9)
                    if not text.split()[0].endswith(("key.bias.exp_avg", "key.bias.exp_avg_sq"))]
        except (Mismatch, ValueError) as error:
            return [f"{name}: {error}"]


def with_few_labels(draw):
    """Draws as `draw`, but labels of which one does not count, or, every other time, the second half of a sequence: some ranks have none."""
    halves = itertools.cycle((False, True))

    def few(name, kind):
        value = draw(name, kind)
        if name == "labels" and value.dim() > 1:
            value[:, slice(value.shape[1] // 2, None) if next(halves) else 3] = -100
        return value
    return few


def exchanges_heads(function):
    """Whether ranks that share sequences exchange parts for others."""
    return any(op.name == "ds.all_to_all" and axes_of(op.get("axes")) == ["sp"] for op in function.body.ops)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--models", type=lambda text: text.split(","))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("kind", choices=list(MESHES))
    args = parser.parse_args()
    torch.set_num_threads(1)
    complaints, count = [], 0
    meshes = MESHES[args.kind]
    for turn, name in enumerate(args.models or (MODELS if args.kind == "layers" else WITH_SEQUENCES)):
        family = Family(name, args.out)
        every = [(mesh, drops, rows) for mesh in meshes for drops in ((False, True) if family.drops else (False,))
                 for rows in ((None, True, False) if meshes[mesh].tp > 1 else (None,))]
        some = [(mesh, bool(family.drops) and (turn + index) % 2 == 0, (None, True, False)[(turn + index) % 3] if meshes[mesh].tp > 1 else None)
                for index, mesh in enumerate(meshes)]
        for mesh, drops, rows in every if args.all else some:
            found = family.check(mesh, meshes[mesh], drops, rows)
            print("\n".join(found) or f"{name}, {mesh}{', dropout' * drops}, rows {rows}: agrees", flush=True)
            complaints += found
            count += 1
    print(f"{len(complaints)} complaints" if complaints else f"{count} programs agree with one rank")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
