//===- DsElementwiseOps.td - One element in, one element out --------*- tablegen -*-===//
#ifndef DS_ELEMENTWISE_OPS
#define DS_ELEMENTWISE_OPS

include "ds/Dialect/DsBase.td"

// Result i is a function of the operands' elements i. All shapes are equal: `ds.broadcast` makes them so.
class Ds_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Ds_Op<mnemonic, !listconcat(traits, [OnTensors, Pure, SameOperandsAndResultShape,
        FusableOpInterface, DeclareOpInterfaceMethods<ScalarBodyOpInterface>,
        CostOpInterface, PrecisionOpInterface])> {
  let extraClassDeclaration = [{
    static ::mlir::ds::FusionKind getFusionKind() { return ::mlir::ds::FusionKind::Elementwise; }
  }];
}

class Ds_UnaryOp<string mnemonic, Type element, list<Trait> traits = []>
    : Ds_ElementwiseOp<mnemonic, !listconcat(traits, [SameOperandsAndResultType])> {
  let arguments = (ins Ds_TensorOf<element>:$input);
  let results = (outs Ds_TensorOf<element>:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

class Ds_BinaryOp<string mnemonic, Type element, list<Trait> traits = []>
    : Ds_ElementwiseOp<mnemonic, !listconcat(traits, [SameOperandsAndResultType])> {
  let arguments = (ins Ds_TensorOf<element>:$lhs, Ds_TensorOf<element>:$rhs);
  let results = (outs Ds_TensorOf<element>:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

defvar Diff = DeclareOpInterfaceMethods<DifferentiableOpInterface>;

def Ds_NegOp : Ds_UnaryOp<"neg", Ds_Number, [Diff]> {
  let summary = "Negates each element";
  let description = [{ Example: `%r = ds.neg %x : tensor<4xf32>` }];
  let hasFolder = 1;
}
def Ds_AbsOp : Ds_UnaryOp<"abs", Ds_Number, [Diff]> {
  let summary = "Takes the absolute value of each element";
  let description = [{ The gradient at 0 is 0. Example: `%r = ds.abs %x : tensor<4xf32>` }];
}
def Ds_SignOp : Ds_UnaryOp<"sign", AnyFloat> {
  let summary = "Gives -1, 0 or 1 by the sign of each element";
  let description = [{ Example: `%r = ds.sign %x : tensor<4xf32>` }];
}
def Ds_ExpOp : Ds_UnaryOp<"exp", AnyFloat, [Diff, HeavyBody]> {
  let summary = "Raises e to each element";
  let description = [{ Example: `%r = ds.exp %x : tensor<4xf32>` }];
}
def Ds_LogOp : Ds_UnaryOp<"log", AnyFloat, [Diff, HeavyBody]> {
  let summary = "Takes the natural logarithm of each element";
  let description = [{ Example: `%r = ds.log %x : tensor<4xf32>` }];
}
def Ds_SqrtOp : Ds_UnaryOp<"sqrt", AnyFloat, [Diff]> {
  let summary = "Takes the square root of each element";
  let description = [{ Example: `%r = ds.sqrt %x : tensor<4xf32>` }];
}
def Ds_RsqrtOp : Ds_UnaryOp<"rsqrt", AnyFloat, [Diff]> {
  let summary = "Takes the reciprocal square root of each element";
  let description = [{
    Computed as 1 / sqrt(x), never by an estimate. Example: `%r = ds.rsqrt %x : tensor<4xf32>`
  }];
}
def Ds_TanhOp : Ds_UnaryOp<"tanh", AnyFloat, [Diff, HeavyBody]> {
  let summary = "Takes the hyperbolic tangent of each element";
  let description = [{ Example: `%r = ds.tanh %x : tensor<4xf32>` }];
}
def Ds_ErfOp : Ds_UnaryOp<"erf", AnyFloat, [Diff, HeavyBody]> {
  let summary = "Takes the error function of each element";
  let description = [{ Example: `%r = ds.erf %x : tensor<4xf32>` }];
}
def Ds_SigmoidOp : Ds_UnaryOp<"sigmoid", AnyFloat, [Diff, HeavyBody]> {
  let summary = "Gives 1 / (1 + exp(-x)) for each element";
  let description = [{ Example: `%r = ds.sigmoid %x : tensor<4xf32>` }];
}
def Ds_GeluOp : Ds_ElementwiseOp<"gelu", [Diff, HeavyBody, SameOperandsAndResultType, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "Takes the Gaussian error linear unit of each element";
  let description = [{
    `0.5 * x * (1 + erf(x / sqrt(2)))`, or with `tanh` the approximation `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`.
    One op and not its formula, so that passes find it again; its gradient reads x alone. Example: `%r = ds.gelu tanh %x : tensor<4xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$input, UnitAttr:$tanh);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = "(`tanh` $tanh^)? $input attr-dict `:` type($result)";
}
def Ds_GeluGradOp : Ds_ElementwiseOp<"gelu_grad", [HeavyBody, SameOperandsAndResultType, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "Computes the gradient of ds.gelu by its input";
  let description = [{
    `grad` times the derivative of `ds.gelu` of the same form at `input`. Example: `%d = ds.gelu_grad tanh %g, %x : tensor<4xf32>`
  }];
  let arguments = (ins Ds_FloatTensor:$grad, Ds_FloatTensor:$input, UnitAttr:$tanh);
  let results = (outs Ds_FloatTensor:$result);
  let assemblyFormat = "(`tanh` $tanh^)? $grad `,` $input attr-dict `:` type($result)";
}
def Ds_SinOp : Ds_UnaryOp<"sin", AnyFloat, [Diff, HeavyBody]> {
  let summary = "Takes the sine of each element";
  let description = [{ Example: `%r = ds.sin %x : tensor<4xf32>` }];
}
def Ds_CosOp : Ds_UnaryOp<"cos", AnyFloat, [Diff, HeavyBody]> {
  let summary = "Takes the cosine of each element";
  let description = [{ Example: `%r = ds.cos %x : tensor<4xf32>` }];
}
def Ds_FloorOp : Ds_UnaryOp<"floor", AnyFloat> {
  let summary = "Rounds each element down";
  let description = [{ Example: `%r = ds.floor %x : tensor<4xf32>` }];
}
def Ds_NotOp : Ds_UnaryOp<"not", I1> {
  let summary = "Inverts each truth value";
  let description = [{ Example: `%r = ds.not %x : tensor<4xi1>` }];
}

def Ds_AddOp : Ds_BinaryOp<"add", Ds_Number, [Diff, Commutative]> {
  let summary = "Adds element by element";
  let description = [{ Example: `%r = ds.add %a, %b : tensor<4xf32>` }];
  let hasFolder = 1;
}
def Ds_SubOp : Ds_BinaryOp<"sub", Ds_Number, [Diff]> {
  let summary = "Subtracts element by element";
  let description = [{ Example: `%r = ds.sub %a, %b : tensor<4xf32>` }];
  let hasFolder = 1;
}
def Ds_MulOp : Ds_BinaryOp<"mul", Ds_Number, [Diff, Commutative]> {
  let summary = "Multiplies element by element";
  let description = [{ Example: `%r = ds.mul %a, %b : tensor<4xf32>` }];
  let hasFolder = 1;
}
def Ds_DivOp : Ds_BinaryOp<"div", Ds_Number, [Diff]> {
  let summary = "Divides element by element";
  let description = [{ Integers round towards zero. Example: `%r = ds.div %a, %b : tensor<4xf32>` }];
  let hasFolder = 1;
}
def Ds_MaxOp : Ds_BinaryOp<"max", Ds_Number, [Diff, Commutative]> {
  let summary = "Takes the larger element";
  let description = [{
    NaN if either is, and both receive the whole gradient then; where both are equal each receives half. Example: `%r = ds.max %a, %b : tensor<4xf32>`
  }];
}
def Ds_MinOp : Ds_BinaryOp<"min", Ds_Number, [Diff, Commutative]> {
  let summary = "Takes the smaller element";
  let description = [{
    NaN if either is, and both receive the whole gradient then; where both are equal each receives half. Example: `%r = ds.min %a, %b : tensor<4xf32>`
  }];
}
def Ds_PowOp : Ds_BinaryOp<"pow", AnyFloat, [Diff, HeavyBody]> {
  let summary = "Raises each element to the power of the other";
  let description = [{ Example: `%r = ds.pow %a, %b : tensor<4xf32>` }];
  let hasCanonicalizeMethod = 1;
}
def Ds_AndOp : Ds_BinaryOp<"and", I1, [Commutative]> {
  let summary = "Gives the conjunction of truth values";
  let description = [{ Example: `%r = ds.and %a, %b : tensor<4xi1>` }];
}
def Ds_OrOp : Ds_BinaryOp<"or", I1, [Commutative]> {
  let summary = "Gives the disjunction of truth values";
  let description = [{ Example: `%r = ds.or %a, %b : tensor<4xi1>` }];
}

def Ds_CompareOp : Ds_ElementwiseOp<"compare", [SameTypeOperands, TypesMatchWith<"result has the operands' shape and i1 elements",
    "lhs", "result", "::mlir::cast<::mlir::RankedTensorType>($_self).clone(::mlir::IntegerType::get($_ctxt, 1))">]> {
  let summary = "Compares element by element";
  let description = [{
    Floats compare ordered (false when either is NaN), but `ne` is true then; integers compare signed.

    Constraints:
    - (C1) the result has the operands' shape and i1 elements.

    Example: `%r = ds.compare lt %a, %b : tensor<4xi64>`
  }];
  let arguments = (ins Ds_PredicateAttr:$predicate, Ds_Tensor:$lhs, Ds_Tensor:$rhs);
  let results = (outs Ds_TensorOf<I1>:$result);
  let assemblyFormat = "custom<Keyword>($predicate) $lhs `,` $rhs attr-dict `:` type($lhs)";
  let builders = [OpBuilder<(ins "::mlir::ds::Predicate":$predicate, "::mlir::Value":$lhs, "::mlir::Value":$rhs), [{
    build($_builder, $_state, cast<RankedTensorType>(lhs.getType()).clone($_builder.getI1Type()), predicate, lhs, rhs);
  }]>];
}

def Ds_SelectOp : Ds_ElementwiseOp<"select", [Diff, AllTypesMatch<["onTrue", "onFalse", "result"]>,
    TypesMatchWith<"condition has the result's shape and i1 elements", "result", "condition",
                   "::mlir::cast<::mlir::RankedTensorType>($_self).clone(::mlir::IntegerType::get($_ctxt, 1))">]> {
  let summary = "Chooses between two elements by a truth value";
  let description = [{ Example: `%r = ds.select %c, %a, %b : tensor<4xf32>` }];
  let arguments = (ins Ds_TensorOf<I1>:$condition, Ds_Tensor:$onTrue, Ds_Tensor:$onFalse);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$condition `,` $onTrue `,` $onFalse attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Ds_ConvertOp : Ds_ElementwiseOp<"convert", [Diff]> {
  let summary = "Converts each element to another type";
  let description = [{
    Floats to integers round towards zero; to i1 tests against zero; i1 to a number gives 0 or 1; float narrowing
    rounds to nearest even. Example: `%r = ds.convert %x : tensor<4xi64> -> tensor<4xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

#endif // DS_ELEMENTWISE_OPS
