"""hf_gated.py - Llama's descendants in plain PyTorch: a gated feed-forward, rotary positions.

Each layer is written after the published code of its family. hf_models.py says what they are for.
"""

import math

import torch
from torch import nn

from hf_parts import (LayerNormNoBias, Named, RMSNorm, RMSNormPlus, Rotary, activation, attend, bounded, frequencies, heads_of,
                      loss_of, magnitude, rotary_of)


def sizes(c, size=None):
    """Width, size of a head, heads, heads of keys."""
    heads = c["num_attention_heads"]
    return c["hidden_size"], c.get("head_dim") or size or c["hidden_size"] // heads, heads, c.get("num_key_value_heads") or heads


def attention_of(c, size=None, bias=False, out=False):
    """Separate projections."""
    width, size, heads, groups = sizes(c, size)
    return Named(q_proj=nn.Linear(width, heads * size, bias=bias), k_proj=nn.Linear(width, groups * size, bias=bias),
                 v_proj=nn.Linear(width, groups * size, bias=bias), o_proj=nn.Linear(heads * size, width, bias=out))


def gated_of(c, bias=False):
    width, inner = c["hidden_size"], c["intermediate_size"]
    return Named(gate_proj=nn.Linear(width, inner, bias=bias), up_proj=nn.Linear(width, inner, bias=bias),
                 down_proj=nn.Linear(inner, width, bias=bias))


def gated(parts, act, x):
    return parts.down_proj(act(parts.gate_proj(x)) * parts.up_proj(x))


def joined_gate(parts, act, x):
    gate, up = parts.gate_up_proj(x).chunk(2, dim=-1)
    return parts.down_proj(up * act(gate))


class Layer(nn.Module):
    """Llama's layer; families change what is theirs."""

    norm, eps = RMSNorm, 1e-6

    def __init__(self, c, rotary, index):
        super().__init__()
        self.size, self.rotary, self.window = sizes(c)[1], rotary, None
        self.scale = 1 / math.sqrt(self.size)
        self.act = activation(c.get("hidden_act", "silu"))
        bias = c.get("attention_bias", False)
        self.self_attn, self.mlp = attention_of(c, bias=bias, out=bias), gated_of(c, c.get("mlp_bias", False))
        self.add_norms(c, "input_layernorm", "post_attention_layernorm")

    def add_norms(self, c, *names):
        for name in names:
            setattr(self, name, self.norm(c["hidden_size"], eps=c.get("rms_norm_eps", self.eps)))

    def project(self, x):
        parts = self.self_attn
        return (heads_of(part(x), self.size) for part in (parts.q_proj, parts.k_proj, parts.v_proj))

    def attention(self, x):
        q, k, v = self.project(x)
        return self.self_attn.o_proj(attend(self.rotary(q), self.rotary(k), v, self.scale, window=self.window))

    def forward(self, x):
        x = x + self.attention(self.input_layernorm(x))
        return x + gated(self.mlp, self.act, self.post_attention_layernorm(x))


class Model(nn.Module):
    """Llama's model."""

    layer, norm, eps, tied, size = Layer, RMSNorm, 1e-6, False, None

    def __init__(self, c):
        super().__init__()
        width = c["hidden_size"]
        layers = nn.ModuleList(self.layer(c, self.rotary(c, index), index) for index in range(c["num_hidden_layers"]))
        self.model = Named(embed_tokens=nn.Embedding(c["vocab_size"], width, padding_idx=self.padding(c)), layers=layers)
        norm = self.last_norm(c)
        if norm is not None:
            self.model.norm = norm
        self.lm_head = nn.Linear(width, c["vocab_size"], bias=False)
        if c.get("tie_word_embeddings", self.tied):
            self.lm_head.weight = self.model.embed_tokens.weight

    def padding(self, c):
        return c.get("pad_token_id")

    def rotary(self, c, index):
        return rotary_of(c, sizes(c, self.size)[1])

    def last_norm(self, c):
        return self.norm(c["hidden_size"], eps=c.get("rms_norm_eps", self.eps))

    def embed(self, input_ids):
        return self.model.embed_tokens(input_ids)

    def logits(self, x):
        return self.lm_head(x)

    def forward(self, input_ids, labels):
        x = self.embed(input_ids)
        for layer in self.model.layers:
            x = layer(x)
        return loss_of(self.logits(self.model.norm(x)), labels)


