"""deepspeed_files.py - write checkpoints as DeepSpeed lays them out, without DeepSpeed.

DeepSpeed is in no package of Debian. Its folders are dicts that torch.save pickles, with objects of its own classes in
them; here classes of the same names stand in, in modules that exist while a file is written or read. A `Training` has
the whole tensors; each function cuts them over ranks and writes a folder.
"""

import argparse
import dataclasses
import enum
import math
import os
import sys
import types
from collections import OrderedDict

import numpy
import torch


class ZeroStageEnum(int, enum.Enum):
    disabled, optimizer_states, gradients, weights = range(4)


class LossScalerBase:
    def __init__(self, cur_scale):
        self.cur_scale = cur_scale
        self.dynamic = False


class DynamicLossScaler(LossScalerBase):
    def __init__(self, init_scale):
        super().__init__(init_scale)
        self.cur_iter, self.last_overflow_iter = 12, -1
        self.scale_factor, self.scale_window, self.min_scale = 2.0, 1000, 1
        self.delayed_shift, self.cur_hysteresis, self.consecutive_hysteresis = 2, 1, False
        self.dtype = torch.float16


@dataclasses.dataclass
class fragment_address:  # noqa: N801 - DeepSpeed's name
    numel: int
    start: int


@dataclasses.dataclass
class SubparamShape:
    patterns: list
    shape: tuple
    partition_dim: int


class DeepSpeedConfig(dict):
    """A dict with attributes, and in itself."""

    def __init__(self):
        super().__init__(train_batch_size=8, zero_optimization={"stage": 2}, optimizer={"type": "AdamW", "params": {"lr": 1e-3}})
        self.owner = self


HOMES = {"deepspeed.runtime.zero.config": [ZeroStageEnum],
         "deepspeed.runtime.fp16.loss_scaler": [LossScalerBase, DynamicLossScaler],
         "deepspeed.utils.tensor_fragment": [fragment_address],
         "deepspeed.checkpoint.universal_checkpoint": [SubparamShape],
         "deepspeed.runtime.config": [DeepSpeedConfig]}


def pretend():
    """Makes the classes those of DeepSpeed's modules."""
    for name, classes in HOMES.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
        for each in classes:
            each.__module__ = name
            setattr(sys.modules[name], each.__name__, each)


def numel(shape):
    return math.prod(shape)


class Training:
    """Parameters in two groups of the optimizer, a frozen one of two types, buffers, and a tied one."""

    def __init__(self, seed, half=torch.float16):
        draw = torch.Generator().manual_seed(seed)
        self.half = half
        self.groups = [OrderedDict([("embed.weight", (5, 3)), ("h.0.w", (7,)), ("h.0.odd", (3, 3, 3)), ("scale", (1,))]),
                       OrderedDict([("h.0.bias", (4,)), ("norm", (1,)), ("h.1.bias", (2, 1, 2))])]
        self.states = {}  # name -> slot -> tensor
        for name, shape in self.shapes().items():
            self.states[name] = {slot: torch.randn(shape, generator=draw) for slot in ("value", "exp_avg", "exp_avg_sq")}
        self.frozen = {"frozen.a": torch.randn(5, generator=draw).to(half), "frozen.b": torch.randn(3, 3, generator=draw)}
        self.buffers = {"h.0.mask": torch.randn(2, 2, generator=draw) > 0, "pos": torch.arange(6),
                        "half": torch.randn(3, generator=draw).to(half)}
        self.tied = {"head.weight": "embed.weight"}

    def shapes(self):
        return {name: shape for group in self.groups for name, shape in group.items()}

    def module(self, placeholders=False, aliasFirst=False):
        """The module's state_dict, tied parameters as one; or what ZeRO 3 leaves of it."""
        module = torch.nn.Module().state_dict()  # an OrderedDict with attributes
        if aliasFirst:
            module.update((alias, None) for alias in self.tied)
        for name, slots in self.states.items():
            module[name] = torch.empty(0, dtype=self.half) if placeholders else slots["value"].to(self.half)
        for name, tensor in self.frozen.items():
            module[name] = torch.empty(0, dtype=tensor.dtype) if placeholders else tensor
        module.update(self.buffers)
        for alias, name in self.tied.items():
            module[alias] = module[name]
        return module


