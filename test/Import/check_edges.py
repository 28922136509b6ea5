#!/usr/bin/python3
"""check_edges.py - gradients where a function has an edge, against PyTorch.

    check_edges.py IMPORTER               the table below, in fp32 and in bf16
    check_edges.py IMPORTER --coverage    every operator stands in the table or among those without an edge

A case is an expression of x and z, which hold the points: where a function has a corner, a step or a pole, where it is
bounded, where elements are equal, where a row is zero or constant, where a probability is 0 or 1. Values are weighted one
by one, so that every gradient shows. What PyTorch says of a point is convention more often than mathematics; it is held
to, infinities and NaN included. Where ours differs on purpose (OURS) the gradient that is left out is named, and why.

The model is imported, lowered to bf16 where asked, differentiated and decomposed, and evaluated in the types that it has.
check_edge_kernels.py runs the same table compiled.
"""

import math
import os
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional as F

import evaluate
from check_nans import oracle

inf, nan = math.inf, math.nan
ZERO, ONE, PAIR = [0.0, -0.0], [1.0, -1.0], [[0.0, 0.0], [3.0, 4.0]]
TIES = [[2.0, 2.0, 1.0], [3.0, 4.0, 4.0], [5.0, 5.0, 5.0]]
FLAT = [[2.0, 2.0, 2.0], [3.0, 4.0, 5.0], [0.0, 0.0, 0.0]]
SPLIT = [1.0, 2.0, 0.0, 3.0]  # on, beyond and below a bound of 1

