"""hf_variants.py - small configurations of every family, and what makes each variant of it."""

import numpy as np

GPT2 = {"model_type": "gpt2", "vocab_size": 61, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
LLAMA = {"model_type": "llama", "vocab_size": 61, "hidden_size": 32, "intermediate_size": 88, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16, "rms_norm_eps": 1e-6}
NEOX = {"model_type": "gpt_neox", "vocab_size": 61, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 16}
BERT = {"model_type": "bert", "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 16, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0}
DISTIL = {"model_type": "distilbert", "vocab_size": 61, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 16,
          "dropout": 0.0, "attention_dropout": 0.0}
VIT = {"model_type": "vit", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 16,
       "patch_size": 4, "id2label": {str(label): f"L{label}" for label in range(5)}}
DINOV2 = {**{key: value for key, value in VIT.items() if key != "intermediate_size"}, "model_type": "dinov2"}
T5 = {"model_type": "t5", "vocab_size": 61, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0,
      "n_positions": 16}
# 12 tokens of the encoder, 16 of the decoder.
WHISPER = {"model_type": "whisper", "vocab_size": 61, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
           "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_mel_bins": 10, "max_source_positions": 12,
           "max_target_positions": 16, "pad_token_id": 7}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
# 320 positions of 16 elements: a table that is not a literal.
LONG = {"max_position_embeddings": 320, "hidden_size": 64}

FAMILIES = {
    "gpt2": (GPT2, {
        "plain": {}, "untied": {"tie_word_embeddings": False}, "inner": {"n_inner": 40},
        "gelu": {"activation_function": "gelu"}, "relu": {"activation_function": "relu"},
        "relu2": {"activation_function": "relu2"}, "quick_gelu": {"activation_function": "quick_gelu"},
        "silu": {"activation_function": "silu"}, "tanh": {"activation_function": "tanh"},
        "gelu_pytorch_tanh": {"activation_function": "gelu_pytorch_tanh"},
        "unscaled": {"scale_attn_weights": False}, "by-layer": {"scale_attn_by_inverse_layer_idx": True},
        "epsilon": {"layer_norm_epsilon": 0.1}}),
    "llama": (LLAMA, {
        "plain": {}, "padding": {"pad_token_id": -1, "tie_word_embeddings": True},
        "every-head": {"num_key_value_heads": None}, "one-group": {"num_key_value_heads": 1},
        "head-dim": {"head_dim": 12}, "tied": {"tie_word_embeddings": True}, "attention-bias": {"attention_bias": True},
        "mlp-bias": {"mlp_bias": True}, "gelu": {"hidden_act": "gelu"}, "epsilon": {"rms_norm_eps": 0.1},
        "theta": {"rope_theta": 100.0}, "new-theta": {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}},
        "linear-old": {"rope_scaling": {"type": "linear", "factor": 4.0}},
        "linear-new": {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 50.0}},
        "dynamic": {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
        "llama3-old": {"rope_scaling": LLAMA3, "rope_theta": 500000.0},
        "llama3-new": {"rope_parameters": {**LLAMA3, "rope_theta": 20.0}},
        "long": LONG, "long-llama3": {**LONG, "rope_scaling": {**LLAMA3, "original_max_position_embeddings": 64}}}),
    "mistral": ({**LLAMA, "model_type": "mistral"}, {
        "no-window": {"sliding_window": None}, "window": {"sliding_window": 5}, "wide-window": {"sliding_window": 16},
        "default-groups": {"num_key_value_heads": None, "num_attention_heads": 8}}),
    "qwen2": ({**LLAMA, "model_type": "qwen2"}, {
        "plain": {}, "tied": {"tie_word_embeddings": True},
        "window": {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
        "layer-types": {"use_sliding_window": True, "sliding_window": 4,
                        "layer_types": ["sliding_attention", "full_attention"]},
        "unused-window": {"use_sliding_window": False, "sliding_window": 4, "max_window_layers": 0}}),
    "gpt_neox": (NEOX, {
        "plain": {}, "serial": {"use_parallel_residual": False}, "whole": {"rotary_pct": 1.0},
        "no-bias": {"attention_bias": False}, "base": {"rotary_emb_base": 100}, "tied": {"tie_word_embeddings": True},
        "new": {"rope_parameters": {"rope_type": "default", "rope_theta": 100, "partial_rotary_factor": 0.5}},
        "gelu-new": {"hidden_act": "gelu_new"}}),
    "bert": (BERT, {"plain": {}, "untied": {"tie_word_embeddings": False}, "relu": {"hidden_act": "relu"},
                    "padding": {"pad_token_id": 7}, "no-padding": {"pad_token_id": None},
                    "segments": {"type_vocab_size": 1}}),
    # Positions start behind the padding token's row: 18 rows for 16 tokens.
    "roberta": ({**BERT, "model_type": "roberta", "max_position_embeddings": 18}, {
        "plain": {}, "untied": {"tie_word_embeddings": False}, "relu": {"hidden_act": "relu"},
        "padding": {"pad_token_id": 3, "max_position_embeddings": 20}, "camembert": {"model_type": "camembert"},
        "xlm": {"model_type": "xlm-roberta"}}),
    "electra": ({**BERT, "model_type": "electra", "embedding_size": 32}, {
        "plain": {}, "narrow": {"embedding_size": 24}, "untied": {"embedding_size": 24, "tie_word_embeddings": False}}),
    "distilbert": (DISTIL, {"plain": {}, "untied": {"tie_word_embeddings": False}, "relu": {"activation": "relu"}}),
    "vit": (VIT, {"plain": {}, "no-bias": {"qkv_bias": False}, "channels": {"num_channels": 1}}),
    "dinov2": (DINOV2, {"plain": {}, "swiglu": {"use_swiglu_ffn": True}, "scales": {"layerscale_value": 0.5, "mlp_ratio": 2}}),
    "modernbert": ({**BERT, "model_type": "modernbert", "global_attn_every_n_layers": 2, "local_attention": 6, "pad_token_id": 3}, {
        "plain": {}, "biases": {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True, "decoder_bias": False},
        "untied": {"tie_word_embeddings": False}, "theta": {"global_rope_theta": 100.0, "local_rope_theta": 50.0}}),
    # Six distances and more in eight buckets of either side.
    "t5": (T5, {"plain": {"relative_attention_num_buckets": 16, "relative_attention_max_distance": 12},
                "gated": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 1},
                "mt5": {"model_type": "mt5", "d_kv": 12}}),
    "whisper": (WHISPER, {"plain": {}, "untied": {"tie_word_embeddings": False, "activation_function": "relu"},
                          "halves": {"decoder_layers": 1, "decoder_attention_heads": 2, "encoder_attention_heads": 8, "decoder_ffn_dim": 40}}),
}


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}
LONGROPE = {"type": "longrope", "short_factor": [1.0, 1.5, 2.0, 2.5], "long_factor": [1.0, 2.0, 4.0, 8.0]}
GPTJ = {"vocab_size": 61, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
FALCON = {"model_type": "falcon", "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "max_position_embeddings": 16}


def like_llama(model_type, **keys):
    return {**LLAMA, "model_type": model_type, **keys}


# Descendants of Llama, then decoders with a plain feed-forward: a variant for each branch of their code.
FAMILIES.update({
    "qwen3": (like_llama("qwen3", head_dim=12), {
        "plain": {}, "bias": {"attention_bias": True}, "yarn": {"rope_scaling": YARN, "head_dim": 8},
        "yarn-own": {"rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5, "beta_fast": 4, "truncate": False, "rope_theta": 50.0}},
        "long-yarn": {**LONG, "head_dim": 16, "rope_scaling": {**YARN, "original_max_position_embeddings": 80}},
        "window": {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}}),
    "phi3": (like_llama("phi3"), {
        "plain": {"num_key_value_heads": None}, "partial": {"partial_rotary_factor": 0.5}, "window": {"sliding_window": 5},
        "short": {"rope_scaling": LONGROPE, "original_max_position_embeddings": 16},
        "long": {"rope_scaling": LONGROPE, "original_max_position_embeddings": 8}}),
    "olmo": (like_llama("olmo", num_key_value_heads=4), {"plain": {}}),
    "olmo2": (like_llama("olmo2"), {"plain": {}}),
    "granite": (like_llama("granite", embedding_multiplier=2.0, residual_multiplier=0.5, attention_multiplier=0.2, logits_scaling=3.0), {
        "plain": {}, "biases": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}}),
    "minicpm": (like_llama("minicpm", scale_emb=12, scale_depth=1.4, dim_model_base=8), {"plain": {}, "untied": {"tie_word_embeddings": False}}),
    "gemma": (like_llama("gemma", head_dim=12), {"plain": {}, "old": {"hidden_act": "gelu"}}),
    "gemma2": (like_llama("gemma2", head_dim=12, query_pre_attn_scalar=9, sliding_window=5), {
        "plain": {}, "without": {"attn_logit_softcapping": None, "final_logit_softcapping": None}, "tight": {
            "attn_logit_softcapping": 0.5, "final_logit_softcapping": 0.4}}),
    "gemma3_text": (like_llama("gemma3_text", head_dim=12, query_pre_attn_scalar=9, sliding_window=5, sliding_window_pattern=2), {
        "plain": {}, "linear": {"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_theta": 100.0, "rope_local_base_freq": 20.0}}),
    "smollm3": (like_llama("smollm3", num_hidden_layers=3), {
        "plain": {"no_rope_layers": [1, 0, 1]}, "window": {"no_rope_layers": [1, 0, 1], "use_sliding_window": True, "sliding_window": 5}}),
    "glm4": (like_llama("glm4", head_dim=12), {"plain": {"partial_rotary_factor": 0.5}, "bias": {"attention_bias": True}}),
    "stablelm": (like_llama("stablelm"), {
        "plain": {}, "bias": {"use_qkv_bias": True, "layer_norm_eps": 0.1},
        "12b": {"use_parallel_residual": True, "qk_layernorm": True, "partial_rotary_factor": 0.5}}),
    "starcoder2": (like_llama("starcoder2"), {"plain": {}, "window": {"sliding_window": 5, "use_bias": False, "tie_word_embeddings": False}}),
    "nemotron": (like_llama("nemotron"), {"plain": {}, "head-dim": {"head_dim": 12, "attention_bias": True}}),
    "cohere": (like_llama("cohere"), {"plain": {}, "plus": {"use_qk_norm": True}, "long": {**LONG, "logit_scale": 0.3}}),
    "phi": (like_llama("phi"), {"plain": {}, "norms": {"qk_layernorm": True, "num_key_value_heads": None}}),
    "gptj": ({**GPTJ, "model_type": "gptj", "rotary_dim": 4}, {"plain": {}, "whole": {"rotary_dim": None, "n_inner": 40}}),
    "gpt_neo": ({"model_type": "gpt_neo", "vocab_size": 61, "hidden_size": 32, "num_layers": 3, "num_heads": 4, "max_position_embeddings": 16,
                 "window_size": 5, "attention_types": [[["global", "local"], 1], [["local"], 1]]}, {"plain": {}}),
    "gpt_bigcode": ({**GPTJ, "model_type": "gpt_bigcode"}, {"plain": {}, "many": {"multi_query": False, "n_inner": 40}}),
    "falcon": (FALCON, {
        "7b": {}, "40b": {"new_decoder_architecture": True, "num_kv_heads": 2}, "serial": {"multi_query": False, "parallel_attn": False},
        "11b": {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1, "ffn_hidden_size": 40}}),
    "falcon_rw": ({**FALCON, "alibi": True, "multi_query": False, "bias": True, "parallel_attn": False}, {"plain": {}}),
    "opt": ({"model_type": "opt", "vocab_size": 61, "hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
             "max_position_embeddings": 16, "dropout": 0.0}, {
        "plain": {}, "350m": {"do_layer_norm_before": False, "word_embed_proj_dim": 16}, "no-bias": {"enable_bias": False}}),
    "bloom": ({"model_type": "bloom", "vocab_size": 61, "hidden_size": 48, "n_layer": 2, "n_head": 6, "seq_length": 16}, {"plain": {}})})


def config_of(family, variant):
    base, variants = FAMILIES[family]
    return {**base, **variants[variant]}


WIDTHS = ("n_embd", "hidden_size", "intermediate_size", "dim", "hidden_dim", "d_model", "d_ff", "ffn_dim", "vocab_size", "encoder_ffn_dim",
          "decoder_ffn_dim", "embedding_size", "ffn_hidden_size", "head_dim", "d_kv")
LENGTHS = ("n_positions", "max_position_embeddings", "seq_length", "max_target_positions", "max_source_positions")
LAYERS = ("n_layer", "num_hidden_layers", "num_layers", "n_layers", "encoder_layers", "decoder_layers")


def scaled(config, factor, layers):
    """`config` with everything so many times as wide and long, but for the numbers of heads, and with so many layers of each kind."""
    larger = {key: value * factor if key in WIDTHS + LENGTHS and value else value for key, value in config.items()}
    larger.update({key: layers for key in LAYERS if key in config})
    if "attention_types" in config:
        larger["attention_types"] = [[["global"], layers]]
    if "no_rope_layers" in config:
        larger["no_rope_layers"] = [1] * layers
    if "image_size" in config:
        larger["image_size"] = 2 * config["image_size"]
    return larger


def positions(config):
    rows = config.get("n_positions") or config.get("max_target_positions") or config.get("seq_length") or config["max_position_embeddings"]
    behind_padding = config["model_type"] in ("roberta", "camembert", "xlm-roberta")
    return rows - (config.get("pad_token_id", 1) + 1 if behind_padding else 0)


def data(config, samples, seed=0):
    """Inputs by their names: tokens, of which some do not count and some are padding; or pictures."""
    random = np.random.default_rng(seed)
    if "image_size" in config:
        shape = (samples, config.get("num_channels", 3), config["image_size"], config["image_size"])
        return {"pixel_values": random.standard_normal(shape).astype(np.float32),
                "labels": random.integers(0, len(config["id2label"]), samples)}
    hears = "num_mel_bins" in config
    names = ("input_ids", "decoder_input_ids", "labels") if "d_kv" in config else ("input_ids", "labels")
    names = ("decoder_input_ids", "labels") if hears else names
    drawn = {name: random.integers(0, config["vocab_size"], (samples, positions(config))) for name in names}
    drawn["labels"][:, 3] = -100
    if hears:
        shape = (samples, config["num_mel_bins"], 2 * config["max_source_positions"])
        drawn = {"input_features": random.standard_normal(shape).astype(np.float32), **drawn}
    drawn[names[0]][:, 5] = (config.get("pad_token_id") or 0) % config["vocab_size"]
    return drawn