def model_states(training, rank=0, ranks=0, shared=True):
    """A *_model_states.pt: of ZeRO 3 with `ranks`, of all others without."""
    sliced = ranks > 0
    frozen = {name: slice_of(tensor, rank, ranks) if sliced else tensor for name, tensor in training.frozen.items()}
    states = {
        "module": training.module(sliced, aliasFirst=not shared), "buffer_names": list(training.buffers), "optimizer": None,
        "param_shapes": [OrderedDict((name, torch.Size(shape)) for name, shape in group.items())
                         for group in training.groups],
        "frozen_param_shapes": OrderedDict((name, tensor.shape) for name, tensor in training.frozen.items()),
        "frozen_param_fragments": OrderedDict(frozen),
        "lr_scheduler": {"last_batch_iteration": 11, "base_lrs": [0.001, 0.002], "_last_lr": [0.0005, 0.001], "by": "step"},
        "data_sampler": None, "random_ltd": None, "sparse_tensor_module_names": set(), "skipped_steps": 2,
        "global_steps": 12, "global_samples": 96, "dp_world_size": max(ranks, 1), "mp_world_size": 1,
        "ds_config": DeepSpeedConfig(), "ds_version": "0.16.4",
        # what the user adds
        "args": argparse.Namespace(lr=0.001, consumed_train_tokens=98304, name="run", dtype=torch.float16,
                                   device=torch.device("cuda", 0)),
        "seed": 2**70, "lr_now": numpy.float64(0.001), "rng": torch.get_rng_state(), "note": b"\x00\xff"}
    if shared:
        states["shared_params"] = dict(training.tied)
    return states


