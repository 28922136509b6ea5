#!/usr/bin/python3
"""check_hf_tricks.py - ranks, stages of ZeRO, offload and recomputation give the numbers of one rank, by family of config.json.

    check_hf_tricks.py gemma2 plain [bloom plain ...] --out DIR

One model of each family trains on batches of four samples: on one rank with everything on its device, and on one rank that
divides nothing but has stage 3, its states in storage and half of its layers recomputed, which are equal to the bit; on two ranks with
stage 3 plainly, and with states and kept activations on the host, which are equal to the bit as well; on four ranks. What
ranks add up in another order than one rank does agrees to 1e-6 in the first step and to 1e-5 later.
"""

import argparse
import json
import os

import compare
import hf_variants
from commands import finish, run
from trials import Result

import safetensors_io

STEPS, SAMPLES = 3, 4
TRAINING = {"train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0, "optimizer": {"type": "AdamW", "params": {"lr": 0.01}}}
BUCKETS = {"reduce_bucket_size": 5000, "allgather_bucket_size": 5000, "stage3_param_persistence_threshold": 100}


class Family:
    """Runs of one model, each in files of its own."""

    def __init__(self, folder, family, variant):
        self.folder, self.name = folder, f"{family} {variant}"
        os.makedirs(folder, exist_ok=True)
        config = hf_variants.config_of(family, variant)
        self.write("config.json", config)
        data = hf_variants.data(config, STEPS * SAMPLES)
        self.inputs = [f"{name}=1x{'x'.join(map(str, value.shape[1:]))}x{'f32' if value.dtype.kind == 'f' else 'i64'}"
                       for name, value in data.items()]
        safetensors_io.save(self.path("data.safetensors"), data)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "w") as file:
            json.dump(content, file, indent=2)
        return self.path(name)

    def train(self, name, ranks, stage, offload=None, **changes):
        """What a run on `ranks` ranks leaves; `offload`: where optimizer and parameters are."""
        zero = {**BUCKETS, "stage": stage}
        if offload:
            os.makedirs(self.path("nvme"), exist_ok=True)
            place = {"device": offload, **({"nvme_path": self.path("nvme")} if offload == "nvme" else {})}
            zero.update(offload_optimizer=place, offload_param=place)
        config = self.write(name + ".ds.json", {**TRAINING, **changes, "gradient_accumulation_steps": SAMPLES // ranks,
                                                "zero_optimization": zero})
        program, plan, log, after = (self.path(f"{name}.{kind}") for kind in ("dsx", "plan.json", "jsonl", "after.safetensors"))
        inputs = [part for text in self.inputs for part in ("--input", text)]
        run("ds-opt", self.path("config.json"), "--config", config, *inputs, "--ranks", ranks, "--plan-json", plan, "--emit=program",
            "-o", program)
        run("ds-run", program, "--ranks", ranks, "--data", self.path("data.safetensors"), "--seed", 7, "--steps", STEPS,
            "--log-jsonl", log, "--save-weights", after)
        with open(plan) as file:
            return Result(json.load(file), compare.read_log(log), safetensors_io.load(after))

    def check(self):
        one = self.train("one", 1, 0)
        stored = self.train("stored", 1, 3, "nvme", activation_checkpointing={"layers": [0]})
        two = self.train("two", 2, 3)
        hosted = self.train("hosted", 2, 3, "cpu", activation_checkpointing={"cpu_checkpointing": True})
        four = self.train("four", 4, 3)
        complaints = one.differences(stored, "one rank, in storage") + two.differences(hosted, "two ranks, on the host")
        for ranks, several in (2, two), (4, four):
            complaints += [f"{ranks} ranks: {text}" for text in compare.compare(several.log, one.log, 1e-6, 1e-5)[0]]
        facts = {"storage": stored.rank()["arenas"]["nvme"], "recomputation": len(stored.plan.get("made_again", [])),
                 "host": hosted.rank()["arenas"]["host"], "sharding": one.arena() - four.arena()}
        complaints += [f"{what}: expects some" for what, amount in facts.items() if amount <= 0]
        return [f"{self.name}: {text}" for text in complaints]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="FAMILY VARIANT")
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    pairs = list(zip(args.models[::2], args.models[1::2], strict=True))
    complaints = []
    for family, variant in pairs:
        complaints += Family(os.path.join(args.out, f"{family}-{variant}"), family, variant).check()
    finish(complaints, f"{len(pairs)} families train alike")


if __name__ == "__main__":
    main()
