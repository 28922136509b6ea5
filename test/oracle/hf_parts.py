"""hf_parts.py - what the modules of hf_models.py are made of.

Heads stay behind positions ([batch, time, head, size]) until the scores, as the compiler has them.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


def activation(name):
    return {"gelu": F.gelu, "gelu_new": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (
                x + 0.044715 * torch.pow(x, 3)))),
            "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
            "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x), "relu": F.relu, "relu2": lambda x: F.relu(x) ** 2,
            "silu": F.silu, "swish": F.silu, "tanh": torch.tanh}[name]


def llama3(result, scaling):
    low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
    old = scaling["original_max_position_embeddings"]
    wave = 2 * math.pi / result
    scaled = torch.where(wave > old / low, result / factor, result)
    smooth = (old / wave - low) / (high - low)
    blended = (1 - smooth) * scaled / factor + smooth * scaled
    between = ~(wave < old / high) * ~(wave > old / low)
    return torch.where(between, blended, scaled)


def yarn(size, theta, scaling, positions):
    old, factor = scaling.get("original_max_position_embeddings", positions), scaling["factor"]

    def place(rotations):
        return size * math.log(old / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low, high = place(scaling.get("beta_fast", 32)), place(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    ramp = (torch.arange(size // 2).float() - low) / ((high - low) if high != low else 0.001)
    kept = 1 - ramp.clamp(0, 1)
    steps = theta ** (torch.arange(0, size, 2).float() / size)
    return 1.0 / (factor * steps) * (1 - kept) + 1.0 / steps * kept


def longrope(config, size, theta, scaling):
    old = config.get("original_max_position_embeddings") or scaling["original_max_position_embeddings"]
    is_long = config["max_position_embeddings"] > old
    factors = torch.tensor(scaling["long_factor" if is_long else "short_factor"], dtype=torch.float32)
    return 1.0 / (factors * theta ** (torch.arange(0, size, 2).float() / size))


def frequencies(config, size, theta, scaling):
    """Radians per position, as transformers' modeling_rope_utils computes them."""
    result = 1.0 / (theta ** (torch.arange(0, size, 2, dtype=torch.int64).float() / size))
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if kind == "linear":
        return result / scaling["factor"]
    if kind == "yarn":
        return yarn(size, theta, scaling, config["max_position_embeddings"])
    if kind == "longrope":
        return longrope(config, size, theta, scaling)
    return llama3(result, scaling) if kind == "llama3" else result


def magnitude(config, scaling):
    """What cosines and sines are multiplied by."""
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if kind == "longrope":
        old = config.get("original_max_position_embeddings") or scaling["original_max_position_embeddings"]
        factor = config["max_position_embeddings"] / old
        return math.sqrt(1 + math.log(factor) / math.log(old)) if factor > 1 else 1.0
    if kind != "yarn":
        return 1.0
    if "attention_factor" in scaling:
        return scaling["attention_factor"]

    def grown(weight):
        return 0.1 * weight * math.log(scaling["factor"]) + 1.0 if scaling["factor"] > 1 else 1.0

    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return grown(scaling["mscale"]) / grown(scaling["mscale_all_dim"])
    return grown(1.0)


class Rotary(nn.Module):
    """Turns the first elements of each head by position: halves, or neighbours."""

    def __init__(self, inverse, positions, neighbours=False, factor=1.0):
        super().__init__()
        angles = torch.outer(torch.arange(positions).float(), inverse)
        angles = angles.repeat_interleave(2, dim=-1) if neighbours else torch.cat((angles, angles), dim=-1)
        self.cos, self.sin = angles.cos()[None, :, None] * factor, angles.sin()[None, :, None] * factor
        self.neighbours = neighbours

    def turned(self, x):
        if self.neighbours:
            return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    def forward(self, x):
        time, rotated = x.size(1), self.cos.size(-1)
        rest = None
        if rotated < x.size(-1):
            x, rest = x.split([rotated, x.size(-1) - rotated], dim=-1)
        x = x * self.cos[:, :time] + self.turned(x) * self.sin[:, :time]
        return x if rest is None else torch.cat((x, rest), dim=-1)


def alibi(heads):
    """Slopes of each head."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-(2 ** -(math.log2(power) - 3)) * step) for step in range(1, power + 1)]
    between = 2 ** (-(2 ** -(math.log2(2 * power) - 3)))
    return torch.tensor(slopes + [between ** step for step in range(1, 2 * (heads - power) + 1, 2)])


def bounded(x, cap):
    return x if cap is None else cap * torch.tanh(x / cap)


def attend(q, k, v, scale, causal=True, window=None, drop=None, cap=None, slopes=None):
    """Attention of [batch, time, heads, size]; joined heads."""
    batch, time, heads, size = (int(number) for number in q.size())
    groups = int(k.size(2))
    if groups < heads:
        shape = (batch, time, groups, heads // groups, size)
        k, v = (x.unsqueeze(3).expand(shape).reshape(batch, time, heads, size) for x in (k, v))
    scores = torch.matmul(q.transpose(1, 2), k.transpose(1, 2).transpose(2, 3)) * scale
    scores = bounded(scores, cap)
    if slopes is not None:
        scores = scores + slopes[:, None, None] * torch.arange(time)
    if causal:
        seen = torch.ones(time, time, dtype=torch.bool).tril()
        if window is not None and window < time:
            seen = seen & torch.ones(time, time, dtype=torch.bool).triu(1 - window)
        scores = scores.masked_fill(~seen, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    weights = weights if drop is None else drop(weights)
    return torch.matmul(weights, v.transpose(1, 2)).transpose(1, 2).reshape(batch, time, heads * size)


def loss_of(logits, labels):
    return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))


def drop(probability):
    """A dropout layer, or nothing, so that a probability of 0 leaves no trace."""
    return nn.Dropout(probability) if probability > 0 else nn.Identity()


class Conv1D(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        flat = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return flat.view(x.size(0), x.size(1), self.weight.size(1))


class Named(nn.Module):
    """A module that is nothing but its parts."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class RMSNormPlus(RMSNorm):
    """Gemma's: the weight is what is added to 1."""

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1.0 + self.weight)


class LayerNormPlus(nn.LayerNorm):
    """Nemotron's: the weight is what is added to 1."""

    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight + 1, self.bias, self.eps)


class LayerNormNoBias(nn.Module):
    def __init__(self, shape, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(shape)), eps

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def heads_of(x, size):
    return x.view(x.size(0), x.size(1), -1, size)


def rotary_of(c, size, neighbours=False, share=1.0, theta=10000.0):
    """The rotation of a configuration, old or new; of a share of each head."""
    new = c.get("rope_parameters") or {}
    scaling = new or c.get("rope_scaling")
    rotated = int(size * new.get("partial_rotary_factor", c.get("partial_rotary_factor", share)))
    theta = new.get("rope_theta", c.get("rope_theta", theta))
    return Rotary(frequencies(c, rotated, theta, scaling), c["max_position_embeddings"], neighbours, magnitude(c, scaling))
