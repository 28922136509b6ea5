"""gpu_models.py - the models of a GPU round: how each is compiled here, and what it is there."""

import os

ADAMW = {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}}


def config(batch, accumulation=1, bf16=False, stage=0):
    """A ds_config.json."""
    return {"train_micro_batch_size_per_gpu": batch, "gradient_accumulation_steps": accumulation,
            "gradient_clipping": 1.0, "bf16": {"enabled": bf16}, "zero_optimization": {"stage": stage},
            "optimizer": ADAMW}


def on_two(stage, bf16=False):
    """A small GPT on two GPUs."""
    return {"example": ["gpt", "--size", "tiny", "--batch", "4", "--data", "64"], "ranks": 2, "bf16": bf16,
            "config": config(4, 2, bf16, stage)}


def other_gpt(stage=0, narrow=True, **changes):
    """A small GPT with something else in its configuration than the others of the ladder have; `changes` are of ZeRO's keys where
    there is a stage, else of the whole."""
    whole = config(4, 2, narrow and "fp16" not in changes, stage)
    (whole["zero_optimization"] if stage else whole).update(changes)
    return {"example": ["gpt", "--size", "tiny", "--batch", "4", "--data", "64"], "bf16": narrow, "config": whole}


def on_host(*parts, device="cpu"):
    """What of a model lies on the host, or on NVMe."""
    return {f"offload_{part}": {"device": device, **({"nvme_path": "/tmp"} if device == "nvme" else {})} for part in parts}


def hf_gpt2(layers, heads, width):
    """A config.json of GPT-2's kind; without dropout, as measurements of training are usually made."""
    return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257, "n_positions": 1024,
            "n_ctx": 1024, "n_embd": width, "n_layer": layers, "n_head": heads, "activation_function": "gelu_new",
            "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
            "attn_pdrop": 0.0, "tie_word_embeddings": True}


def gpt2(layers, heads, width, batch, length=1024, vocab=50257, dropout=0.0, **more):
    """GPT-2 as it is measured: what is compiled, and what PyTorch builds beside it."""
    hf = {**hf_gpt2(layers, heads, width), "vocab_size": vocab, "n_positions": length, "n_ctx": length,
          **{f"{place}_pdrop": dropout for place in ("resid", "embd", "attn")}}
    return {"hf": hf, "config": config(batch, 1, True), "batch": batch, "length": length,
            "layers": layers, "heads": heads, "width": width, "vocab": vocab, "compared": True,
            "weights": 12 * layers * width ** 2 + vocab * width, **more}


def with_fast_attention(model):
    """The same with the gradient of attention whose sums are in any order; PyTorch's is that of the other."""
    return {**model, "config": {**model["config"], "attention": "fast"}, "compared": False}


def offloaded(accumulation):
    """Moments and masters on the host, updated there; gradients are cut as ZeRO 2 cuts them."""
    whole = config(8, accumulation, True, 2)
    whole["zero_optimization"]["offload_optimizer"] = {"device": "cpu"}
    return whole


def llama(width, inner, layers, vocab, length, batch, tied, **more):
    """A Llama 3: heads of 32 for queries and 8 for keys, whatever the width."""
    heads, key_heads = 32, 8
    hf = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": vocab, "hidden_size": width,
          "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
          "num_key_value_heads": key_heads, "max_position_embeddings": length, "rms_norm_eps": 1e-5,
          "rope_theta": 500000.0, "tie_word_embeddings": tied}
    attention = 2 * width * width * (1 + key_heads / heads)
    return {"hf": hf, "config": config(batch, 1, True), "batch": batch, "length": length, "layers": layers, "heads": heads,
            "width": width, "vocab": vocab, "large": True,
            "weights": layers * (attention + 3 * width * inner) + vocab * width, **more}


def checked(hf, length, batch=2, attention="exact"):
    """A few layers whose losses with cuDNN are held to those without."""
    return {"hf": hf, "config": {**config(batch, 1, True), "attention": attention}, "batch": batch, "length": length,
            "vocab": hf["vocab_size"], "checked": True}


