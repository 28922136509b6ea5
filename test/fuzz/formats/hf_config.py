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
    {"model_type": "gemma3_text", **LLAMA, "head_dim": 8, "sliding_window": 4, "sliding_window_pattern": 2, "query_pre_attn_scalar": 8},
    {"model_type": "gemma2", **LLAMA, "head_dim": 8, "attn_logit_softcapping": 50.0, "layer_types": ["sliding_attention", "full_attention"]},
    {"model_type": "phi3", **LLAMA, "original_max_position_embeddings": 8,
     "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.5, 2.0, 2.5], "long_factor": [1.0, 2.0, 4.0, 8.0]}},
    {"model_type": "qwen3", **LLAMA, "head_dim": 8, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32}},
    {"model_type": "falcon", **COMMON, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 2},
    {"model_type": "gpt_neo", "vocab_size": 96, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 16,
     "attention_types": [[["global", "local"], 1]], "window_size": 4},
    {"model_type": "bloom", "vocab_size": 96, "hidden_size": 32, "n_layer": 2, "n_head": 4, "seq_length": 16},
    {"model_type": "opt", **COMMON, "ffn_dim": 48, "do_layer_norm_before": False, "word_embed_proj_dim": 16},
]


def make(folder):
    names, paths = set(), []
    for source in glob.glob(os.path.join(ROOT, "lib/Import/Hf", "**", "*.cpp"), recursive=True):
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
