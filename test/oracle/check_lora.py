#!/usr/bin/python3
"""check_lora.py - train adapters of a model of a config.json, and compare with PyTorch.

    check_lora.py gpt2 --out DIR

From a folder of PEFT with random factors: the loss, each factor's gradient and three steps of AdamW are PyTorch's to
1e-6 by norm; nothing else changes. 2 and 4 ranks of ZeRO 3 that offload and recompute have the bits of one rank on as many
micro-batches, also when they resume what one rank began. What ds-ckpt exports is a folder of PEFT with the trained factors, from which a
run begins where the other ended, and the merged weights have the loss of the model with its adapters. In bf16 frozen
parameters are rounded and have no master. Adapters of another model are refused.
"""

import argparse
import json
import os
import shutil
import subprocess

import numpy as np
import torch

import check_gradients
import check_hf
import compare
import hf_models
import hf_variants
import lora
from check_training import RATE
from commands import finish, run

import safetensors_io

STEPS, TOLERANCE = 3, 1e-6
ADAPTERS = {
    "gpt2": {"r": 4, "lora_alpha": 16, "target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True},
    "llama": {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj", "down_proj"], "use_rslora": True,
              "rank_pattern": {"model.layers.1.mlp.down_proj": 7}},
}
ADAMW = {"type": "AdamW", "params": {"lr": 0.01, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.1}}
HEAVY = {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"},
                               "stage3_param_persistence_threshold": 0},
         "activation_checkpointing": {"partition_activations": True}}


class Job:
    """A model, its data and its adapters in a folder."""

    def __init__(self, family, out):
        self.config, self.out = hf_variants.config_of(family, "plain"), out
        self.base = os.path.join(out, "base")
        model, self.batch = check_hf.write_model(self.base, self.config, samples=check_hf.BATCH * 4 * STEPS)
        self.adapters_config = ADAPTERS[family]
        self.model, self.adapters = self.adapt(model)
        self.folder = os.path.join(out, "adapter")
        lora.save(self.folder, self.adapters, self.adapters_config)

    def adapt(self, model):
        c = self.adapters_config
        adapters = lora.adapt(model, c["target_modules"], c["r"], c["lora_alpha"], c.get("use_rslora", False),
                              c.get("rank_pattern"))
        return model.double(), adapters

    def fresh(self):
        """The model as it starts."""
        return self.adapt(hf_models.make(self.config, 0))

    def samples(self, step, count):
        """The micro-batch of a step."""
        rows = slice(step * count, (step + 1) * count)
        return self.batch["input_ids"][rows], self.batch["labels"][rows]

    def compile(self, name, changes, ranks=1, part=None):
        """A program that trains what `part` says, or the adapters of the folder."""
        path, config = os.path.join(self.out, name + ".dsx"), os.path.join(self.out, name + ".json")
        with open(config, "w") as file:
            json.dump({"train_micro_batch_size_per_gpu": check_hf.BATCH, "gradient_clipping": 0.0, **changes}, file)
        run("ds-opt", os.path.join(self.base, "config.json"), "--config", config, "--ranks", ranks,
            *(["--lora", self.folder] if part is None else part), "--emit=program", "-o", path)
        return path

    def train(self, program, steps, ranks=1, extra=None):
        """The log and the weights afterwards."""
        log, after = program + ".jsonl", program + ".after.safetensors"
        start = extra or ["--weights", os.path.join(self.base, "model.safetensors"), "--adapter", self.folder]
        run("ds-run", program, "--data", os.path.join(self.base, "data.safetensors"), *start, "--steps", steps, "--ranks", ranks,
            "--log-jsonl", log, "--save-weights", after)
        return compare.read_log(log), safetensors_io.load(after)


def distances(after, expected, tolerance):
    """Complaints about factors that differ by more than `tolerance` of their norm."""
    complaints = []
    for name, value in expected.items():
        off = float(np.linalg.norm(after[name].astype(np.float64) - value) / np.linalg.norm(value))
        if not off <= tolerance:
            complaints.append(f"{name}: differs by {off:.3g} of its norm")
    return complaints


