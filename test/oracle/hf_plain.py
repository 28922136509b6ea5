"""hf_plain.py - decoders with a feed-forward of two products, in plain PyTorch.

Each layer is written after the published code of its family. hf_models.py says what they are for.
"""

import math

import torch
from torch import nn

from hf_parts import (LayerNormNoBias, LayerNormPlus, Named, Rotary, activation, alibi, attend, frequencies, heads_of, loss_of,
                      rotary_of)


def bare_attention(width, size, heads, groups, bias, out):
    return {"q_proj": nn.Linear(width, heads * size, bias=bias), "k_proj": nn.Linear(width, groups * size, bias=bias),
            "v_proj": nn.Linear(width, groups * size, bias=bias), out[0]: nn.Linear(heads * size, width, bias=out[1])}


def split_heads(parts, x, size):
    return (heads_of(part(x), size) for part in (parts.q_proj, parts.k_proj, parts.v_proj))


def side_by_side(joined, groups, size):
    """Queries, keys and values of a projection that holds those of each group one after the other."""
    shape = (joined.size(0), joined.size(1), groups, -1, size)
    parts = joined.view(shape)
    return parts[:, :, :, :-2].flatten(2, 3), parts[:, :, :, -2], parts[:, :, :, -1]


class Serial(nn.Module):
    """x + attention of a norm, then + feed-forward of another. `layout` names them."""

    def forward(self, x):
        x = x + self.attention(getattr(self, self.first)(x))
        return x + self.feed_forward(getattr(self, self.second)(x))


class Parallel(nn.Module):
    """Attention + feed-forward + x, of one norm."""

    def forward(self, x):
        normal = getattr(self, self.first)(x)
        return self.attention(normal) + self.feed_forward(normal) + x


class Starcoder2Layer(Serial):
    first, second = "input_layernorm", "post_attention_layernorm"

    def __init__(self, c):
        super().__init__()
        width, heads, bias, eps = c["hidden_size"], c["num_attention_heads"], c.get("use_bias", True), c.get("norm_epsilon", 1e-5)
        self.size = width // heads
        self.self_attn = Named(**bare_attention(width, self.size, heads, c.get("num_key_value_heads", 2), bias, ("o_proj", bias)))
        self.mlp = Named(c_fc=nn.Linear(width, c["intermediate_size"], bias=bias), c_proj=nn.Linear(c["intermediate_size"], width, bias=bias))
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(width, eps=eps), nn.LayerNorm(width, eps=eps)
        self.act, self.rotary, self.window = activation("gelu_pytorch_tanh"), rotary_of(c, self.size), c.get("sliding_window")

    def attention(self, x):
        q, k, v = split_heads(self.self_attn, x, self.size)
        return self.self_attn.o_proj(attend(self.rotary(q), self.rotary(k), v, 1 / math.sqrt(self.size), window=self.window))

    def feed_forward(self, x):
        return self.mlp.c_proj(self.act(self.mlp.c_fc(x)))


class NemotronLayer(Starcoder2Layer):
    def __init__(self, c):
        super().__init__({**c, "use_bias": False, "sliding_window": None})
        width, heads, eps, bias = c["hidden_size"], c["num_attention_heads"], c.get("norm_eps", 1e-5), c.get("attention_bias", False)
        self.size = c.get("head_dim") or width // heads
        self.self_attn = Named(**bare_attention(width, self.size, heads, c.get("num_key_value_heads", heads), bias, ("o_proj", bias)))
        self.mlp = Named(up_proj=nn.Linear(width, c["intermediate_size"], bias=False),
                         down_proj=nn.Linear(c["intermediate_size"], width, bias=False))
        self.input_layernorm, self.post_attention_layernorm = LayerNormPlus(width, eps=eps), LayerNormPlus(width, eps=eps)
        self.act, self.rotary = activation("relu2"), rotary_of(c, self.size, share=0.5)

    def feed_forward(self, x):
        return self.mlp.down_proj(self.act(self.mlp.up_proj(x)))


