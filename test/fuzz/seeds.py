"""seeds.py - the small programs that programs.py changes, and how each is run.

Together they have every kind of command, table and option of a program, stages that send each other what they compute
included: see SEEDS.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

ADAMW = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
         "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
         "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 8}}}
GPT = ("gpt", "--traced", "--layers", "1", "--vocab", "64")
DROPOUT = """
ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<2x64xf32>
func.func @forward(%x: tensor<2x64xf32> {ds.input = "x"}, %rng: tensor<2xi64> {ds.state = @rng},
                   %w: tensor<2x64xf32> {ds.state = @w}) -> tensor<f32> {
  %y = ds.mul %x, %w : tensor<2x64xf32>
  %d = ds.dropout %y, %rng probability 0.5 id 0 : tensor<2x64xf32>, tensor<2xi64>
  %l = ds.reduce sum %d dims [0, 1] : tensor<2x64xf32> -> tensor<f32>
  return %l : tensor<f32>
}
"""


@dataclass
class Recipe:
    """How a seed is made: an example (arguments of examples/export.py) or IR, what its configuration adds."""
    example: tuple = ()
    config: dict = field(default_factory=dict)
    ranks: int = 1
    target: str = "cpu"
    text: str = ""
    written: str = ""  # by program-player, which then plays it: programs that ds-opt does not make


def zero(stage, **more):
    return {"zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0}, **more}


HOST = {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}
BF16, FP16 = {"bf16": {"enabled": True}}, {"fp16": {"enabled": True, "initial_scale_power": 8}}
SEEDS = {
    "mlp": Recipe(("mlp",), {"gradient_accumulation_steps": 3}),
    "gpt": Recipe(GPT, {}),
    "gpt-chunks": Recipe(GPT, {"loss_chunks": 3, **BF16}),
    "llama-fp16": Recipe(("llama", "--traced", "--layers", "1", "--vocab", "64"), {"gradient_accumulation_steps": 2, **FP16}),
    "vit": Recipe(("vit", "--traced"), {}),
    "speech-bf16": Recipe(("speech", "--traced"), BF16),
    "dropout": Recipe(text=DROPOUT),
    "zero1": Recipe(GPT, zero(1), ranks=2),
    "zero2-bf16": Recipe(GPT, zero(2, gradient_accumulation_steps=2, **BF16), ranks=2),
    "zero3-fp16": Recipe(("mlp",), zero(3, **FP16), ranks=2),
    "zero3-bf16": Recipe(GPT, zero(3, gradient_accumulation_steps=2, **BF16), ranks=2),
    "offload": Recipe(("mlp",), {"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0, **HOST}}),
    "speculated": Recipe(("mlp",), {"zero_optimization": {"offload_optimizer": {"device": "cpu", "super_offload": True}}, **FP16}),
    "stages-layers": Recipe(written="layers"),
    "stages-chain": Recipe(written="chain"),
    "stages-ring": Recipe(written="ring"),
    "stages-pipeline": Recipe(written="pipeline"),
    "cuda-mlp": Recipe(("mlp",), {}, target="cuda:sm_90"),
    "cuda-gpt-bf16": Recipe(GPT, {"gradient_accumulation_steps": 2, **BF16}, target="cuda:sm_90"),
}


@dataclass
class Seed:
    """A program, and what ds-run needs to run one step of it. Without data it is program-player that has it."""
    program: str
    data: str = ""
    options: list = field(default_factory=list)
    environment: dict = field(default_factory=dict)  # what it adds

    def command(self, program):
        if not self.data:
            return ["program-player", program, "2"]
        saved = os.path.splitext(program)[0] + ".after.safetensors"
        return ["ds-run", program, "--data", self.data, "--steps", "1", "--save-weights", saved, *self.options]


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")


def export(recipe, folder):
    """(model, data): those of recipes with the same example are the same."""
    if recipe.text:
        import numpy
        model, data = os.path.join(folder, "model.mlir"), os.path.join(folder, "data.npy")
        with open(model, "w") as file:
            file.write(recipe.text)
        numpy.save(data, numpy.ones((8, 64), "f4"))
        return model, data
    sys.path.insert(0, os.path.join(ROOT, "examples"))
    import export as exporter
    folder = os.path.join(os.path.dirname(folder), "-".join(recipe.example))
    model, known = os.path.join(folder, "model.mlir"), os.path.join(folder, "known.json")
    if not os.path.exists(known):
        archive, data, inputs = exporter.main([*recipe.example, "--out", folder, "--data", "16", "--batch",
                                               str(ADAMW["train_micro_batch_size_per_gpu"])])
        run("ds-opt", archive, *(part for text in inputs for part in ("--input", text)), "--emit=ir", "--phase=model", "-o", model)
        write_json(known, data)
    return model, read_json(known)


def fake_device(fake, folder, program):
    """The environment in which ds-run finds a CUDA device made of host memory."""
    kernels = os.path.join(folder, "kernels.so")
    if not os.path.exists(kernels):
        run(sys.executable, os.path.join(ROOT, "test/oracle/ptx_to_cpp.py"), program, "-o", kernels)
    libraries = ("DS_CUDA_DRIVER", "DS_CUBLASLT", "DS_CUDNN", "DS_NCCL", "DS_NVML")
    return {**{key: fake for key in libraries}, "DS_FAKE_KERNELS": kernels, "DS_CACHE_DIR": folder, "DS_FAKE_DEVICES": "1"}


def make_seed(name, folder, fake):
    """The seed called `name`, compiled into a folder below `folder` unless it is there."""
    recipe, folder = SEEDS[name], os.path.join(folder, name)
    program, settings = os.path.join(folder, "seed.dsx"), os.path.join(folder, "config.json")
    known = os.path.join(folder, "known.json")
    os.makedirs(folder, exist_ok=True)
    if recipe.written:
        if not os.path.exists(program):
            run("program-player", "--write", recipe.written, program)
        return Seed(program)
    ranks = ["--ranks", str(recipe.ranks)] if recipe.ranks > 1 else []
    if not os.path.exists(known):
        write_json(settings, {**ADAMW, **recipe.config})
        model, data = export(recipe, folder)
        run("ds-opt", model, "--config", settings, *ranks, "--threads-per-rank", "2", "--target", recipe.target, "--emit=program",
            "-o", program, "--weights", "none")
        write_json(known, data)
    if recipe.target != "cpu":
        return Seed(program, read_json(known), [*ranks, "--device", "cuda"], fake_device(fake, folder, program))
    return Seed(program, read_json(known), [*ranks, "--timeout", "60"] if ranks else [])
