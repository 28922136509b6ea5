"""baseline_cases.py - the jobs of which baseline.py keeps the figures.

Small models that are trained, one for each thing that decides numbers or memory: family, form of archive, ranks and stage, precision,
accumulation, what is recomputed or offloaded, optimizer, schedule, limits on memory.  Programs for GPUs, and plans of published sizes
for clusters of them.
Every case names its cluster and threads, so that no plan depends on the machine.
"""

import glob
import os
import sys
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "examples"), os.path.join(ROOT, "test", "oracle")]

import ds_config  # noqa: E402
import hf_variants  # noqa: E402
import plan_times  # noqa: E402
import run_jobs  # noqa: E402
import run_matrix  # noqa: E402

ADAMW = {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.95], "weight_decay": 0.1}}
BASE = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0, "optimizer": ADAMW}
BF16, FP16 = {"bf16": {"enabled": True}}, {"fp16": {"enabled": True, "initial_scale_power": 8}}
OVERFLOWS = {"fp16": {"enabled": True, "initial_scale_power": 40}}
SCHEDULES = {
    "warmup-decay": {"type": "WarmupDecayLR", "params": {"total_num_steps": 6, "warmup_num_steps": 2, "warmup_max_lr": 1e-3}},
    "warmup-cosine": {"type": "WarmupCosineLR", "params": {"total_num_steps": 6, "warmup_num_steps": 2}},
    "one-cycle": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4, "cycle_max_lr": 2e-3, "cycle_first_step_size": 2,
                                                 "decay_step_size": 2, "decay_lr_rate": 0.5}},
    "range-test": {"type": "LRRangeTest", "params": {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 2}},
}


@dataclass
class Case:
    """A job: what it is made of, and whether it is trained or only planned."""

    name: str
    model: tuple              # (kind, ...), by baseline_models.py
    config: dict
    ranks: int = 1
    cluster: str = "cpu"
    options: tuple = ()       # of ds-opt
    steps: int = 3            # 0: not trained; of a large model there is a plan alone


def zero(stage, **more):
    """The section with buckets so small that even these models have several."""
    return {"zero_optimization": {**run_jobs.SMALL_BUCKETS, "stage": stage, **more}}


def config(*changes):
    merged = dict(BASE)
    for change in changes:
        merged.update(change)
    return merged


def published(family, variant="plain"):
    return ("config.json", hf_variants.config_of(family, variant))


def examples():
    """Each example model as it is exported, and each configuration that stands beside them."""
    for name in "gpt", "llama", "mlp", "speech", "vit":
        for form in "traced", "scripted":
            yield Case(f"example-{name}-{form}", ("example", name, f"--{form}"), config())
    yield Case("example-gpt-logits", ("example", "gpt", "--logits"), config(), options=("--loss", "cross_entropy"))
    yield Case("example-mlp-regression", ("example", "mlp", "--logits", "--regression"), config(), options=("--loss", "mse"))
    for path in sorted(glob.glob(os.path.join(ROOT, "examples", "configs", "*.json"))):
        settings, name = ds_config.read(path), os.path.splitext(os.path.basename(path))[0]
        model = ("example", "gpt", "--batch", str(settings["train_micro_batch_size_per_gpu"]))
        yield Case(f"example-config-{name}", model, settings, ranks=2 if name == "zero3" else 1)
    small = ds_config.read(os.path.join(ROOT, "examples", "models", "gpt-small", "config.json"))
    yield Case("example-gpt-small", ("config.json", small), config(), steps=2)


def archives():
    """Every way in which a model is written that the importer is tested with."""
    for path in sorted(glob.glob(os.path.join(ROOT, "test", "Import", "archives", "*.py"))):
        name = os.path.splitext(os.path.basename(path))[0].replace("_", "-")
        yield Case(f"archive-{name}", ("archive", path), config({"gradient_accumulation_steps": 1}))