class CohereLayer(Parallel):
    first = "input_layernorm"

    def __init__(self, c):
        super().__init__()
        width, heads, inner, eps = c["hidden_size"], c["num_attention_heads"], c["intermediate_size"], c.get("layer_norm_eps", 1e-5)
        groups, bias = c.get("num_key_value_heads") or heads, c.get("attention_bias", False)
        self.size = width // heads
        self.self_attn = Named(**bare_attention(width, self.size, heads, groups, bias, ("o_proj", bias)))
        self.has_norms = c.get("use_qk_norm", False)
        if self.has_norms:
            self.self_attn.q_norm = LayerNormNoBias((heads, self.size), eps)
            self.self_attn.k_norm = LayerNormNoBias((groups, self.size), eps)
        self.mlp = Named(gate_proj=nn.Linear(width, inner, bias=False), up_proj=nn.Linear(width, inner, bias=False),
                         down_proj=nn.Linear(inner, width, bias=False))
        self.input_layernorm = LayerNormNoBias(width, eps)
        self.act, self.rotary = activation("silu"), rotary_of(c, self.size, neighbours=True)

    def attention(self, x):
        q, k, v = split_heads(self.self_attn, x, self.size)
        if self.has_norms:
            q, k = self.self_attn.q_norm(q), self.self_attn.k_norm(k)
        return self.self_attn.o_proj(attend(self.rotary(q), self.rotary(k), v, 1 / math.sqrt(self.size)))

    def feed_forward(self, x):
        return self.mlp.down_proj(self.act(self.mlp.gate_proj(x)) * self.mlp.up_proj(x))

    def forward(self, x):
        normal = self.input_layernorm(x)
        return x + self.attention(normal) + self.feed_forward(normal)


class PhiLayer(Parallel):
    first = "input_layernorm"

    def __init__(self, c):
        super().__init__()
        width, heads, inner, eps = c["hidden_size"], c["num_attention_heads"], c["intermediate_size"], c.get("layer_norm_eps", 1e-5)
        self.size, self.has_norms = width // heads, c.get("qk_layernorm", False)
        self.self_attn = Named(**bare_attention(width, self.size, heads, c.get("num_key_value_heads") or heads, True, ("dense", True)))
        if self.has_norms:
            self.self_attn.q_layernorm, self.self_attn.k_layernorm = nn.LayerNorm(self.size, eps=eps), nn.LayerNorm(self.size, eps=eps)
        self.mlp = Named(fc1=nn.Linear(width, inner), fc2=nn.Linear(inner, width))
        self.input_layernorm = nn.LayerNorm(width, eps=eps)
        self.act, self.rotary = activation(c.get("hidden_act", "gelu_new")), rotary_of(c, self.size, share=0.5)

    def attention(self, x):
        q, k, v = split_heads(self.self_attn, x, self.size)
        if self.has_norms:
            q, k = self.self_attn.q_layernorm(q), self.self_attn.k_layernorm(k)
        return self.self_attn.dense(attend(self.rotary(q), self.rotary(k), v, 1 / math.sqrt(self.size)))

    def feed_forward(self, x):
        return self.mlp.fc2(self.act(self.mlp.fc1(x)))


class GptJLayer(Parallel):
    first = "ln_1"

    def __init__(self, c):
        super().__init__()
        width, heads = c["n_embd"], c["n_head"]
        inner, self.size = c.get("n_inner") or 4 * width, width // heads
        self.attn = Named(**bare_attention(width, self.size, heads, heads, False, ("out_proj", False)))
        self.mlp = Named(fc_in=nn.Linear(width, inner), fc_out=nn.Linear(inner, width))
        self.ln_1 = nn.LayerNorm(width, eps=c.get("layer_norm_epsilon", 1e-5))
        self.act = activation(c.get("activation_function", "gelu_new"))
        rotated = c["rotary_dim"] or self.size
        self.rotary = Rotary(frequencies(c, rotated, 10000.0, None), c["n_positions"], neighbours=True)

    def attention(self, x):
        q, k, v = split_heads(self.attn, x, self.size)
        return self.attn.out_proj(attend(self.rotary(q), self.rotary(k), v, 1 / math.sqrt(self.size)))

    def feed_forward(self, x):
        return self.mlp.fc_out(self.act(self.mlp.fc_in(x)))


