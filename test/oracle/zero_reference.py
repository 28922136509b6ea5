"""zero_reference.py - put a ZeRO folder together as DeepSpeed's zero_to_fp32.py does, by loading everything.

The same rules in few lines: join the ranks' parts and cut them by the shapes (1, 2); cut each rank's part by
ceil(elements / ranks) and join (3); check that the lengths fit.
"""

import glob
import math
import os
import re

import torch


def load(folder, pattern):
    names = sorted(glob.glob(os.path.join(folder, pattern)), key=lambda name: int(re.findall(r"rank_(\d+)", name)[0]))
    return [torch.load(name) for name in names]


def join_flat(shapes, ranks):
    """Stages 1 and 2; `ranks`: each rank's list of flat groups."""
    result = {}
    for index, group in enumerate(shapes):
        whole, offset, multiple = torch.cat([groups[index] for groups in ranks]), 0, 2 * len(ranks)
        for name, shape in group.items():
            result[name] = whole[offset:offset + shape.numel()].view(shape)
            offset += shape.numel()
        assert math.ceil(offset / multiple) == math.ceil(whole.numel() / multiple)
    return result


def join_sliced(shapes, ranks):
    """Stage 3."""
    result, offset, flat = {}, 0, [torch.cat([group.data for group in groups]) for groups in ranks]
    for group in shapes:
        for name, shape in group.items():
            length = math.ceil(shape.numel() / len(ranks))
            whole = torch.cat([each[offset:offset + length] for each in flat])
            result[name] = whole[:shape.numel()].view(shape)
            offset += length
    assert offset == flat[0].numel()
    return result


def fp32_state_dict(folder):
    """Parameters, frozen ones, buffers and tied ones, by name."""
    models = load(folder, "*_model_states.pt")
    optimizers = [state["optimizer_state_dict"] for state in load(folder, "*_optim_states.pt")]
    model, isSliced = models[0], optimizers[0]["zero_stage"] == 3
    result = {name: tensor.float() for name, tensor in model["module"].items() if name in model["buffer_names"]}
    for name, shape in model["frozen_param_shapes"].items():
        parts = [each["frozen_param_fragments"][name] for each in models]
        result[name] = torch.cat(parts)[:shape.numel()].view(shape) if isSliced else parts[0]
    if isSliced:
        result.update(join_sliced(model["param_shapes"], [state["fp32_flat_groups"] for state in optimizers]))
    else:
        groups = [state["single_partition_of_fp32_groups"] for state in optimizers]
        result.update(join_flat(model["param_shapes"], groups))
    for alias, name in model["shared_params"].items():
        result[alias] = result[name]
    return result
