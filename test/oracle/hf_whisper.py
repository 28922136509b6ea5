"""hf_whisper.py - Whisper in plain PyTorch, as its paper (arXiv 2212.04356) and checkpoints define it. hf_models.make() builds it."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from hf_parts import Named, activation, attend, loss_of


def sinusoids(rows, columns):
    """Sines, then cosines, of angles whose frequencies fall from 1 to 1 / 10000."""
    step = math.log(10000) / (columns // 2 - 1)
    angles = torch.arange(rows)[:, None] * torch.exp(-step * torch.arange(columns // 2))[None]
    return torch.cat((angles.sin(), angles.cos()), dim=1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.size = width // heads
        self.k_proj = nn.Linear(width, width, bias=False)
        self.q_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, memory, causal):
        q, k, v = (part(y).view(y.size(0), y.size(1), -1, self.size) for part, y in (
            (self.q_proj, x), (self.k_proj, memory), (self.v_proj, memory)))
        return self.out_proj(attend(q, k, v, self.size ** -0.5, causal=causal))


class Layer(nn.Module):
    """A layer of the encoder ("encoder"), or one of the decoder, which reads the encoder's result besides."""

    def __init__(self, c, half):
        super().__init__()
        width, heads, inner = c["d_model"], c[half + "_attention_heads"], c[half + "_ffn_dim"]
        self.causal = half == "decoder"
        self.act = activation(c.get("activation_function", "gelu"))
        self.self_attn, self.self_attn_layer_norm = Attention(width, heads), nn.LayerNorm(width)
        if self.causal:
            self.encoder_attn, self.encoder_attn_layer_norm = Attention(width, heads), nn.LayerNorm(width)
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width)

    def forward(self, x, memory=None):
        normed = self.self_attn_layer_norm(x)
        x = x + self.self_attn(normed, normed, self.causal)
        if self.causal:
            x = x + self.encoder_attn(self.encoder_attn_layer_norm(x), memory, False)
        return x + self.fc2(self.act(self.fc1(self.final_layer_norm(x))))


def layers(c, half):
    return nn.ModuleList(Layer(c, half) for _ in range(c[half + "_layers"]))


class Whisper(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["d_model"]
        places = nn.Embedding(c["max_source_positions"], width)
        places.weight = nn.Parameter(sinusoids(c["max_source_positions"], width), requires_grad=False)
        encoder = Named(conv1=nn.Conv1d(c["num_mel_bins"], width, 3, padding=1), conv2=nn.Conv1d(width, width, 3, stride=2, padding=1),
                        embed_positions=places, layers=layers(c, "encoder"), layer_norm=nn.LayerNorm(width))
        decoder = Named(embed_tokens=nn.Embedding(c["vocab_size"], width, padding_idx=c["pad_token_id"]),
                        embed_positions=nn.Embedding(c["max_target_positions"], width), layers=layers(c, "decoder"),
                        layer_norm=nn.LayerNorm(width))
        self.model = Named(encoder=encoder, decoder=decoder)
        self.proj_out = nn.Linear(width, c["vocab_size"], bias=False)
        if c.get("tie_word_embeddings", True):
            self.proj_out.weight = decoder.embed_tokens.weight

    def encode(self, input_features):
        encoder = self.model.encoder
        x = F.gelu(encoder.conv2(F.gelu(encoder.conv1(input_features)))).transpose(1, 2)
        x = x + encoder.embed_positions.weight
        for layer in encoder.layers:
            x = layer(x)
        return encoder.layer_norm(x)

    def forward(self, input_features, decoder_input_ids, labels):
        memory, decoder = self.encode(input_features), self.model.decoder
        x = decoder.embed_tokens(decoder_input_ids) + decoder.embed_positions(torch.arange(decoder_input_ids.size(1)))
        for layer in decoder.layers:
            x = layer(x, memory)
        return loss_of(self.proj_out(decoder.layer_norm(x)), labels)