def model_of(layer, **settings):
    return type(layer.__name__ + "Model", (Model,), {"layer": layer, "eps": layer.eps, "norm": layer.norm, **settings})


class Qwen3Layer(Layer):
    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        self.size = sizes(c, 128)[1]
        self.scale = 1 / math.sqrt(self.size)
        bias = c.get("attention_bias", False)
        self.self_attn = attention_of(c, 128, bias, bias)
        self.self_attn.q_norm = RMSNorm(self.size, eps=c.get("rms_norm_eps", 1e-6))
        self.self_attn.k_norm = RMSNorm(self.size, eps=c.get("rms_norm_eps", 1e-6))
        if c.get("use_sliding_window", False) and index >= c.get("max_window_layers", 28):
            self.window = c.get("sliding_window", 4096)

    def project(self, x):
        q, k, v = super().project(x)
        return self.self_attn.q_norm(q), self.self_attn.k_norm(k), v


class Phi3Layer(Layer):
    eps = 1e-5

    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        width, size, heads, groups = sizes(c)
        self.cuts = [heads * size, groups * size, groups * size]
        self.self_attn = Named(qkv_proj=nn.Linear(width, sum(self.cuts), bias=False), o_proj=nn.Linear(heads * size, width, bias=False))
        self.mlp = Named(gate_up_proj=nn.Linear(width, 2 * c["intermediate_size"], bias=False),
                         down_proj=nn.Linear(c["intermediate_size"], width, bias=False))
        self.window = c.get("sliding_window")

    def project(self, x):
        return (heads_of(part, self.size) for part in self.self_attn.qkv_proj(x).split(self.cuts, dim=-1))

    def forward(self, x):
        x = x + self.attention(self.input_layernorm(x))
        return x + joined_gate(self.mlp, self.act, self.post_attention_layernorm(x))


class NormOfNothing(nn.LayerNorm):
    """OLMo's: no parameters."""

    def __init__(self, width, eps):
        super().__init__(width, eps=1e-5, elementwise_affine=False)


class OlmoLayer(Layer):
    norm = NormOfNothing


class Olmo2Layer(Layer):
    eps = 1e-5

    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        _, size, heads, groups = sizes(c)
        del self.input_layernorm
        self.add_norms(c, "post_feedforward_layernorm")
        self.self_attn.q_norm = RMSNorm(heads * size, eps=c.get("rms_norm_eps", 1e-5))
        self.self_attn.k_norm = RMSNorm(groups * size, eps=c.get("rms_norm_eps", 1e-5))

    def project(self, x):
        parts = self.self_attn
        q, k = parts.q_norm(parts.q_proj(x)), parts.k_norm(parts.k_proj(x))
        return (heads_of(part, self.size) for part in (q, k, parts.v_proj(x)))

    def forward(self, x):
        x = x + self.post_attention_layernorm(self.attention(x))
        return x + self.post_feedforward_layernorm(gated(self.mlp, self.act, x))


class GraniteLayer(Layer):
    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        self.scale, self.factor = c.get("attention_multiplier", 1.0), c.get("residual_multiplier", 1.0)

    def forward(self, x):
        x = x + self.attention(self.input_layernorm(x)) * self.factor
        return x + gated(self.mlp, self.act, self.post_attention_layernorm(x)) * self.factor


