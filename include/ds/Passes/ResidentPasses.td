//===- ResidentPasses.td - What stays in memory, and what is made again ---*- tablegen -*-===//
#ifndef DS_RESIDENT_PASSES
#define DS_RESIDENT_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// sharded -> resident
//===----------------------------------------------------------------------===//

def RematerializeCheap : Pass<"ds-rematerialize-cheap", "::mlir::ModuleOp"> {
  let summary = "Lets backward compute again what memory is too dear for";
  let description = [{
    A value that forward makes and an op of another work reads crosses: it lives until backward has read it, or until it
    was made again from what does. Which values are kept is one choice with what parameters stay gathered
    (Analysis/Residency), over an estimate of what is live at each op: fewest seconds of the busier of compute and link
    within `memory`. A copy costs arithmetic, and a kernel where a library call reads it; a kept value costs what
    writing and reading it takes where no kernel has it in memory anyway.

    Requires: phase sharded, decomposed, without common subexpressions. No CSE may follow before fusion: it would merge
    the copies with their originals again.

    Ensures:
    - What elementwise and index ops give is made again where that costs no time, or where `memory` does not hold it: of
      that what saves most bytes for a second. Where nothing fits, as few bytes as were found are kept.
    - Backward reads copies of those ops, made beside the reader and of the work `recompute`; readers with no library
      call between them share one.
    - The copies are the same ops on the same values: results are bit-equal.
    - Products, attention, reductions and other library calls are never repeated. Evaluation stays as it is.
    - `ds.residency` of the module says what was made again and what that buys. With `remarks`, each value is told of.

    Of an activation that is spelled out only its input crosses where memory is short:
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
  let options = [
    Option<"cluster", "cluster", "std::string", "\"cpu\"", "File or name of the cluster whose rates say what copies cost">,
    Option<"memory", "memory", "int64_t", "0", "Bytes that everything together may take; 0: no limit">,
    Option<"maxReuseElements", "max-reuse-elements", "int64_t", "1000000000",
           "Elements of other parameters that may be used between two uses of one that is kept; 0: no limit">,
    Option<"attentionBytes", "attention-bytes", "uint64_t", "268435456",
           "On CUDA, bytes of a piece of attention's gradient where one key head does not take more">,
    Option<"remarks", "remarks", "bool", "false", "Say of each value that is made again what that buys">];
}

def PlaceStates : Pass<"ds-place-states", "::mlir::ModuleOp"> {
  let summary = "Reads and writes states where they live";
  let description = [{
    Requires: phase resident.

    Ensures: a state whose home is not the device enters and leaves each function as `!ds.stored`; it is loaded once,
    before its first reader, and its new value is stored. A state that leaves as it came is not loaded for that.

    ```
    func.func @last(%m: tensor<8xf32> {ds.state = @m}, ...) -> (tensor<8xf32> {ds.state = @m}) {
      %n = ds.add %m, %g : tensor<8xf32>
      return %n : tensor<8xf32>
    ```
    becomes, where `@m` has `home(host)`,
    ```
    func.func @last(%m: !ds.stored<tensor<8xf32>, host> {ds.state = @m}, ...) -> (!ds.stored<...> {ds.state = @m}) {
      %l = ds.load %m : !ds.stored<tensor<8xf32>, host> -> tensor<8xf32>
      %n = ds.add %l, %g : tensor<8xf32>
      %s = ds.store %n : tensor<8xf32> -> !ds.stored<tensor<8xf32>, host>
      return %s : !ds.stored<tensor<8xf32>, host>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def VerifyResident : Pass<"ds-verify-resident", "::mlir::ModuleOp"> {
  let summary = "Checks what the passes after phase resident rely on";
  let description = [{
    Requires: nothing. Ensures, or fails:
    - what ds-verify-sharded ensures of segments, and that no op belongs to another phase;
    - an op of the work `recompute` may stand in a fused region: whoever runs it twice gets the same value.
  }];
}

#endif // DS_RESIDENT_PASSES
