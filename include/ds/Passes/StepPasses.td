//===- StepPasses.td - From a model to one step of training ------*- tablegen -*-===//
#ifndef DS_STEP_PASSES
#define DS_STEP_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// model -> step
//===----------------------------------------------------------------------===//

def BuildStep : Pass<"ds-build-step", "::mlir::ModuleOp"> {
  let summary = "Makes the functions of a training step from the differentiated forward";
  let description = [{
    Everything that a step does is made explicit: the mean over micro-batches, the global norm and clipping, the
    learning-rate schedule and the optimizer. The module attribute `ds.training` says how; the meaning of keys is
    DeepSpeed 0.19.6's.

    | key | type | meaning |
    |---|---|---|
    | gradient_accumulation_steps | i64 | micro-steps per step, G; 1 |
    | gradient_clipping | f64 | bound of the global L2 norm; 0: none |
    | no_decay | strings | regular expressions; parameters whose name one matches have no weight decay |
    | optimizer.type | string | sgd, adam, adagrad, lion or lamb |
    | optimizer.lr, beta1, beta2, eps, weight_decay | f64 | |
    | optimizer.adam_w_mode | bool | adam: decay the parameter (AdamW, true), or the gradient (L2) |
    | optimizer.bias_correction | bool | adam, lamb |
    | optimizer.momentum, dampening, nesterov | f64, f64, bool | sgd |
    | optimizer.min_coeff, max_coeff | f64 | lamb: bounds of the trust ratio |
    | scheduler.type | string | constant, WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest or OneCycle |
    | scheduler.* | | DeepSpeed's parameters by their own names; warmup_log for its warmup_type |
    | reduce_op, communication_data_type, zero_optimization.* | | see ds-differentiate and ds-shard-zero |
    | precision.gradient, master, moment | string | "f32", "bf16" or "f16": in which gradients add up over micro-steps, masters of 16-bit parameters and moments are kept |
    | loss_scale.skip | bool | a step whose gradients are not finite changes nothing but the scaler |
    | sync_batch_norm | bool | batch norms take their statistics over the samples of all ranks |
    | logits | bool | there is also `@logits`, see below |
    | loss_limit | bool | nor does one whose loss is beyond `@loss_limit`, or a NaN; `loss_scale.skip` then, too |
    | loss_scale.scale, dynamic, initial | bool, bool, f64 | gradients are those of the loss times a scale, which starts as, or is, `initial` |
    | loss_scale.window, hysteresis, consecutive_hysteresis, minimum | i64, i64, bool, f64 | dynamic: DeepSpeed's, of section fp16 |

    Requires: `ds-differentiate` has run with the same `ds.training`.

    Ensures:
    - `@forward` is gone. With G = 1 there is `@last`; with G = 2 also `@first`, with more also `@middle`. `@first`
      writes the gradients to states (role gradient, slot "grad"), `@middle` adds to them, `@last` adds to
      them, updates and leaves them alone (`ds.accumulate`). `ds.schedule` says which runs for which micro-batches.
    - Each op says its work: the forward and backward what ds-differentiate said, sums of gradients backward, everything
      after them update; in `@evaluate` all is forward.
    - `@evaluate` computes the loss alone, without dropout and by the running statistics of batch norms.
    - What `@forward` gives a buffer is written by each training segment, and by no evaluation.
    - With `logits`, `@logits` computes the logits of one position of each of the micro-batch's M samples of T tokens,
      without dropout: its state `@logits_rows` (i64 [M], set by the host) says which, as sample * T + position, and
      `@logits_of_rows` (f32 [M, V]) is what the last product gives of those rows alone, with what stands between it
      and the loss: a scale, a cap. Other rows of logits are not computed, in however many pieces the loss is made.
      Refused: a model without a cross-entropy of a product, and one of which a position sees later ones.
    - Scalar states: `@loss` (f32, mean of the step's micro-batches), `@grad_norm` (f32, global norm of the mean
      gradient before clipping), `@lr` (f64), `@step` (i64, finished steps), `@eval_loss` (f32).
    - Optimizer moments are states of role moment, slot "<moment>", called "<parameter>.<moment>", that start as zero.
    - Parameters without a gradient are not written.
    - A parameter that ds-lower-precision made 16-bit is rounded from its master, "<parameter>.master", which is what
      the optimizer steps, unless that would have the parameter's own type.
    - Where steps can be skipped: `@skipped` (i64) is 0 for a step that was made, 1 for one that was skipped, 2 for one
      that was skipped while the scale could not be lowered any more, 3 for one whose loss alone was beyond the limit. A
      skipped step leaves parameters, masters, moments and `@step` as they are; with them the schedule.
    - Dynamic scaling: `@loss_scale` (f32), `@good_steps` and `@hysteresis` (i64) follow DeepSpeed's DynamicLossScaler.
    - Each parameter is updated by a `ds.update`, but for Lamb, whose step looks at the parameter as a whole.
    - Without clipping, a parameter is updated as soon as its gradient is complete and its old value has had its
      last reader; the norm is then summed up parameter by parameter, so no gradient waits for it, and else
      once over all gradients, where the updates begin.
    - Sums of squares are formed over blocks of 16384 elements: their order depends on shapes alone.
    - A state that a random op reads as its generator moves on by 1 in every micro-step (`ds.advance`). Losses are means over
      ranks (`ds.rank_mean`) once they are complete.
    - Each state is at most once a result; a state that nothing reads is no argument.

    With `{optimizer = {type = "sgd", lr = 0.5}}`
    ```
    func.func @forward(%x: ..., %w: tensor<8xf32> {ds.state = @w}) -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}) {
      ...
      return %l, %g : tensor<f32>, tensor<8xf32>
    }
    ```
    becomes
    ```
    func.func @last(%x: ..., %w: ..., %step: tensor<i64> {ds.state = @step})
        -> (tensor<f32> {ds.state = @loss}, tensor<f64> {ds.state = @lr}, tensor<i64> {ds.state = @step},
            tensor<8xf32> {ds.state = @w}, tensor<f32> {ds.state = @grad_norm}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
      ...
      %new = ds.update @w states(%w) gradient(%g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
      ^bb0(%old: tensor<8xf32>, %gradient: tensor<8xf32>):
        %rate = ds.constant dense<0.5> : tensor<8xf32>
        %update = ds.mul %gradient, %rate : tensor<8xf32>
        %next = ds.sub %old, %update : tensor<8xf32>
        ds.yield %next : tensor<8xf32>
      }
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def Decompose : Pass<"ds-decompose"> {
  let summary = "Replaces composite layers by elementwise ops, broadcasts and reductions";
  let description = [{
    Requires: differentiation has run; a composite's gradient names its results (row statistics), which here become
    ordinary values.

    Ensures: no op that can decompose itself is left but those that a library function computes (the squares of several
    tensors); with `keep-updates`, none but those and what sharding needs to see as a whole (`ds.update`,
    `ds.accumulate`, `ds.sum_of_squares`). The sum of a `ds.accumulate` is formed inside of the product that makes the gradient
    where nothing else reads that (`into`). New ops say what the composite said of work and layer.

    ```
    %y = ds.softmax %x dim 1 : tensor<4x8xf32>
    ```
    becomes
    ```
    %m = ds.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
    %b = ds.broadcast %m dims [0] : tensor<4xf32> -> tensor<4x8xf32>
    %d = ds.sub %x, %b : tensor<4x8xf32>
    %e = ds.exp %d : tensor<4x8xf32>
    %s = ds.reduce sum %e dims [1] : tensor<4x8xf32> -> tensor<4xf32>
    %r = ds.broadcast %s dims [0] : tensor<4xf32> -> tensor<4x8xf32>
    %y = ds.div %e, %r : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [Option<"keepUpdates", "keep-updates", "bool", "false", "Leave updates and sums of squares as they are">];
}

def Simplify : Pass<"ds-simplify", "::mlir::ModuleOp"> {
  let summary = "Brings ops into their canonical form and merges equal ones, and keeps what they say of their work";
  let description = [{
    MLIR's `canonicalize` and `cse` in one, for steps: the first drops `ds.work` and `ds.layer` of what it replaces, the second
    would not merge a forward and a backward op.

    Requires: differentiation has run.

    Ensures: an op that takes the place of another is of its work and layer; of equal ops one is left, which says what the
    one said that is done earlier.

    ```
    %a = ds.transpose %w perm [1, 0] {ds.work = #ds.work<forward>} : tensor<4x8xf32> -> tensor<8x4xf32>
    %b = ds.transpose %w perm [1, 0] {ds.work = #ds.work<backward>} : tensor<4x8xf32> -> tensor<8x4xf32>
    ```
    becomes the first of the two, wherever the second stood.
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def VerifyStep : Pass<"ds-verify-step", "::mlir::ModuleOp"> {
  let summary = "Checks what the passes after phase step rely on";
  let description = [{
    Requires: nothing. Ensures, or fails:
    - every function is a segment; a stage has one schedule, which runs all its segments but one evaluation and one
      entry for logits at most;
    - each op says its work (`ds.work`), which is of its segment's, and reads nothing that is done later;
    - no owner and no bucket has two states of one slot;
    - each argument is an input or a declared state of its type; no state is an argument twice;
    - each result is a declared state of its type, at most once; segments without update write no parameter, moment
      or master, and evaluation no state that a step reads;
    - all shapes are static, and no op belongs to phase scheduled.
  }];
}

#endif // DS_STEP_PASSES
