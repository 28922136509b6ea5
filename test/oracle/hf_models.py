"""hf_models.py - the architectures of config.json in plain PyTorch, as their papers and checkpoints define them.

What models that ds-opt builds from a configuration are compared with: modules whose parameters have the names of the
published checkpoints.  make(config) gives one; forward(input_ids, labels) returns the mean cross-entropy.  Here are the
first families; hf_gated.py has the descendants of Llama, hf_plain.py those with a feed-forward of two products.
"""

import math

import torch
from torch import nn

import hf_encoders
import hf_gated
import hf_plain
import hf_t5
import hf_whisper
from hf_parts import Conv1D, Named, RMSNorm, Rotary, activation, attend, drop, frequencies, loss_of


class Gpt2Block(nn.Module):
    def __init__(self, c, index):
        super().__init__()
        width, inner = c["n_embd"], c.get("n_inner") or 4 * c["n_embd"]
        self.size = width // c["n_head"]
        self.scale = 1 / math.sqrt(self.size) if c.get("scale_attn_weights", True) else 1.0
        self.scale /= index + 1 if c.get("scale_attn_by_inverse_layer_idx", False) else 1
        self.act = activation(c.get("activation_function", "gelu_new"))
        self.ln_1 = nn.LayerNorm(width, eps=c.get("layer_norm_epsilon", 1e-5))
        self.ln_2 = nn.LayerNorm(width, eps=c.get("layer_norm_epsilon", 1e-5))
        self.attn = Named(c_attn=Conv1D(width, 3 * width), c_proj=Conv1D(width, width))
        self.mlp = Named(c_fc=Conv1D(width, inner), c_proj=Conv1D(inner, width))
        self.attn_drop, self.drop = drop(c.get("attn_pdrop", 0.1)), drop(c.get("resid_pdrop", 0.1))
        self.drops = c.get("attn_pdrop", 0.1) > 0

    def forward(self, x):
        heads = x.size(2) // self.size
        q, k, v = self.attn.c_attn(self.ln_1(x)).split(x.size(2), dim=2)
        q, k, v = (part.view(x.size(0), x.size(1), heads, self.size) for part in (q, k, v))
        mixed = attend(q, k, v, self.scale, drop=self.attn_drop if self.drops else None)
        x = self.drop(self.attn.c_proj(mixed)) + x
        return x + self.drop(self.mlp.c_proj(self.act(self.mlp.c_fc(self.ln_2(x)))))