class GptNeoLayer(Serial):
    first, second = "ln_1", "ln_2"

    def __init__(self, c, index):
        super().__init__()
        width, heads = c["hidden_size"], c["num_heads"]
        inner, self.size = c.get("intermediate_size") or 4 * width, width // heads
        self.attn = Named(attention=Named(**bare_attention(width, self.size, heads, heads, False, ("out_proj", True))))
        self.mlp = Named(c_fc=nn.Linear(width, inner), c_proj=nn.Linear(inner, width))
        self.ln_1, self.ln_2, self.act = nn.LayerNorm(width), nn.LayerNorm(width), activation(c.get("activation_function", "gelu_new"))
        kinds = [kind for kinds, times in c["attention_types"] for kind in kinds * times]
        self.window = c.get("window_size", 256) if kinds[index] == "local" else None

    def attention(self, x):
        q, k, v = split_heads(self.attn.attention, x, self.size)
        return self.attn.attention.out_proj(attend(q, k, v, 1.0, window=self.window))

    def feed_forward(self, x):
        return self.mlp.c_proj(self.act(self.mlp.c_fc(x)))


class GptBigcodeLayer(Serial):
    first, second = "ln_1", "ln_2"

    def __init__(self, c):
        super().__init__()
        width, heads = c["n_embd"], c["n_head"]
        inner, self.size, self.heads = c.get("n_inner") or 4 * width, width // heads, heads
        self.shared = c.get("multi_query", True)
        rows = width + 2 * self.size if self.shared else 3 * width
        self.attn = Named(c_attn=nn.Linear(width, rows), c_proj=nn.Linear(width, width))
        self.mlp = Named(c_fc=nn.Linear(width, inner), c_proj=nn.Linear(inner, width))
        self.ln_1, self.ln_2, self.act = nn.LayerNorm(width), nn.LayerNorm(width), activation("gelu_pytorch_tanh")

    def attention(self, x):
        joined = self.attn.c_attn(x)
        if self.shared:
            parts = joined.split([x.size(2), self.size, self.size], dim=-1)
        else:
            parts = joined.view(x.size(0), x.size(1), self.heads, 3 * self.size).split(self.size, dim=-1)
        q, k, v = (heads_of(part.flatten(2), self.size) for part in parts)
        return self.attn.c_proj(attend(q, k, v, 1 / math.sqrt(self.size)))

    def feed_forward(self, x):
        return self.mlp.c_proj(self.act(self.mlp.c_fc(x)))


class FalconLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, heads, bias, self.new = c["hidden_size"], c["num_attention_heads"], c.get("bias", False), c.get("new_decoder_architecture", False)
        self.size, shared = width // heads, c.get("multi_query", True) and not self.new
        self.groups = c["num_kv_heads"] if self.new else 1 if shared else heads
        inner, rows = c.get("ffn_hidden_size") or 4 * width, (heads + 2 * self.groups) * self.size
        self.self_attention = Named(query_key_value=nn.Linear(width, rows, bias=bias), dense=nn.Linear(width, width, bias=bias))
        self.mlp = Named(dense_h_to_4h=nn.Linear(width, inner, bias=bias), dense_4h_to_h=nn.Linear(inner, width, bias=bias))
        self.parallel = self.new or c.get("parallel_attn", True)
        self.two = self.new and c.get("num_ln_in_parallel_attn", 2) == 2
        for name in ("ln_attn", "ln_mlp") if self.two else ("input_layernorm",) + (() if self.parallel else ("post_attention_layernorm",)):
            setattr(self, name, nn.LayerNorm(width, eps=c.get("layer_norm_epsilon", 1e-5)))
        self.slopes = alibi(heads) / math.sqrt(self.size) if c.get("alibi", False) else None
        self.rotary = nn.Identity() if c.get("alibi", False) else rotary_of({"max_position_embeddings": 2048, **c}, self.size)

    def attention(self, x):
        q, k, v = side_by_side(self.self_attention.query_key_value(x), self.groups, self.size)
        mixed = attend(self.rotary(q), self.rotary(k), v, 1 / math.sqrt(self.size), slopes=self.slopes)
        return self.self_attention.dense(mixed)

    def feed_forward(self, x):
        return self.mlp.dense_4h_to_h(nn.functional.gelu(self.mlp.dense_h_to_4h(x)))

    def forward(self, x):
        if self.two:
            attended = self.attention(self.ln_attn(x))
            return x + (self.feed_forward(self.ln_mlp(x)) + attended)
        normal = self.input_layernorm(x)
        if self.parallel:
            attended = self.attention(normal)
            return x + (self.feed_forward(normal) + attended)
        x = x + self.attention(normal)
        return x + self.feed_forward(self.post_attention_layernorm(x))


class OptLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, heads, bias = c["hidden_size"], c["num_attention_heads"], c.get("enable_bias", True)
        self.size, self.before = width // heads, c.get("do_layer_norm_before", True)
        self.self_attn = Named(**bare_attention(width, self.size, heads, heads, bias, ("out_proj", bias)))
        self.fc1, self.fc2 = nn.Linear(width, c["ffn_dim"], bias=bias), nn.Linear(c["ffn_dim"], width, bias=bias)
        self.self_attn_layer_norm, self.final_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def attention(self, x):
        q, k, v = split_heads(self.self_attn, x, self.size)
        return self.self_attn.out_proj(attend(q, k, v, 1 / math.sqrt(self.size)))

    def feed_forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))

    def forward(self, x):
        for half, norm in ((self.attention, self.self_attn_layer_norm), (self.feed_forward, self.final_layer_norm)):
            x = x + half(norm(x)) if self.before else norm(x + half(x))
        return x


class BloomLayer(Serial):
    first, second = "input_layernorm", "post_attention_layernorm"

    def __init__(self, c):
        super().__init__()
        width, self.heads, eps = c["hidden_size"], c["n_head"], c.get("layer_norm_epsilon", 1e-5)
        self.size, self.slopes = width // self.heads, alibi(self.heads)
        self.self_attention = Named(query_key_value=nn.Linear(width, 3 * width), dense=nn.Linear(width, width))
        self.mlp = Named(dense_h_to_4h=nn.Linear(width, 4 * width), dense_4h_to_h=nn.Linear(4 * width, width))
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(width, eps=eps), nn.LayerNorm(width, eps=eps)
        self.act = activation("gelu_pytorch_tanh")

    def attention(self, x):
        q, k, v = side_by_side(self.self_attention.query_key_value(x), self.heads, self.size)
        return self.self_attention.dense(attend(q, k, v, 1 / math.sqrt(self.size), slopes=self.slopes))

    def feed_forward(self, x):
        return self.mlp.dense_4h_to_h(self.act(self.mlp.dense_h_to_4h(x)))


class Rotating(nn.Module):
    """A model whose base is `model`; families give layers, the last norm and what the head has."""

    def __init__(self, c, layer, norm, name="norm", bias=False, tied=False, scale=1.0, padding=None):
        super().__init__()
        width = c["hidden_size"]
        tokens = nn.Embedding(c["vocab_size"], width, padding_idx=c.get("pad_token_id", padding))
        self.model = Named(embed_tokens=tokens, layers=nn.ModuleList(layer(c) for _ in range(c["num_hidden_layers"])))
        setattr(self.model, name, norm)
        self.lm_head = nn.Linear(width, c["vocab_size"], bias=bias)
        if c.get("tie_word_embeddings", tied):
            self.lm_head.weight = tokens.weight
        self.name, self.scale = name, scale

    def forward(self, input_ids, labels):
        x = self.model.embed_tokens(input_ids)
        for layer in self.model.layers:
            x = layer(x)
        return loss_of(self.lm_head(getattr(self.model, self.name)(x)) * self.scale, labels)


