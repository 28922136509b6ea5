//===- ShardPasses.td - From one step to what each rank does -----*- tablegen -*-===//
#ifndef DS_SHARD_PASSES
#define DS_SHARD_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// step -> sharded
//===----------------------------------------------------------------------===//

def ShardTensors : Pass<"ds-shard-tensors", "::mlir::ModuleOp"> {
  let summary = "Divides the layers of a step among ranks, as costs say and configurations ask";
  let description = [{
    Ranks that divide what ZeRO divides and read the same samples (`zero` without `samples` of `ds.mesh`) share sequences: each
    has some tokens of each sample, and parameters whole. What follows is done along these axes first, then along `tensors`.

    The ranks along `tensors` of `ds.mesh` run the same functions on the same samples, each on parts of parameters and
    activations. Which parts follows from the graph alone: each op says along which numbers it can be cut
    (`ShardingOpInterface`), and a solver finds the form in which each value is held so that work and exchanges take the least
    time together (include/ds/Analysis/Placement/Placement.h). No op and no layer is known by its name.

    Requires: phase step, with updates that are not decomposed.

    Ensures:
    - With one rank along these axes nothing changes.
    - Where sequences are shared, rows are exchanged for heads around attention by `ds.all_to_all`; key heads that ranks do
      not divide are repeated first. Losses are divided by the targets of all rows. Fails, and names what would do, where
      ranks divide neither lengths nor heads.
    - Functions have one text for all ranks. Values that are cut have the sizes of one rank's part; what is not read as it is
      held is exchanged, once for all that read it so: `ds.all_reduce` of addends, `ds.all_gather` and `ds.reduce_scatter` of
      parts, along dimension 0, behind or before a transposition where another dimension is cut.
    - Parameters that are cut say how (`shards`, with `view` where heads lie behind others in a fused dimension), and so do
      moments, masters and gradients that belong to them. A whole parameter whose gradient each rank makes an addend of says
      so by `addends`.
    - Losses are elementwise ops and reductions: of classes that are cut each rank has its own, and three numbers a row are
      exchanged.
    - A bias beside a sum that ranks make addends of is read by the first of them alone.
    - Scalars, and what functions return beside gradients, are whole on every rank.
    - Classes that ranks do not divide are padded, in states too (`view` and `existing`): the loss counts them as minus
      infinity.

    `tensor_parallel.sequence_parallel` in `ds.training` says what activations between layers are: true, cut along the
    sequence, with sums left in parts (Korthikanti et al., arXiv 2205.05198, section 4.2.2); false, whole, with sums made
    whole (Shoeybi et al., arXiv 1909.08053, section 3); without it, costs decide.

    With `tensors tp` of 2 ranks and `sequence_parallel = false`
    ```
    %h = ds.matmul %x, %w1 : tensor<64x8xf32>, tensor<8x32xf32> -> tensor<64x32xf32>
    %y = ds.matmul %h, %w2 : tensor<64x32xf32>, tensor<32x8xf32> -> tensor<64x8xf32>
    ```
    becomes
    ```
    %h = ds.matmul %x, %w1 : tensor<64x8xf32>, tensor<8x16xf32> -> tensor<64x16xf32>
    %a = ds.matmul %h, %w2 : tensor<64x16xf32>, tensor<16x8xf32> -> tensor<64x8xf32>
    %y = ds.all_reduce sum %a along tp : tensor<64x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"remarks", "remarks", "bool", "false", "Report how parameters are cut, and what each segment exchanges">];
}

def ShardZero : Pass<"ds-shard-zero", "::mlir::ModuleOp"> {
  let summary = "Divides a step among data-parallel ranks, as a stage of ZeRO says";
  let description = [{
    N ranks, along `samples` of `ds.mesh`, run the same functions on micro-batches of their own, with the numbers of one
    rank that takes N times the micro-steps; what is divided is cut along `zero`. Along other axes ranks have parts of the
    layers: parameters may be cut (`shards`), and gradients be sums (`addends`). Keys of `zero_optimization` in `ds.training`:

    | key | type | meaning |
    |---|---|---|
    | stage | i64 | 0: nothing is divided; 1: moments and masters are; 2: gradients too; 3: parameters too |
    | reduce_bucket_size, allgather_bucket_size, sub_group_size | i64 | elements; the least bounds a bucket, but one of a single larger parameter |
    | stage3_param_persistence_threshold | i64 | stage 3 keeps parameters of at most so many elements whole |
    | stage3_model_persistence_threshold | i64 | ... and at most so many elements of all |
    | reduce_each_micro_step | bool | reduce gradients in every micro-step and keep a part; absent: stages 2 and 3 do |
    | secondary_axes | axes | stage 3 keeps a part along these of what a step gathers first, and gathers from that then; none: it does not |
    | gather_first_axes | axes | stage 3 gathers along these first (ds-split-gathers); none: along all at once |

    A bucket size or threshold of -1 is chosen from the rates of the machine (`ds.machine`): a bucket is the smallest whose exchange
    reaches nine tenths of the link's bandwidth, and a parameter stays whole where latency is the larger part of the
    time to gather it alone.

    Requires: phase step, with updates that are not decomposed (`ds-decompose` with `keep-updates`).

    Ensures:
    - With one rank nothing changes.
    - All counts are of what a rank has of a parameter. Members of a bucket are cut along the same axes, and their
      gradients have the same addend axes.
    - Trained parameters lie in `ds.bucket`s, which do not depend on the stage: in order of first use, no layer beside
      another (but for the small ones that stage 3 keeps whole, which share buckets across layers), and only parameters of one type that are updated by one formula. At stage 3 frozen parameters have
      buckets too.
    - States of a bucket take the place of its members' gradients, moments and masters, and of the members as
      arguments. `shards` along the axes of `zero` that do not cut the members divides: moments and masters from stage 1
      on, gradients that micro-steps reduce, at stage 3 parameters that are not kept whole.
    - Layers read windows of the bucket (`ds.slice`, `ds.reshape`). A divided one is gathered once in forward and once in
      backward, each before its first use there; what forward made of parameters alone is recomputed in backward.
    - With `secondary_axes` only the first gather of a step is along all axes that divide the bucket. This rank's part of its
      result along `secondary_axes` becomes a state, `gathered_from` the bucket's, and all later gathers of the step are made
      from that, along these axes. Evaluation gathers as without.
    - Gradients of a bucket are joined by a `ds.concat`. They are added up on each rank and reduced in `@last`, or, with
      `reduce_each_micro_step` and moments that are divided, each micro-step reduces and adds up a rank's part.
      `communication_data_type` says in which type ranks exchange them. A reduction sums up all addends: a reduce-scatter
      along the axes that divide the bucket, then an all-reduce of the parts along the others. Along an axis that divides
      the bucket and has no addends, each rank takes its part of what all have.
    - One flat update per bucket takes the place of those of its members, on what a rank has. Parameters that every
      rank has whole are gathered from the updated parts. The sum of squares counts each element once: that of a bucket
      is summed along the axes that cut it, and along no others, where ranks hold copies. One number per such set of axes
      goes along those that the next smaller set lacks, and is added there; `stages` come last. A parameter that is a `copy` counts on the stage that has it first.
    - `@loss` and `@eval_loss` are means over the ranks along `samples`. The counter of generators goes on by N in each
      micro-step, and rank r reads it r further. Float buffers that depend on the data become the mean over these ranks.
    - Refused: axes along which ZeRO does not divide, or that are gathered along first but are not the slower ones; Lamb, an update that is no `ds.update`, integer buffers that depend on the data.
    - `ds.training` says the sizes that were chosen, and `choices` of `ds.decisions` why.
    - With `remarks`, each segment's traffic is reported.

    With `{zero_optimization = {stage = 1}}`
    ```
    ds.mesh @mesh axes [dp = 2] samples dp zero dp
    ds.state @w role(parameter) trainable ... : tensor<8x4xf32>
    ds.state @w.exp_avg role(moment) owner(@w) ... : tensor<8x4xf32>
    func.func @last(..., %w: tensor<8x4xf32> {ds.state = @w}, %m: tensor<8x4xf32> {ds.state = @w.exp_avg}) -> ... {
      %y = ds.matmul %x, %w : ...
      %new, %mean = ds.update @w states(%w, %m) gradient(%g) ...
    ```
    becomes
    ```
    ds.mesh @mesh axes [dp = 2] samples dp zero dp
    ds.state @w role(parameter) trainable ... : tensor<8x4xf32>
    ds.bucket @bucket_0 members [@w] offsets [0] elements 64
    ds.state @bucket_0.parameter role(parameter) bucket(@bucket_0) ... : tensor<64xf32>
    ds.state @bucket_0.exp_avg role(moment) bucket(@bucket_0) shards [dp] ... : tensor<64xf32>
    func.func @last(..., %b: tensor<64xf32> {ds.state = @bucket_0.parameter}, %m: tensor<32xf32> {ds.state = @bucket_0.exp_avg}) -> ... {
      %s = ds.slice %b offsets [0] strides [1] : tensor<64xf32> -> tensor<32xf32>
      %w = ds.reshape %s : tensor<32xf32> -> tensor<8x4xf32>
      %y = ds.matmul %x, %w : ...
      %flat = ds.concat %g, %zeros dim 0 : tensor<32xf32>, tensor<32xf32> -> tensor<64xf32>
      %part = ds.reduce_scatter sum %flat along dp carries bucket : tensor<64xf32> -> tensor<32xf32>
      %old = ds.local_shard %b along dp : tensor<64xf32> -> tensor<32xf32>
      ...
      %new = ds.all_gather %updated along dp carries parameter : tensor<32xf32> -> tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"reducesInEach", "reduce-each-micro-step", "bool", "false",
           "Reduce gradients in each micro-step where `reduce_each_micro_step` leaves that open">,
    Option<"remarks", "remarks", "bool", "false", "Report what each segment sends">];
}

def VerifySharded : Pass<"ds-verify-sharded", "::mlir::ModuleOp"> {
  let summary = "Checks what the passes after phase sharded rely on";
  let description = [{
    Requires: nothing. Ensures, or fails:
    - what ds-verify-step ensures, states having the type of one rank's part;
    - no parameter that lies in a bucket, and no state of one, is an argument or a result: the bucket's states are;
    - no op is left that can decompose itself.
  }];
}

#endif // DS_SHARD_PASSES
