//===- StagesPasses.td - From a model to the stages of a pipeline ---*- tablegen -*-===//
#ifndef DS_STAGES_PASSES
#define DS_STAGES_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// model
//===----------------------------------------------------------------------===//

def CutStages : Pass<"ds-cut-stages", "::mlir::ModuleOp"> {
  let summary = "Cuts a model into the stages of a pipeline, each a module of its own";
  let description = [{
    The mesh's `stages` says into how many. They are cut between numbered layers; what stands before the first layer (the
    embedding) and what stands behind the last (the loss) count as a layer each. `partition` is DeepSpeed's
    pipeline.partition: `best` makes the slowest stage as fast as can be, messages included, `uniform` divides by number,
    `parameters` by their elements, `type:REGEX` by the number of layers with such a name.

    Requires: phase model, not differentiated.

    Ensures: (E1) with one stage, or where modules are nested already, nothing is changed. Else (E2) the module has a
    module for each stage and nothing else, with all that was said of the whole, whose forward says which stage it is; (E3) each stage's
    `@forward` receives, first of all, what it and those after it read of what is made before it, and sends, last of all,
    what is read after it, in the order in which it is made; (E4) what costs next to nothing and is made of inputs,
    buffers and constants, or of parameters alone, is made where it is read; (E5) messages of what parameters influence
    and the loss depends on are `trained`; (E6) states are on the stages that read them, and on the first where none does;
    a trained parameter of two stages is a `copy` on the second; (E7) the last stage returns the loss.

    Fails where there are fewer layers than stages, where three stages read one trained parameter, and where a buffer that
    forward changes is read on two.

    ```
    module {                                          module {
      func.func @forward(%x, %w0, %w1) {                module @stage_0 { func.func @forward(%x, %w0) {
        %h = ds.matmul %x, %w0 {layer h.0}         ->     %h = ds.matmul %x, %w0   ds.send %h to 1 along pp trained } }
        %l = ds.matmul %h, %w1 {layer h.1}              module @stage_1 { func.func @forward(%w1) {
        return %l }                                       %h = ds.recv from 0 along pp trained   %l = ds.matmul %h, %w1   return %l } }
    }                                                 }
    ```
  }];
  let options = [
    Option<"partition", "partition", "std::string", "\"best\"", "By what layers are divided: best, uniform, parameters, type:REGEX">,
    Option<"remarks", "remarks", "bool", "false", "Say with which layer each stage begins">];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

//===----------------------------------------------------------------------===//
// scheduled
//===----------------------------------------------------------------------===//

def PipelineSegments : Pass<"ds-pipeline-segments", "::mlir::ModuleOp"> {
  let summary = "Parts a stage's segments into forward and backward, and says in which order they run";
  let description = [{
    Segments that do the forward and the backward of a micro-batch at once leave a stage no choice: it waits in each for
    the stages after it. They are parted behind the last command that forward needs, messages become segments of their own
    on the lane of transfers, and the schedule is that of `schedule`: `gpipe`, `1f1b`, or the text of a table
    (docs/pipelines.md).

    Requires: phase scheduled, on one stage, before anything is ordered on streams.

    Ensures: (E1) a module that is no stage, or has other segments, is as it was. Else (E2) segments do forward, or backward,
    or backward and update, or transfer; (E3) what one part leaves for another is a state with as many `slots` as
    micro-batches are between them in the schedule; (E4) forwards that do the same are one segment; (E5) each run waits
    for the runs on other lanes that make what it reads or read what it overwrites, and for no other.

    ```
    @first: forward, send, recv, backward   ->   @first.forward   @first.send_0   @first.recv_1   @first.backward
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "gpipe, 1f1b, or the text of a table">];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

#endif // DS_STAGES_PASSES
