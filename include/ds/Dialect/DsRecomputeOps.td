//===- DsRecomputeOps.td - What backward recomputes ----------------*- tablegen -*-===//
#ifndef DS_RECOMPUTE_OPS
#define DS_RECOMPUTE_OPS

include "ds/Dialect/DsBase.td"

def Ds_RecomputeOp : Ds_Op<"recompute", [InPhases<"Resident", "Resident">, Pure, IsolatedFromAbove, SingleBlock,
                                         AttrSizedOperandSegments]> {
  let summary = "Recomputes for backward what forward made";
  let description = [{
    The body holds the ops of forward that made its results, on `kept`: values that stayed, parameters, counters of
    generators. It is isolated, so that nothing merges it with forward's own ops, and whoever reads the op sees what was
    given up and what it is made of. `after` is the gradient whose arrival releases it: without it, nothing would hold
    the op back in backward, and a scheduler could move it to where the values were made first.

    Constraints:
    - (C1) block arguments have the types of `kept`, and the yielded values those of the results.
    - (C2) every op of the body is pure, or an exchange of layers that are cut among ranks: whoever runs it twice gets the same
      value, and no rank more than the others, for all run one text.

    Example:
    ```
    %again = ds.recompute (%x, %w) after(%dy : tensor<4x8xf32>) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    ^bb0(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>):
      %h = ds.matmul %a, %b : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
      ds.yield %h : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Ds_Tensor>:$kept, Optional<Ds_Tensor>:$after);
  let results = (outs Variadic<Ds_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $kept `)` (`after` `(` $after^ `:` type($after) `)`)? attr-dict `:` functional-type($kept, $outputs) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ds_AfterOp : Ds_Op<"after", [InPhases<"Resident", "Resident">, Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "A value, but not before another is there";
  let description = [{
    The result is `value`, in the same memory. Who reads it comes after `event`, wherever ops are moved.

    Example: `%late = ds.after %x, %dy : tensor<4x16xf32>, tensor<4x8xf32>`
  }];
  let arguments = (ins Ds_Tensor:$value, Ds_Tensor:$event);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$value `,` $event attr-dict `:` type($value) `,` type($event)";
}

#endif // DS_RECOMPUTE_OPS
