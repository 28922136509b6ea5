#!/usr/bin/env python3
"""published_losses.py - three training steps of tiny models by the code that their authors publish (transformers).

    published_losses.py OUT.json [FAMILY...]      where a machine has transformers; the file is then a fixture

For each family: the config.json, the names and shapes of the parameters, and loss and gradient norm of three steps of AdamW in
fp32. Nothing random travels: values follow from names (`values`), tokens from their place (`batch_of`), so that whoever reads
the fixture makes the same model without transformers. A family that the installed version cannot build is written with its reason.
"""

import json
import sys
import zlib

import numpy

OPTIMIZER = {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
ROWS, LENGTH, VOCAB, STEPS = 2, 16, 96, 3
DECODER = {"vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
           "num_key_value_heads": 2, "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
MANY_HEADS = {**DECODER, "num_key_value_heads": 4}
ENCODER = {"vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
           "max_position_embeddings": 40, "type_vocab_size": 2, "pad_token_id": 0}
GPT2 = {"vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, "n_ctx": 32, "bos_token_id": 1, "eos_token_id": 2}
PICTURES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 16, "patch_size": 4,
            "num_channels": 3, "num_labels": 5}
EXPERTS = {"moe_intermediate_size": 24, "num_experts_per_tok": 2}
LATENT = {**MANY_HEADS, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8,
          "n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, **EXPERTS}

# model_type, what differs from PyTorch's defaults of that family; "head" where it is no causal language model.
FAMILIES = {
    "gpt2": GPT2, "llama": DECODER, "mistral": {**DECODER, "sliding_window": 8}, "qwen2": DECODER, "gpt_neox": {**MANY_HEADS, "rotary_pct": 0.5},
    "qwen3": {**DECODER, "head_dim": 8}, "gemma": {**DECODER, "head_dim": 8},
    "gemma2": {**DECODER, "head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8},
    "gemma3_text": {**DECODER, "head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8},
    "phi": MANY_HEADS, "phi3": {**DECODER, "sliding_window": None}, "olmo2": DECODER,
    "granite": {**DECODER, "embedding_multiplier": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2, "logits_scaling": 2.0},
    "stablelm": DECODER, "starcoder2": {**DECODER, "sliding_window": None}, "gpt_bigcode": GPT2, "cohere": DECODER,
    "falcon": {**ENCODER, "new_decoder_architecture": False, "multi_query": True, "parallel_attn": True, "bias": False, "alibi": False},
    "gptj": {**GPT2, "rotary_dim": 4},
    "gpt_neo": {"vocab_size": VOCAB, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 32, "window_size": 8,
                "attention_types": [[["global", "local"], 1]], "bos_token_id": 1, "eos_token_id": 2},
    "opt": {**MANY_HEADS, "ffn_dim": 48, "word_embed_proj_dim": 32}, "bloom": {"vocab_size": VOCAB, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "nemotron": DECODER, "olmo": MANY_HEADS, "smollm3": DECODER, "glm4": DECODER,
    "mixtral": {**DECODER, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {**DECODER, "head_dim": 8, "num_experts": 4, **EXPERTS}, "qwen2_moe": {**DECODER, "num_experts": 4, **EXPERTS},
    "deepseek_v2": {**LATENT, "topk_method": "greedy"}, "deepseek_v3": LATENT,
    "gpt_oss": {**DECODER, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},
    "llama4_text": {**DECODER, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 48},
    "bert": {**ENCODER, "head": "MaskedLM"}, "roberta": {**ENCODER, "head": "MaskedLM"}, "electra": {**ENCODER, "embedding_size": 32, "head": "MaskedLM"},
    "distilbert": {"vocab_size": VOCAB, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40, "head": "MaskedLM"},
    "modernbert": {**ENCODER, "global_attn_every_n_layers": 2, "local_attention": 8, "head": "MaskedLM"},
    "vit": {**PICTURES, "head": "ImageClassification"}, "dinov2": {**PICTURES, "head": "ImageClassification"},
    "t5": {"vocab_size": VOCAB, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0,
           "pad_token_id": 0, "head": "Seq2SeqLM"},
    "whisper": {"vocab_size": VOCAB, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_mel_bins": 8, "max_source_positions": 16,
                "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3,
                "head": "SpeechSeq2Seq"},
}


def values(name, shape):
    """What a parameter starts from, by its name alone: normal with 0.05, and around 1 where it is a vector of weights."""
    drawn = numpy.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(shape)) * 0.05
    return (drawn + (1.0 if len(shape) == 1 and name.endswith("weight") else 0.0)).astype(numpy.float32)


def batch_of(kind):
    """Inputs of one step by their names, the targets last: tokens by their place; two targets of each row do not count."""
    place = numpy.arange(ROWS * LENGTH).reshape(ROWS, LENGTH)
    tokens, targets = 4 + (place * 37 + 11) % (VOCAB - 4), 4 + (place * 53 + 29) % (VOCAB - 4)
    targets[:, 3] = targets[:, 9] = -100
    if kind == "ImageClassification":
        pixels = numpy.sin(numpy.arange(ROWS * 3 * 16 * 16) * 0.37).reshape(ROWS, 3, 16, 16).astype(numpy.float32)
        return {"pixel_values": pixels, "labels": numpy.array([1, 3])}
    if kind == "Seq2SeqLM":
        return {"input_ids": tokens, "decoder_input_ids": tokens[:, ::-1].copy(), "labels": targets}
    if kind == "SpeechSeq2Seq":
        features = numpy.sin(numpy.arange(ROWS * 8 * 32) * 0.21).reshape(ROWS, 8, 32).astype(numpy.float32)
        return {"input_features": features, "decoder_input_ids": tokens, "labels": targets}
    return {"input_ids": tokens, "labels": targets}


def build(family):
    """The model with its values by name, and what its head is."""
    import torch
    import transformers
    settings = dict(FAMILIES[family])
    kind = settings.pop("head", "CausalLM")
    config = transformers.AutoConfig.for_model(family, **settings)
    for key, value in config.to_dict().items():
        if "drop" in key and isinstance(value, float) and value:
            setattr(config, key, 0.0)
    model = getattr(transformers, f"AutoModelFor{kind}").from_config(config, attn_implementation="eager").float().train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(values(name, parameter.shape)))
    return model, kind


def train(family):
    """Config, parameters and three steps of a family."""
    import torch
    from torch.nn import functional
    model, kind = build(family)
    inputs = {name: torch.from_numpy(value) for name, value in batch_of(kind).items()}
    targets = inputs.pop("labels")
    optimizer = torch.optim.AdamW(model.parameters(), lr=OPTIMIZER["lr"], betas=OPTIMIZER["betas"], eps=OPTIMIZER["eps"],
                                  weight_decay=OPTIMIZER["weight_decay"])
    more = {} if kind in ("MaskedLM", "ImageClassification") else {"use_cache": False}
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(**inputs, **more).logits
        loss = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
        loss.backward()
        gradients = [p.grad.double().square().sum() for p in model.parameters() if p.grad is not None]
        losses.append(loss.item())
        norms.append(sum(gradients).sqrt().item())
        optimizer.step()
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    return {"head": kind, "config": model.config.to_diff_dict(), "parameters": shapes, "losses": losses, "gradient_norms": norms}


def write(out, found):
    """A family on each line, so that a difference shows which has changed."""
    families = ",\n".join(f"  {json.dumps(family)}: {json.dumps(each, default=str)}" for family, each in found["families"].items())
    head = json.dumps({key: value for key, value in found.items() if key != "families"})
    with open(out, "w") as file:
        file.write(f'{head[:-1]}, "families": {{\n{families}\n}}}}\n')


def main(out, families):
    import torch
    import transformers
    torch.set_num_threads(1)
    found = {"transformers": transformers.__version__, "torch": torch.__version__, "optimizer": OPTIMIZER, "families": {}}
    for family in families or FAMILIES:
        try:
            found["families"][family] = train(family)
        except Exception as error:  # one family's mistake is its own entry
            found["families"][family] = {"reason": f"{type(error).__name__}: {error}"[:300]}
    write(out, found)
    for family, each in found["families"].items():
        print(family, each.get("losses") or each["reason"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
