"""config.json of Hugging Face: every family that is known, small."""

import glob
import json
import os
import re

from . import Format, change_json
from .ds_config import PLAIN, ROOT

COMMON = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
          "max_position_embeddings": 16}
LLAMA = {**COMMON, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "hidden_act": "silu", "rope_theta": 10000.0,
         "tie_word_embeddings": False}
SEEDS = [
    {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 96, "n_positions": 16, "n_embd": 32, "n_layer": 2,
     "n_head": 4, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "resid_pdrop": 0.1},
    {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **LLAMA},
    {"model_type": "mistral", "architectures": ["MistralForCausalLM"], **LLAMA, "sliding_window": None},
    {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **LLAMA, "use_sliding_window": False},
    {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], **COMMON, "rotary_pct": 0.25, "rotary_emb_base": 10000,
     "hidden_act": "gelu", "use_parallel_residual": True, "layer_norm_eps": 1e-5},
    {"model_type": "bert", "architectures": ["BertForMaskedLM"], **COMMON, "type_vocab_size": 2, "hidden_act": "gelu",
     "layer_norm_eps": 1e-12},
]


def make(folder):
    names, paths = set(), []
    for source in glob.glob(os.path.join(ROOT, "lib/Import/Hf", "*.cpp")):
        with open(source) as file:
            names.update(re.findall(r'"([a-z_]{4,})"', file.read()))
    config = os.path.join(folder, "ds.config")
    with open(config, "w") as file:
        json.dump({**PLAIN, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}, file)
    for seed in SEEDS:
        paths.append(os.path.join(folder, seed["model_type"] + "-config.json"))
        with open(paths[-1], "w") as file:
            json.dump(seed, file)

    def change(draw, data, path):
        return change_json(draw, json.loads(data), sorted(names))

    def command(path):
        return ["ds-opt", path, "--config", config, "--emit=plan"], None

    return Format(paths, change, command)