class Granite(Model):
    layer = GraniteLayer

    def __init__(self, c):
        super().__init__(c)
        self.embedding_factor, self.divisor = c.get("embedding_multiplier", 1.0), c.get("logits_scaling", 1.0)

    def embed(self, input_ids):
        return self.model.embed_tokens(input_ids) * self.embedding_factor

    def logits(self, x):
        return self.lm_head(x) / self.divisor


class MiniCpmLayer(GraniteLayer):
    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        self.scale, self.factor = 1 / math.sqrt(self.size), c["scale_depth"] / math.sqrt(c["num_hidden_layers"])


class MiniCpm(Model):
    layer, tied = MiniCpmLayer, True

    def __init__(self, c):
        super().__init__(c)
        self.embedding_factor, self.divisor = c["scale_emb"], c["hidden_size"] / c["dim_model_base"]

    def embed(self, input_ids):
        return self.model.embed_tokens(input_ids) * self.embedding_factor

    def logits(self, x):
        return self.lm_head(x / self.divisor)


class GemmaLayer(Layer):
    norm = RMSNormPlus

    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        self.size = sizes(c, 256)[1]
        self.scale, self.cap = 1 / math.sqrt(self.size), None
        self.self_attn = attention_of(c, 256)
        self.act = activation(c.get("hidden_activation") or "gelu_pytorch_tanh")

    def attention(self, x):
        q, k, v = self.project(x)
        return self.self_attn.o_proj(attend(self.rotary(q), self.rotary(k), v, self.scale, window=self.window, cap=self.cap))


class Gemma(Model):
    layer, norm, tied, size = GemmaLayer, RMSNormPlus, True, 256

    def __init__(self, c):
        super().__init__(c)
        self.factor, self.cap = math.sqrt(c["hidden_size"]), None

    def padding(self, c):
        return c.get("pad_token_id", 0)

    def embed(self, input_ids):
        return self.model.embed_tokens(input_ids) * self.factor

    def logits(self, x):
        return bounded(self.lm_head(x), self.cap)


class Gemma2Layer(GemmaLayer):
    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        self.add_norms(c, "pre_feedforward_layernorm", "post_feedforward_layernorm")
        self.scale, self.cap = c.get("query_pre_attn_scalar", 256) ** -0.5, c.get("attn_logit_softcapping", 50.0)
        self.window = c.get("sliding_window", 4096) if index % 2 == 0 else None

    def forward(self, x):
        x = x + self.post_attention_layernorm(self.attention(self.input_layernorm(x)))
        return x + self.post_feedforward_layernorm(gated(self.mlp, self.act, self.pre_feedforward_layernorm(x)))


class Gemma2(Gemma):
    layer = Gemma2Layer

    def __init__(self, c):
        super().__init__(c)
        self.cap = c.get("final_logit_softcapping", 30.0)


def is_local(c, index):
    return (index + 1) % c.get("sliding_window_pattern", 6) != 0


class Gemma3Layer(Gemma2Layer):
    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        self.cap, self.window = None, c.get("sliding_window", 4096) if is_local(c, index) else None
        self.self_attn.q_norm = RMSNormPlus(self.size, eps=c.get("rms_norm_eps", 1e-6))
        self.self_attn.k_norm = RMSNormPlus(self.size, eps=c.get("rms_norm_eps", 1e-6))

    def project(self, x):
        q, k, v = super().project(x)
        return self.self_attn.q_norm(q), self.self_attn.k_norm(k), v


class Gemma3(Gemma):
    layer = Gemma3Layer

    def rotary(self, c, index):
        theta = c.get("rope_local_base_freq", 10000.0) if is_local(c, index) else c.get("rope_theta", 1e6)
        scaling = None if is_local(c, index) else c.get("rope_scaling")
        inverse = frequencies(c, sizes(c, 256)[1], theta, scaling)
        return Rotary(inverse, c["max_position_embeddings"], factor=magnitude(c, scaling))


