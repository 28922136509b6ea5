//===- DsShapeOps.td - Ops that move, repeat, make or combine elements -*- tablegen -*-===//
#ifndef DS_SHAPE_OPS
#define DS_SHAPE_OPS

include "ds/Dialect/DsBase.td"

class Ds_IndexOp<string mnemonic, list<Trait> traits = []>
    : Ds_Op<mnemonic, !listconcat(traits, [OnTensors, Pure, FusableOpInterface, PrecisionOpInterface])> {
  let extraClassDeclaration = [{
    static ::mlir::ds::FusionKind getFusionKind() { return ::mlir::ds::FusionKind::Index; }
  }];
}

def Ds_ConstantOp : Ds_IndexOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "Gives a constant tensor";
  let description = [{ Example: `%c = ds.constant dense<1.000000e+00> : tensor<4xf32>` }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Ds_IotaOp : Ds_IndexOp<"iota"> {
  let summary = "Counts along one dimension";
  let description = [{
    Element i is `start + step * i[dim]`.

    Constraints:
    - (C1) `dim < rank(result)`.

    Example: `%i = ds.iota dim 1 start 0 step 1 : tensor<4x8xi64>`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$dim, I64Attr:$start, I64Attr:$step);
  let results = (outs Ds_TensorOf<Ds_Number>:$result);
  let assemblyFormat = "`dim` $dim `start` $start `step` $step attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Ds_RandomUniformOp : Ds_IndexOp<"random_uniform", [RandomOpInterface, HeavyBody]> {
  let summary = "Draws numbers in [0, 1) from a counter-based generator";
  let description = [{
    Philox-4x32-10 (Salmon et al., SC'11). `rng` holds (seed, counter), the counter being that of the micro-step in
    the whole run. Element i is word `i % 4` of the block with key = seed and counter words (low and high half of
    i / 4, `id`, rng counter), scaled by 2^-32 after dropping its 8 low bits; i counts row-major from `first`, the
    index of the first element in the global sample. Nothing else enters, so that a recomputed or re-sharded draw is the same draw.

    With `numbers`, i of an element is `first` plus its number there: a part of a larger value draws what the whole would
    draw, wherever its elements lie in it.

    Constraints:
    - (C1) numbers are i64 and have the result's shape.

    Example: `%u = ds.random_uniform %rng id 3 first 0 numbers(%n) : tensor<2xi64>, tensor<4x8xi64> -> tensor<4x8xf32>`
    Example: `%u = ds.random_uniform %rng id 3 first 0 : tensor<2xi64> -> tensor<4x8xf32>`
  }];
  let arguments = (ins Ds_TensorOf<I64>:$rng, ConfinedAttr<I64Attr, [IntNonNegative]>:$id,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$first, Optional<Ds_TensorOf<I64>>:$numbers);
  let results = (outs Ds_TensorOf<F32>:$result);
  let assemblyFormat = [{
    $rng `id` $id `first` $first (`numbers` `(` $numbers^ `)`)? attr-dict `:` type($rng) (`,` type($numbers)^)?
    `->` type($result)
  }];
  let hasVerifier = 1;
}

defvar DiffShape = DeclareOpInterfaceMethods<DifferentiableOpInterface>;

def Ds_BroadcastOp : Ds_IndexOp<"broadcast", [DiffShape]> {
  let summary = "Repeats a tensor along new or unit dimensions";
  let description = [{
    Dimension k of `input` becomes dimension `dims[k]` of the result; where the input's size is 1 it is repeated.

    Constraints:
    - (C1) `dims` has one entry per input dimension, strictly increasing, each < rank(result).
    - (C2) input dimension k has size 1 or the size of result dimension `dims[k]`.
    - (C3) element types are equal.

    Example: `%r = ds.broadcast %x dims [1] : tensor<8xf32> -> tensor<4x8xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$input `dims` $dims attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ds_ReshapeOp : Ds_IndexOp<"reshape", [DiffShape]> {
  let summary = "Reinterprets a tensor's row-major elements in another shape";
  let description = [{
    Constraints:
    - (C1) both shapes have the same number of elements.
    - (C2) element types are equal.

    Example: `%r = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ds_TransposeOp : Ds_IndexOp<"transpose", [DiffShape]> {
  let summary = "Permutes dimensions";
  let description = [{
    Dimension k of the result is dimension `perm[k]` of the input.

    Constraints:
    - (C1) `perm` is a permutation of the input's dimensions.
    - (C2) the result's shape is the permuted shape of the input, of the same element type.

    Example: `%r = ds.transpose %x perm [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$input `perm` $perm attr-dict `:` type($input) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$perm)>];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ds_SliceOp : Ds_IndexOp<"slice", [DiffShape]> {
  let summary = "Takes a strided window";
  let description = [{
    Element i of the result is the input's element `offsets + strides * i`.

    Constraints:
    - (C1) `offsets` and `strides` have one entry per dimension; strides are positive.
    - (C2) the window lies inside the input.
    - (C3) the result has the input's rank and element type.

    Example: `%r = ds.slice %x offsets [0, 4] strides [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$input `offsets` $offsets `strides` $strides attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ds_PadOp : Ds_IndexOp<"pad", [DiffShape]> {
  let summary = "Places a tensor at a strided window of zeros";
  let description = [{
    The inverse of `ds.slice`: the result's element `offsets + strides * i` is the input's element i, all others
    are zero.

    Constraints:
    - (C1) `offsets` and `strides` have one entry per dimension; strides are positive.
    - (C2) the window lies inside the result.
    - (C3) the result has the input's rank and element type.

    Example: `%r = ds.pad %x offsets [0, 4] strides [1, 1] : tensor<4x4xf32> -> tensor<4x8xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$input `offsets` $offsets `strides` $strides attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Ds_ConcatOp : Ds_IndexOp<"concat", [DiffShape]> {
  let summary = "Joins tensors along one dimension";
  let description = [{
    Constraints:
    - (C1) there is at least one input, and `dim < rank(result)`.
    - (C2) inputs agree with the result in rank, element type and every size but that of `dim`.
    - (C3) the sizes along `dim` add up to the result's.

    Example: `%r = ds.concat %a, %b dim 0 : tensor<2x8xf32>, tensor<3x8xf32> -> tensor<5x8xf32>`
  }];
  let arguments = (ins Variadic<Ds_Tensor>:$inputs, ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` type($inputs) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ds_SplitOp : Ds_Op<"split", [OnTensors, Pure, DiffShape, PrecisionOpInterface]> {
  let summary = "Cuts a tensor into consecutive pieces along one dimension";
  let description = [{
    The pieces' sizes along `dim` are those of the result types. Its gradient is one `ds.concat`, where as many
    slices would each pad to the whole.

    Constraints:
    - (C1) there is at least one result, and `dim < rank(input)`.
    - (C2) results agree with the input in rank, element type and every size but that of `dim`.
    - (C3) the sizes along `dim` add up to the input's.

    Example: `%q:2 = ds.split %x dim 1 : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x6xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input, ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs Variadic<Ds_Tensor>:$pieces);
  let assemblyFormat = "$input `dim` $dim attr-dict `:` type($input) `->` type($pieces)";
  let hasVerifier = 1;
}

def Ds_ReduceOp : Ds_Op<"reduce", [OnTensors, Pure, DiffShape, FusableOpInterface, PrecisionOpInterface,
                                   DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "Combines elements along dimensions";
  let description = [{
    Removes `dims`. Sums of f16 and bf16 are formed in f32. The order of additions depends on shapes alone, never
    on the number of threads. The gradient of `max` and `min` is shared equally by the elements that attain it,
    and NaN for all of them where the result is.

    Constraints:
    - (C1) `dims` are strictly increasing, each < rank(input).
    - (C2) the result has the sizes of the dimensions that remain, and the input's element type.

    Example: `%r = ds.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>`
  }];
  let arguments = (ins Ds_ReduceKindAttr:$kind, Ds_TensorOf<Ds_Number>:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Ds_TensorOf<Ds_Number>:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input `dims` $dims attr-dict `:` type($input) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::ds::ReduceKind":$kind, "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$dims)>];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static ::mlir::ds::FusionKind getFusionKind() { return ::mlir::ds::FusionKind::Reduction; }
  }];
}

#endif // DS_SHAPE_OPS
