#!/usr/bin/python3
"""check_operators.py - every operator of the table, alone, against PyTorch.

    check_operators.py IMPORTER FAMILY...     the cases of these families, traced into one archive each
    check_operators.py IMPORTER --coverage    every operator that ds-import lists occurs in some case

A case is an expression of x and z (float, they depend on the input and on a parameter), y (a second parameter), s (a
scalar of them), i (ids 0..5), j (ids, one a row), m (truth values) and c (known numbers). Its value, weighted element
by element, is added to the loss: so its gradient is compared as well. Where a family disagrees, its cases are run one
by one.
"""

import os
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional as F

import evaluate

CASES = {
    "arithmetic": [
        "x + z", "x + 1", "1 + x", "x + y[:, 0]", "torch.add(x, z, alpha=3)", "x - z", "torch.sub(x, 2, alpha=0.5)",
        "2 - x", "torch.rsub(x, z, alpha=2)", "x * z", "x * 3", "torch.multiply(x, i)", "torch.subtract(x, z)",
        "x / z.exp()", "x / 3", "torch.div(x * 9, z.exp(), rounding_mode='floor')",
        "torch.div(x * 9, z.exp(), rounding_mode='trunc')", "torch.true_divide(x, 7)", "torch.divide(x, 5)",
        "(i - 3) // 2", "torch.div(i - 3, 2, rounding_mode='trunc')", "i / 2", "(i * 9 - 20) // 2", "(i - 3) % 4",
        "torch.remainder(x * 9, 2.5)", "1 / (x.exp())", "torch.reciprocal(x.exp())", "x ** 2", "x.pow(3)", "x ** 1",
        "x ** 0", "x.exp() ** 0.5", "x.exp() ** -0.5", "x.exp() ** -2", "x.exp() ** 1.7", "x.exp().pow(z)",
        "torch.pow(2.0, x)", "i ** 2", "torch.maximum(x, z)", "torch.minimum(x, z)", "x == x", "x != z", "x < z",
        "x <= 0", "x > z", "x >= z", "torch.less(x, z)", "torch.less_equal(x, z)", "torch.greater(x, z)",
        "torch.greater_equal(x, z)", "torch.not_equal(i, 3)", "m == (x > 0)", "torch.logical_and(m, x > 0)",
        "torch.logical_or(m, x > 0)", "torch.logical_xor(m, x > 0)", "torch.logical_not(m)", "~m", "m & (x > 0)",
        "m | (x > 0)", "torch.bitwise_and(m, x > 0)", "torch.bitwise_or(m, x > 0)", "torch.bitwise_xor(m, x > 0)", "m ^ (x > 0)", "torch.where(m, x, z)",
        "torch.where(m, x, 0.0)", "torch.where(i > 2, i, 1 - i)", "x.masked_fill(m, -3)", "x.clamp(-0.5, 0.5)",
        "x.clamp(min=0.1)", "x.clip(max=0.1)", "x.clamp_min(0.2)", "x.clamp_max(0.2)", "torch.clamp(x, z - 1, z + 1)",
        "F.hardtanh(x)", "torch.lerp(x, z, 0.3)", "torch.lerp(x, z, y.t())", "torch.addcmul(x, z, y.t(), value=2)",
        "torch.addcdiv(x, z, y.t().exp(), value=0.5)", "x + i", "m * x", "m + m", "m * 2", "x.double() + z", "s * x",
        "x.clone().mul_(2)", "x.clone().add_(z).masked_fill_(m, 0)", "x.clone().copy_(z)", "x.clone().fill_(2) + x",
        "(x * 1).zero_() + x", "torch.full((4, 6), 3.0) - x", "c * x", "x + c[0]",
    ],
    "activations": [
        "x.exp()", "x.exp().log()", "x.exp().sqrt()", "x.exp().rsqrt()", "x.tanh()", "x.erf()", "torch.special.erf(x)",
        "x.sigmoid()", "torch.special.expit(x)", "x.sin()", "x.cos()", "-x", "torch.negative(i)", "x.abs()",
        "torch.absolute(x)", "i.sub(3).abs()", "(x * 5).floor() + x", "x.sign() * z", "(x * 5).ceil() + x",
        "torch.square(x)", "(x * 5).trunc() + x", "x.frac()", "i.trunc()", "(x * 5).round() + x", "torch.round(i * 0.5)", "(x / 0).isnan()", "(x / m).isinf()", "torch.isfinite(x / m)", "x.cosh()", "x.sinh()", "torch.exp2(x)", "torch.expm1(x)", "torch.log1p(x.exp())", "x.exp().log2()",
        "x.exp().log10()", "x.tan()", "x.erfc()", "F.relu(x)", "F.relu6(x * 9)", "F.leaky_relu(x, 0.2)",
        "F.prelu(x, y[:, 0])", "F.prelu(x, y[0, :1])", "F.elu(x, 0.7)", "F.celu(x, 0.7)", "F.selu(x)", "F.gelu(x)",
        "F.gelu(x, approximate='tanh')", "F.silu(x)", "F.softplus(x)", "F.softplus(x * 30, 2, 5)", "F.logsigmoid(x)",
        "F.mish(x)", "F.hardsigmoid(x * 4)", "F.hardswish(x * 4)", "F.glu(x)", "F.glu(x, 0)", "F.relu_(x * 1)",
        "i.exp()", "i.sigmoid()",
    ],
    "layout": [
        "x.view(3, 8)", "x.reshape(-1)", "torch.ops.aten._unsafe_view(x, [8, 3])", "torch.ops.aten._reshape_alias(x, [2, 12], [12, 1])",
        "x.view_as(z.view(2, 12))", "x.reshape_as(z.view(2, 12))", "x.view(2, 2, 3, 2).flatten(1, 2)", "x.flatten()",
        "s.flatten()", "x.unflatten(1, (2, 3))", "x.unsqueeze(1)", "x.unsqueeze(-1)", "x.view(4, 1, 6, 1).squeeze()",
        "x.view(4, 1, 6, 1).squeeze(1)", "x.squeeze(0)", "x.view(2, 2, 6).permute(2, 0, 1)", "x.transpose(0, 1)",
        "torch.swapaxes(x, 0, 1)", "torch.swapdims(x, 0, 1)", "x.t()", "x.T", "x.view(2, 2, 6).mT",
        "torch.movedim(x.view(2, 2, 6), 0, 2)", "torch.moveaxis(x.view(2, 2, 6), (0, 1), (1, 2))",
        "x.unsqueeze(1).expand(4, 3, 6)", "x.unsqueeze(0).expand(2, -1, -1)", "x[0].broadcast_to(3, 6)",
        "x[0].expand_as(z)", "x.repeat(2, 3)", "x.repeat(2, 1, 1)", "torch.tile(x, (2,))", "torch.tile(x, (2, 1, 2))",
        "x.repeat_interleave(3, 1)", "x.repeat_interleave(2)", "x.clone()", "x.t().contiguous()", "torch.ops.aten.alias(x)",
        "x.cpu()", "x.to(torch.float64)", "x.double().tanh().float()", "x.to(torch.float32)", "x.type_as(i)", "i.type_as(x)", "x.to(z)", "i.float()",
        "m.float()", "i.detach()", "torch.ops.aten._to_copy(x, dtype=torch.float64)", "torch.cat([x, z], 1)", "torch.cat([x, i], 0)",
        "torch.concat([x, z, x], -1)", "torch.cat([x[:, :0], x], 1)", "torch.stack([x, z])", "torch.stack([x, z, y.t()], -1)",
        "x.split(4, 1)[1]", "x.split([1, 2, 3], 1)[2]", "torch.unsafe_split(x, 2, 0)[1]",
        "torch.unsafe_split_with_sizes(x, [1, 3], 0)[1]", "x.split_with_sizes([2, 4], 1)[0]", "x.chunk(4, 1)[0]",
        "torch.unsafe_chunk(x, 2, 1)[1]", "torch.tensor_split(x, 4, 1)[3]", "torch.tensor_split(x, (1, 4), 1)[1]",
        "x.unbind(1)[2]", "sum(x.unbind(0))", "torch.hstack([x, z])", "torch.hstack([x[0], z[0]])", "torch.vstack([x, z[0]])", "x.contiguous().view(24)",
        "x.requires_grad_()",
    ],
    "indexing": [
        "x[1]", "x[:, 2]", "x[-1, 1:]", "x[:, ::2]", "x[1:3, 1:-1]", "x.narrow(1, 2, 3)", "x.select(0, 2)", "x[..., -1]",
        "x[None, :, 1]", "x[:, [5, 0, 3]]", "x[[0, 2]]", "x[:, torch.tensor([1])]", "y[i]", "y[j]", "y.view(6, 2, 2)[i]",
        "x.index_select(1, torch.tensor([0, 4]))", "y.index_select(0, j)", "x.gather(1, j.unsqueeze(1))",
        "x.gather(-1, j.unsqueeze(-1)).squeeze(-1)", "y.gather(0, j.unsqueeze(0))", "x.tril()", "x.triu(1)",
        "x.view(2, 2, 6).tril(-1)", "x.roll(2, 1)", "x.roll((1, -1), (0, 1))", "F.pad(x, (1, 2))",
        "F.pad(x, (0, 0, 1, 0), value=3.0)", "F.pad(x, (-1, 1))", "torch.constant_pad_nd(x, [1, 0], 2.0)",
        "x[torch.tensor([True, False, True, True])]", "x[:, j[:0].numel():]",
    ],
    "factories": [
        "torch.zeros_like(x) + x", "torch.ones_like(x, dtype=torch.float64) * x", "torch.full_like(x, 2.5) * x",
        "x.new_zeros(6) + x", "x.new_ones(4, 1) * x", "x.new_full((6,), 7.0) + x", "torch.arange(6) * x",
        "torch.arange(6, dtype=torch.float32) * x", "torch.arange(0, 12, 2, device=x.device) + x",
        "torch.arange(x.size(1)).flip(0) * x", "torch.linspace(0, 1, 6) * x", "torch.eye(4, 6) * x",
        "torch.ones(4, 6).tril() * x", "torch.ones(6, 6).triu(-2)[:4] * x", "F.one_hot(i, 7).float() * x.unsqueeze(-1)",
        "torch.full((4, 6), float('-inf')).triu(1).exp() * x", "(torch.ones(4, 6).tril() == 0).float() * x",
        "torch.outer(torch.arange(4.), torch.arange(6.)).sin() * x", "torch.empty_like(x).fill_(3) * x",
        "torch.empty(4, 6).fill_(3) * x", "x.new_empty(4, 6).fill_(2) * x", 
        "x * len(x)", "x / x.numel() * x.dim()", "x * torch.tensor(0.3)", "x + torch.tensor([1, 2, 3, 4, 5, 6])",
        "torch.cumsum(torch.ones(6), 0) * x", "torch.arange(6).unsqueeze(0).expand(4, 6) * x",
        "torch.meshgrid(torch.arange(4), torch.arange(6), indexing='ij')[1] * x",
        "(torch.arange(5000.) * 0.37).sin()[:6] * x", "(torch.arange(6000.) * 0.37).sin().view(1000, 6)[:, :4].sum() * x",
        "((torch.arange(6000.) * 0.37).sin().view(250, 4, 6) * x)",
    ],
    "linear": [
        "x @ y", "x.matmul(y)", "torch.mm(x, y)", "x @ y[:, 0]", "x[0] @ y", "x[0] @ y[:, 0]", "torch.mv(x, y[:, 1])",
        "torch.dot(x[0], y[:, 0])", "x.view(2, 2, 6) @ y", "torch.bmm(x.view(2, 2, 6), torch.stack([y, y * 2]))",
        "x.view(2, 1, 2, 6) @ torch.stack([y, y * 2, y + 1])", "x @ z.t()", "x.t() @ z", "y.t() @ x.t()",
        "x.view(2, 2, 6) @ z.view(2, 2, 6).transpose(1, 2)", "x.view(2, 2, 6).transpose(1, 2) @ z.view(2, 2, 6)",
        "x[0] @ torch.stack([y, y * 2])", "F.linear(x, z)", "F.linear(x, z, y[0])", "F.linear(x.view(2, 2, 6), z, y[1])",
        "F.linear(x[0], z)", "torch.addmm(y[0], x, y)", "torch.addmm(x[:, :4], x, y)", "torch.addmm(y[0], x, y, beta=2, alpha=0.5)",
        "torch.addmm(y[0], x, y, beta=0)", "torch.addmm(y[:4, :1], x, y)", "torch.addmm(y[0], x, z.t())",
        "torch.baddbmm(torch.zeros(2, 2, 4), x.view(2, 2, 6), torch.stack([y, y]), beta=0, alpha=0.3)",
        "torch.baddbmm(y[0], x.view(2, 2, 6), torch.stack([y, y]))",
        "torch.baddbmm(x[:2, :4].expand(2, 2, 4), x.view(2, 2, 6), torch.stack([y, y]))", "torch.outer(x[0], y[0])",
        "torch.ger(x[0], y[0])", "torch.linalg.matmul(x, y)", "torch.einsum('ij,jk->ik', x, y)",
        "torch.einsum('ij,kj->ik', x, z)", "torch.einsum('ij,ij->i', x, z)", "torch.einsum('ij->j', x)",
        "torch.einsum('bij,bkj->bik', x.view(2, 2, 6), z.view(2, 2, 6))", "torch.einsum('ij,jk', x, y)",
        "torch.einsum('bhid,bhjd->bhij', x.view(2, 2, 3, 2), z.view(2, 2, 3, 2))",
        "torch.einsum('bihd,bjhd->bhij', x.view(2, 3, 2, 2), z.view(2, 3, 2, 2))",
        "torch.einsum('...i,ij->...j', x.view(2, 2, 6), y)", "torch.einsum('i,j->ij', x[0], y[0])",
        "torch.einsum('ij,jk,kl->il', x, y, z)", "torch.einsum('bij,j->bi', x.view(2, 2, 6), y[:, 0])",
        "torch.einsum('ijk,jkl->il', x.view(2, 2, 6), z.view(2, 6, 2))", "torch.einsum('ij,ik->i', x, z)",
        "torch.einsum('nhd,hde->ne', x.view(4, 2, 3), z.view(2, 3, 4))",
    ],
    "reductions": [
        "x.sum()", "x.sum(1)", "x.sum((0, 1))", "x.sum(-1, keepdim=True)", "i.sum()", "m.sum(1)", "x.sum(dtype=torch.float64)",
        "x.mean()", "x.mean(0)", "x.mean(-1, keepdim=True)", "i.float().mean(1)", "x.var()", "x.var(1)",
        "x.var(-1, unbiased=False, keepdim=True)", "x.var(1, correction=0)", "x.std(1)", "x.std(-1, unbiased=False)",
        "torch.var_mean(x, 1)[0] * torch.var_mean(x, 1)[1]", "torch.std_mean(x, 1, unbiased=False)[1]", "x.amax(1)", "x.amin((0, 1))",
        "x.max()", "x.min()", "x.max(1)[0]", "x.min(1, keepdim=True).values", "torch.max(x, z)", "torch.min(x, z)",
        "m.any()", "m.all(1)", "(x > 0).any(1)", "x.norm()", "x.norm(dim=1)", "x.norm(p=1, dim=1, keepdim=True)",
        "torch.linalg.norm(x)", "torch.linalg.vector_norm(x, dim=1)", "torch.frobenius_norm(x, [0, 1])", "x.softmax(1)",
        "x.softmax(0)", "x.softmax(-1, dtype=torch.float64)", "F.softmax(x, dim=1)", "torch.ops.aten._softmax(x, 1, False)",
        "x.log_softmax(1)", "torch.ops.aten._log_softmax(x, 0, False)", "F.log_softmax(x, dim=-1)", "torch.logsumexp(x, 1)",
        "torch.logsumexp(x, (0, 1))", "x.view(2, 2, 6).softmax(1)",
    ],
    "network": [
        "F.layer_norm(x, (6,))", "F.layer_norm(x, (6,), y[:, 0], y[:, 1], 1e-3)", "F.layer_norm(x, (6,), y[:, 0])",
        "F.layer_norm(x.view(2, 2, 6), (2, 6))", "torch.native_layer_norm(x, [6], y[:, 0], None, 1e-5)[0]",
        "F.embedding(i, y)", "F.embedding(j, y)", "F.dropout(x, 0.0)", "F.dropout(x, 0.5, training=False)",
        "torch.ops.aten._scaled_dot_product_attention(q, k, v)[0]", "torch.ops.aten._scaled_dot_product_attention(q, k, v, is_causal=True)[0]",
        "torch.ops.aten._scaled_dot_product_attention(q, k, v, torch.ones(3, 3).tril().bool())[0]",
        "torch.ops.aten._scaled_dot_product_attention(q, k, v, m[:3, :3])[0]", "torch.ops.aten._scaled_dot_product_attention(q, k, v, x[:3, :3])[0]",
        "torch.ops.aten._scaled_dot_product_attention(q, k[:, :, :2], v[:, :, :2])[0]",
        "torch.ops.aten._scaled_dot_product_attention(q, k[:, :, :2], v[:, :, :2], is_causal=True)[0]",
        "torch.ops.aten._scaled_dot_product_attention(q, k, v[..., :1])[0]", "torch.ops.aten._scaled_dot_product_attention(q[0], k[0], v[0])[0]",
    ],
    "convolution": [
        "F.conv1d(x.view(2, 3, 4), y.view(4, 3, 2), y[0, :4])", "F.conv1d(x.view(2, 3, 4), y[:4, :3].unsqueeze(2))",
        "F.conv1d(x.view(1, 4, 6), y.reshape(4, 2, 3), None, 2, 2, 2, 2)", "F.conv1d(x, y.view(2, 4, 3), padding=1)",
        "F.conv1d(x.view(2, 3, 4), y.view(2, 3, 4), padding='same')", "F.conv1d(x.view(2, 3, 4), y[:, :3].reshape(2, 3, 3), padding='valid')",
        "F.conv2d(x.view(1, 2, 3, 4), y.view(3, 2, 2, 2), y[0, :3], padding=(1, 0), stride=(1, 2))",
        "F.conv2d(x.view(1, 2, 3, 4), y.view(3, 2, 2, 2), dilation=(2, 1))", "F.conv2d(x.view(2, 3, 4), y.view(3, 2, 2, 2))",
        "F.conv2d(x.view(1, 2, 3, 4), y.view(2, 1, 3, 4), padding='same', groups=2)",
        "F.conv3d(x.view(1, 2, 3, 2, 2), y.view(3, 2, 2, 2, 1), y[1, :3], padding=(1, 0, 0))",
        "torch.convolution(x.view(2, 3, 4), y.view(4, 3, 2), y[0, :4], [1], [1], [1], False, [0], 1)",
        "F.conv_transpose1d(x.view(2, 3, 4), y.view(3, 4, 2), y[0, :4], stride=2, padding=1, output_padding=1)",
        "F.conv_transpose2d(x.view(1, 2, 3, 4), y.view(2, 3, 2, 2), y[0, :3], padding=(1, 0), stride=(1, 2), dilation=(2, 1))",
        "F.conv_transpose2d(x.view(2, 3, 4), y.view(2, 1, 3, 4), groups=2)", "F.conv_transpose3d(x.view(1, 2, 3, 2, 2), y.view(2, 3, 2, 2, 1))",
        "torch.convolution(x.view(2, 3, 4), y.view(3, 4, 2), None, [2], [0], [1], True, [1], 1)",
        "torch.ops.aten._convolution_mode(x.view(2, 3, 4), y.view(2, 3, 4), None, [1], 'same', [1], 1)",
        "torch.ops.aten.conv1d(x.view(2, 3, 4), y.view(4, 3, 2))", "torch.ops.aten.conv2d(x.view(1, 2, 3, 4), y.view(3, 2, 2, 2))",
        "torch.ops.aten.conv3d(x.view(1, 2, 3, 2, 2), y.view(3, 2, 2, 2, 1))",
    ],
    "pooling": [
        "F.max_pool1d(x, 3, 2, 1)", "F.max_pool1d(x.view(2, 2, 6), 2)", "F.max_pool2d(x.view(1, 2, 3, 4), 2)",
        "F.max_pool2d(x.view(1, 2, 3, 4), (3, 2), (1, 2), 1, ceil_mode=True)", "F.max_pool2d(x.view(2, 3, 4), 2, 1, 0, (2, 3))",
        "F.max_pool2d(x.view(2, 3, 4), 2, return_indices=True)[0]", "F.max_pool3d(x.view(1, 2, 3, 2, 2), 2, 1, 1)",
        "torch.ops.aten.max_pool1d_with_indices(x.view(2, 2, 6), [3])[0]", "F.max_pool3d(x.view(1, 2, 3, 2, 2), (2, 1, 2), return_indices=True)[0]",
        "F.avg_pool1d(x.view(2, 2, 6), 3, 2, 1)", "F.avg_pool1d(x, 2)", "F.avg_pool2d(x.view(1, 2, 3, 4), 2)", "F.avg_pool2d(x.view(2, 2, 6), (1, 3))",
        "F.avg_pool2d(x.view(1, 2, 3, 4), 3, 2, 1, ceil_mode=True)", "F.avg_pool2d(x.view(1, 2, 3, 4), 3, 2, 1, count_include_pad=False)",
        "F.avg_pool2d(x.view(1, 2, 3, 4), 2, 1, divisor_override=3)", "F.avg_pool3d(x.view(1, 2, 3, 2, 2), 2, 1, 1, count_include_pad=False)",
        "F.adaptive_avg_pool1d(x, 4)", "F.adaptive_avg_pool1d(x.view(2, 2, 6), 1)", "F.adaptive_avg_pool2d(x.view(1, 2, 3, 4), (2, 3))",
        "F.adaptive_avg_pool2d(x.view(2, 3, 4), 1)", "F.adaptive_avg_pool2d(x.view(4, 6, 1, 1), (3, 2))", "F.adaptive_avg_pool2d(x.view(1, 2, 3, 4), (None, 2))",
        "F.adaptive_avg_pool3d(x.view(1, 2, 3, 2, 2), (2, 1, 2))", "F.adaptive_max_pool1d(x, 4)", "F.adaptive_max_pool2d(x.view(1, 2, 3, 4), (2, 2))",
        "F.adaptive_max_pool2d(x.view(1, 2, 3, 4), 1)", "F.adaptive_max_pool3d(x.view(1, 2, 3, 2, 2), (2, 1, 2))",
        "torch.ops.aten._adaptive_avg_pool2d(x.view(1, 2, 3, 4), [2, 2])", "torch.ops.aten._adaptive_avg_pool3d(x.view(1, 2, 3, 2, 2), [1, 2, 2])",
        "torch.ops.aten.max_pool1d(x, [2])", "torch.ops.aten.adaptive_avg_pool2d(x.view(2, 3, 4), [3, 1])",
    ],
    "norms": [
        "F.batch_norm(x, None, None, None, None, True)", "F.batch_norm(x, None, None, z[0], z[1], True)",
        "F.batch_norm(x.view(2, 3, 4), None, None, z[0, :3], None, True, 0.3, 1e-3)", "F.batch_norm(x.view(1, 2, 3, 4), None, None, None, z[0, :2], True)",
        "F.batch_norm(x.view(1, 2, 3, 2, 2), None, None, z[0, :2], z[1, :2], True)", "F.batch_norm(x, c[0], c[0].abs(), z[0], z[1], False)",
        "F.batch_norm(x.view(1, 2, 3, 4), c[0, :2], c[0, 2:4], None, None, False)",
        "torch.native_batch_norm(x, z[0], z[1], None, None, True, 0.1, 1e-5)[0]",
        "F.group_norm(x.view(2, 2, 6), 1)", "F.group_norm(x.view(1, 4, 6), 2, z[0, :4], z[1, :4])", "F.group_norm(x, 3, z[0])",
        "torch.native_group_norm(x.view(2, 2, 6), z[0, :2], None, 2, 2, 6, 2, 1e-5)[0]", "F.instance_norm(x.view(2, 2, 6))",
        "F.instance_norm(x.view(1, 2, 3, 4), None, None, z[0, :2], z[1, :2])", "F.instance_norm(i[:, :2].float().view(1, 2, 4), torch.full((2,), 0.5), torch.full((2,), 3.0), None, None, False) * s",
    ],
    "resizing": [
        "F.interpolate(x.view(2, 2, 6), 9)", "F.interpolate(x.view(2, 2, 6), scale_factor=2)", "F.interpolate(x.view(1, 2, 3, 4), scale_factor=2)",
        "F.interpolate(x.view(1, 2, 3, 4), (2, 7))", "F.interpolate(x.view(1, 2, 3, 4), scale_factor=(1.4, 0.6))",
        "F.interpolate(x.view(1, 2, 3, 2, 2), (4, 3, 2))", "F.interpolate(x.view(2, 2, 6), 4, mode='nearest-exact')",
        "F.interpolate(x.view(1, 2, 3, 4), (5, 2), mode='nearest-exact')", "F.interpolate(x.view(1, 2, 3, 2, 2), (4, 3, 2), mode='nearest-exact')",
        "F.interpolate(x.view(2, 2, 6), 9, mode='linear')", "F.interpolate(x.view(1, 2, 3, 4), scale_factor=2, mode='bilinear')",
        "F.interpolate(x.view(1, 2, 3, 4), (5, 4), mode='bilinear', align_corners=True)", "F.interpolate(x.view(1, 2, 3, 4), scale_factor=(1.7, 2.5), mode='bilinear')",
        "F.interpolate(x.view(1, 2, 3, 2, 2), (2, 3, 4), mode='trilinear')", "F.interpolate(x.view(1, 2, 3, 4), (6, 7), mode='bicubic')",
        "F.interpolate(x.view(1, 2, 3, 4), scale_factor=1.5, mode='bicubic', align_corners=True)",
        "torch._C._nn.upsample_nearest2d(x.view(1, 2, 3, 4), [6, 6])", "torch._C._nn.upsample_bilinear2d(x.view(1, 2, 3, 4), [6, 6], False)",
        "F.pad(x.view(1, 4, 6), (2, 1), mode='reflect')", "F.pad(x.view(1, 2, 3, 4), (2, 1, 0, 2), mode='reflect')", "F.pad(x.view(1, 2, 3, 4), (5, 1, 0, 2), mode='replicate')",
        "F.pad(x.view(1, 2, 3, 2, 2), (1, 0, 0, 1, 1, 2), mode='replicate')", "F.pad(x.view(1, 2, 3, 2, 2), (1, 0, 0, 1, 1, 2), mode='reflect')",
        "F.pad(x.view(1, 4, 6), (2, 1), mode='replicate')", "F.pad(x.view(1, 4, 6), (2, 6), mode='circular')", "F.pad(x.view(1, 2, 3, 4), (2, 1, 0, 2), mode='circular')",
        "torch._C._nn.reflection_pad1d(x, [2, 3])", "torch._C._nn.reflection_pad2d(x.view(2, 3, 4), [1, 0, 2, 1])", "torch._C._nn.reflection_pad3d(x.view(2, 3, 2, 2), [1, 0, 0, 1, 2, 1])",
        "torch._C._nn.replication_pad1d(x, [2, 3])", "torch._C._nn.replication_pad2d(x.view(2, 3, 4), [1, 0, 2, 1])", "torch._C._nn.replication_pad3d(x.view(2, 3, 2, 2), [1, 0, 0, 1, 2, 1])",
        "torch.ops.aten._pad_circular(x.view(1, 4, 6), [2, 1])", "F.pixel_shuffle(x.view(4, 2, 3), 2)", "F.pixel_shuffle(x.view(1, 8, 1, 3), 2)", "F.pixel_unshuffle(x.view(1, 1, 4, 6), 2)",
        "torch.channel_shuffle(i.view(1, 4, 2, 3), 2) * s.detach()", "torch.native_channel_shuffle(i.view(1, 6, 2, 2), 3) * 2", "x.flip(1)", "x.flip((0, -1))", "x.view(24).flip(0)", "i.flip(1)", "torch.fliplr(x)", "torch.flipud(x)",
    ],
    "scans": [
        "x.cumsum(1)", "x.cumsum(0)", "i.cumsum(-1)", "m.cumsum(1)", "x.cumsum(1, dtype=torch.float64)", "s.cumsum(0)", "x.repeat(1, 50).cumsum(1)",
        "x.view(24, 1).repeat(7, 3).cumsum(0)", "x.prod()", "x.prod(1)", "x.prod(0, keepdim=True)", "(x * m).prod(1)", "i.prod(1)",
        "x.argmax()", "x.argmax(1)", "x.argmin(0, keepdim=True)", "i.argmax(1)", "y[x.argmax(1)]", "x.argmin(keepdim=True)", "x.max(1)[1]", "i.min(0)[1]",
        "x.detach() * z", "(x.floor() - x).detach() + x", "x.data * z", "x.roll(3)",
    ],
    "losses": [
        "F.cross_entropy(x, j)", "F.cross_entropy(x, j, reduction='none')", "F.cross_entropy(x, j, reduction='sum')",
        "F.cross_entropy(x, j, ignore_index=2)", "F.cross_entropy(x, j, ignore_index=2, reduction='sum')",
        "F.cross_entropy(x, j, label_smoothing=0.1)", "F.cross_entropy(x, j, weight=c[0].abs())",
        "F.cross_entropy(x, j, weight=c[0].abs(), label_smoothing=0.2, ignore_index=2)",
        "F.cross_entropy(x.t(), i[0, :4].repeat(2)[:6].clamp(max=3))", "F.cross_entropy(x, z.softmax(1))",
        "F.cross_entropy(x, z.softmax(1), label_smoothing=0.1, reduction='sum')", "F.cross_entropy(x.view(2, 6, 2), i[:2, :2])",
        "F.cross_entropy(x[0], j[0])", "F.nll_loss(x.log_softmax(1), j)", "F.nll_loss(x, j)", "torch.ops.aten.nll_loss(x, j)", "F.nll_loss(x, j, reduction='none')",
        "F.nll_loss(x.log_softmax(1), j, ignore_index=2, reduction='sum')", "F.nll_loss(x.view(2, 6, 1, 2).log_softmax(1), i[:2, :2].unsqueeze(1))",
        "torch.ops.aten.nll_loss2d(x.view(2, 6, 1, 2), i[:2, :2].unsqueeze(1))",
        "torch.ops.aten.nll_loss_forward(x, j, None, 1, -100)[0]", "F.mse_loss(x, z)", "F.mse_loss(x, z, reduction='sum')",
        "F.l1_loss(x, z)", "F.l1_loss(x, z, reduction='none')", "F.huber_loss(x, z, delta=0.3)", "F.smooth_l1_loss(x, z)",
        "F.smooth_l1_loss(x, z, beta=0.3)", "F.binary_cross_entropy(x.sigmoid(), z.sigmoid())",
        "torch.ops.aten.binary_cross_entropy(x.sigmoid(), m.float(), c.abs().expand(4, 6))", "F.binary_cross_entropy_with_logits(x, m.float())",
        "F.binary_cross_entropy_with_logits(x, m.float(), pos_weight=c[0].abs(), reduction='sum')",
        "F.kl_div(x.log_softmax(1), z.softmax(1), reduction='batchmean')", "F.kl_div(x.log_softmax(1), z.log_softmax(1), log_target=True)",
        "F.cosine_similarity(x, z)", "written_after_log_softmax(x * 1, j)",
    ],
}


