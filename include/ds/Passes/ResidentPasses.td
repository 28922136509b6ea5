//===- ResidentPasses.td - What stays in memory, and what is recomputed ---*- tablegen -*-===//
#ifndef DS_RESIDENT_PASSES
#define DS_RESIDENT_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// sharded -> resident
//===----------------------------------------------------------------------===//

def OffloadStates : Pass<"ds-offload-states", "::mlir::ModuleOp"> {
  let summary = "Says which states live on the host or in storage";
  let description = [{
    `offload` of `ds.training` says so: `optimizer` is the share of the updated elements whose moments, masters and
    gradients are kept on the host, and `parameters` says whether parameters are. With `optimizer_on_nvme` moments and
    masters are kept in storage instead, and with `parameters_on_nvme` the parameters, but for the first that have at
    most `max_in_cpu` elements together.

    Requires: phase sharded, what ranks hold being decided. Leaves the module in phase fused, of which it is the first.

    Ensures: (E1) all states of a bucket, or of a parameter that is in none, that the optimizer has beside the parameter
    have one home, but for gradients, which are never in storage. (E2) Those that are moved have at most `optimizer` of all elements, and no other one that is small enough
    could be added. (E3) With `parameters`, all parameters have `home(host)`, or `home(nvme)`, but those that stage 3 keeps
    whole because they are small. (E4) `choices` of `ds.decisions` say what was moved.

    With `offload = {optimizer = 5.0e-01 : f64}`
    ```
    ds.state @w.exp_avg role (moment) slot("exp_avg") owner(@w) ... home (device) : tensor<8x4xf32>
    ds.state @v.exp_avg role (moment) slot("exp_avg") owner(@v) ... home (device) : tensor<8x4xf32>
    ```
    becomes
    ```
    ds.state @w.exp_avg role (moment) slot("exp_avg") owner(@w) ... home (host) : tensor<8x4xf32>
    ds.state @v.exp_avg role (moment) slot("exp_avg") owner(@v) ... home (device) : tensor<8x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def RematerializeCheap : Pass<"ds-rematerialize-cheap", "::mlir::ModuleOp"> {
  let summary = "Lets backward recompute what memory is too dear for";
  let description = [{
    A value that forward makes and an op of another work reads crosses: it lives until backward has read it, or until it
    was recomputed from what does. Which values are kept is one choice with what parameters stay gathered
    (Analysis/Residency), over what is live at each command, which is a region, a call or a collective: fewest seconds of the busier of compute and link
    within the machine's memory. A copy costs arithmetic, and a kernel where a library call reads it; a kept value costs what
    writing and reading it takes where no kernel has it in memory anyway.

    Requires: phase fused. No CSE may follow: it would merge the copies with their originals again.

    Ensures:
    - What elementwise and index ops give is recomputed where that costs no time, or where the machine's memory does not hold it: of
      that what saves most bytes for a second. Where nothing fits, as few bytes as were found are kept.
    - Backward reads copies of those ops, made beside the reader and of the work `recompute`; each region, and each call, has its own.
    - The copies are the same ops on the same values: results are bit-equal.
    - Regions are as before, but for results that nothing reads any more, and for values of forward that are kept and had not left
      their region. What is recomputed stands outside of regions, for ds-fuse-regions.
    - Products, attention and reductions are recomputed only where that is not enough for the machine's memory, and `calls` is true:
      in a `ds.recompute` before the first reader, from the last value before them through which all of forward passes.
      First groups of two such values are tried, then ever longer ones. Each op is recomputed once at most.
    - `recompute` of `ds.training` says otherwise where it is there, whatever memory there is. Layers, by default all, are
      recomputed in parts, each from what enters it: as many parts as `checkpoints`, or parts of `interval` layers. Or
      the results of `ops` are, by name. A layer or an op that forward does not have is refused.
    - Each gathered parameter's state says in `stay` whether it stays for a use, for a segment, or for all
      micro-steps: what saves most seconds of the link within the machine's memory and the limits in elements, which are DeepSpeed's.
    - With `losses`, how losses are made is part of the choice: whole, or in the pieces that they offer
      (`piece_rows`). `residency.loss` of `ds.decisions` says which it is and what each costs; ops stay as they are, for pieces are
      made in phase model. Without it losses are whole.
    - With `memory=least` as little as can be is held, whatever that costs, and compute waits for each collective.
    - Collectives are never recomputed; what was gathered for forward is read from backward's gather, which is issued
      earlier for that. Evaluation stays as it is.
    - `residency` of `ds.decisions` says what was recomputed and what that buys. With `remarks`, each value is reported.

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
    Option<"memory", "memory", "::mlir::ds::MemoryLimit", "::mlir::ds::MemoryWord::Machine",
           "Bytes of the device that all has to fit; machine: what the machine has, least: as few as can be">,
    Option<"groups", "groups", "::mlir::ds::RecomputedGroups", "::mlir::ds::GroupWord::Open",
           "Narrow values in each group whose calls are recomputed; open: the number is chosen, none: no call is">,
    Option<"losses", "losses", "bool", "false", "Losses may be made in the pieces that they offer">,
    Option<"keepsActivations", "keep-activations", "bool", "false", "Nothing that forward makes goes to the host where that is open">,
    Option<"calls", "calls", "bool", "true", "Also products, attention and reductions may be recomputed">,
    Option<"maxReuseElements", "max-reuse-elements", "int64_t", "1000000000",
           "Elements of other parameters that may be used between two uses of one that is kept; 0: no limit">,
    Option<"maxLiveElements", "max-live-elements", "int64_t", "1000000000",
           "Elements that may be gathered at one time where one is kept; 0: no limit">,
    Option<"prefetchElements", "prefetch-elements", "int64_t", "50000000",
           "As ds-schedule-communication has it: what is gathered ahead of need is in memory; 0: no limit">,
    Option<"apart", "apart", "bool", "false",
           "Decide how long gathered parameters stay after all else, of what memory that leaves, as passes one after another would">,
    Option<"remarks", "remarks", "bool", "false", "Say of each value that is recomputed what that buys">];
}

def OffloadUpdates : Pass<"ds-offload-updates", "::mlir::ModuleOp"> {
  let summary = "Updates states of the host on the host's cores";
  let description = [{
    Requires: phase fused, no regions yet, states not placed.

    Ensures: (E1) what makes the new values of states with `home(host)` or `home(nvme)` of their old ones runs in `ds.host`, and so does
    what adds to a gradient that is kept there; a region holds what belongs to one bucket, or the scalars that all
    share, and nothing in it waits for something outside that waits for it. (E2) What the host reads of the device is
    stored once, as soon as it is made, where that takes fewest bytes: a gradient, not what is computed of it. (E3) What
    the device reads of the host is loaded; an fp32 parameter stays where it is, and what is subtracted of it comes. (E4)
    A norm is formed where more of the gradients are. (E5) All ops are as before, on the same values: results are bit-equal.
    (E6) A function without such states stays as it is. (E7) Of `ds.presume` those are left that the host reads; others give way
    to the truth. Where there are any, scalars that wait for no tensor have a region of their own.

    With `@m` of `home(host)`
    ```
    func.func @last(%m: tensor<8xf32> {ds.state = @m}, %w: tensor<8xf32> {ds.state = @w}, ...) -> (... @m, @w) {
      %n = ds.add %m, %g : tensor<8xf32>
      %v = ds.sub %w, %n : tensor<8xf32>
      return %n, %v : tensor<8xf32>, tensor<8xf32>
    ```
    becomes
    ```
      %0 = ds.store %m : tensor<8xf32> -> !ds.stored<tensor<8xf32>, host>
      %1 = ds.store %g : tensor<8xf32> -> !ds.stored<tensor<8xf32>, host>
      %2 = ds.host(%0, %1) : (...) -> !ds.stored<tensor<8xf32>, host> { ... ds.add ... }
      %n = ds.load %2 : !ds.stored<tensor<8xf32>, host> -> tensor<8xf32>
      %v = ds.sub %w, %n : tensor<8xf32>
      return %n, %v : tensor<8xf32>, tensor<8xf32>
    ```
    Stores of what is on the host anyway fold when states are placed.
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def PlaceStates : Pass<"ds-place-states", "::mlir::ModuleOp"> {
  let summary = "Reads and writes states where they live";
  let description = [{
    Requires: phase resident.

    Ensures: a state whose home is not the device enters and leaves each function as `!ds.stored`. It is loaded before its
    first reader in forward, in backward and in the update, and for each gather of its own; `ds.host` reads it where it
    is on the host, and of storage what `ds.move` brings right before. Its new value is stored, or moved, as soon as it
    is made. A state that leaves as it came is not loaded for that.

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
    - an op of the work `recompute` may stand in a fused region, or loads what such one reads: whoever runs it twice gets the
      same value.
  }];
}

#endif // DS_RESIDENT_PASSES
