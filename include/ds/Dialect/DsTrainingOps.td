//===- DsTrainingOps.td - What training sees otherwise ---------------*- tablegen -*-===//
#ifndef DS_TRAINING_OPS
#define DS_TRAINING_OPS

include "ds/Dialect/DsBase.td"

def EvaluatedOpInterface : OpInterface<"EvaluatedOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that gives something else in evaluation than in training, or reads the samples of all ranks where that is asked
    for.
  }];
  let methods = [
    InterfaceMethod<"Builds what the op gives in evaluation, in its place, and erases it.", "void", "evaluate", (ins),
      [{}], [{ return; }]>,
    InterfaceMethod<"Lets the op take its statistics over the samples of all ranks, and not of its own alone.",
      "void", "synchronize", (ins), [{}], [{ $_op.setSync(true); }]>
  ];
}

defvar Evaluated = DeclareOpInterfaceMethods<EvaluatedOpInterface, ["evaluate"]>;
defvar DecomposeTraining = DeclareOpInterfaceMethods<DecomposableOpInterface>;
defvar CostTraining = DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>;

def Ds_BatchNormOp : Ds_Op<"batch_norm", [Composite, Pure, DeclareOpInterfaceMethods<DifferentiableOpInterface>, PrecisionOpInterface, CostTraining, DecomposeTraining, Evaluated, AttrSizedOperandSegments]> {
  let summary = "Normalises each channel by the samples of a micro-batch";
  let description = [{
    Over all dimensions of input [N, C, L...] but C: `result = (x - mean) * rstd * weight + bias`, rstd = 1 / sqrt(var +
    epsilon), var without Bessel's correction. `mean` and `rstd` have one element a channel; backward reads them. With
    `running`, which are the mean and the variance kept so far, there are their next values as well: `(1 - momentum) *
    running + momentum * x`, x being the mean and the variance with Bessel's correction. Evaluation takes those kept in place
    of the micro-batch's, and leaves them as they are; without them it does what training does.

    A rank's samples alone count, but with `sync`, which ds-build-step sets: then those of all ranks that see other data.
    Statistics are f32 for 16-bit elements.

    Constraints:
    - (C1) input has rank 2 or more, and more than one element a channel.
    - (C2) weight and bias are [C] of one element type.
    - (C3) result has the input's type; mean and rstd are [C] of f32, or of f64 where the input is.
    - (C4) running are a mean and a variance or nothing, each [C], and there are as many next values, of mean's type.
    - (C5) momentum lies in [0, 1].

    Example: `%r, %mean, %rstd = ds.batch_norm %x momentum 1.000000e-01 epsilon 1.000000e-05 : (tensor<4x8x5xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>)`

    Example: `%r:5 = ds.batch_norm %x weight(%w) bias(%b) running(%m, %v) momentum 1.000000e-01 epsilon 1.000000e-05 : (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)`
  }];
  let arguments = (ins Ds_FloatTensor:$input, Optional<Ds_FloatTensor>:$weight, Optional<Ds_FloatTensor>:$bias,
                       Variadic<Ds_FloatTensor>:$running, F64Attr:$momentum, F64Attr:$epsilon, UnitAttr:$sync);
  let results = (outs Ds_FloatTensor:$result, Ds_FloatTensor:$mean, Ds_FloatTensor:$rstd,
                      Variadic<Ds_FloatTensor>:$next);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `)`)? (`bias` `(` $bias^ `)`)? (`running` `(` $running^ `)`)?
    (`sync` $sync^)? `momentum` $momentum `epsilon` $epsilon attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Ds_BatchNormGradOp : Ds_Op<"batch_norm_grad", [Composite, Pure, PrecisionOpInterface, CostTraining, DecomposeTraining, DeclareOpInterfaceMethods<EvaluatedOpInterface>]> {
  let summary = "Computes the gradients of a batch norm by input, weight and bias";
  let description = [{
    With x-hat = (x - mean) * rstd and g = `grad` * weight, the gradient by the input is `rstd * (g - mean(g) - x-hat *
    mean(g * x-hat))`, means being those of a channel, with `sync` over all ranks' samples; by weight it is the sum of
    `grad * x-hat`, by bias that of `grad`, both over this rank's samples.

    Constraints:
    - (C1) input, mean and rstd are those of a `ds.batch_norm`, weight is its weight, and grad has its result's type.
    - (C2) the results are of the input's type, and twice of mean's.

    Example: `%dx, %dw, %db = ds.batch_norm_grad %x, %mean, %rstd, %g weight(%w) : (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8x5xf32>, tensor<8xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>)`
  }];
  let arguments = (ins Ds_FloatTensor:$input, Ds_FloatTensor:$mean, Ds_FloatTensor:$rstd, Ds_FloatTensor:$grad,
                       Optional<Ds_FloatTensor>:$weight, UnitAttr:$sync);
  let results = (outs Ds_FloatTensor:$inputGrad, Ds_FloatTensor:$weightGrad, Ds_FloatTensor:$biasGrad);
  let assemblyFormat = [{
    $input `,` $mean `,` $rstd `,` $grad (`weight` `(` $weight^ `)`)? (`sync` $sync^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Ds_DetachOp : Ds_Op<"detach", [Composite, Pure, PrecisionOpInterface, DecomposeTraining, SameOperandsAndResultType]> {
  let summary = "Gives a value through which no gradient passes";
  let description = [{
    The result is `input`, and counts as known where gradients are taken: PyTorch's `detach` and what it computes under
    `no_grad`.

    Example: `%r = ds.detach %x : tensor<4x8xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$input);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

#endif // DS_TRAINING_OPS