TABLE = [  # (expression, x, z)
    ("x.abs()", ZERO), ("x.sqrt()", [0.0, 4.0]), ("x.rsqrt()", [0.0, 4.0]), ("x.log()", [0.0, 1.0]), ("x.log2()", [0.0, 2.0]),
    ("x.log10()", [0.0, 1.0]), ("x.log1p()", [-1.0, 0.0]), ("x.exp()", [-inf, 100.0, 0.0]), ("x.exp2()", [-inf, 200.0, 0.0]),
    ("x.expm1()", [-inf, 0.0]), ("x.tanh()", [-inf, inf, 20.0]), ("x.sigmoid()", [-inf, inf, 100.0, -100.0]),
    ("x.erf()", [-inf, inf, 0.0]), ("x.erfc()", [-inf, inf, 0.0]), ("x.floor() + x", [1.0, 0.5]), ("x.ceil() + x", [1.0, 0.5]),
    ("x.sign() + x", ZERO), ("x.trunc() + x", [1.0, -1.0, 0.5]), ("x.frac()", [1.0, -1.0, 0.5]), ("x.round() + x", [0.5, 1.5, -0.5, inf]), ("x.cosh()", [0.0, -inf]), ("x.sinh()", [0.0, -inf]), ("x.square()", ZERO), ("x.reciprocal()", ZERO), ("x.tan()", ZERO),
    ("F.relu(x)", ZERO), ("F.relu(x @ torch.eye(2).type_as(x))", PAIR), ("F.relu6(x)", [0.0, 6.0, 3.0]), ("F.hardtanh(x)", ONE),
    ("F.hardtanh(x, -2, 0.5)", [-2.0, 0.5, 0.0]), ("F.leaky_relu(x, 0.25)", ZERO), ("F.prelu(x, z)", [0.0, -1.0, 1.0], [0.25]),
    ("F.elu(x, 0.5)", ZERO), ("F.celu(x, 0.5)", ZERO), ("F.selu(x)", ZERO), ("F.gelu(x)", [0.0, inf, -30.0]),
    ("F.gelu(x, approximate='tanh')", [0.0, -30.0]), ("F.silu(x)", [0.0, -100.0]), ("F.softplus(x)", [0.0, 20.0, 24.0, -100.0]),
    ("F.softplus(x, 2, 5)", [0.0, 2.5, 3.0]), ("F.logsigmoid(x)", [0.0, 100.0, -100.0]), ("F.mish(x)", [0.0, 24.0, -100.0]),
    ("F.hardsigmoid(x)", [3.0, -3.0, 0.0]), ("F.hardswish(x)", [3.0, -3.0, 0.0]), ("F.glu(x)", [[0.0, -100.0], [1.0, 100.0]]),

    ("x.clamp(0, 1)", [0.0, 1.0, 0.5]), ("x.clamp(min=1)", SPLIT), ("x.clamp(max=1)", SPLIT), ("x.clamp_min(1)", SPLIT),
    ("x.clamp_max(1)", SPLIT), ("x.clamp(min=z)", SPLIT, ONE[:1]), ("x.clamp(max=z)", SPLIT, ONE[:1]),
    ("torch.clamp(x, z, z + 1)", SPLIT, ONE[:1]), ("torch.clamp(x, z - 1, z)", SPLIT, ONE[:1]), ("x.clamp(2, 1)", [0.0, 1.0, 1.5, 2.0, 3.0]),
    ("torch.maximum(x, z)", SPLIT, ONE[:1]), ("torch.minimum(x, z)", SPLIT, ONE[:1]), ("torch.max(x, z)", SPLIT, ONE[:1]),
    ("x / z", [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]), ("torch.div(x, z, rounding_mode='floor') + x", [2.0], [1.0]),
    ("torch.div(x, z, rounding_mode='trunc') + x", [-2.0], [1.0]), ("torch.remainder(x, z)", [2.0, -2.0, 3.0], [1.0, 1.0, 2.0]),
    ("torch.addcdiv(x, x, z)", [0.0, 1.0], [0.0, 0.0]), ("torch.lerp(x, z, 0.5)", ZERO, [0.0, inf]),
    ("x ** 0", ZERO), ("x ** 1", ZERO), ("x ** 2", ZERO), ("x ** 3", ZERO), ("x ** -1", ZERO), ("x ** -2", ZERO), ("x ** -3", ZERO),
    ("x ** 0.5", [0.0]), ("x ** -0.5", [0.0]), ("x ** 1.5", [0.0]), ("x ** 0.25", [0.0]), ("x ** 9", ZERO), ("x ** -9", [0.0]),
    ("x.pow(z)", [0.0, 0.0, 0.0, 0.0, -1.0, 1.0], [0.0, 0.5, 1.0, 2.0, 2.0, 0.0]), ("torch.pow(0.0, x)", [0.0, 1.0, -1.0]),
    ("torch.where(x > 0, x.log(), x)", [0.0, 1.0]), ("torch.where(x > 0, x, z)", ZERO, ONE), ("x.masked_fill(x <= 0, -3)", ZERO),

    ("x.max(1)[0]", TIES), ("x.min(1)[0]", TIES), ("x.max(0, keepdim=True)[0]", TIES), ("x.min(0)[0]", TIES), ("x.max(0)[0]", 1.0),
    ("x.max(1)[0]", [[2.0, nan, nan], [inf, inf, 4.0], [-inf, -inf, -inf]]), ("x.amax(1)", TIES), ("x.amin(0)", TIES), ("x.amax((0, 1))", TIES),
    ("x.max()", TIES), ("x.min()", TIES), ("x.norm(dim=1)", PAIR), ("x.norm()", ZERO), ("x.norm(p=1, dim=1)", PAIR),
    ("torch.linalg.norm(x)", [[0.0, 0.0]]), ("torch.linalg.vector_norm(x, dim=1)", PAIR), ("torch.linalg.vector_norm(x, ord=1, dim=0)", PAIR),
    ("torch.frobenius_norm(x, [1])", PAIR), ("F.normalize(x, dim=1)", PAIR), ("x.std(1)", FLAT), ("x.std()", [2.0, 2.0]),
    ("x.std(1, unbiased=False, keepdim=True)", FLAT), ("torch.std_mean(x, 1)[0]", FLAT), ("x.std(1, unbiased=False)", [[1.0], [2.0]]),
    ("x.var(1)", FLAT), ("x.var(1)", [[1.0], [2.0]]), ("torch.var_mean(x, 1)[0]", FLAT), ("F.layer_norm(x, (3,))", [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]),
    ("F.cosine_similarity(x, z)", [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]], [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]),
    ("x.softmax(1)", [[-inf, 0.0], [100.0, -100.0]]), ("x.log_softmax(1)", [[-inf, 0.0], [-inf, -inf], [100.0, -100.0]]),
    ("x.logsumexp(1)", [[0.0, 0.0], [inf, 0.0], [-inf, -inf], [-inf, 1.0]]), ("x.sum(1)", [[inf, -inf], [nan, 0.0]]), ("x.mean(1)", [[inf, 0.0]]),

    ("F.max_pool1d(x.unsqueeze(0), 2, 1)[0]", TIES), ("F.max_pool2d(x.view(1, 1, 3, 3), 2, 1)", TIES), ("F.max_pool3d(x.view(1, 1, 1, 3, 3), (1, 2, 3))", FLAT),
    ("F.max_pool1d(x.unsqueeze(0), 2, 1)[0]", [[2.0, nan, nan], [inf, inf, 4.0], [-inf, -inf, -inf]]),
    ("F.max_pool2d(x.view(1, 1, 3, 3), 3, 2, 1)", [[2.0, nan, nan], [inf, inf, 4.0], [-inf, -inf, -inf]]),
    ("F.max_pool1d(x.unsqueeze(0), 3, 1, 1)", [[-inf, -inf, 1.0], [-inf, -inf, -inf]]), ("F.adaptive_max_pool1d(x.unsqueeze(0), 2)[0]", TIES),
    ("F.batch_norm(x, None, None, None, None, True)", [[2.0, 0.0, 1.0], [2.0, 0.0, 3.0]]),
    ("F.instance_norm(x.unsqueeze(0))", FLAT), ("x.prod(1)", [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [inf, 0.0, 1.0]]), ("x.prod()", [2.0, 0.0, -1.0]),
    ("x.cumsum(1)", [[1.0, inf, 2.0], [0.0, nan, 1.0]]),

    ("F.l1_loss(x, z, reduction='none')", ZERO, [0.0, 0.0]), ("F.mse_loss(x, z, reduction='none')", ZERO, [0.0, 1.0]),
    ("F.huber_loss(x, z, reduction='none')", [1.0, -1.0, 0.0], [0.0]), ("F.smooth_l1_loss(x, z, reduction='none', beta=0.5)", [0.5, -0.5, 0.0], [0.0]),
    ("F.smooth_l1_loss(x, z, beta=0.0, reduction='none')", ZERO, [0.0]),
    ("F.binary_cross_entropy(x, z, reduction='none')", [0.0, 0.0, 1.0, 1.0, 1e-13, 1e-13, 1e-30, 0.5, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.5, 0.5]),
    ("F.binary_cross_entropy(x.sigmoid(), z, reduction='none')", [100.0, -100.0, 100.0, -100.0, -30.0, 30.0, -28.0, 0.0], [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]),
    ("F.binary_cross_entropy_with_logits(x, z, reduction='none')", [0.0, 100.0, -100.0], [0.5, 0.0, 1.0]),
    ("F.binary_cross_entropy_with_logits(x, z, reduction='none', pos_weight=torch.tensor(2.0).type_as(x))", [0.0, 100.0, -100.0], [0.5, 0.0, 1.0]),
    ("F.kl_div(x, z, reduction='none')", [-1.0, -2.0], [0.0, 0.5]), ("F.kl_div(x, z, reduction='none', log_target=True)", [-1.0, -2.0], [-inf, 0.0]),
    ("F.cross_entropy(x, torch.tensor([0, 1, 1]))", [[100.0, -100.0], [100.0, -100.0], [0.0, 0.0]]),
    ("F.nll_loss(x.log_softmax(1), torch.tensor([0, 1]), reduction='none')", [[100.0, -100.0], [100.0, -100.0]]),
]