def families():
    for family, variant in (("gpt2", "plain"), ("llama", "plain"), ("llama", "llama3-new"), ("mistral", "window"), ("qwen2", "plain"),
                            ("gpt_neox", "plain"), ("bert", "plain")):
        yield Case(f"family-{family}-{variant}", published(family, variant), config())
        yield Case(f"family-{family}-{variant}-bf16-ranks2", published(family, variant), config(BF16, zero(3)), ranks=2)
    dropout = {**hf_variants.GPT2, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.0}
    yield Case("family-gpt2-dropout", ("config.json", dropout), config())


def ranks():
    """Stages of ZeRO, with and without accumulation, and in 16 bits."""
    for stage in range(4):
        yield Case(f"ranks1-stage{stage}", published("gpt2"), config(zero(stage)))
        for count in 2, 4:
            yield Case(f"ranks{count}-stage{stage}", published("gpt2"), config(zero(stage), {"gradient_accumulation_steps": 1}), ranks=count)
        yield Case(f"ranks2-stage{stage}-acc3-fp16", published("llama"), config(zero(stage), FP16, {"gradient_accumulation_steps": 3}),
                   ranks=2)
    yield Case("ranks2-vit", ("example", "vit", "--traced"), config(zero(3)), ranks=2)
    yield Case("ranks2-speech", ("example", "speech", "--traced"), config(zero(2)), ranks=2)


def numbers():
    """What changes the numbers of a step alone."""
    for name, change in ("bf16", BF16), ("fp16", FP16), ("fp16-overflows", OVERFLOWS):
        yield Case(f"precision-{name}", published("gpt2"), config(change), steps=5)
    yield Case("clipping-off", published("llama"), config({"gradient_clipping": 0.0}))
    yield Case("loss-chunks", published("gpt2"), config({"gradient_accumulation_steps": 1}), options=("--loss-chunks", "3"))
    yield Case("threads2", published("llama"), config(), options=("--threads-per-rank", "2"))
    for kind in run_jobs.OPTIMIZERS:
        optimizer = {"type": kind, "params": {"lr": 1e-3, "weight_decay": 0.01}}
        yield Case(f"optimizer-{kind.lower()}", published("gpt2"), config({"optimizer": optimizer}))
    for name, schedule in SCHEDULES.items():
        yield Case(f"schedule-{name}", published("gpt2"), config({"scheduler": schedule}), steps=6)


def tricks():
    """What saves memory: recomputed, or elsewhere than on the device; and less memory than a plan would take."""
    model = ("example", "gpt", *run_matrix.MODELS["gpt"])
    for trick, changes in run_matrix.TRICKS.items():
        top = {key: value for key, value in changes.items() if key != "zero"}
        sections = {name: {**section, **({"nvme_path": "nvme"} if section["device"] == "nvme" else {})}
                    for name, section in changes.get("zero", {}).items()}
        yield Case(f"trick-{trick}-bf16-ranks2", model, config(BF16, top, zero(3, sub_group_size=3000, **sections)), ranks=2)
        if run_matrix.is_possible(trick, 0):
            yield Case(f"trick-{trick}", model, config(top, zero(0, **sections)))
    for limit in "3MiB", "2600KiB", "1900KiB":
        yield Case(f"memory-{limit}", model, config(zero(0)), options=("--memory", limit))
    yield Case("memory-1500KiB-bf16-ranks2", model, config(zero(3), BF16), ranks=2, options=("--memory", "1500KiB"))


def devices():
    """Programs for GPUs, which are compiled and not run."""
    def program(name, model, count, *changes):
        return Case(f"cuda-{name}", model, config(*changes), count, "dgx-h100", steps=0)

    yield program("gpt2", published("gpt2"), 1)
    yield program("llama-bf16-ranks2", published("llama"), 2, BF16, zero(3))
    yield program("gpt2-fp16-ranks2-host", published("gpt2"), 2, FP16, zero(2, offload_optimizer={"device": "cpu"}))
    yield program("vit-traced", ("example", "vit", "--traced"), 1)
    yield program("speech-bf16", ("example", "speech", "--traced"), 1, BF16)