def slice_of(tensor, rank, ranks):
    """A rank's part of one tensor in ZeRO 3, padded to the length of all others'."""
    flat, length = tensor.flatten(), -(-tensor.numel() // ranks)
    part = flat[rank * length:(rank + 1) * length]
    return torch.cat([part, torch.full((length - part.numel(),), 9, dtype=part.dtype)])


def common_state(stage, ranks, groups):
    return {"loss_scaler": DynamicLossScaler(4096.0), "dynamic_loss_scale": True, "overflow": False, "clip_grad": 1.0,
            "zero_stage": ZeroStageEnum(stage), "partition_count": [ranks] * groups if stage < 3 else ranks,
            "ds_version": "0.16.4"}


def fragments(group, start, end):
    """Where the parameters of a group lie in the elements start .. end of it."""
    found, offset = OrderedDict(), 0
    for name, shape in group.items():
        begin, stop = max(offset, start), min(offset + numel(shape), end)
        if begin < stop:
            found[name] = fragment_address(numel=stop - begin, start=begin - start)
        offset += numel(shape)
    return found


def flat_optimizer(training, stage, rank, ranks, elastic=False):
    """The optimizer's state of one rank in ZeRO 1 and 2."""
    values, slots, mappings, paddings = [], {}, [], []
    for index, group in enumerate(training.groups):
        length = sum(map(numel, group.values()))
        padded = -(-length // (2 * ranks)) * 2 * ranks
        begin, end = rank * padded // ranks, (rank + 1) * padded // ranks
        lean = max(0, min(end, length) - begin) if rank == ranks - 1 else end - begin
        kind = training.states[next(iter(group))]["value"].dtype
        filling = torch.full((padded - length,), 9.0, dtype=kind)
        flat = {slot: torch.cat([training.states[name][slot].flatten() for name in group] + [filling])
                for slot in ("value", "exp_avg", "exp_avg_sq")}
        values.append(flat["value"][begin:end][:lean])  # a view: the whole group is in the file
        slots[index] = {"step": torch.tensor(10) if elastic else torch.tensor(10.0) if stage == 1 else 10, "exp_avg": flat["exp_avg"][begin:end].clone(),
                        "exp_avg_sq": flat["exp_avg_sq"][begin:end].clone()}
        mappings.append(fragments(group, begin, end))
        paddings.append(padded - length if rank == ranks - 1 else 0)
        if elastic:
            slots[index] = {key: state[:lean] if key != "step" else state for key, state in slots[index].items()}
    state = common_state(stage, ranks, len(training.groups))
    param_groups = [{"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1, "params": [index]}
                    for index in slots]
    state["base_optimizer_state"] = list(slots.values()) if elastic else {"state": slots, "param_groups": param_groups}
    state.update(single_partition_of_fp32_groups=values, group_paddings=paddings, param_slice_mappings=mappings)
    return state


def sliced_optimizer(training, rank, ranks):
    """The optimizer's state of one rank in ZeRO 3."""
    values, slots = [], {}
    for index, group in enumerate(training.groups):
        flat = {slot: torch.cat([slice_of(training.states[name][slot], rank, ranks) for name in group])
                for slot in ("value", "exp_avg", "exp_avg_sq")}
        flat["value"].ds_id = f"{index}_{index}"  # an attribute, which makes torch write the tensor in another way
        values.append(flat["value"] if index else torch.nn.Parameter(flat["value"]))
        slots[index] = {"step": 10, "exp_avg": flat["exp_avg"], "exp_avg_sq": flat["exp_avg_sq"]}
    state = common_state(3, ranks, len(training.groups))
    state["optimizer_state_dict"] = {"state": slots, "param_groups": [{"lr": 0.001, "params": [0, 1]}]}
    state["fp32_flat_groups"] = values
    return state


def save(value, *path):
    os.makedirs(os.path.join(*path[:-1]), exist_ok=True)
    torch.save(value, os.path.join(*path))


def point(root, tag, name="latest"):
    with open(os.path.join(root, name), "w") as file:
        file.write(tag)


def write_flat(root, training, stage, ranks, prefix="", elastic=False, shared=True):
    """A folder of ZeRO 1 or 2; `prefix` "bf16_" as DeepSpeed's bf16 optimizer writes it."""
    folder = os.path.join(root, "global_step12")
    save(model_states(training, shared=shared), folder, "mp_rank_00_model_states.pt")
    for rank in range(ranks):
        optimizer = flat_optimizer(training, stage, rank, ranks, elastic)
        if prefix:
            del optimizer["zero_stage"], optimizer["loss_scaler"]
        save({"optimizer_state_dict": optimizer, "ds_config": DeepSpeedConfig(), "ds_version": "0.16.4"}, folder,
             f"{prefix}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    point(root, "global_step12\n")


def write_sliced(root, training, ranks):
    folder = os.path.join(root, "global_step12")
    for rank in range(ranks):
        name = f"zero_pp_rank_{rank}_mp_rank_00"
        save(model_states(training, rank, ranks), folder, f"{name}_model_states.pt")
        save({"optimizer_state_dict": sliced_optimizer(training, rank, ranks), "ds_version": "0.16.4"}, folder,
             f"{name}_optim_states.pt")
    point(root, "global_step12")


def write_universal(root, training, sliced=False):
    """What ds_to_universal.py makes of ZeRO 1 and 2, or of ZeRO 3."""
    folder = os.path.join(root, "global_step12_universal")
    for name, slots in training.states.items():
        for slot, tensor in slots.items():
            file = "fp32.pt" if slot == "value" else f"{slot}.pt"
            held = {"cat_dim": 0, "param": tensor}
            if name == "embed.weight":
                held["vocab_tensor"] = True
            if name == "h.0.odd":
                held["sub_param_shape"] = SubparamShape(["h.0.odd"], (3, (1, 2), 3), 1)
            save(tensor.flatten() if sliced else held, folder, "zero", name, file)
        if not sliced:
            save(torch.tensor(10.0), folder, "zero", name, "step.pt")
    state = common_state(3 if sliced else 2, 2, 2)
    save({**state, "param_groups": [{"lr": 0.001, "step": 10}]}, folder, "zero", "optimizer_state.pt")
    if sliced:
        save(model_states(training, 0, 1), folder, "zero_pp_rank_0_mp_rank_00_model_states.pt")
    else:
        save(model_states(training), folder, "mp_rank_00_model_states.pt")
    point(root, "global_step12_universal", "latest_universal")