# {(expression, which): why} of gradients that are not PyTorch's on purpose.
OURS = {
    ("F.binary_cross_entropy(x, z, reduction='none')", "z"):
        "PyTorch's is that of logarithms without a bound, infinite at 0 and 1; ours is that of the loss, whose logarithms are bounded",
    ("F.binary_cross_entropy(x.sigmoid(), z, reduction='none')", "z"): "as before",
    ("F.kl_div(x, z, reduction='none')", "z"): "PyTorch's is NaN at a target of 0, ours 0",
    ("F.smooth_l1_loss(x, z, beta=0.0, reduction='none')", "z"): "PyTorch's is -1 for both where they are equal; ours has the other sign",
}

WITHOUT_GRADIENT = {"aten::" + name for name in (
    "argmax argmin isnan isinf isfinite bitwise_xor __xor__ __and__ __contains__ __getitem__ __is__ __isnot__ __or__ _set_item _unwrap_optional all any append bitwise_and bitwise_not bitwise_or "
    "empty empty_like eq extend floor_divide format ge gt insert is_grad_enabled items keys le len list logical_and logical_not "
    "logical_or logical_xor lt ne new_empty one_hot percentFormat pop reverse values warn").split()}

# Operators whose gradient is one formula everywhere, or that have none.
SMOOTH = WITHOUT_GRADIENT | {"aten::" + name for names in (
    # linear: what is moved, repeated, added or multiplied
    "_reshape_alias _to_copy _unsafe_view add addcmul addmm alias baddbmm bmm broadcast_tensors broadcast_to cat chunk clone "
    "constant_pad_nd contiguous conv1d conv2d conv3d convolution _convolution _convolution_mode copy cpu detach dot dropout einsum "
    "embedding expand expand_as fill flatten gather hstack index index_select linear mT matmul mm movedim mul mv narrow neg numpy_T outer "
    "pad permute repeat repeat_interleave requires_grad reshape reshape_as roll rsub select slice split split_with_sizes squeeze stack "
    "sub t tensor_split tile to transpose tril triu type_as unbind unflatten unsafe_chunk unsafe_split unsafe_split_with_sizes "
    "unsqueeze view view_as vstack zero conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d "
    "adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d _pad_circular flip fliplr flipud channel_shuffle "
    "native_channel_shuffle pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
    "replication_pad3d upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
    "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d",
    # smooth, of all numbers
    "cos sin native_layer_norm rms_norm",
    # with the edges of operators in the table: softmax and log-softmax
    "_softmax _log_softmax _scaled_dot_product_attention scaled_dot_product_attention nll_loss nll_loss2d nll_loss_forward "
    "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d group_norm native_batch_norm native_group_norm",
) for name in names.split()}