class Gpt2(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["n_embd"]
        self.transformer = Named(wte=nn.Embedding(c["vocab_size"], width), wpe=nn.Embedding(c["n_positions"], width),
                                 drop=drop(c.get("embd_pdrop", 0.1)),
                                 h=nn.ModuleList(Gpt2Block(c, index) for index in range(c["n_layer"])),
                                 ln_f=nn.LayerNorm(width, eps=c.get("layer_norm_epsilon", 1e-5)))
        self.lm_head = nn.Linear(width, c["vocab_size"], bias=False)
        if c.get("tie_word_embeddings", True):
            self.lm_head.weight = self.transformer.wte.weight

    def forward(self, input_ids, labels):
        parts = self.transformer
        x = parts.wte(input_ids) + parts.wpe(torch.arange(input_ids.size(1)))
        x = parts.drop(x)
        for block in parts.h:
            x = block(x)
        return loss_of(self.lm_head(parts.ln_f(x)), labels)


class LlamaLayer(nn.Module):
    def __init__(self, c, rotary, window):
        super().__init__()
        kind, width, inner = c["model_type"], c["hidden_size"], c["intermediate_size"]
        heads = c["num_attention_heads"]
        groups = c.get("num_key_value_heads") or (8 if kind == "mistral" else heads)
        self.size = c.get("head_dim") or width // heads
        outer = kind == "llama" and c.get("attention_bias", False)
        inside, mlp = outer or kind == "qwen2", kind == "llama" and c.get("mlp_bias", False)
        self.self_attn = Named(q_proj=nn.Linear(width, heads * self.size, bias=inside),
                               k_proj=nn.Linear(width, groups * self.size, bias=inside),
                               v_proj=nn.Linear(width, groups * self.size, bias=inside),
                               o_proj=nn.Linear(heads * self.size, width, bias=outer))
        self.mlp = Named(gate_proj=nn.Linear(width, inner, bias=mlp), up_proj=nn.Linear(width, inner, bias=mlp),
                         down_proj=nn.Linear(inner, width, bias=mlp))
        self.input_layernorm = RMSNorm(width, c.get("rms_norm_eps", 1e-6))
        self.post_attention_layernorm = RMSNorm(width, c.get("rms_norm_eps", 1e-6))
        self.act, self.rotary, self.window = activation(c.get("hidden_act", "silu")), rotary, window

    def forward(self, x):
        h = self.input_layernorm(x)
        parts = self.self_attn
        q, k, v = (part(h).view(x.size(0), x.size(1), -1, self.size)
                   for part in (parts.q_proj, parts.k_proj, parts.v_proj))
        mixed = attend(self.rotary(q), self.rotary(k), v, 1 / math.sqrt(self.size), window=self.window)
        x = x + parts.o_proj(mixed)
        h = self.post_attention_layernorm(x)
        return x + self.mlp.down_proj(self.act(self.mlp.gate_proj(h)) * self.mlp.up_proj(h))


def llama_window(c, index):
    """The sliding window of a layer, or None."""
    kind = c["model_type"]
    if kind == "llama" or kind == "qwen2" and not c.get("use_sliding_window", False):
        return None
    if "layer_types" in c:
        sliding = c["layer_types"][index] == "sliding_attention"
    else:
        sliding = kind == "mistral" or index >= c.get("max_window_layers", 28)
    return c.get("sliding_window", 4096) if sliding else None


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, heads = c["hidden_size"], c["num_attention_heads"]
        scaling = c.get("rope_parameters") or c.get("rope_scaling")
        theta = (c.get("rope_parameters") or {}).get("rope_theta", c.get("rope_theta", 10000.0))
        inverse = frequencies(c, c.get("head_dim") or width // heads, theta, scaling)
        rotary = Rotary(inverse, c["max_position_embeddings"])
        layers = [LlamaLayer(c, rotary, llama_window(c, index)) for index in range(c["num_hidden_layers"])]
        tokens = nn.Embedding(c["vocab_size"], width, padding_idx=c.get("pad_token_id"))
        self.model = Named(embed_tokens=tokens, layers=nn.ModuleList(layers),
                           norm=RMSNorm(width, c.get("rms_norm_eps", 1e-6)))
        self.lm_head = nn.Linear(width, c["vocab_size"], bias=False)
        if c.get("tie_word_embeddings", False):
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids, labels):
        x = self.model.embed_tokens(input_ids)
        for layer in self.model.layers:
            x = layer(x)
        return loss_of(self.lm_head(self.model.norm(x)), labels)


class NeoxLayer(nn.Module):
    def __init__(self, c, rotary):
        super().__init__()
        width, bias = c["hidden_size"], c.get("attention_bias", True)
        self.heads, self.size = c["num_attention_heads"], width // c["num_attention_heads"]
        self.attention = Named(query_key_value=nn.Linear(width, 3 * width, bias=bias),
                               dense=nn.Linear(width, width, bias=bias))
        self.mlp = Named(dense_h_to_4h=nn.Linear(width, c["intermediate_size"]),
                         dense_4h_to_h=nn.Linear(c["intermediate_size"], width))
        self.input_layernorm = nn.LayerNorm(width, eps=c.get("layer_norm_eps", 1e-5))
        self.post_attention_layernorm = nn.LayerNorm(width, eps=c.get("layer_norm_eps", 1e-5))
        self.act, self.rotary = activation(c.get("hidden_act", "gelu")), rotary
        self.parallel = c.get("use_parallel_residual", True)

    def forward(self, x):
        joined = self.attention.query_key_value(self.input_layernorm(x))
        q, k, v = joined.view(x.size(0), x.size(1), self.heads, 3 * self.size).chunk(3, dim=-1)
        mixed = attend(self.rotary(q), self.rotary(k), v, 1 / math.sqrt(self.size))
        attended = self.attention.dense(mixed)
        middle = x if self.parallel else attended + x
        fed = self.mlp.dense_4h_to_h(self.act(self.mlp.dense_h_to_4h(self.post_attention_layernorm(middle))))
        return fed + attended + x if self.parallel else fed + middle


class GptNeox(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, new = c["hidden_size"], c.get("rope_parameters") or {}
        share = new.get("partial_rotary_factor", c.get("rotary_pct", 0.25))
        rotated = int(width // c["num_attention_heads"] * share)
        theta = new.get("rope_theta", c.get("rotary_emb_base", 10000))
        rotary = Rotary(frequencies(c, rotated, theta, new or c.get("rope_scaling")), c["max_position_embeddings"])
        layers = [NeoxLayer(c, rotary) for _ in range(c["num_hidden_layers"])]
        self.gpt_neox = Named(embed_in=nn.Embedding(c["vocab_size"], width), layers=nn.ModuleList(layers),
                              final_layer_norm=nn.LayerNorm(width, eps=c.get("layer_norm_eps", 1e-5)))
        self.embed_out = nn.Linear(width, c["vocab_size"], bias=False)
        if c.get("tie_word_embeddings", False):
            self.embed_out.weight = self.gpt_neox.embed_in.weight

    def forward(self, input_ids, labels):
        x = self.gpt_neox.embed_in(input_ids)
        for layer in self.gpt_neox.layers:
            x = layer(x)
        return loss_of(self.embed_out(self.gpt_neox.final_layer_norm(x)), labels)


def fresh(config):
    """The model of a configuration, as its modules start."""
    kinds = {"gpt2": Gpt2, "llama": Llama, "mistral": Llama, "qwen2": Llama, "gpt_neox": GptNeox, "vit": hf_encoders.Pictures,
             "dinov2": hf_encoders.Pictures, "t5": hf_t5.T5, "mt5": hf_t5.T5, "whisper": hf_whisper.Whisper, "modernbert": hf_encoders.ModernBert,
             **{name: hf_encoders.Masked for name in hf_encoders.NAMES}, **hf_gated.KINDS, **hf_plain.KINDS}
    return kinds[config["model_type"]](config)


def make(config, seed=0):
    """The model of a configuration, with random weights: no zero or one is left that could hide a mistake."""
    torch.manual_seed(seed)
    model = fresh(config)
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model
