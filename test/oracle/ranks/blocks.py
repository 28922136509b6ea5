"""blocks.py - blocks whose cuts are known, written in several ways: parameters without telling names, weights laid out as [in, out] or
[out, in], projections of queries, keys and values apart or in one weight, in any order, or by heads.

    Words("gpt", layers=2, way=Way("by heads", flipped=True))
"""

import collections

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, TOKENS, BATCH, VOCABULARY, INNER = 256, 8, 128, 2, 1024, 1024
SIZE = WIDTH // HEADS

# How a block is written: its projections "apart", "fused" as q, k, v, "shuffled" as v, q, k, or fused "by heads"; weights flipped.
Way = collections.namedtuple("Way", "projections flipped")


class Product(nn.Module):
    def __init__(self, inputs, outputs, way, biased=True):
        super().__init__()
        self.flipped = way.flipped
        self.p0 = nn.Parameter(torch.randn(*((inputs, outputs) if way.flipped else (outputs, inputs))) * 0.02)
        self.p1 = nn.Parameter(torch.zeros(outputs)) if biased else None

    def forward(self, x):
        y = x @ self.p0 if self.flipped else F.linear(x, self.p0)
        return y if self.p1 is None else y + self.p1


class Attention(nn.Module):
    """`keys`: how many heads keys and values have, each of which several heads of queries in a row read."""

    def __init__(self, way, causal, keys=HEADS):
        super().__init__()
        self.projections, self.causal, self.keys = way.projections, causal, keys
        self.widths = [WIDTH, keys * SIZE, keys * SIZE]
        made = self.widths if way.projections == "apart" else [sum(self.widths)]
        self.z = nn.ModuleList(Product(WIDTH, width, way) for width in made)
        self.a = Product(WIDTH, WIDTH, way)

    def project(self, x, memory):
        """Queries, keys and values as [batch, tokens, head, size]."""
        if self.projections == "apart":
            made = self.z[0](x), self.z[1](memory), self.z[2](memory)
        elif self.projections == "by heads":
            made = self.z[0](x).view(*x.shape[:2], self.keys, HEADS // self.keys + 2, SIZE).split([HEADS // self.keys, 1, 1], 3)
            return [part.reshape(*part.shape[:2], -1, SIZE) for part in made]
        elif self.projections == "shuffled":
            made = self.z[0](x).split([self.widths[2], *self.widths[:2]], 2)
            made = made[1:] + made[:1]
        else:
            made = self.z[0](x).split(self.widths, 2)
        return [part.view(*part.shape[:2], -1, SIZE) for part in made]

    def repeated(self, keys):
        if self.keys == HEADS:
            return keys
        return keys[:, :, None].expand(-1, -1, HEADS // self.keys, -1, -1).reshape(keys.shape[0], HEADS, -1, SIZE)

    def forward(self, x, memory):
        q, k, v = (part.transpose(1, 2) for part in self.project(x, memory))
        k, v = self.repeated(k), self.repeated(v)
        scores = q @ k.transpose(-2, -1) * SIZE ** -0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(TOKENS, TOKENS).tril() == 0, float("-inf"))
        return self.a((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(x.shape))


class Plain(nn.Module):
    """Two products, from the last dimension of size `width` and back."""

    def __init__(self, way, width=WIDTH):
        super().__init__()
        self.a, self.b = Product(width, INNER, way), Product(INNER, width, way)

    def forward(self, x):
        return self.b(F.gelu(self.a(x)))


class Gated(nn.Module):
    def __init__(self, way):
        super().__init__()
        count = 2 if way.projections == "apart" else 1
        self.z = nn.ModuleList(Product(WIDTH, 2 * INNER // count, way, biased=False) for _ in range(count))
        self.b = Product(INNER, WIDTH, way, biased=False)

    def forward(self, x):
        gate, up = self.z[0](x).chunk(2, -1) if len(self.z) == 1 else (self.z[0](x), self.z[1](x))
        return self.b(F.silu(gate) * up)


class Rms(nn.Module):
    """`beside`: what the gain is counted from, 1 in gemma."""

    def __init__(self, beside=0):
        super().__init__()
        self.beside, self.p = beside, nn.Parameter(torch.full((WIDTH,), 1.0 - beside))

    def forward(self, x):
        gain = self.beside + self.p if self.beside else self.p
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gain


class Decoder(nn.Module):
    """Norms before attention and feed-forward; `cross`: with an attention to an encoder's result between them."""

    def __init__(self, way, norm=lambda: nn.LayerNorm(WIDTH), feed=Plain, causal=True, cross=False, keys=HEADS):
        super().__init__()
        self.n = nn.ModuleList(norm() for _ in range(3 if cross else 2))
        self.a, self.f = Attention(way, causal, keys), feed(way)
        self.c = Attention(Way("apart", way.flipped), causal=False) if cross else None

    def forward(self, x, memory=None):
        y = self.n[0](x)
        x = x + self.a(y, y)
        if self.c is not None:
            x = x + self.c(self.n[2](x), memory)
        return x + self.f(self.n[1](x))


class Encoder(nn.Module):
    """Norms behind the sums."""

    def __init__(self, way):
        super().__init__()
        self.n = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.a, self.f = Attention(way, causal=False), Plain(way)

    def forward(self, x):
        x = self.n[0](x + self.a(x, x))
        return self.n[1](x + self.f(x))


class Mixer(nn.Module):
    """Products along the tokens, then along the channels."""

    def __init__(self, way):
        super().__init__()
        self.n = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.t, self.f = Plain(way, TOKENS), Plain(way)

    def forward(self, x):
        x = x + self.t(self.n[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.f(self.n[1](x))


BLOCKS = {"gpt": Decoder, "llama": lambda way: Decoder(way, Rms, Gated), "grouped": lambda way: Decoder(way, Rms, Gated, keys=2),
          "gemma": lambda way: Decoder(way, lambda: Rms(1), Gated), "encoder": Encoder, "mixer": Mixer,
          "vit": lambda way: Decoder(way, causal=False), "encoder-decoder": lambda way: Decoder(way, cross=True)}


class Words(nn.Module):
    """Layers on tokens; of an encoder-decoder those of the decoder, beside one layer of the encoder."""

    def __init__(self, kind, layers, way):
        super().__init__()
        self.e, self.n = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.m = Encoder(way) if kind == "encoder-decoder" else None
        self.s = nn.ModuleList(BLOCKS[kind](way) for _ in range(layers))
        self.h = Product(WIDTH, VOCABULARY, way, biased=False)

    def forward(self, x, y, z=None):
        hidden, rest = self.e(x), ()
        if self.m is not None:
            rest = (self.m(self.e(z)),)
        for layer in self.s:
            hidden = layer(hidden, *rest)
        return F.cross_entropy(self.h(self.n(hidden)).view(-1, VOCABULARY), y.view(-1))

    def inputs(self):
        return {name: torch.zeros(BATCH, TOKENS, dtype=torch.long) for name in ("xy" if self.m is None else "xyz")}


class Pictures(nn.Module):
    """Layers on patches of pictures."""

    def __init__(self, kind, layers, way):
        super().__init__()
        self.e, self.p = nn.Conv2d(4, WIDTH, 4, 4), nn.Parameter(torch.zeros(1, TOKENS, WIDTH))
        self.s, self.n = nn.ModuleList(BLOCKS[kind](way) for _ in range(layers)), nn.LayerNorm(WIDTH)
        self.h = Product(WIDTH, 10, way)

    def forward(self, x, y):
        hidden = self.e(x).flatten(2).transpose(1, 2) + self.p
        for layer in self.s:
            hidden = layer(hidden)
        return F.cross_entropy(self.h(self.n(hidden).mean(1)), y)

    @staticmethod
    def inputs():
        return {"x": torch.zeros(BATCH, 4, 32, TOKENS // 2), "y": torch.zeros(BATCH, dtype=torch.long)}
