"""hf_encoders.py - encoders of config.json in plain PyTorch, as their papers and checkpoints define them.

Masked language models with a norm after each block (bert and what came of it), and classifiers of pictures by patches (vit, dinov2).
hf_models.make() builds them.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from hf_parts import Named, Rotary, activation, attend, frequencies, loss_of


def place(module, path, part):
    """Puts a part where a dotted name says, making what is between."""
    *layers, leaf = path.split(".")
    for layer in layers:
        if not hasattr(module, layer):
            setattr(module, layer, Named())
        module = getattr(module, layer)
    setattr(module, leaf, part)


def at(module, path):
    for leaf in path.split("."):
        module = getattr(module, leaf)
    return module


BERT = {"base": "bert", "layers": "encoder.layer", "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
        "out": "attention.output.dense", "norm": "attention.output.LayerNorm", "expand": "intermediate.dense", "contract": "output.dense",
        "last": "output.LayerNorm", "dense": "cls.predictions.transform.dense", "head_norm": "cls.predictions.transform.LayerNorm",
        "decoder": "cls.predictions.decoder", "bias": "cls.predictions.bias"}
ROBERTA = {**BERT, "base": "roberta", "dense": "lm_head.dense", "head_norm": "lm_head.layer_norm", "decoder": "lm_head.decoder",
           "bias": "lm_head.bias"}
ELECTRA = {**BERT, "base": "electra", "dense": "generator_predictions.dense", "head_norm": "generator_predictions.LayerNorm",
           "decoder": "generator_lm_head", "bias": None}
DISTIL = {"base": "distilbert", "layers": "transformer.layer", "q": "attention.q_lin", "k": "attention.k_lin", "v": "attention.v_lin",
          "out": "attention.out_lin", "norm": "sa_layer_norm", "expand": "ffn.lin1", "contract": "ffn.lin2", "last": "output_layer_norm",
          "dense": "vocab_transform", "head_norm": "vocab_layer_norm", "decoder": "vocab_projector", "bias": None}
NAMES = {"bert": BERT, "roberta": ROBERTA, "camembert": ROBERTA, "xlm-roberta": ROBERTA, "electra": ELECTRA, "distilbert": DISTIL}
DISTIL_KEYS = {"hidden_size": "dim", "intermediate_size": "hidden_dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
               "hidden_act": "activation"}


def linears(module, names, sizes):
    for name, (inputs, outputs) in zip(names, sizes, strict=True):
        place(module, name, nn.Linear(inputs, outputs))


class Masked(nn.Module):
    """A masked language model; keys are bert's."""

    def __init__(self, config):
        super().__init__()
        kind = config["model_type"]
        c = config if kind != "distilbert" else {**config, **{key: config[name] for key, name in DISTIL_KEYS.items() if name in config}}
        self.n, self.c = NAMES[kind], c
        padding = c.get("pad_token_id", 1 if self.n is ROBERTA else 0)
        width, self.eps = c["hidden_size"], c.get("layer_norm_eps", 1e-12)
        narrow = c.get("embedding_size", 128) if kind == "electra" else width
        self.first = padding + 1 if self.n is ROBERTA else 0
        self.act = activation(c.get("hidden_act", "gelu"))
        self.head_act = F.gelu if self.n in (ROBERTA, ELECTRA) else self.act
        parts = Named(word_embeddings=nn.Embedding(c["vocab_size"], narrow, padding_idx=padding),
                      position_embeddings=nn.Embedding(c["max_position_embeddings"], narrow), LayerNorm=nn.LayerNorm(narrow, eps=self.eps))
        if kind != "distilbert":
            parts.token_type_embeddings = nn.Embedding(c.get("type_vocab_size", 2), narrow)
            self.register_buffer("token_type_ids", torch.zeros(1, c["max_position_embeddings"], dtype=torch.int64), persistent=False)
        base = Named(embeddings=parts)
        if narrow != width:
            base.embeddings_project = nn.Linear(narrow, width)
        place(base, self.n["layers"], nn.ModuleList(self.layer(width, c["intermediate_size"]) for _ in range(c["num_hidden_layers"])))
        place(self, self.n["base"], base)
        self.head(narrow, width, parts)

    def layer(self, width, inner):
        block, n = Named(), self.n
        linears(block, (n["q"], n["k"], n["v"], n["out"], n["expand"], n["contract"]), [(width, width)] * 4 + [(width, inner), (inner, width)])
        for name in (n["norm"], n["last"]):
            place(block, name, nn.LayerNorm(width, eps=self.eps))
        return block

    def head(self, narrow, width, parts):
        decoder = nn.Linear(narrow, self.c["vocab_size"])
        if self.c.get("tie_word_embeddings", True):
            decoder.weight = parts.word_embeddings.weight
        place(self, self.n["dense"], nn.Linear(width, narrow))
        place(self, self.n["head_norm"], nn.LayerNorm(narrow, eps=self.eps))
        place(self, self.n["decoder"], decoder)
        if self.n["bias"]:
            place(self, self.n["bias"], decoder.bias)

    def block(self, layer, x):
        n, size = self.n, self.c["hidden_size"] // self.c["num_attention_heads"]
        q, k, v = (at(layer, n[key])(x).view(x.size(0), x.size(1), -1, size) for key in "qkv")
        mixed = attend(q, k, v, 1 / math.sqrt(size), causal=False)
        x = at(layer, n["norm"])(at(layer, n["out"])(mixed) + x)
        return at(layer, n["last"])(at(layer, n["contract"])(self.act(at(layer, n["expand"])(x))) + x)

    def forward(self, input_ids, labels):
        base = at(self, self.n["base"])
        parts = base.embeddings
        x = parts.word_embeddings(input_ids)
        if hasattr(parts, "token_type_embeddings"):
            x = x + parts.token_type_embeddings(self.token_type_ids[:, :input_ids.size(1)].expand(input_ids.size(0), -1))
        x = parts.LayerNorm(x + parts.position_embeddings(torch.arange(self.first, self.first + input_ids.size(1))))
        if hasattr(base, "embeddings_project"):
            x = base.embeddings_project(x)
        for layer in at(base, self.n["layers"]):
            x = self.block(layer, x)
        x = at(self, self.n["head_norm"])(self.head_act(at(self, self.n["dense"])(x)))
        return loss_of(at(self, self.n["decoder"])(x), labels)