FORMS = {"vocab_size": 512, "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8, "max_position_embeddings": 1024}
GATED = {**FORMS, "intermediate_size": 1024, "num_key_value_heads": 4, "head_dim": 64, "rms_norm_eps": 1e-6}

# "example": examples/export.py's arguments, checked against the CPU's losses that --pack measures.
# "ranks": as many GPUs; where there are fewer, the model is skipped.
# "hf": a config.json, measured for speed; weights are random from the seed, so that none must travel. "weights" counts
# those of matrix products. PyTorch measures those that are "compared"; "large" ones are measured last and once.
# "checked": not for speed, its losses and norms with cuDNN are held to those without.
# "rehearsal": too small to say anything, packed only by name, and so is what is "more_than_80g".
MODELS = {
    "mlp": {"example": ["mlp", "--size", "tiny", "--batch", "8", "--data", "64"], "config": config(8, 2)},
    "gpt": {"example": ["gpt", "--size", "small", "--layers", "2", "--batch", "4", "--data", "64"],
            "config": config(4, 2), "torch": {"size": "small", "layers": 2}},
    "gpt-bf16": {"example": ["gpt", "--size", "small", "--layers", "2", "--batch", "4", "--data", "64"],
                 "config": config(4, 2, True), "bf16": True, "torch": {"size": "small", "layers": 2}},
    "llama": {"example": ["llama", "--size", "tiny", "--batch", "4", "--data", "64"], "config": config(4, 2)},
    "llama-bf16": {"example": ["llama", "--size", "tiny", "--batch", "4", "--data", "64"],
                   "config": config(4, 2, True), "bf16": True},
    "vit": {"example": ["vit", "--size", "tiny", "--batch", "4", "--data", "64"], "config": config(4, 2)},
    "vit-bf16": {"example": ["vit", "--size", "tiny", "--batch", "4", "--data", "64"],
                 "config": config(4, 2, True), "bf16": True},
    "speech": {"example": ["speech", "--size", "tiny", "--batch", "4", "--data", "64"], "config": config(4, 2)},
    "gpt-fp16": other_gpt(fp16={"enabled": True, "initial_scale_power": 8}),
    "gpt-recomputed": other_gpt(activation_checkpointing={"number_checkpoints": 2}),
    "gpt-optimizer-on-host": other_gpt(2, **on_host("optimizer")),
    "gpt-on-host": other_gpt(3, **on_host("optimizer", "param")),
    "gpt-on-nvme": other_gpt(3, **on_host("optimizer", "param", device="nvme")),
    **{f"gpt-zero{stage}": on_two(stage) for stage in range(4)},
    "gpt-zero3-bf16": on_two(3, True),
    "gpt-fast-attention": other_gpt(attention="fast"),
    "gpt2": gpt2(12, 12, 768, 16),
    "gpt2-padded": gpt2(12, 12, 768, 16, vocab=50304),
    "gpt2-fast": with_fast_attention(gpt2(12, 12, 768, 16)),
    "gpt2-dropout": gpt2(12, 12, 768, 16, dropout=0.1, compared=False),
    "gpt2-xl": gpt2(48, 25, 1600, 8, vocab=50304, large=True),
    "gpt2-xl-x4": {**gpt2(48, 25, 1600, 8, vocab=50304, large=True), "config": config(8, 4, True), "compared": False},
    "gpt2-xl-offload": {**gpt2(48, 25, 1600, 8, vocab=50304, large=True), "config": offloaded(4), "compared": False},
    # Llama 3.2's 1B, with its table of words used twice.
    "llama-1b": llama(2048, 8192, 16, 128256, 8192, 2, True, compared=True),
    "llama-1b-fast": with_fast_attention(llama(2048, 8192, 16, 128256, 8192, 2, True)),
    # The largest of Llama 3's shapes that one H200 holds with AdamW, without recomputation. PyTorch would need 120 GiB for weights,
    # gradients and moments alone.
    "llama3-8b": llama(4096, 14336, 32, 128256, 4096, 1, False, compared=False, more_than_80g=True),
    # The forms of attention: in blocks, for one layer has more scores than a piece of cuDNN's workspace; with sums in any order; with
    # dropout; with windows and caps; with slopes.
    "llama-blocks": checked({**GATED, "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 1, "num_attention_heads": 32,
                             "num_key_value_heads": 8, "max_position_embeddings": 20480}, 20480, 1),
    "llama-fast": checked({**GATED, "model_type": "llama"}, 1024, attention="fast"),
    "gpt2-dropped": checked({**hf_gpt2(2, 8, 512), "vocab_size": 512, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}, 1024),
    "gemma2-forms": checked({**GATED, "model_type": "gemma2", "sliding_window": 200, "query_pre_attn_scalar": 64}, 1024),
    "bloom-slopes": checked({"model_type": "bloom", "vocab_size": 512, "hidden_size": 512, "n_layer": 2, "n_head": 8,
                             "seq_length": 1024}, 1024),
    "gpt2-micro": gpt2(1, 2, 32, 2, 16, 64, rehearsal=True),
    "gpt2-milli": gpt2(2, 2, 32, 2, 16, 64, rehearsal=True, large=True),
}


def is_fast(name):
    """Whether two runs may differ in bits."""
    return MODELS[name]["config"].get("attention") == "fast"


def keeps_on_nvme(name):
    """Whether a run needs a directory for what the model keeps there."""
    return "offload_param" in (zero := MODELS[name]["config"]["zero_optimization"]) and zero["offload_param"]["device"] == "nvme"


def family(name):
    """Which of examples/ a model is; none for those from a config.json."""
    return MODELS[name].get("example", [None])[0]


def token_width(name):
    """Bytes of a token in a stream: two hold words up to 65535."""
    return 2 if MODELS[name]["vocab"] <= 1 << 16 else 4


def step_tokens(model):
    """Tokens of one step."""
    return model["batch"] * model["length"] * model["config"]["gradient_accumulation_steps"]


def tokens(name, folder):
    """A stream of tokens for a model from a config.json, the same on every machine; the file's path."""
    model, path, width = MODELS[name], os.path.join(folder, f"{name}.bin"), token_width(name)
    if not os.path.exists(path):
        state, words = 1, bytearray()
        for _ in range(model["batch"] * model["length"] * 8 + 1):
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            words += ((state >> 33) % model["vocab"]).to_bytes(width, "little")
        with open(path, "wb") as file:
            file.write(words)
    return path


def flops_per_token(model):
    """Of the matrix products of a training step, attention counted as causal: half of the square."""
    return 6 * (model["weights"] + model["layers"] * model["length"] * model["width"])