def written_after_log_softmax(x, j):
    """The loss must see the logits as they were."""
    logs = F.log_softmax(x, 1)
    x.add_(torch.arange(6.0))
    return F.nll_loss(logs, j) + x.mean()


class Cases(torch.nn.Module):
    """The loss is the sum of all cases, each weighted element by element."""

    def __init__(self, cases):
        super().__init__()
        self.cases = [compile(case, case, "eval") for case in cases]
        torch.manual_seed(3)
        self.p = torch.nn.Parameter(torch.randn(4, 6))
        self.y = torch.nn.Parameter(torch.randn(6, 4))

    def forward(self, a, i, j, m):
        x, z = a * self.p, self.p.tanh() - 0.3 * a
        heads = torch.cat([x, z, x * z], 1)[:, :12].reshape(2, 2, 3, 4)
        known = {"written_after_log_softmax": written_after_log_softmax, "x": x, "z": z, "y": self.y * 1,
                 "s": x[0, 0], "i": i, "j": j, "m": m, "F": F, "torch": torch,
                 "c": torch.tensor([[0.5, -1.5, 2.0, 3.0, -0.25, 1.0]]), "q": heads, "k": heads.sin(), "v": heads.cos()}
        loss = x.sum() * 0
        for case in self.cases:
            try:
                value = eval(case, known).float()
            except Exception as error:
                raise ValueError(f"PyTorch does not evaluate {case.co_filename}: {error}") from None
            weights = torch.arange(value.numel(), dtype=torch.float32).mul(0.7).sin().add(0.2).reshape(value.shape)
            loss = loss + (value * weights).sum() * 0.1
        return loss


