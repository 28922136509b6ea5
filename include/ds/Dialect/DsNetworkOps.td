//===- DsNetworkOps.td - The layers of networks ---------------------*- tablegen -*-===//
#ifndef DS_NETWORK_OPS
#define DS_NETWORK_OPS

include "ds/Dialect/DsBase.td"

defvar DiffNet = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar Cost = DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>;
defvar Library = DeclareOpInterfaceMethods<LibraryOpInterface>;
defvar Decompose = DeclareOpInterfaceMethods<DecomposableOpInterface>;

defvar Product = DeclareOpInterfaceMethods<ProductOpInterface, ["canTake", "buildWithEpilogue"]>;
// Written out, lest products with one result be named for what a second one would be told apart by.
defvar NamedResults = DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

def Ds_MatmulOp : Ds_Op<"matmul", [OnTensors, Pure, DiffNet, PrecisionOpInterface, Cost, Library, Product, NamedResults, AttrSizedOperandSegments]> {
  let summary = "Multiplies matrices, with bias, accumulation and an epilogue";
  let description = [{
    `result = epilogue(h)` with `h = op(lhs) * op(rhs) + bias + accumulator`. op transposes the last two dimensions where
    the flag says so. lhs is [..., M, K] (or [..., K, M]) and rhs [..., K, N] (or [..., N, K]) with equal leading
    dimensions, or rhs is a matrix and lhs's leading dimensions count as rows. Products and sums are f32 for
    16-bit elements. Costs 2 * batch * M * N * K operations.

    | epilogue        | result                         | beside it                        |
    |-----------------|--------------------------------|----------------------------------|
    | `none`          | h                              |                                  |
    | `relu`          | max(h, 0), NaN where h is NaN  |                                  |
    | `gelu`          | GELU of h in its tanh form     | h as `kept`, where it is asked for |
    | `gelu_gradient` | h times the derivative of that GELU at `input` | `input`          |

    A device may take GELU of the f32 sums or of h rounded. ds-apply-gelu makes its two forms, for CUDA.

    Constraints:
    - (C1) lhs has rank >= 2, rhs rank 2 or lhs's rank; leading dimensions of rhs equal lhs's.
    - (C2) the contracted sizes are equal.
    - (C3) lhs and rhs have one element type.
    - (C4) the result is [..., M, N] of that type, or of f32 where that type has 16 bits.
    - (C5) bias is [N] of lhs's element type, the accumulator has the result's type.
    - (C6) `transpose_lhs` with a rank-2 rhs asks for a rank-2 lhs.
    - (C7) with `gelu` and `gelu_gradient`, lhs and the result have one element type of 16 bits, and there is no
      accumulator; with `gelu_gradient` there is no bias either.
    - (C8) `gelu_gradient` has an input, `gelu` may have a second result; no other epilogue has either. Both have the
      result's type.

    Example:
    ```
    %r = ds.matmul %a, %b bias(%c) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>
    %g, %h = ds.matmul %a, %b bias(%c) transpose_rhs epilogue(gelu) : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>, tensor<4x6xbf16>
    %d = ds.matmul %a, %b input(%h) transpose_rhs epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<6x8xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>
    ```
  }];
  let arguments = (ins Ds_FloatTensor:$lhs, Ds_FloatTensor:$rhs, Optional<Ds_FloatTensor>:$bias,
                       Optional<Ds_FloatTensor>:$accumulator, Optional<Ds_FloatTensor>:$input, UnitAttr:$transpose_lhs,
                       UnitAttr:$transpose_rhs, DefaultValuedAttr<Ds_EpilogueAttr, "::mlir::ds::Epilogue::None">:$epilogue);
  let results = (outs Ds_FloatTensor:$result, Optional<Ds_FloatTensor>:$kept);
  let assemblyFormat = [{
    $lhs `,` $rhs (`bias` `(` $bias^ `)`)? (`into` `(` $accumulator^ `)`)? (`input` `(` $input^ `)`)?
    (`transpose_lhs` $transpose_lhs^)? (`transpose_rhs` $transpose_rhs^)? (`epilogue` `` custom<InParens>($epilogue)^)? attr-dict
    `:` type($lhs) `,` type($rhs) (`,` type($bias)^)? (`into` type($accumulator)^)? (`input` type($input)^)?
    `->` type($result) (`,` type($kept)^)?
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, CArg<"bool", "false">:$transposeLhs,
                   CArg<"bool", "false">:$transposeRhs)>,
    // A product of `type` without accumulator and epilogue; the bias may be null.
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$lhs, "::mlir::Value":$rhs, "::mlir::Value":$bias,
                   "bool":$transposeLhs, "bool":$transposeRhs)>
  ];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Ds_SoftmaxOp : Ds_Op<"softmax", [Composite, Pure, DiffNet, PrecisionOpInterface, Cost, Decompose, SameOperandsAndResultType]> {
  let summary = "Normalises exponentials along one dimension";
  let description = [{
    `exp(x - max) / sum(exp(x - max))` along `dim`, or its logarithm with `log`.

    Constraints:
    - (C1) `dim < rank(input)`.

    Example: `%r = ds.softmax %x dim 1 : tensor<4x8xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$input, ConfinedAttr<I64Attr, [IntNonNegative]>:$dim, UnitAttr:$log);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = "(`log` $log^)? $input `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Ds_LayerNormOp : Ds_Op<"layer_norm", [Composite, Pure, DiffNet, PrecisionOpInterface, Cost, Decompose, AttrSizedOperandSegments]> {
  let summary = "Normalises the last dimensions to mean 0 and variance 1";
  let description = [{
    Over the last `num_dims` dimensions: `result = (x - mean) * rstd * weight + bias`, rstd = 1 / sqrt(var +
    epsilon), var without Bessel's correction. `mean` and `rstd` have the leading shape; backward reads them.

    Constraints:
    - (C1) `1 <= num_dims <= rank(input)`.
    - (C2) weight and bias have the shape of the last `num_dims` dimensions.
    - (C3) the result has the input's type; mean and rstd have the leading shape.

    Example: `%r, %mean, %rstd = ds.layer_norm %x weight(%w) bias(%b) over 1 epsilon 1.000000e-05 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$input, Optional<Ds_FloatTensor>:$weight, Optional<Ds_FloatTensor>:$bias,
                       ConfinedAttr<I64Attr, [IntPositive]>:$num_dims, F64Attr:$epsilon);
  let results = (outs Ds_FloatTensor:$result, Ds_FloatTensor:$mean, Ds_FloatTensor:$rstd);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `)`)? (`bias` `(` $bias^ `)`)? `over` $num_dims `epsilon` $epsilon attr-dict
    `:` type($input) (`,` type($weight)^)? (`,` type($bias)^)? `->` type($result) `,` type($mean) `,` type($rstd)
  }];
  let hasVerifier = 1;
}

def Ds_RmsNormOp : Ds_Op<"rms_norm", [Composite, Pure, DiffNet, PrecisionOpInterface, Cost, Decompose]> {
  let summary = "Divides the last dimensions by their root mean square";
  let description = [{
    Over the last `num_dims` dimensions: `result = x * rstd * weight`, rstd = 1 / sqrt(mean(x * x) + epsilon).
    `rstd` has the leading shape; backward reads it.

    Constraints:
    - (C1) `1 <= num_dims <= rank(input)`.
    - (C2) weight has the shape of the last `num_dims` dimensions.
    - (C3) the result has the input's type; rstd has the leading shape.

    Example: `%r, %rstd = ds.rms_norm %x weight(%w) over 1 epsilon 9.9999999999999995E-7 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$input, Optional<Ds_FloatTensor>:$weight,
                       ConfinedAttr<I64Attr, [IntPositive]>:$num_dims, F64Attr:$epsilon);
  let results = (outs Ds_FloatTensor:$result, Ds_FloatTensor:$rstd);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `)`)? `over` $num_dims `epsilon` $epsilon attr-dict
    `:` type($input) (`,` type($weight)^)? `->` type($result) `,` type($rstd)
  }];
  let hasVerifier = 1;
}

