//===- DsGeluOps.td - Products that apply GELU ----------------------*- tablegen -*-===//
#ifndef DS_GELU_OPS
#define DS_GELU_OPS

include "ds/Dialect/DsBase.td"

def Ds_NarrowTensor : Ds_TensorOf<AnyTypeOf<[BF16, F16]>>;

/// A product of 16 bits whose sums meet GELU or its gradient before they are stored.
class Ds_ProductGeluOp<string mnemonic, list<Trait> traits = []> : Ds_Op<mnemonic, !listconcat([OnTensors, Pure, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>, DeclareOpInterfaceMethods<LibraryOpInterface>], traits)> {
  let hasVerifier = 1;
}

def Ds_MatmulGeluOp : Ds_ProductGeluOp<"matmul_gelu"> {
  let summary = "Multiplies matrices and takes GELU, in its tanh form, of the result";
  let description = [{
    `result = gelu(h)` with `h = op(lhs) * op(rhs) + bias`, as `ds.matmul` has it. h is the second result, where it is
    asked for. A device may take GELU of the f32 sums or of h rounded. ds-apply-gelu makes these ops, for CUDA.

    Constraints:
    - (C1) a `ds.matmul` of these operands is valid and gives the result's type.
    - (C2) h has the result's type.

    Example: `%g, %h = ds.matmul_gelu %x, %w bias(%b) : tensor<4x8xbf16>, tensor<8x6xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>, tensor<4x6xbf16>`
  }];
  let arguments = (ins Ds_NarrowTensor:$lhs, Ds_NarrowTensor:$rhs, Optional<Ds_NarrowTensor>:$bias,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs Ds_NarrowTensor:$result, Optional<Ds_NarrowTensor>:$input);
  let assemblyFormat = [{
    $lhs `,` $rhs (`bias` `(` $bias^ `)`)? (`transpose_lhs` $transpose_lhs^)? (`transpose_rhs` $transpose_rhs^)?
    attr-dict `:` type($lhs) `,` type($rhs) (`,` type($bias)^)? `->` type($result) (`,` type($input)^)?
  }];
}

def Ds_MatmulGeluGradOp : Ds_ProductGeluOp<"matmul_gelu_grad"> {
  let summary = "Multiplies matrices and the result by the derivative of GELU, in its tanh form";
  let description = [{
    `result = gelu_grad(op(lhs) * op(rhs), input)`: what reaches GELU's result is the product, and GELU was taken of
    `input`.

    Constraints:
    - (C1) a `ds.matmul` of lhs and rhs is valid and gives the result's type.
    - (C2) `input` has the result's type.

    Example: `%d = ds.matmul_gelu_grad %y, %w input(%h) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<4x6xbf16> -> tensor<4x6xbf16>`
  }];
  let arguments = (ins Ds_NarrowTensor:$lhs, Ds_NarrowTensor:$rhs, Ds_NarrowTensor:$input, UnitAttr:$transpose_lhs,
                       UnitAttr:$transpose_rhs);
  let results = (outs Ds_NarrowTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `input` `(` $input `)` (`transpose_lhs` $transpose_lhs^)? (`transpose_rhs` $transpose_rhs^)?
    attr-dict `:` type($lhs) `,` type($rhs) `,` type($input) `->` type($result)
  }];
}

#endif // DS_GELU_OPS