def check_gradients_of(job):
    """One step of plain SGD with a large rate."""
    model, adapters = job.fresh()
    loss = model(*job.samples(0, check_hf.BATCH))
    loss.backward()
    gradients = {name: parameter.grad.numpy() for name, parameter in lora.parameters(adapters).items()}
    program = job.compile("sgd", {"optimizer": {"type": "SGD", "params": {"lr": RATE}}})
    log, after = job.train(program, 1)
    before = {**safetensors_io.load(os.path.join(job.base, "model.safetensors")), **lora.values(adapters)}
    complaints, seen = check_gradients.compare({name: before[name] for name in gradients}, after, gradients, RATE, TOLERANCE)
    complaints += [f"{name}: has changed" for name in before if name not in gradients and not np.array_equal(before[name], after[name])]
    complaints += [f"{name}: no gradient" for name in sorted(set(gradients) - seen)]
    if not compare.difference(log[0]["loss"], float(loss)) < TOLERANCE:
        complaints.append(f"loss {log[0]['loss']} against {float(loss)}")
    return complaints


def check_frozen(job, patterns, is_frozen):
    """The same of a model of which a part is frozen, on one rank and on two of ZeRO 3 that offload and recompute."""
    model = hf_models.make(job.config, 0).double()
    parameters = dict(model.named_parameters())  # tied ones once
    for name, parameter in parameters.items():
        parameter.requires_grad_(not is_frozen(name))
    model(*job.samples(0, check_hf.BATCH)).backward()
    before = safetensors_io.load(os.path.join(job.base, "model.safetensors"))
    part, sgd = [word for pattern in patterns for word in ("--freeze", pattern)], {"optimizer": {"type": "SGD", "params": {"lr": RATE}}}
    start = ["--weights", os.path.join(job.base, "model.safetensors")]
    _, after = job.train(job.compile("frozen", sgd, part=part), 1, extra=start)
    gradients = {name: parameter.grad.numpy() for name, parameter in parameters.items() if not is_frozen(name)}
    complaints, _ = check_gradients.compare({name: before[name] for name in gradients}, after, gradients, RATE, TOLERANCE)
    frozen = [name for name in parameters if is_frozen(name)]
    complaints += [f"{name}: is frozen and has changed" for name in frozen if not np.array_equal(before[name], after[name])]
    if not frozen or not gradients:
        complaints.append("expects parameters of both kinds")
    alone = job.train(job.compile("frozen-alone", {"optimizer": ADAMW, "gradient_accumulation_steps": 2}, part=part), STEPS, extra=start)
    shared = job.train(job.compile("frozen-ranks", {"optimizer": ADAMW, **HEAVY}, 2, part), STEPS, 2, start)
    return complaints + different(alone, shared, "2 ranks of a frozen model")


def check_steps(job):
    """Steps of AdamW."""
    model, adapters = job.fresh()
    settings = ADAMW["params"]
    optimizer = torch.optim.AdamW(lora.parameters(adapters).values(), settings["lr"], settings["betas"], settings["eps"],
                                  settings["weight_decay"])
    losses = []
    for step in range(STEPS):
        loss = model(*job.samples(step, check_hf.BATCH))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    log, after = job.train(job.compile("adamw", {"optimizer": ADAMW}), STEPS)
    complaints = distances(after, {name: value.astype(np.float64) for name, value in lora.values(adapters).items()}, TOLERANCE)
    for step, (ours, theirs) in enumerate(zip(log, losses)):
        if not compare.difference(ours["loss"], theirs) < TOLERANCE:
            complaints.append(f"step {step + 1}: loss {ours['loss']} against {theirs}")
    return complaints


def different(left, right, what):
    """Complaints about runs that are not equal to the bit."""
    complaints = [f"{what}: {name} differs" for name in left[1] if not np.array_equal(left[1][name], right[1][name])]
    losses = [[step["loss"] for step in log] for log, _ in (left, right)]
    return complaints + ([f"{what}: losses {losses}"] if losses[0] != losses[1] else [])