def points(values):
    return torch.tensor(values, dtype=torch.float32)


def evaluate_case(case, x, z):
    """The value of a case, weighted and summed up in fp32."""
    value = eval(case, {"x": x, "z": z, "F": F, "torch": torch}).float()
    weights = torch.arange(value.numel(), dtype=torch.float32).mul(0.7).sin().add(0.2).reshape(value.shape)
    return (value * weights).sum()


class Cases(torch.nn.Module):
    """The loss is the sum of all cases that have a number; the others count in the gradients alone."""

    def __init__(self, table):
        super().__init__()
        self.cases = [compile(case, case, "eval") for case, *_ in table]
        self.x = torch.nn.ParameterList([torch.nn.Parameter(points(x)) for _, x, *_ in table])
        self.z = torch.nn.ParameterList([torch.nn.Parameter(points(*z)) if z else torch.nn.Parameter(torch.ones(1)) for _, _, *z in table])

    def forward(self, a):
        loss = a.sum() * 0
        for case, x, z in zip(self.cases, self.x, self.z):
            loss = loss + evaluate_case(case, x * a, z * a)
        return loss


def reference(table, element):
    """{parameter: PyTorch's gradient} in that type; in fp32 what PyTorch 1.13 has no bf16 kernel for."""
    grads = {}
    for index, (case, x, *z) in enumerate(table):
        for kind in (element, torch.float32):
            leaves = [points(values).to(element).to(kind).requires_grad_() for values in (x, *(z or [[1.0]]))]
            try:
                evaluate_case(case, *leaves).backward()
                break
            except RuntimeError as error:
                assert kind != torch.float32 and "not implemented for" in str(error), f"{case}: {error}"
        for name, leaf in zip("xz", leaves):
            if leaf.grad is not None:
                grads[f"{name}.{index}"] = leaf.grad.float()
    return grads