class SmolLm3Layer(Layer):
    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        rotates = c.get("no_rope_layers", [(place + 1) % 4 != 0 for place in range(index + 1)])[index]
        self.rotary = rotary if rotates else nn.Identity()
        self.window = c["sliding_window"] if c.get("use_sliding_window") and not rotates else None


class SmolLm3(Model):
    layer, tied = SmolLm3Layer, True

    def rotary(self, c, index):
        return rotary_of(c, sizes(c)[1], theta=2e6)


class Glm4Layer(Layer):
    eps = 1.5625e-7

    def __init__(self, c, rotary, index):
        super().__init__(c, rotary, index)
        width = c["hidden_size"]
        self.self_attn = attention_of(c, bias=c.get("attention_bias", False))
        self.mlp = Named(gate_up_proj=nn.Linear(width, 2 * c["intermediate_size"], bias=False),
                         down_proj=nn.Linear(c["intermediate_size"], width, bias=False))
        self.add_norms(c, "post_self_attn_layernorm", "post_mlp_layernorm")

    def forward(self, x):
        x = x + self.post_self_attn_layernorm(self.attention(self.input_layernorm(x)))
        return x + self.post_mlp_layernorm(joined_gate(self.mlp, self.act, self.post_attention_layernorm(x)))


class Glm4(Model):
    layer, eps = Glm4Layer, 1.5625e-7

    def rotary(self, c, index):
        return rotary_of(c, sizes(c)[1], neighbours=True, share=0.5)


class NormOfEach(nn.Module):
    """StableLM's: heads have norms of their own."""

    def __init__(self, heads, size, eps):
        super().__init__()
        self.norms = nn.ModuleList(LayerNormNoBias(size, eps) for _ in range(heads))

    def forward(self, x):
        return torch.stack([norm(head) for norm, head in zip(self.norms, x.unbind(2))], dim=2)


class StableLmLayer(Layer):
    norm = nn.LayerNorm

    def __init__(self, c, rotary, index):
        eps = c.get("layer_norm_eps", 1e-5)
        super().__init__({**c, "rms_norm_eps": eps}, rotary, index)
        _, size, heads, groups = sizes(c)
        self.self_attn = attention_of(c, bias=c.get("use_qkv_bias", False))
        self.parallel, self.has_norms = c.get("use_parallel_residual", False), c.get("qk_layernorm", False)
        if self.parallel:
            del self.post_attention_layernorm
        if self.has_norms:
            self.self_attn.q_layernorm = NormOfEach(heads, size, eps)
            self.self_attn.k_layernorm = NormOfEach(groups, size, eps)

    def project(self, x):
        q, k, v = super().project(x)
        return (self.self_attn.q_layernorm(q), self.self_attn.k_layernorm(k), v) if self.has_norms else (q, k, v)

    def forward(self, x):
        normal = self.input_layernorm(x)
        if self.parallel:
            return x + self.attention(normal) + gated(self.mlp, self.act, normal)
        x = x + self.attention(normal)
        return x + gated(self.mlp, self.act, self.post_attention_layernorm(x))


class StableLm(Model):
    layer = StableLmLayer

    def rotary(self, c, index):
        return rotary_of(c, sizes(c)[1], share=0.25)

    def last_norm(self, c):
        return nn.LayerNorm(c["hidden_size"], eps=c.get("layer_norm_eps", 1e-5))


KINDS = {"qwen3": model_of(Qwen3Layer, size=128), "phi3": model_of(Phi3Layer),
         "olmo": model_of(OlmoLayer, padding=lambda self, c: c.get("pad_token_id", 1)),
         "olmo2": model_of(Olmo2Layer, padding=lambda self, c: c.get("pad_token_id", 1)), "granite": Granite, "minicpm": MiniCpm,
         "gemma": Gemma, "gemma2": Gemma2, "gemma3_text": Gemma3, "smollm3": SmolLm3, "glm4": Glm4, "stablelm": StableLm}
