"""ds_config.json: the DeepSpeed configuration of a small model."""

import glob
import json
import os
import re

from . import Format, change_json

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
MODEL = """
ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<2x64xf32>
func.func @forward(%x: tensor<2x64xf32> {ds.input = "x"}, %w: tensor<2x64xf32> {ds.state = @w}) -> tensor<f32> {
  %y = ds.mul %x, %w : tensor<2x64xf32>
  %l = ds.reduce sum %y dims [0, 1] : tensor<2x64xf32> -> tensor<f32>
  return %l : tensor<f32>
}
"""
PLAIN = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0}
SEEDS = [
    {**PLAIN, "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}},
     "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0.0, "warmup_max_lr": 0.001, "warmup_num_steps": 8}}},
    {**PLAIN, "optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "nesterov": True}},
     "fp16": {"enabled": True, "initial_scale_power": 12, "loss_scale_window": 100, "hysteresis": 2, "min_loss_scale": 1}},
    {**PLAIN, "optimizer": {"type": "Lamb", "params": {"lr": 0.002, "max_coeff": 0.3}}, "bf16": {"enabled": True},
     "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.0001, "cycle_max_lr": 0.002, "cycle_first_step_size": 4}}},
    {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "Lion", "params": {"lr": 0.0002}},
     "zero_allow_untested_optimizer": True,
     "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": True, "contiguous_gradients": True}},
    {**PLAIN, "optimizer": {"type": "Adagrad", "params": {"lr": 0.01}}, "zero_allow_untested_optimizer": True,
     "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 10, "stage3_prefetch_bucket_size": 1000},
     "torch_autocast": {"enabled": True, "dtype": "bfloat16"}, "data_types": {"grad_accum_dtype": "fp32"}},
]


def known_names():
    """Every key that the reader has in its tables."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, "lib/Config/Keys*.cpp")):
        with open(path) as file:
            for key in re.findall(r'\{"([\w.]+)",', file.read()):
                names.update(key.split("."))
    return sorted(names)


def make(folder):
    paths, names = [], known_names()
    assert len(names) > 100, "the tables of keys are not where they were"
    model = os.path.join(folder, "model.mlir")
    with open(model, "w") as file:
        file.write(MODEL)
    for number, seed in enumerate(SEEDS):
        paths.append(os.path.join(folder, f"ds-{number}.json"))
        with open(paths[-1], "w") as file:
            json.dump(seed, file)

    def change(draw, data, path):
        return change_json(draw, json.loads(data), names)

    def command(path):
        stage = [] if "ds-3" not in path else ["--ranks", "2"]
        return ["ds-opt", model, "--config", path, *stage, "--emit=plan"], None

    return Format(paths, change, command)