def large_plans():
    """Published sizes on GPU clusters: what a program would be, what rules expect, and what answers questions."""
    def plan(name, model, cluster, count, *changes, options=()):
        micro = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}
        return Case(f"plan-{name}", ("large", model), config(micro, *changes), ranks=count, cluster=cluster, options=options, steps=0)

    models, jobs = run_jobs.MODELS, {name: model for name, (model, _) in plan_times.JOBS.items()}
    xl, cpu, nvme = models["gpt2-xl"], {"device": "cpu"}, {"device": "nvme", "nvme_path": "/nvme"}
    yield plan("gpt2-xl-3090-stage0", xl, "4x-rtx3090", 4, FP16, options=("--changes", "none"))
    yield plan("pythia-1.4b-3090-changes", models["pythia-1.4b"], "4x-rtx3090", 4, FP16)
    yield plan("gpt2-xl-3090-stage3", xl, "4x-rtx3090", 4, FP16, {"zero_optimization": {"stage": 3}})
    yield plan("gpt2-xl-3090-host", xl, "4x-rtx3090", 4, FP16, {"zero_optimization": {"stage": 3, "offload_optimizer": cpu}})
    yield plan("gpt2-xl-3090-nvme", xl, "4x-rtx3090", 4, FP16,
               {"zero_optimization": {"stage": 3, "offload_optimizer": nvme, "offload_param": nvme}})
    yield plan("gpt2-124m-h100", jobs["gpt2-124m"], "h100-80g", 1, BF16)
    yield plan("gpt2-124m-h100-8GiB", jobs["gpt2-124m"], "h100-80g", 1, BF16, {"train_micro_batch_size_per_gpu": 8},
               options=("--memory", "8GiB"))
    yield plan("gpt2-124m-cpu", jobs["gpt2-124m"], "cpu", 1)
    for stage in range(4):
        yield plan(f"llama-2-7b-a100-stage{stage}", models["llama-2-7b"], "dgx-a100", 8, BF16, {"zero_optimization": {"stage": stage}},
                   options=("--changes", "none"))
    for name, cluster, count in (("mistral-7b", "dgx-h100", 8), ("qwen2-1.5b", "h200", 1), ("bert-large", "v100-32g", 1),
                                 ("pythia-1.4b", "4x-rtx4090", 4), ("gpt-neox-20b", "dgx-h200", 8)):
        recompute = {"activation_checkpointing": {"number_checkpoints": 1}}
        yield plan(f"{name}-{cluster}", models[name], cluster, count, BF16, recompute, {"zero_optimization": {"stage": 3}},
                   options=("--changes", "none"))
    for name, (model, count) in plan_times.JOBS.items():
        if 1 < count <= 64:
            yield plan(f"{name}-h100-stage3", model, "h100-80g", count, BF16, {"zero_optimization": {"stage": 3}})
    three = {"tensor_parallel": {"autotp_size": 4}, "pipeline": {"stages": 2}, "zero_optimization": {"stage": 1}}
    yield plan("gpt-175b-rules", jobs["gpt-175b"], "a100-80g", 64, BF16, three)
    llama, stage3 = jobs["llama3-8b"], {"zero_optimization": {"stage": 3}}
    sequence = ("--input", "input_ids=1x4096xi64", "--input", "labels=1x4096xi64")
    yield plan("llama3-8b-what-if", llama, "dgx-h100", 8, BF16, stage3, options=("--what-if", *sequence))
    yield plan("llama3-8b-what-if-rules", llama, "dgx-h100", 8, BF16, stage3, options=("--what-if", "--basis", "rules"))
    shallow = {**jobs["gpt2-124m"], "n_layer": 4}
    yield plan("gpt2-4-layers-max-batch", shallow, "h100-80g", 1, BF16, options=("--max-batch",))
    yield plan("gpt2-124m-max-seq", jobs["gpt2-124m"], "rtx3090", 1, BF16, options=("--max-seq",))
    yield Case("plan-llama3-8b-auto", ("large", llama), {"train_batch_size": 64, "optimizer": ADAMW, **BF16}, 8, "dgx-h100",
               ("--plan", "auto"), 0)


def all_cases():
    cases = [case for group in (examples, archives, families, ranks, numbers, tricks, devices, large_plans) for case in group()]
    assert len({case.name for case in cases}) == len(cases)
    return cases