class Transformer(nn.Module):
    """A model whose base is `transformer`."""

    def __init__(self, c, layers, tokens="wte", positions=None, embedding_norm=False, bias=False, tied=True):
        super().__init__()
        width = c.get("n_embd") or c["hidden_size"]
        self.transformer = Named(**{tokens: nn.Embedding(c["vocab_size"], width)}, h=nn.ModuleList(layers),
                                 ln_f=nn.LayerNorm(width, eps=c.get("layer_norm_epsilon", 1e-5)))
        if positions:
            self.transformer.wpe = nn.Embedding(positions, width)
        if embedding_norm:
            self.transformer.word_embeddings_layernorm = nn.LayerNorm(width, eps=c.get("layer_norm_epsilon", 1e-5))
        self.lm_head = nn.Linear(width, c["vocab_size"], bias=bias)
        if c.get("tie_word_embeddings", tied):
            self.lm_head.weight = getattr(self.transformer, tokens).weight
        self.tokens, self.positions, self.embedding_norm = tokens, bool(positions), embedding_norm

    def forward(self, input_ids, labels):
        parts = self.transformer
        x = getattr(parts, self.tokens)(input_ids)
        if self.positions:
            x = x + parts.wpe(torch.arange(input_ids.size(1)))
        if self.embedding_norm:
            x = parts.word_embeddings_layernorm(x)
        for layer in parts.h:
            x = layer(x)
        return loss_of(self.lm_head(parts.ln_f(x)), labels)


class Opt(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["hidden_size"], c.get("word_embed_proj_dim", c["hidden_size"])
        tokens = nn.Embedding(c["vocab_size"], inner, padding_idx=c.get("pad_token_id", 1))
        decoder = Named(embed_tokens=tokens, embed_positions=nn.Embedding(c["max_position_embeddings"] + 2, width),
                        layers=nn.ModuleList(OptLayer(c) for _ in range(c["num_hidden_layers"])))
        if inner != width:
            decoder.project_in, decoder.project_out = nn.Linear(inner, width, bias=False), nn.Linear(width, inner, bias=False)
        if c.get("do_layer_norm_before", True):
            decoder.final_layer_norm = nn.LayerNorm(width)
        self.model, self.lm_head = Named(decoder=decoder), nn.Linear(inner, c["vocab_size"], bias=False)
        self.lm_head.weight = tokens.weight

    def forward(self, input_ids, labels):
        parts = self.model.decoder
        x = parts.embed_tokens(input_ids)
        x = parts.project_in(x) if hasattr(parts, "project_in") else x
        x = x + parts.embed_positions(torch.arange(input_ids.size(1)) + 2)
        for layer in parts.layers:
            x = layer(x)
        x = parts.final_layer_norm(x) if hasattr(parts, "final_layer_norm") else x
        x = parts.project_out(x) if hasattr(parts, "project_out") else x
        return loss_of(self.lm_head(x), labels)


def layers_of(layer, c, count, *by_index):
    return [layer(c, *([index] if by_index else [])) for index in range(c[count])]


KINDS = {
    "starcoder2": lambda c: Rotating(c, Starcoder2Layer, nn.LayerNorm(c["hidden_size"], eps=c.get("norm_epsilon", 1e-5)), tied=True),
    "nemotron": lambda c: Rotating(c, NemotronLayer, LayerNormPlus(c["hidden_size"], eps=c.get("norm_eps", 1e-5))),
    "cohere": lambda c: Rotating(c, CohereLayer, LayerNormNoBias(c["hidden_size"], c.get("layer_norm_eps", 1e-5)), tied=True,
                                 scale=c.get("logit_scale", 0.0625), padding=0),
    "phi": lambda c: Rotating(c, PhiLayer, nn.LayerNorm(c["hidden_size"], eps=c.get("layer_norm_eps", 1e-5)), "final_layernorm", bias=True),
    "gptj": lambda c: Transformer(c, layers_of(GptJLayer, c, "n_layer"), bias=True, tied=False),
    "gpt_neo": lambda c: Transformer(c, layers_of(GptNeoLayer, c, "num_layers", "index"), positions=c["max_position_embeddings"]),
    "gpt_bigcode": lambda c: Transformer(c, layers_of(GptBigcodeLayer, c, "n_layer"), positions=c["n_positions"]),
    "falcon": lambda c: Transformer(c, layers_of(FalconLayer, c, "num_hidden_layers"), "word_embeddings"),
    "bloom": lambda c: Transformer(c, layers_of(BloomLayer, c, "n_layer"), "word_embeddings", embedding_norm=True),
    "opt": Opt}
