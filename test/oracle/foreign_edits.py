"""foreign_edits.py - what check_foreign.py makes wrong in folders of DeepSpeed and Hugging Face.

Edits of one file, each with the exit code and a part of the message that must follow, and damage anywhere in a file.
"""

import os
import shutil
import struct
import zipfile

import torch

import deepspeed_files as files


def change(folder, name, edit):
    """Loads a file, edits its value, and saves it again."""
    value = torch.load(os.path.join(folder, name))
    edit(value)
    torch.save(value, os.path.join(folder, name))


class Bad:
    """Whose file would call os.system."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


OPTIMIZER = "zero_pp_rank_1_mp_rank_00_optim_states.pt"
MODEL = "mp_rank_00_model_states.pt"


def optimizer_edits(trace):
    """(file, edit, exit code, part of the message) on a folder of ZeRO 2 of 2 ranks."""
    def state(value):
        return value["optimizer_state_dict"]

    return [
        (OPTIMIZER, lambda value: state(value).update(partition_count=[3, 3]), 5, "is one of 3 ranks, but the folder has 2"),
        (OPTIMIZER, lambda value: state(value).update(zero_stage=1), 5, "has another stage or other groups"),
        (OPTIMIZER, lambda value: state(value).update(zero_stage="2"), 5, "expects 'zero_stage' 1 to 3, but got a text"),
        (OPTIMIZER, lambda value: state(value).pop("single_partition_of_fp32_groups"), 5, "but got none"),
        (OPTIMIZER, lambda value: state(value)["single_partition_of_fp32_groups"].pop(), 5, "or other groups"),
        (OPTIMIZER, lambda value: state(value)["base_optimizer_state"]["state"][0].update(exp_avg=torch.zeros(3)), 3,
         "has shape [3], but the group has"),
        (OPTIMIZER, lambda value: state(value)["base_optimizer_state"]["state"][0].update(exp_avg=torch.zeros(1).expand(99)), 5,
         "repeats the 1 elements"),
        (OPTIMIZER, lambda value: value.update(optimizer_state_dict=Bad(trace)), 5, "an object of 'posix.system', which is not made"),
        (MODEL, lambda value: value["param_shapes"][0].update(more=torch.Size([8])), 5, "which end in parameter 'more'"),
        (MODEL, lambda value: value["param_shapes"][0].pop("h.0.odd"), 5, "but its parameters have 23"),
        (MODEL, lambda value: value["param_shapes"][1].update({"h.0.w": torch.Size([0])}), 5, "parameter 'h.0.w' occurs twice"),
        (MODEL, lambda value: value["param_shapes"][0].update({"h.0.w": Bad(trace)}), 5, "expects a shape for parameter 'h.0.w'"),
        (MODEL, lambda value: value["param_shapes"][0].update({"h.0.w": (2**40, 2**40)}), 5, "expects a shape for parameter"),
        (MODEL, lambda value: value["param_shapes"].pop(), 5, "has shapes of 1 groups, but elements of 2"),
        (MODEL, lambda value: value.pop("param_shapes"), 5, "has no 'param_shapes'"),
        (MODEL, lambda value: value.update(mp_world_size=2), 3, "is one of 2 tensor parallel ranks"),
        (MODEL, lambda value: value.update(ds_autoep_layers=[{}]), 3, "has experts that are spread"),
        (MODEL, lambda value: value["frozen_param_fragments"].pop("frozen.a"), 5, "too few elements of the frozen 'frozen.a'"),
        (MODEL, lambda value: value["module"].update(pos=Bad(trace)), 5, "expects a tensor for buffer 'pos'"),
    ]


def other_edits():
    """(folder, file, edit, exit code, part of the message) on ZeRO 3 of 2 ranks and on a universal checkpoint."""
    ofRank1 = "global_step12/zero_pp_rank_1_mp_rank_00_"
    ofRank0 = "global_step12/zero_pp_rank_0_mp_rank_00_"
    inUniversal = "global_step12_universal/"
    return [
        ("sliced", ofRank1 + "optim_states.pt", lambda value: value["optimizer_state_dict"]["fp32_flat_groups"].append(torch.zeros(2)),
         5, "has another stage or other groups"),
        ("sliced", ofRank1 + "optim_states.pt",
         lambda value: value["optimizer_state_dict"].update(fp32_flat_groups=[torch.zeros(27), torch.zeros(9)], optimizer_state_dict={}), 5,
         "has 9 elements in group 1, but rank 0 has 5"),
        ("sliced", ofRank1 + "optim_states.pt",
         lambda value: value["optimizer_state_dict"]["optimizer_state_dict"]["state"][0].update(exp_avg=torch.zeros(99)), 3,
         "has shape [99], but the group has 27"),
        ("sliced", ofRank0 + "model_states.pt", lambda value: value["param_shapes"][1].pop("norm"), 5,
         "a rank has 32 elements, but the parameters have 31"),
        ("sliced", ofRank0 + "model_states.pt", lambda value: value["param_shapes"][1].update(more=torch.Size([1])), 5,
         "which end in 'more'"),
        ("sliced", ofRank1 + "model_states.pt", lambda value: value["frozen_param_fragments"].update({"frozen.a": torch.zeros(1)}), 5,
         "rank 1 has too few elements of the frozen 'frozen.a'"),
        ("universal", inUniversal + MODEL, lambda value: value["param_shapes"][1].update(more=torch.Size([1])), 5,
         "has no zero/more/fp32.pt, which the model file names"),
        ("universal", inUniversal + "zero/norm/exp_avg.pt", lambda value: value.pop("param"), 5, "expects a tensor 'param', but got none"),
    ]


def folder_edits():
    """(what is done in the folder, exit code, part of the message) on the same."""
    def add(name):
        return lambda folder: shutil.copy(os.path.join(folder, OPTIMIZER), os.path.join(folder, name))

    def text(path, content):
        def write(folder):
            with open(os.path.join(folder, path), "w") as file:
                file.write(content)
        return write

    def flip(folder):
        """A bit of the first storage's bytes, which the local header precedes."""
        path = os.path.join(folder, OPTIMIZER)
        with zipfile.ZipFile(path) as archive:
            header = next(info for info in archive.infolist() if info.filename.endswith("data/0")).header_offset
        with open(path, "r+b") as file:
            content = file.read()
            place = header + 30 + sum(struct.unpack("<HH", content[header + 26:header + 30]))
            file.seek(place)
            file.write(bytes([content[place] ^ 1]))

    return [
        (add("zero_pp_rank_0_mp_rank_01_optim_states.pt"), 3, "of a second tensor parallel rank"),
        (add("mp_rank_01_model_states.pt"), 3, "of a second tensor parallel rank"),
        (add("layer_00-model_00-model_states.pt"), 3, "a layer of a pipeline or an expert"),
        (add("expp_rank_0_mp_rank_00_optim_states.pt"), 3, "which is not of a data parallel rank"),
        (add("bf16_" + OPTIMIZER), 5, "both of rank 1"),
        (add("zero_pp_rank_7_mp_rank_00_optim_states.pt"), 5, "has 3 *_optim_states.pt, but one is"),
        (lambda folder: os.remove(os.path.join(folder, OPTIMIZER)), 5, "is one of 2 ranks, but the folder has 1"),
        (lambda folder: os.remove(os.path.join(folder, MODEL)), 6, "cannot open"),
        (lambda folder: [os.remove(os.path.join(folder, name)) for name in os.listdir(folder) if "optim" in name], 3,
         "saved without ZeRO"),
        (text("../latest", "../elsewhere"), 5, "expects the name of a folder beside it"),
        (text("../latest", "global_step13"), 5, "which is no folder beside it"),
        (text("../latest", ""), 5, "expects the name of a folder beside it"),
        (lambda folder: os.remove(os.path.join(folder, "../latest")), 3, "is no checkpoint that is known here"),
        (text(OPTIMIZER, "not an archive"), 5, "is no archive of torch.save"),
        (flip, 5, "is damaged"),
    ]


def odd_values():
    """What a damaged dict may have anywhere."""
    return [None, True, -1, 0, 3, 2**40, 2**62, 2**70, 1.5, float("nan"), "", "x", "embed.weight", [], [1], {}, {"a": 1},
            {0: {}}, (), (1, 2), set(), b"x", torch.empty(0), torch.zeros(3), torch.zeros(4, 4).t(), torch.zeros(1).expand(2**30),
            torch.Size([2**40, 2**40]), torch.Size([0, 5]), torch.arange(3), files.ZeroStageEnum(3), files.DeepSpeedConfig()]


def damage(draw, value):
    """Changes one entry somewhere in a value."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw.choice(keys)
        inner = value[key]
        if isinstance(inner, (dict, list)) and inner and draw.random() < 0.75:
            value = inner
            continue
        way = draw.randrange(4)
        if way == 0:
            del value[key]
        elif way == 1 and isinstance(value, dict):
            value[draw.choice(keys)] = inner
        else:
            value[key] = draw.choice(odd_values())
        return