INPUTS = ["a=4x6xf32", "i=4x6xi64", "j=4xi64", "m=4x6xi1"]


def save(cases, folder):
    inputs = tuple(evaluate.make_inputs(INPUTS, 6).values())
    archive = torch.jit.trace(Cases(cases), inputs, check_trace=False)
    path = os.path.join(folder, "model.pt")
    archive.save(path)
    return path, archive


def check(importer, cases, folder):
    """The complaint about these cases; None where they agree."""
    path, _ = save(cases, folder)
    try:
        evaluate.compare(importer, path, INPUTS, vocab=6, tolerance=3e-5)
    except SystemExit as end:
        return f"ds-import exits with {end.code}"
    except Exception as error:  # The evaluator stands on asserts: any of them is a complaint.
        return f"{type(error).__name__}: {error}"
    return None


# Scripted code alone has these; Inputs/scripted.py and newer_operators.py use them.
SCRIPTED = {"aten::" + name for name in (
    "__contains__ __getitem__ __is__ __isnot__ _set_item _unwrap_optional append cpu extend insert is_grad_enabled items "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution keys len list pop reverse values warn format percentFormat requires_grad rms_norm scaled_dot_product_attention").split()}


def coverage(importer, folder):
    """The listed operators that no case uses."""
    used = set()
    for cases in CASES.values():
        graph = save(cases, folder)[1].inlined_graph
        used |= {node.kind() for node in graph.nodes()}
    listed = subprocess.run([importer, "--list-operators"], stdout=subprocess.PIPE, check=True).stdout.decode().split()
    used |= {name[:-1] for name in used if name.endswith("_")}
    return [name for name in listed if name not in used | SCRIPTED and name.startswith("aten::")]


def main():
    importer, *families = sys.argv[1:]
    torch.set_num_threads(2)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        if families == ["--coverage"]:
            print("operators without a case:" + "".join(" " + name for name in coverage(importer, folder)))
            return
        for family in families:
            complaint = check(importer, CASES[family], folder)
            print(f"{family}: {len(CASES[family])} cases {'disagree' if complaint else 'agree'}", flush=True)
            for case in CASES[family] if complaint else []:
                if alone := check(importer, [case], folder):
                    failures += 1
                    print(f"  {case}: {alone}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