FLOATS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}


def evaluate_as_typed():
    """Lets the oracle compute in the types of the IR; what an op forms in wider ones inside is given in its result's."""
    def typed(function):
        def compute(op, *operands):
            results = function(op, *operands)
            several = results if isinstance(results, (tuple, list)) else [results]
            return [value.to(oracle.dtype(element)) if value.is_floating_point() else value for value, (_, element) in zip(several, op.types)]
        return compute
    oracle.dtype = lambda element: FLOATS.get(element) or (torch.bool if element == "i1" else torch.int64)
    oracle.OPS = {name: typed(function) for name, function in oracle.OPS.items()}


def values_of(text, weights, compute):
    """{parameter: gradient} of the imported function, in the types of the IR after lowering to `compute`."""
    head = "module attributes {"
    assert head in text
    done = subprocess.run(["ds-opt", "-", "--canonicalize", "--ds-lower-precision", "--ds-differentiate", "--ds-decompose", "--canonicalize",
                           "--mlir-print-op-generic"], input=text.replace(head, head + f'ds.training = #ds.training<precision = {{compute = {compute}}}>, ', 1), stdout=subprocess.PIPE, text=True, check=True)
    function = oracle.Module(done.stdout).functions["forward"]
    arguments = []
    for attribute, (_, (shape, element)) in zip(function.argument_attributes, function.arguments):
        value = weights[attribute[1]] if attribute and attribute[0] == "state" else torch.ones(shape)
        arguments.append(value.to(oracle.dtype(element)))
    results = oracle.evaluate(function, arguments)
    return {attribute[1]: value.float() for attribute, value in zip(function.result_attributes, results)
            if attribute and attribute[0] == "gradient"}


def complaints_of(table, ours, theirs, tolerance):
    """What differs, a line each; an infinity, NaN and a number are three things."""
    lines = []
    for name, expected in theirs.items():
        which, case = name[0], table[int(name[2:])][0]
        found = ours.get(name, torch.zeros_like(expected))
        if (case, which) in OURS:
            if not found.isfinite().all():
                lines.append(f"{case}: gradient of {which} is {found.tolist()}, which is not finite")
            continue
        same = (found == expected) | (found.isnan() & expected.isnan())
        same |= (found - expected).abs() <= tolerance * (0.1 + expected.abs())
        if not same.all():
            lines.append(f"{case}: gradient of {which} is {found.tolist()}, not {expected.tolist()}")
    return lines


TOLERANCES = {"f32": (torch.float32, 1e-4), "bf16": (torch.bfloat16, 0.04)}


def uncovered(importer, folder):
    used = set()
    for entry in TABLE:
        archive = torch.jit.trace(Cases([entry]), (torch.ones(1),), check_trace=False)
        used |= {node.kind() for node in archive.inlined_graph.nodes()}
    used |= {name[:-1] for name in used if name.endswith("_")}
    listed = subprocess.run([importer, "--list-operators"], stdout=subprocess.PIPE, check=True).stdout.decode().split()
    return [name for name in listed if name.startswith("aten::") and name not in used | SMOOTH]


def main():
    importer, *flags = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if flags == ["--coverage"]:
            print("operators without a point:" + "".join(" " + name for name in uncovered(importer, folder)))
            return 0
        evaluate_as_typed()
        path = os.path.join(folder, "model.pt")
        torch.jit.trace(Cases(TABLE), (torch.ones(1),), check_trace=False).save(path)
        text, weights = evaluate.run_importer(importer, path, ["a=1xf32"])
        failed = 0
        for compute, (element, tolerance) in TOLERANCES.items():
            lines = complaints_of(TABLE, values_of(text, weights, compute), reference(TABLE, element), tolerance)
            print("".join(f"{compute}: {line}\n" for line in lines) + f"{compute}: {len(TABLE)} cases, {len(lines)} complaints")
            failed += len(lines)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
