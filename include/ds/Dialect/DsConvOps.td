//===- DsConvOps.td - Convolution and its gradients -----------------*- tablegen -*-===//
#ifndef DS_CONV_OPS
#define DS_CONV_OPS

include "ds/Dialect/DsBase.td"

def Ds_ConvTensor : Ds_TensorOf<AnyTypeOf<[F32, BF16, F16]>>;

/// The geometry that a convolution and its gradients share; the arguments are each op's own.
class Ds_WindowOp<string mnemonic, list<Trait> traits = []> : Ds_Op<mnemonic, !listconcat([OnTensors, Pure, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>, DeclareOpInterfaceMethods<LibraryOpInterface>], traits)> {
  dag window = (ins DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation,
                    I64Attr:$groups);
  let results = (outs Ds_ConvTensor:$result);
  let hasVerifier = 1;
}

def Ds_ConvOp : Ds_WindowOp<"conv", [DeclareOpInterfaceMethods<DifferentiableOpInterface>, PrecisionOpInterface, ProductOpInterface]> {
  let summary = "Slides filters over one to three dimensions";
  let description = [{
    `result[n, o, l] = bias[o] + sum_{i, k} input[n, g * I / groups + i, stride * l + dilation * k - padding] *
    weight[o, i, k]`, where l and k have one number for each of the last dimensions, g = o / (O / groups), and what
    lies outside the input is zero. This is PyTorch's convolution, which does not mirror the filters. Products and
    sums are f32 for 16-bit elements, and each result is rounded once. Costs 2 * |result| * |weight| / O operations.

    Constraints:
    - (C1) input is [N, I, L...], weight [O, I / groups, K...], with one to three last dimensions and no size 0.
    - (C2) stride, padding and dilation have one number for each of those; strides and dilations are 1 or more,
      paddings 0 or more, all below 2^31.
    - (C3) groups is 1 or more and divides I and O.
    - (C4) result is [N, O, (L + 2 * padding - dilation * (K - 1) - 1) / stride + 1, ...], none of them below 1.
    - (C5) all have one element type; bias is [O].

    Example: `%r = ds.conv %x, %w bias(%b) stride [2, 2] padding [1, 1] dilation [1, 1] groups 1 : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32> -> tensor<2x4x4x4xf32>`
  }];
  let arguments = !con((ins Ds_ConvTensor:$input, Ds_ConvTensor:$weight, Optional<Ds_ConvTensor>:$bias), window);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `)`)? `stride` $stride `padding` $padding `dilation` $dilation
    `groups` $groups attr-dict `:` type($input) `,` type($weight) (`,` type($bias)^)? `->` type($result)
  }];
}

def Ds_ConvGradInputOp : Ds_WindowOp<"conv_grad_input", [DeclareOpInterfaceMethods<DifferentiableOpInterface>, PrecisionOpInterface]> {
  let summary = "Computes the gradient of a convolution by its input";
  let description = [{
    `result[n, i, p]` is the sum of `grad[n, o, l] * weight[o, i, k]` over all that the convolution's sums read at
    p: PyTorch's transposed convolution of `grad`, as which it stands in models. Costs as much as the convolution.

    Constraints:
    - (C1) a `ds.conv` of the result's type and `weight` with these windows is valid and gives `grad`'s type.

    Example: `%d = ds.conv_grad_input %w, %g stride [2, 2] padding [1, 1] dilation [1, 1] groups 1 : tensor<4x3x3x3xf32>, tensor<2x4x4x4xf32> -> tensor<2x3x8x8xf32>`
  }];
  let arguments = !con((ins Ds_ConvTensor:$weight, Ds_ConvTensor:$grad), window);
  let assemblyFormat = [{
    $weight `,` $grad `stride` $stride `padding` $padding `dilation` $dilation `groups` $groups attr-dict
    `:` type($weight) `,` type($grad) `->` type($result)
  }];
}

def Ds_ConvGradWeightOp : Ds_WindowOp<"conv_grad_weight"> {
  let summary = "Computes the gradient of a convolution by its filters";
  let description = [{
    `result[o, i, k]` is the sum of `grad[n, o, l] * input[n, g * I / groups + i, stride * l + dilation * k -
    padding]` over n and l. Costs as much as the convolution.

    Constraints:
    - (C1) a `ds.conv` of `input` and the result's type with these windows is valid and gives `grad`'s type.

    Example: `%d = ds.conv_grad_weight %x, %g stride [2, 2] padding [1, 1] dilation [1, 1] groups 1 : tensor<2x3x8x8xf32>, tensor<2x4x4x4xf32> -> tensor<4x3x3x3xf32>`
  }];
  let arguments = !con((ins Ds_ConvTensor:$input, Ds_ConvTensor:$grad), window);
  let assemblyFormat = [{
    $input `,` $grad `stride` $stride `padding` $padding `dilation` $dilation `groups` $groups attr-dict
    `:` type($input) `,` type($grad) `->` type($result)
  }];
}

#endif // DS_CONV_OPS
