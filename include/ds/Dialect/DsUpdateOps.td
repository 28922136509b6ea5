//===- DsUpdateOps.td - What a step does with complete gradients ----*- tablegen -*-===//
#ifndef DS_UPDATE_OPS
#define DS_UPDATE_OPS

include "ds/Dialect/DsBase.td"

def Ds_UpdateOp : Ds_Op<"update", [InPhases<"Step", "Sharded">, Pure, IsolatedFromAbove, SingleBlock, AttrSizedOperandSegments,
                                   DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                   DeclareOpInterfaceMethods<DecomposableOpInterface, ["isNeededWhole"]>]> {
  let summary = "Updates one parameter and what belongs to it";
  let description = [{
    The body computes, element by element, the new values of a parameter, its master and its moments from the old
    ones, the gradient, and numbers that hold for all elements. Because no element depends on another, the same body
    updates a part of the parameter, or many parameters that lie side by side: `build` makes it for any shape.
    Everything between the complete gradient and the states stands in the body: averaging, unscaling, clipping,
    skipping, conversions.

    Constraints:
    - (C1) `parameter` is a parameter's state.
    - (C2) block arguments have the operands' types, and the yielded values the results' types.
    - (C3) states, gradient and results have one shape; scalars have rank 0.
    - (C4) the body holds elementwise ops, constants whose elements are all equal, and broadcasts of rank-0 tensors.

    Example:
    ```
    %new = ds.update @head states(%w) gradient(%g) scalars(%rate) : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
    ^bb0(%old: tensor<8xf32>, %gradient: tensor<8xf32>, %r: tensor<f32>):
      %rates = ds.broadcast %r dims [] : tensor<f32> -> tensor<8xf32>
      %step = ds.mul %gradient, %rates : tensor<8xf32>
      %next = ds.sub %old, %step : tensor<8xf32>
      ds.yield %next : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, Variadic<Ds_Tensor>:$states, Ds_FloatTensor:$gradient,
                       Variadic<Ds_Tensor>:$scalars);
  let results = (outs Variadic<Ds_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $parameter `states` `(` $states `)` `gradient` `(` $gradient `)` (`scalars` `(` $scalars^ `)`)? attr-dict `:`
    functional-type(operands, results) $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Builds the body's ops on `operands`, one per operand of this op; states and gradient may have any one shape.
    ::llvm::SmallVector<::mlir::Value> build(::mlir::OpBuilder &builder, ::mlir::ValueRange operands);
  }];
}

//===----------------------------------------------------------------------===//
// What a step means, until it is divided
//===----------------------------------------------------------------------===//

class Ds_StepOp<string mnemonic, list<Trait> traits = []>
    : Ds_Op<mnemonic, !listconcat([InPhases<"Step", "Sharded">, Pure], traits)>;
defvar DecomposeWhenDivided = DeclareOpInterfaceMethods<DecomposableOpInterface, ["isNeededWhole"]>;

def Ds_AccumulateOp : Ds_StepOp<"accumulate"> {
  let summary = "Adds a micro-batch's gradient to what is kept";
  let description = [{
    `kept` + `gradient`, formed in the wider of their types and rounded to that of `kept`; without `kept`, the gradient
    in the type of the result, which is what the next micro-batch adds to. ds-decompose forms the sum inside of the product
    that makes the gradient, where there is one; ranks that divide gradients exchange the micro-batch's before.

    Constraints:
    - (C1) gradient and result have one shape.
    - (C2) `kept` has the result's type.

    Example: `%s = ds.accumulate %g into %kept : (tensor<8xbf16>, tensor<8xf32>) -> tensor<8xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$gradient, Optional<Ds_FloatTensor>:$kept);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = "$gradient (`into` $kept^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ds_AdvanceOp : Ds_StepOp<"advance", [DecomposeWhenDivided, SameOperandsAndResultType]> {
  let summary = "Moves a generator on to later micro-batches";
  let description = [{
    `generator` is (seed, counter), and the counter that of the micro-batch in the whole run: the result's is `by` higher.

    Example: `%n = ds.advance %rng by 1 : tensor<2xi64>`
  }];
  let arguments = (ins Ds_TensorOf<I64>:$generator, ConfinedAttr<I64Attr, [IntPositive]>:$by);
  let results = (outs Ds_TensorOf<I64>:$result);
  let assemblyFormat = "$generator `by` $by attr-dict `:` type($result)";
}

def Ds_RankMeanOp : Ds_StepOp<"rank_mean", [DecomposeWhenDivided, SameOperandsAndResultType]> {
  let summary = "The mean of a value over all ranks that see other data";
  let description = [{
    What a loss is to the whole step, rather than to the samples of one rank. Of one rank, the value itself.

    Example: `%m = ds.rank_mean %loss : tensor<f32>`
  }];
  let arguments = (ins Ds_FloatTensor:$value);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def Ds_PresumeOp : Ds_Op<"presume", [InPhases<"Step", "Resident">, Pure, AllTypesMatch<["truth", "guess", "result"]>]> {
  let summary = "Speculates what a number of a step will be";
  let description = [{
    The result is `truth`. Where `wrong` is false, `guess` has the same bits, and it is known earlier: what reads the result
    may be computed of `guess`, if it is recomputed of `truth` where `wrong` is true.

    Constraints:
    - (C1) operands and result are scalars.

    Example: `%p = ds.presume %factor as %one unless %wrong : tensor<f32>, tensor<i1>`
  }];
  let arguments = (ins Ds_Tensor:$truth, Ds_Tensor:$guess, 0DTensorOf<[I1]>:$wrong);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$truth `as` $guess `unless` $wrong attr-dict `:` type($result) `,` type($wrong)";
  let hasVerifier = 1;
}

def Ds_ScheduleOp : Ds_Op<"schedule", [InPhases<"Step", "Planned">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Which segments make a step of one stage, for which micro-batches, in which order";
  let description = [{
    Constraints:
    - (C1) each run is of a segment of this stage, at least once, from a micro-batch that is not negative, and not of an
      evaluation.
    - (C2) a run has `gradients` exactly where its segment works backward; the first such run sets them, all others add.
    - (C3) a step ends with its one update.

    Example:
    ```
    ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@last, first 1, count 1, gradients add, reduced true>]
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$stage, TypedArrayAttrBase<Ds_RunAttr, "runs">:$runs);
  let assemblyFormat = "`stage` $stage $runs attr-dict";
}

def Ds_SumOfSquaresOp : Ds_Op<"sum_of_squares", [
    InPhases<"Step", "Resident">, Pure, RunsOnHost, DeclareOpInterfaceMethods<DecomposableOpInterface, ["isLibraryCall", "isNeededWhole"]>,
    DeclareOpInterfaceMethods<LibraryOpInterface>]> {
  let summary = "Sums up the squares of all elements of its operands";
  let description = [{
    Over blocks of 16384 elements of each operand, in row-major order, in f32, and over all blocks in f64: the order of
    additions depends on the operands' shapes alone. 16-bit tensors are widened first, f64 ones stay as they are.

    The sum over several tensors is a library function's, which takes them all at once; that over one, and any over
    f64, is generated, so that it fuses with what makes the tensor.

    Constraints:
    - (C1) there is an operand.

    Example: `%s = ds.sum_of_squares %x, %y : tensor<8xf32>, tensor<4x4xbf16> -> tensor<f64>`
  }];
  let arguments = (ins Variadic<Ds_FloatTensor>:$inputs);
  let results = (outs 0DTensorOf<[F64]>:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements of a block.
    static constexpr int64_t kBlock = 16384;
  }];
}

#endif // DS_UPDATE_OPS
