"""picture_layers.py - convolutions and batch norms with their gradients, as evaluate.py has them."""

import torch


def batch_norm(op, x, *rest):
    """With no weight and bias that are left out by themselves, and nothing kept: what tests of gradients have."""
    mean, rstd, normalized = channel_statistics(op, x)
    spread = [-1 if dim == 1 else 1 for dim in range(x.dim())]
    _, has_weight, has_bias, _ = op.get("operandSegmentSizes")
    scale, shift = (list(rest) + [None, None])[:2] if has_weight else (None, rest[0] if has_bias else None)
    result = normalized if scale is None else normalized * scale.reshape(spread)
    return result if shift is None else result + shift.reshape(spread), mean, rstd


def channel_statistics(op, x):
    dims = [dim for dim in range(x.dim()) if dim != 1]
    mean = x.mean(dims, keepdim=True)
    rstd = torch.rsqrt(((x - mean) ** 2).mean(dims, keepdim=True) + op.get("epsilon"))
    return mean.flatten(), rstd.flatten(), (x - mean) * rstd


def batch_norm_grad(op, x, mean, rstd, grad, *weight):
    """Through the definition, whose epsilon is what the given rstd has in it."""
    dims, spread = [dim for dim in range(x.dim()) if dim != 1], [-1 if dim == 1 else 1 for dim in range(x.dim())]
    epsilon = (rstd ** -2 - ((x - mean.reshape(spread)) ** 2).mean(dims)).reshape(spread)
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        center = leaf.mean(dims, keepdim=True)
        normalized = (leaf - center) * torch.rsqrt(((leaf - center) ** 2).mean(dims, keepdim=True) + epsilon)
        result = normalized * weight[0].reshape(spread) if weight else normalized
        by_input, = torch.autograd.grad(result, leaf, grad)
    return by_input, (grad * normalized.detach()).sum(dims), grad.sum(dims)


def conv(op, x, weight, *bias):
    function = (torch.conv1d, torch.conv2d, torch.conv3d)[x.dim() - 3]
    return function(x, weight, *bias or [None], op.get("stride"), op.get("padding"), op.get("dilation"),
                    int(op.get("groups")))


def conv_gradient(op, grad, x, weight, which):
    leaves = [part.detach().requires_grad_() for part in (x, weight)]
    with torch.enable_grad():
        return torch.autograd.grad(conv(op, *leaves), leaves[which], grad)[0]


def conv_grad_input(op, weight, grad):
    """Differentiable itself, as models have it."""
    function = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)[grad.dim() - 3]
    stride, padding, dilation = (op.get(name) for name in ("stride", "padding", "dilation"))
    behind = [size - (count - 1) * s + 2 * p - d * (window - 1) - 1 for size, count, window, s, p, d in
              zip(op.types[0][0][2:], grad.shape[2:], weight.shape[2:], stride, padding, dilation)]
    return function(grad, weight, None, stride, padding, behind, int(op.get("groups")), dilation)


def conv_grad_weight(op, x, grad):
    return conv_gradient(op, grad, x, torch.zeros(op.types[0][0], dtype=grad.dtype), 1)