def Ds_AttentionOp : Ds_Op<"attention", [OnTensors, AttrSizedOperandSegments, DeclareOpInterfaceMethods<RandomOpInterface, ["removeNoise"]>, Pure, DiffNet, PrecisionOpInterface, Cost, Library]> {
  let summary = "Computes scaled dot-product attention without keeping the scores";
  let description = [{
    `out[b, t, h] = sum_s softmax_s(scale * q[b, t, h] . k[b, s, g] + mask[b, h, t, s]) v[b, s, g]` with
    g = h / (H / G): grouped-query attention where there are fewer key heads G than query heads H. `causal` lets
    position t see s <= t + (S - T). `lse` is the logarithm of each row's sum of exponentials; backward rebuilds
    the scores from it tile by tile, so that nothing of size T x S lives on.

    What is added to a score is made of its position as it is needed, and never stored:
    - `window w`: position t sees s only where |t + (S - T) - s| < w. With `causal` these are the last w positions,
      the own one included (a sliding window); without it, w - 1 to either side.
    - `cap c`: c * tanh(x / c) takes the place of a scaled score x, before masks (Gemma 2, arXiv 2408.00118, section 2).
    - `slopes`: head h gains slopes[h] * (s - (t + (S - T))), behind the cap (ALiBi, arXiv 2108.12409, section 3).

    `dropout p id i (rng)`: the probabilities, which are f32 [B, H, T, S], are dropped as `ds.dropout` with the same
    probability, id and generator would drop them, element for element; `lse` is that of all scores. The mask is drawn
    tile by tile, and backward draws it again. Where these are some of the heads of a larger attention, `heads (first) of
    n` says that head h is number first + h of n, and they are dropped as they would be there.

    Constraints:
    - (C1) q is [B, T, H, D]; k and v are [B, S, G, D]; H is a multiple of G.
    - (C2) out has q's type; lse is f32 [B, H, T].
    - (C3) mask, where present, is f32 of rank 4, and each size is 1 or that of [B, H, T, S].
    - (C4) D is at most 256: kernels keep a row of a head at hand. Wider heads are written as products and a softmax.
    - (C5) slopes, where present, is f32 [H].
    - (C6) window and cap, where present, are positive, and the cap is finite.
    - (C7) dropout, id and rng are all present or none is; `0 <= dropout < 1`; rng is i64 [2].
    - (C8) the first head and heads are both present or none is, and only with dropout; first is i64 of rank 0; there are at
      least H heads.

    Example: `%o, %lse = ds.attention %q, %k, %v causal scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)`
  }];
  let arguments = (ins Ds_FloatTensor:$query, Ds_FloatTensor:$key, Ds_FloatTensor:$value,
                       Optional<Ds_FloatTensor>:$mask, Optional<Ds_FloatTensor>:$slopes,
                       Optional<Ds_TensorOf<I64>>:$rng, Optional<Ds_TensorOf<I64>>:$first_head, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$cap, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$dropout, OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$dropout_id,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Ds_FloatTensor:$result, Ds_FloatTensor:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `)`)? (`slopes` `(` $slopes^ `)`)? (`causal` $causal^)?
    (`window` $window^)? (`cap` $cap^)? `scale` $scale
    (`dropout` $dropout^ `id` $dropout_id `(` $rng `)`)? (`heads` `(` $first_head^ `)` `of` $heads)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Ds_AttentionGradOp : Ds_Op<"attention_grad", [OnTensors, AttrSizedOperandSegments, RandomOpInterface, Pure, Cost, Library]> {
  let summary = "Computes the gradients of attention by query, key and value";
  let description = [{
    Constraints:
    - (C1) the first five operands, `mask`, `slopes`, `rng`, the first head and all attributes are those of a valid
      `ds.attention`; `grad` has `out`'s type.
    - (C2) the results have the types of query, key and value.

    Example: `%dq, %dk, %dv = ds.attention_grad %q, %k, %v, %o, %lse, %do causal scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)`
  }];
  let arguments = (ins Ds_FloatTensor:$query, Ds_FloatTensor:$key, Ds_FloatTensor:$value, Ds_FloatTensor:$out,
                       Ds_FloatTensor:$lse, Ds_FloatTensor:$grad, Optional<Ds_FloatTensor>:$mask,
                       Optional<Ds_FloatTensor>:$slopes, Optional<Ds_TensorOf<I64>>:$rng,
                       Optional<Ds_TensorOf<I64>>:$first_head, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<F64Attr>:$cap, F64Attr:$scale, OptionalAttr<F64Attr>:$dropout,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$dropout_id, OptionalAttr<I64Attr>:$heads);
  let results = (outs Ds_FloatTensor:$queryGrad, Ds_FloatTensor:$keyGrad, Ds_FloatTensor:$valueGrad);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $out `,` $lse `,` $grad (`mask` `(` $mask^ `)`)? (`slopes` `(` $slopes^ `)`)?
    (`causal` $causal^)? (`window` $window^)? (`cap` $cap^)? `scale` $scale
    (`dropout` $dropout^ `id` $dropout_id `(` $rng `)`)? (`heads` `(` $first_head^ `)` `of` $heads)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Ds_EmbeddingOp : Ds_Op<"embedding", [OnTensors, Pure, DiffNet, PrecisionOpInterface, Library]> {
  let summary = "Looks up rows of a table";
  let description = [{
    `result[i..., c] = table[ids[i...], c]`. Ids must lie in [0, rows): the runtime checks every batch.

    The row `padding_index`, where there is one, is read like the others, but looking it up gives it no gradient, as
    PyTorch's `padding_idx` says. Its value is nothing special: another use of the table, such as a tied output layer,
    or weight decay may well train it.

    With `part`, the table is a part of the rows of a larger one, and ids count from its first row: one outside of [0, rows)
    is another part's and gives a row of zeros, so that the parts' results add up to the whole table's. The runtime checks
    inputs against what `ds.indices` says of them then.

    Constraints:
    - (C1) table has rank 2.
    - (C2) the result's shape is that of `ids` followed by the table's columns, with the table's element type.
    - (C3) `padding_index` lies in [0, rows).

    Example: `%r = ds.embedding part %table, %ids : tensor<100x8xf32>, tensor<2x16xi64> -> tensor<2x16x8xf32>`
    Example: `%r = ds.embedding %table, %ids padding_index 1 : tensor<100x8xf32>, tensor<2x16xi64> -> tensor<2x16x8xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$table, Ds_IntTensor:$ids, UnitAttr:$part, OptionalAttr<I64Attr>:$padding_index);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = [{
    (`part` $part^)? $table `,` $ids (`padding_index` $padding_index^)? attr-dict `:` type($table) `,` type($ids) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Ds_EmbeddingGradOp : Ds_Op<"embedding_grad", [OnTensors, Pure, Library]> {
  let summary = "Adds gradient rows to the table rows they came from";
  let description = [{
    `result = accumulator` (or zeros), then `result[ids[i...]] += grad[i...]`, in index order. A table that is
    also the output layer's matrix accumulates onto that gradient, so that no second table is ever made. Rows whose
    id lies outside of [0, rows), as -1, add nowhere.

    Constraints:
    - (C1) the result has rank 2, and `grad` the shape of `ids` followed by the result's columns.
    - (C2) the accumulator has the result's type, which is grad's or f32. Sums are formed in f32 either way.

    Example: `%d = ds.embedding_grad %ids, %g : tensor<2x16xi64>, tensor<2x16x8xf32> -> tensor<100x8xf32>`
  }];
  let arguments = (ins Ds_IntTensor:$ids, Ds_FloatTensor:$grad, Optional<Ds_FloatTensor>:$accumulator);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = [{
    $ids `,` $grad (`into` `(` $accumulator^ `:` type($accumulator) `)`)? attr-dict `:` type($ids) `,` type($grad)
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def Ds_CrossEntropyOp : Ds_Op<"cross_entropy", [OnTensors, Pure, DiffNet, PrecisionOpInterface, Cost, Library]> {
  let summary = "Computes the mean negative log-likelihood of target classes";
  let description = [{
    `loss = sum_i (lse[i] - logits[i, targets[i]]) / count` over the rows whose target is not `ignore_index`;
    `lse` and `count` are what backward reads. With no such row the loss is 0, and so is the gradient (PyTorch's mean is
    NaN then): a micro-batch without a target adds nothing to its step.

    With a `denominator`, the sum is divided by that in place of `count`: where it is the count of a larger batch, the
    losses of the batch's parts add up to the loss of the whole, and a part of which every row is ignored has loss 0.

    With a `cap` c, c * tanh(x / c) takes the place of each logit x, and is never stored.

    `piece_rows` are the rows of the pieces in which a whole loss could be made, where that is open.

    Constraints:
    - (C1) logits is [N, C], targets [N].
    - (C2) loss, count and denominator are rank-0 f32, lse is f32 [N].
    - (C3) cap, where present, is positive and finite.

    Example: `%loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)`
  }];
  let arguments = (ins Ds_FloatTensor:$logits, Ds_TensorOf<I64>:$targets, Optional<Ds_TensorOf<F32>>:$denominator,
                       I64Attr:$ignore_index, OptionalAttr<F64Attr>:$cap, OptionalAttr<DenseI64ArrayAttr>:$piece_rows);
  let results = (outs Ds_TensorOf<F32>:$loss, Ds_TensorOf<F32>:$lse, Ds_TensorOf<F32>:$count);
  let builders = [OpBuilder<(ins "::mlir::Value":$logits, "::mlir::Value":$targets, "::mlir::Value":$denominator,
                                 "int64_t":$ignoreIndex)>];
  let assemblyFormat = [{
    $logits `,` $targets (`over` `(` $denominator^ `)`)? `ignore_index` $ignore_index (`cap` $cap^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Ds_CrossEntropyGradOp : Ds_Op<"cross_entropy_grad", [OnTensors, Pure, Cost, Library, AllTypesMatch<["logits", "result"]>]> {
  let summary = "Computes the gradient of cross-entropy by its logits";
  let description = [{
    `result[i, j] = (exp(logits[i, j] - lse[i]) - (j == targets[i])) * grad / count`, 0 in ignored rows. It may
    be written over the logits. With a `cap` c, y = c * tanh(logits[i, j] / c) takes the place of a logit, and the
    result is multiplied by y's derivative, 1 - (y / c)^2.

    Constraints:
    - (C1) operands and cap are those of a valid `ds.cross_entropy`; grad and count are rank-0 f32.

    Example: `%d = ds.cross_entropy_grad %x, %t, %lse, %count, %g ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x8xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$logits, Ds_TensorOf<I64>:$targets, Ds_TensorOf<F32>:$lse,
                       Ds_TensorOf<F32>:$count, Ds_TensorOf<F32>:$grad, I64Attr:$ignore_index,
                       OptionalAttr<F64Attr>:$cap);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = [{
    $logits `,` $targets `,` $lse `,` $count `,` $grad `ignore_index` $ignore_index (`cap` $cap^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Ds_CrossEntropyWithGradOp : Ds_Op<"cross_entropy_with_grad", [OnTensors, Pure, Cost, Library, AllTypesMatch<["logits", "result"]>]> {
  let summary = "Computes cross-entropy and its gradient by the logits in one pass over them";
  let description = [{
    `loss` and `count` are those of `ds.cross_entropy`, `result` is that of `ds.cross_entropy_grad` for `grad`, divided by
    the `denominator` where there is one, else by `count`. It may be written over the logits, which are read once.

    Constraints:
    - (C1) logits is [N, C], targets [N].
    - (C2) grad, denominator, loss and count are rank-0 f32.
    - (C3) cap, where present, is positive and finite.

    Example: `%loss, %count, %d = ds.cross_entropy_with_grad %x, %t, %g ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>)`
  }];
  let arguments = (ins Ds_FloatTensor:$logits, Ds_TensorOf<I64>:$targets, Ds_TensorOf<F32>:$grad,
                       Optional<Ds_TensorOf<F32>>:$denominator, I64Attr:$ignore_index, OptionalAttr<F64Attr>:$cap);
  let results = (outs Ds_TensorOf<F32>:$loss, Ds_TensorOf<F32>:$count, Ds_FloatTensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$logits, "::mlir::Value":$targets, "::mlir::Value":$grad,
                                 "::mlir::Value":$denominator, "::mlir::IntegerAttr":$ignoreIndex,
                                 "::mlir::FloatAttr":$cap)>];
  let assemblyFormat = [{
    $logits `,` $targets `,` $grad (`over` `(` $denominator^ `)`)? `ignore_index` $ignore_index (`cap` $cap^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Ds_DropoutOp : Ds_Op<"dropout", [Composite, DeclareOpInterfaceMethods<RandomOpInterface, ["removeNoise"]>, Pure, DiffNet, PrecisionOpInterface, Decompose, AllTypesMatch<["input", "result"]>]> {
  let summary = "Zeroes elements at random and scales the others";
  let description = [{
    An element is kept, and divided by 1 - probability, where `ds.random_uniform` of the same `id` draws at
    least `probability`; NaN is never dropped. `rng` is that op's (seed, counter). The same op applied to the gradient is its own backward.

    Constraints:
    - (C1) `0 <= probability < 1`.

    Example: `%r = ds.dropout %x, %rng probability 1.000000e-01 id 3 : tensor<4x8xf32>, tensor<2xi64>`
  }];
  let arguments = (ins Ds_FloatTensor:$input, Ds_TensorOf<I64>:$rng, F64Attr:$probability,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$id);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $rng `probability` $probability `id` $id attr-dict `:` type($input) `,` type($rng)
  }];
  let hasVerifier = 1;
}

#endif // DS_NETWORK_OPS