def check_ranks(job, ranks):
    """Ranks of ZeRO 3 with everything on the host, against one rank on as many micro-batches."""
    alone = job.compile(f"alone-{ranks}", {"optimizer": ADAMW, "gradient_accumulation_steps": ranks})
    shared = job.compile(f"ranks-{ranks}", {"optimizer": ADAMW, **HEAVY}, ranks)
    expected = job.train(alone, STEPS)
    complaints = different(expected, job.train(shared, STEPS, ranks), f"{ranks} ranks")
    saved = os.path.join(job.out, f"checkpoints-{ranks}")
    base = ["--weights", os.path.join(job.base, "model.safetensors"), "--adapter", job.folder, "--save", saved]
    job.train(alone, 1, extra=base)
    log, after = job.train(shared, STEPS, ranks, ["--resume", saved, "--save", saved])
    resumed = ([step for step in log if step["step"] > 1], after)
    return complaints + different((expected[0][1:], expected[1]), resumed, f"{ranks} ranks that resume"), saved, expected[1]


def check_export(job, saved, trained):
    """The folders that ds-ckpt makes of the newest checkpoint."""
    exported, merged = os.path.join(job.out, "exported"), os.path.join(job.out, "merged")
    run("ds-ckpt", "export", saved, exported)
    run("ds-ckpt", "export", saved, merged, "--merge")
    factors = safetensors_io.load(os.path.join(exported, "adapter_model.safetensors"))
    complaints = [f"{name}: not exported as trained" for name in lora.parameters(job.adapters)
                  if name not in factors or not np.array_equal(factors[name], trained[name])]
    complaints += [f"{name}: exported, and no factor" for name in factors if name not in lora.parameters(job.adapters)]
    with open(os.path.join(exported, "adapter_config.json")) as file:
        config = json.load(file)
    wanted = {"peft_type": "LORA", "bias": "none", "use_dora": False, "use_rslora": False, "rank_pattern": {}, "fan_in_fan_out": False,
              **job.adapters_config}
    complaints += [f"adapter_config.json: {key} is {config.get(key)}, not {value}" for key, value in wanted.items()
                   if (sorted(config[key]) if key == "target_modules" else config.get(key)) != (sorted(value) if key == "target_modules" else value)]
    with torch.no_grad():
        model, adapters = job.fresh()
        for name, parameter in lora.parameters(adapters).items():
            parameter.copy_(torch.from_numpy(trained[name]))
        loss = float(model(*job.samples(0, check_hf.BATCH)))
        plain = hf_models.make(job.config, 1)
        plain.load_state_dict({name: torch.from_numpy(value) for name, value in
                               safetensors_io.load(os.path.join(merged, "model.safetensors")).items()}, strict=False)
        together = float(plain.double()(*job.samples(0, check_hf.BATCH)))
    if not compare.difference(together, loss) < TOLERANCE:
        complaints.append(f"the merged weights have loss {together}, the adapters {loss}")
    if open(os.path.join(merged, "config.json"), "rb").read() != open(os.path.join(job.base, "config.json"), "rb").read():
        complaints.append("the merged folder has another config.json")
    program = job.compile("exported", {"optimizer": ADAMW}, part=["--lora", exported])
    log, _ = job.train(program, 1, extra=["--weights", os.path.join(job.base, "model.safetensors"), "--adapter", exported])
    if not compare.difference(log[0]["loss"], loss) < TOLERANCE:
        complaints.append(f"the exported adapters have loss {log[0]['loss']}, not {loss}")
    return complaints