VIT = {"base": "vit", "norm": "layernorm_before", "out": "attention.output.dense", "scale": None, "inner_norm": "layernorm_after",
       "expand": "intermediate.dense", "contract": "output.dense", "inner_scale": None}
DINOV2 = {"base": "dinov2", "norm": "norm1", "out": "attention.output.dense", "scale": "layer_scale1.lambda1", "inner_norm": "norm2",
          "expand": "mlp.fc1", "contract": "mlp.fc2", "inner_scale": "layer_scale2.lambda1"}
SWIGLU = {**DINOV2, "expand": "mlp.weights_in", "contract": "mlp.weights_out"}


class Pictures(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.gated, width = c, c.get("use_swiglu_ffn", False), c["hidden_size"]
        self.n = VIT if c["model_type"] == "vit" else SWIGLU if self.gated else DINOV2
        self.eps, patch = c.get("layer_norm_eps", 1e-12 if self.n is VIT else 1e-6), c.get("patch_size", 16)
        self.act = activation(c.get("hidden_act", "gelu"))
        parts = Named(cls_token=nn.Parameter(torch.zeros(1, 1, width)),
                      position_embeddings=nn.Parameter(torch.zeros(1, (c.get("image_size", 224) // patch) ** 2 + 1, width)))
        place(parts, "patch_embeddings.projection", nn.Conv2d(c.get("num_channels", 3), width, patch, patch))
        base = Named(embeddings=parts, layernorm=nn.LayerNorm(width, eps=self.eps))
        place(base, "encoder.layer", nn.ModuleList(self.layer(width) for _ in range(c["num_hidden_layers"])))
        place(self, self.n["base"], base)
        self.classifier = nn.Linear(width if self.n is VIT else 2 * width, len(c["id2label"]))

    def layer(self, width):
        block, n = Named(), self.n
        inner = self.c["intermediate_size"] if n is VIT else int(width * self.c.get("mlp_ratio", 4))
        inner = (int(inner * 2 / 3) + 7) // 8 * 8 if self.gated else inner
        for name in ("query", "key", "value"):
            place(block, "attention.attention." + name, nn.Linear(width, width, bias=self.c.get("qkv_bias", True)))
        linears(block, (n["out"], n["expand"], n["contract"]), [(width, width), (width, (2 if self.gated else 1) * inner), (inner, width)])
        for name in (n["norm"], n["inner_norm"]):
            place(block, name, nn.LayerNorm(width, eps=self.eps))
        for name in filter(None, (n["scale"], n["inner_scale"])):
            place(block, name, nn.Parameter(torch.full((width,), float(self.c.get("layerscale_value", 1.0)))))
        return block

    def scaled(self, layer, name, x):
        return x if self.n[name] is None else x * at(layer, self.n[name])

    def block(self, layer, x):
        n, size = self.n, self.c["hidden_size"] // self.c["num_attention_heads"]
        normed = at(layer, n["norm"])(x)
        parts = layer.attention.attention
        q, k, v = (part(normed).view(x.size(0), x.size(1), -1, size) for part in (parts.query, parts.key, parts.value))
        x = self.scaled(layer, "scale", at(layer, n["out"])(attend(q, k, v, 1 / math.sqrt(size), causal=False))) + x
        inner = at(layer, n["expand"])(at(layer, n["inner_norm"])(x))
        if self.gated:
            gate, up = inner.chunk(2, dim=-1)
            inner = F.silu(gate) * up
        else:
            inner = self.act(inner)
        return self.scaled(layer, "inner_scale", at(layer, n["contract"])(inner)) + x

    def forward(self, pixel_values, labels):
        base = at(self, self.n["base"])
        parts = base.embeddings
        x = parts.patch_embeddings.projection(pixel_values).flatten(2).transpose(1, 2)
        x = torch.cat((parts.cls_token.expand(x.size(0), -1, -1), x), dim=1) + parts.position_embeddings
        for layer in base.encoder.layer:
            x = self.block(layer, x)
        x = base.layernorm(x)
        read = x[:, 0] if self.n is VIT else torch.cat((x[:, 0], x[:, 1:].mean(1)), dim=1)
        return F.cross_entropy(self.classifier(read), labels)


class ModernBert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, width, inner = c, c["hidden_size"], c["intermediate_size"]
        self.size = width // c["num_attention_heads"]
        bias, mlp_bias = c.get("attention_bias", False), c.get("mlp_bias", False)
        embeddings = Named(tok_embeddings=nn.Embedding(c["vocab_size"], width, padding_idx=c.get("pad_token_id")), norm=self.norm())
        layers = nn.ModuleList()
        for index in range(c["num_hidden_layers"]):
            layers.append(Named(attn=Named(Wqkv=nn.Linear(width, 3 * width, bias=bias), Wo=nn.Linear(width, width, bias=bias)),
                                mlp_norm=self.norm(), mlp=Named(Wi=nn.Linear(width, 2 * inner, bias=mlp_bias),
                                                                Wo=nn.Linear(inner, width, bias=mlp_bias))))
            if index > 0:
                layers[-1].attn_norm = self.norm()
        self.model = Named(embeddings=embeddings, layers=layers, final_norm=self.norm())
        self.head = Named(dense=nn.Linear(width, width, bias=c.get("classifier_bias", False)), norm=self.norm())
        self.decoder = nn.Linear(width, c["vocab_size"], bias=c.get("decoder_bias", True))
        if c.get("tie_word_embeddings", True):
            self.decoder.weight = embeddings.tok_embeddings.weight
        self.act = activation(c.get("hidden_activation", "gelu"))
        thetas = {"full": c.get("global_rope_theta", 160000.0), "near": c.get("local_rope_theta", 10000.0)}
        self.rotary = {kind: Rotary(frequencies(c, self.size, theta, None), c["max_position_embeddings"]) for kind, theta in thetas.items()}

    def norm(self):
        norm = nn.LayerNorm(self.c["hidden_size"], eps=self.c.get("norm_eps", 1e-5))
        if not self.c.get("norm_bias", False):
            norm.register_parameter("bias", None)
        return norm

    def mix(self, attn, x, kind):
        q, k, v = (part.view(x.size(0), x.size(1), -1, self.size) for part in attn.Wqkv(x).chunk(3, dim=-1))
        q, k = self.rotary[kind](q), self.rotary[kind](k)
        scores = q.transpose(1, 2) @ k.transpose(1, 2).transpose(2, 3) / math.sqrt(self.size)
        if kind == "near":
            place = torch.arange(x.size(1))
            far = (place[None] - place[:, None]).abs() > self.c.get("local_attention", 128) // 2
            scores = scores.masked_fill(far, float("-inf"))
        return attn.Wo((F.softmax(scores, dim=-1) @ v.transpose(1, 2)).transpose(1, 2).reshape(x.shape))

    def forward(self, input_ids, labels):
        x = self.model.embeddings.norm(self.model.embeddings.tok_embeddings(input_ids))
        for index, layer in enumerate(self.model.layers):
            kind = "full" if index % self.c.get("global_attn_every_n_layers", 3) == 0 else "near"
            x = x + self.mix(layer.attn, layer.attn_norm(x) if index > 0 else x, kind)
            inner, gate = layer.mlp.Wi(layer.mlp_norm(x)).chunk(2, dim=-1)
            x = x + layer.mlp.Wo(self.act(inner) * gate)
        x = self.head.norm(F.gelu(self.head.dense(self.model.final_norm(x))))
        return loss_of(self.decoder(x), labels)
