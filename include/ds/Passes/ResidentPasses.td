//===- ResidentPasses.td - What stays in memory, and what is made again ---*- tablegen -*-===//
#ifndef DS_RESIDENT_PASSES
#define DS_RESIDENT_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// sharded -> resident
//===----------------------------------------------------------------------===//

def RematerializeCheap : Pass<"ds-rematerialize-cheap", "::mlir::ModuleOp"> {
  let summary = "Lets backward compute again what elementwise ops gave the forward";
  let description = [{
    Forward is what @loss depends on; every other op that reads one of its values is backward. Each value that
    crosses lives until backward has read it.

    Requires: phase sharded, decomposed, without common subexpressions. No CSE may follow before fusion: it would merge
    the copies with their originals again.

    Ensures:
    - The values that still cross are those of fewest bytes from which elementwise and index ops give all the
      others; of equals, the latest. States, inputs and constants are there anyway and cost nothing.
    - Backward reads copies of those ops, made beside the reader and marked `ds.recomputed`; readers with no library
      call between them share one.
    - The copies are the same ops on the same values: results are bit-equal.
    - Products, attention, reductions and other library calls are never repeated. Evaluation stays as it is.

    Of an activation that is spelled out only its input crosses:
    ```
    %h = ds.matmul ...
    %t = ds.tanh %h : tensor<4x8xf32>
    ...
    %d = ds.mul %t, %t : tensor<4x8xf32>
    ```
    becomes
    ```
    %h = ds.matmul ...
    %t = ds.tanh %h : tensor<4x8xf32>
    ...
    %again = ds.tanh %h : tensor<4x8xf32>
    %d = ds.mul %again, %again : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def VerifyResident : Pass<"ds-verify-resident", "::mlir::ModuleOp"> {
  let summary = "Checks what the passes after phase resident rely on";
  let description = [{
    Requires: nothing. Ensures, or fails:
    - what ds-verify-sharded ensures of segments, and that no op belongs to another phase;
    - an op that is marked `ds.recomputed` may stand in a fused region: whoever runs it twice gets the same value.
  }];
}

#endif // DS_RESIDENT_PASSES