def refusals(job):
    """Files that are no adapters of the program, and exports that are asked for of nothing: what is said of each."""
    good = lora.values(job.adapters)
    first, *_, last = sorted(good)
    cases = {
        f"missing (1): {first}": {name: value for name, value in good.items() if name != first},
        "unknown (1): base_model.model.other.lora_A.weight": {**good, "base_model.model.other.lora_A.weight": good[first]},
        f"different (1): {last} is [{good[last].shape[0]}, {good[last].shape[1] + 1}], expected [{good[last].shape[0]}, {good[last].shape[1]}]":
            {**good, last: np.pad(good[last], ((0, 0), (0, 1)))},
    }
    program, base = os.path.join(job.out, "adamw.dsx"), os.path.join(job.base, "model.safetensors")
    folder, data = os.path.join(job.out, "wrong"), ["--data", os.path.join(job.base, "data.safetensors"), "--steps", "1"]
    lora.save(folder, job.adapters, job.adapters_config)
    weights = safetensors_io.load(base)
    commands = []
    for number, (text, tensors) in enumerate(cases.items()):
        path = os.path.join(f"{folder}-{number}", "adapter_model.safetensors")
        shutil.copytree(folder, os.path.dirname(path))
        safetensors_io.save(path, tensors)
        commands.append((text, ["ds-run", program, *data, "--weights", base, "--adapter", os.path.dirname(path)]))
    # Weights with some of the adapters are as damaged as weights with some of the layers.
    safetensors_io.save(folder + ".safetensors", {**weights, **{name: value for name, value in good.items() if name != first}})
    commands.append((f"missing (1): {first}", ["ds-run", program, *data, "--weights", folder + ".safetensors"]))
    whole = job.train(job.compile("whole", {"optimizer": ADAMW}, part=[]), 1, extra=["--weights", base, "--save", folder + "-whole"])
    assert whole[0], "a run without adapters"
    commands.append(("--merge: the checkpoint has no adapters", ["ds-ckpt", "export", folder + "-whole", folder + "-merged", "--merge"]))
    commands.append(("--tied and --config are of a model's weights", ["ds-ckpt", "export", os.path.join(job.out, "checkpoints-2"), folder + "-tied", "--tied"]))
    complaints = []
    for text, command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 3 or text not in " ".join(done.stdout.split()):
            complaints.append(f"{' '.join(command)}: exit code {done.returncode}, expects 3 and '{text}': {done.stdout}")
    return complaints


def check_low(job):
    """In bf16: frozen parameters are the base rounded, factors have masters, and the loss is near."""
    base = safetensors_io.load(os.path.join(job.base, "model.safetensors"))
    start = ["--weights", os.path.join(job.base, "model.safetensors"), "--adapter", job.folder]
    exact, _ = job.train(os.path.join(job.out, "alone-2.dsx"), STEPS, extra=start)
    complaints = []
    for name, changes, ranks in ("bf16", {"gradient_accumulation_steps": 2}, 1), ("bf16-ranks", HEAVY, 2):
        program = job.compile(name, {"optimizer": ADAMW, "bf16": {"enabled": True}, **changes}, ranks)
        log, after = job.train(program, STEPS, ranks, start)
        for name, value in base.items():
            off = np.abs(after[name] - value)
            if not np.all(off <= 2 ** -8 * np.abs(value)):
                complaints.append(f"{program}: {name}: is not the base's value in bf16")
        # A master has more bits than bf16, whose lower 16 bits as f32 are zero.
        complaints += [f"{program}: {name}: has no master" for name in lora.parameters(job.adapters)
                       if not np.any(after[name].view(np.uint32) & 0xffff)]
        complaints += [f"{program}: {name}: has a master" for name in base if np.any(after[name].view(np.uint32) & 0xffff)]
        for step, (ours, theirs) in enumerate(zip(log, exact)):
            if not compare.difference(ours["loss"], theirs["loss"]) < 0.05:
                complaints.append(f"{program}: step {step + 1}: loss {ours['loss']} against {theirs['loss']}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=sorted(ADAPTERS))
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    job = Job(args.family, args.out)
    complaints = check_gradients_of(job) + check_steps(job)
    table = {"gpt2": ".wte.", "llama": ".embed_tokens."}[args.family]
    complaints += check_frozen(job, ["*.0.*", f"*{table}*"], lambda name: ".0." in name or table in name)
    for ranks in 2, 4:
        more, saved, trained = check_ranks(job, ranks)
        complaints += more
    complaints += check_export(job, saved, trained) + check_low(job) + refusals(job)
    finish(complaints, f"{len(job.adapters)} adapters train as PyTorch's do")


if __name__ == "__main__":
    main()
