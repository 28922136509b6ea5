//===- StreamPasses.td - Commands on streams -------------------------*- tablegen -*-===//
#ifndef DS_STREAM_PASSES
#define DS_STREAM_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// resident -> scheduled: streams
//===----------------------------------------------------------------------===//

def SpeculateUpdates : Pass<"ds-speculate-updates", "::mlir::func::FuncOp"> {
  let summary = "Updates states on the host before the norm is known";
  let description = [{
    A launch on the host that reads what `ds.presumed` names waits for all gradients. It is launched twice: as soon as all
    else that it reads is there, with the guess, after copies of what it changes; and in its old place, with the truth and
    of those copies, `when` the guess was wrong.

    Requires: phase scheduled, no events yet.
    Ensures: (E1) where the guess was right, the speculative launch is the old one, by the same kernel on the same bits; where it
    was wrong, what it has written is written again by the old one, on what was there before it: results are bit-equal.
    (E2) A speculative launch passes nothing that touches what it does. (E3) What would come no earlier than the truth stays as
    it is, and so does what would have to be put aside in part. (E4) Nothing but launches on the host is speculative: what is sent to the
    device is sent after the second launch. (E5) Speculative commands have `ds.early`, and no `ds.presumed` is left.

    ```
    ds.transfer %d to %g on to_host                            ds.transfer %d to %g on to_host
    ds.launch @norm ins(%g) outs(%c, %wrong) on host           ds.call copy(%m, %undo) ... on host
    ds.presumed %c as %one unless %wrong                  ->   ds.launch @update ins(%m, %g, %one) outs(%m) on host
    ds.launch @update ins(%m, %g, %c) outs(%m) on host         ds.launch @norm ins(%g) outs(%c, %wrong) on host
                                                               ds.launch @update ins(%undo, %g, %c) outs(%m) when(%wrong) on host
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def RotateUpdates : Pass<"ds-rotate-updates", "::mlir::ModuleOp"> {
  let summary = "Leaves the host's updates to the next step's first segment";
  let description = [{
    Updates on the host that wait for the last gradient keep the device idle. So what the update does on the host, and all that must
    come after that, becomes the beginning of a copy of the segment that the schedule runs first, unit by unit in the order in which that
    reads what they make. What it reads of the step's other commands is carried to it in states whose `ds.work` is `update`. A segment of
    `update` alone does it for who reads states between steps. No schedule runs these two: the copy stands for the first where updates were left.

    A command is late when it is a launch on the host, of work update, that changes a state other than a scalar, or when it
    comes after one that is and one of the two writes what the other touches: to run those later gives the same bits.

    Requires: phase scheduled, no events yet; one schedule.
    Ensures: (E1) the segment that updates does all but what is late, and the copy does what is late, then all that the first does. (E2) What is late keeps
    its order where one of two commands writes what the other touches. (E3) Late commands of other streams than compute
    stand before all others; those of compute as far behind as what touches what they do allows, for the device is to
    begin at once. (E4) Allocations that a command which is late reads and one which stays writes are states
    whose work is `update`. (E5) The module stays as it is, and a remark says why, where nothing is late; where something is late that the
    host reads after a step, or is not part of the update; where updates are speculative; where a value stays gathered
    for the step; and where the schedule has several stages.

    ```
    func @last   backward                                   func @last                backward
                 update %m of %g on host             ->     func @first_after_update  update %m of %late_0 on host
                 transfer %b to %w on to_device                                       transfer %b to %w on to_device
    func @first  matmul of %w                                                         matmul of %w
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [Option<"remarks", "remarks", "bool", "false", "Say why nothing is late">];
}

def SplitUpdates : Pass<"ds-split-updates", "::mlir::func::FuncOp"> {
  let summary = "Updates states on the host in pieces";
  let description = [{
    Launches on the host of kernels that serve any size, tied by memory that only they and transfers touch, and the
    transfers that bring it from storage and take it away become one sequence for each window of at most `sub-group`
    elements; where storage is moved or something goes on to the device, of at most `staging` bytes. What only they touch
    lies in `sets` sets of staging memory, which take turns; where storage has no part in it, in a ring of three of the
    largest windows, each after the last.

    Requires: phase scheduled, no events yet.
    Ensures: (E1) each element is computed by the same kernels in the same order: results are bit-equal; (E2) all that is
    done to one window stands before the next; (E3) of memory that comes from storage for updates there are `sets`
    windows, however many updates there are; (E4) windows in storage begin at whole units; (E5) what is not uniform,
    what would have to pass something that touches what it does, and what goes on to the device where a ring has room
    for all of it, stays as it is.

    With `sub-group=1024`
    ```
    ds.transfer %m to %a on storage                         // 2048 elements
    ds.launch @update ins(%a, %g) outs(%a) extent 2048 on host
    ds.transfer %a to %m on storage
    ```
    becomes
    ```
    ds.transfer %m0 to %a0 on storage                       // 1024 elements each
    ds.launch @update ins(%a0, %g0) outs(%a0) extent 1024 on host
    ds.transfer %a0 to %m0 on storage
    ds.transfer %m1 to %b0 on storage
    ds.launch @update ins(%b0, %g1) outs(%b0) extent 1024 on host
    ds.transfer %b0 to %m1 on storage
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"subGroup", "sub-group", "int64_t", "0", "Elements that are updated at once; 0: no limit">,
    Option<"staging", "staging", "int64_t", "16777216", "Bytes of a window of what storage holds">,
    Option<"sets", "sets", "unsigned", "2", "Windows that have memory at one time: 1 reads, updates and writes in turn">];
}

def JoinBiasGrad : Pass<"ds-join-bias-grad", "::mlir::ModuleOp"> {
  let summary = "Lets products on CUDA make gradients of biases beside those of weights";
  let description = [{
    The gradient of a bias is a factor of the product that gives the weight's, added up along the dimension that goes. On
    CUDA, the launches that add up come before that product, and the product names what they make, as its last operand: a
    runtime may leave them out and let the library add up while it multiplies (cuBLASLt's BGRADA and BGRADB). Where that factor
    is what a product with GELU's gradient gives, that product names them as well, before the launches, for the library can add
    up its result too (DGELU_BGRAD). Which is faster
    is measured when the program is loaded; memory and predicted times are those of the launches.

    Requires: phase scheduled, no events and workspaces yet.
    Ensures: (E1) a product of two matrices of 16 bits, without bias and activation, names the sums of a factor that one
    launch makes of it, or two by partial sums that nobody else reads, and that do nothing else, of the same work; those come
    before it, read the same value of that factor, and nothing between reads what they make; (E2) what adds to a gradient of earlier
    micro-batches, and other targets, are as before; (E3) results are those of the launches; (E4) a product with GELU's gradient
    names the sums that such launches after it make of its result, where nothing in between writes that or touches the sums.

    ```
    ds.call matmul(%x, %dy, %dw) writes [2] params [1, 0, 0, 0] ...        ds.launch @parts ins(%dy) outs(%p) ...
    ds.launch @parts ins(%dy) outs(%p) ...                            ->   ds.launch @sum ins(%p) outs(%db) ...
    ds.launch @sum ins(%p) outs(%db) ...                                   ds.call matmul(%x, %dy, %dw, %db) writes [2, 3] params [1, 0, 0, 0, 2] ...
    ```
  }];
}

def JoinColumnSums : Pass<"ds-join-column-sums", "::mlir::ModuleOp"> {
  let summary = "Lets one launch on CUDA add up columns in parts and then the parts";
  let description = [{
    Columns that are added up in parts take two launches, of which the second moves next to nothing. On CUDA, where it
    follows the first directly, both become one launch of a kernel whose body is both bodies, one after the other: the block
    that ends the last part of a strip of columns adds up its parts. Which block that is changes no order of additions.

    Requires: phase scheduled, no events and workspaces yet.
    Ensures: (E1) a launch that adds up parts of columns, and the next command, which adds up those parts and nothing else
    that spans them, are one launch, over the buffers of both; parts that others read as well stay what they were; (E2)
    launches of which one writes what the other has to do with otherwise, those of different work, of which one has a
    condition, of any size or not on stream compute stay two; (E3) results are those of the two launches to the bit.

    ```
    ds.launch @parts ins(%x) outs(%p) on compute ...
    ds.launch @sum ins(%p) outs(%s) on compute ...    ->    ds.launch @parts_sum ins(%x) outs(%p, %s) on compute ...
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def ChooseProducts : Pass<"ds-choose-products", "::mlir::ModuleOp"> {
  let summary = "Gives products the form that was measured fastest";
  let description = [{
    Reads a file of `ds-run --tune` and gives each matmul call on the compute stream that it knows the form that was
    fastest (ProductForm.h), as four params after its own, and the time that was measured.

    Requires: phase scheduled, no workspaces yet. On CUDA, and without a file, nothing happens.
    Ensures: (E1) calls of the same types, sizes and orders of operands have the same form, so that what is recomputed has
    the same bits; (E2) a product that the file does not know, or whose fastest form is its usual one, keeps its params;
    (E3) a file for another number of threads is refused, and so is a form that the product cannot have.

    ```
    ds.call matmul(%a, %b, %c) writes [2] params [0, 0, 0, 0] ...
    ->  ds.call matmul(%a, %b, %c) writes [2] params [0, 0, 0, 0, 0, 0, 0, 3072] ... measured 1.84e-01
    ```
  }];
  let options = [
    Option<"tuning", "tuning", "std::string", "", "The file">,
  ];
}

def OverlapReductions : Pass<"ds-overlap-reductions", "::mlir::func::FuncOp"> {
  let summary = "Runs reductions beside the rest of backward";
  let description = [{
    Moves commands in the issue order: a reduction up to where what it sums up is complete, what reads its result
    down to where it is expected to be done, by a simulation of both streams with doubled times.

    Requires: phase scheduled.
    Ensures: (E1) a reduction stands after the last command that it depends on, or another reduction; (E2) what
    reads its result, and what depends on that, comes no earlier than the reduction is expected to be done; (E3)
    compute waits for a reduction of a tensor there, or where the machine's memory cannot hold its operand any longer.

    ```
    ds.launch @a ins(%x) outs(%g) on compute                        ds.launch @a ins(%x) outs(%g) on compute
    ds.launch @b ins(%x) outs(%y) on compute                        ds.communicate reduce_scatter ins(%g) outs(%s) ... on reduce
    ds.communicate reduce_scatter ins(%g) outs(%s) ... on reduce    ds.record 0 on reduce
    ds.launch @update ins(%s) outs(%p) on compute              ->   ds.launch @b ins(%x) outs(%y) on compute
    ds.launch @c ins(%y) outs(%z) on compute                        ds.launch @c ins(%y) outs(%z) on compute
                                                                    ds.wait 0 on compute
                                                                    ds.launch @update ins(%s) outs(%p) on compute
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"memory", "memory", "::mlir::ds::MemoryLimit", "::mlir::ds::MemoryWord::Machine",
           "Bytes of the device for what waits to be reduced and all else; machine: what the machine has, least: nothing waits">];
}

def ReleaseStored : Pass<"ds-release-stored", "::mlir::func::FuncOp"> {
  let summary = "Gives up memory of the device that was copied to the host";
  let description = [{
    Compute waits for copies to the host of what nothing reads any more, so that its memory is free from there on.

    Requires: phase scheduled, reductions placed.
    Ensures: (E1) compute waits for such a copy where it is expected to be done, by a simulation with doubled times, or
    earlier where the machine's memory cannot hold what is copied any longer; (E2) not where that is the end of the segment.

    ```
    ds.transfer %g to %h on to_host             ds.transfer %g to %h on to_host
    ds.launch @b ins(%x) outs(%y) on compute    ds.record 0 on to_host
    ds.launch @c ins(%y) outs(%z) on compute -> ds.launch @b ins(%x) outs(%y) on compute
                                                ds.wait 0 on compute
                                                ds.launch @c ins(%y) outs(%z) on compute
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"memory", "memory", "::mlir::ds::MemoryLimit", "::mlir::ds::MemoryWord::Machine",
           "Bytes of the device for what is being copied and all else; machine: what the machine has, least: compute waits at once">];
}

def PrefetchLoads : Pass<"ds-prefetch-loads", "::mlir::func::FuncOp"> {
  let summary = "Copies from the host and from storage ahead of need";
  let description = [{
    Moves what brings a value to the device, or from storage to the host, up in the issue order: to where it is done when
    its value is needed and the next load of its stream begins, by a simulation with doubled times.

    Requires: phase scheduled, gathers placed.
    Ensures: (E1) a load overtakes nothing that touches what it does; (E2) loads on one stream keep their order, and so do
    those through one piece of memory; (E3) where the machine's memory is bounded, what is loaded ahead has room where it is.

    ```
    ds.launch @a ins(%x) outs(%y) on compute           ds.transfer %h to %w on to_device
    ds.transfer %h to %w on to_device                  ds.launch @a ins(%x) outs(%y) on compute
    ds.launch @b ins(%y, %w) outs(%z) on compute   ->  ds.launch @b ins(%y, %w) outs(%z) on compute
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"memory", "memory", "::mlir::ds::MemoryLimit", "::mlir::ds::MemoryWord::Machine",
           "Bytes of the device for what is loaded ahead and all else; machine: what the machine has, least: nothing is loaded ahead">];
}

def ShareHost : Pass<"ds-share-host", "::mlir::func::FuncOp"> {
  let summary = "Lets what the host's cores work on take the same memory in turn";
  let description = [{
    Allocations of the host that its cores work on become windows of one pool for each element type and alignment. Two
    may lie in the same place if the one is touched for the last time before the other is for the first, in issue order
    and, by a simulation with the rates of the machine, in time, where a command counts twice that may still run.

    Requires: phase scheduled, events inserted; they are to be inserted once more after it.
    Ensures: (E1) windows that share memory follow each other in issue order, so that events can order them, and in time,
    so that none waits for that; (E2) what stays on the device, numbers, and what only copies touch keep their own; (E3)
    the most bytes of the host that are live at a command are fewer than before, or nothing changes.

    ```
    ds.transfer %g0 to %a on to_host                          ds.transfer %g0 to %pool[0..] on to_host
    ds.launch @add ins(%m0, %a) outs(%m0) on host             ds.launch @add ins(%m0, %pool[0..]) outs(%m0) on host
    ds.transfer %g1 to %b on to_host                      ->  ds.transfer %g1 to %pool[n..] on to_host
    ds.launch @add ins(%m1, %b) outs(%m1) on host             ds.launch @add ins(%m1, %pool[n..]) outs(%m1) on host
    ds.transfer %g2 to %c on to_host                          ds.transfer %g2 to %pool[0..] on to_host
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def ScheduleCommunication : Pass<"ds-schedule-communication", "::mlir::ModuleOp"> {
  let summary = "Gathers parameters ahead of need, and keeps those that are to stay";
  let description = [{
    Decides with Analysis/GatherSchedule where each gather is issued. How long a parameter stays gathered its state says
    (`stay`, chosen by ds-rematerialize-cheap); what does not fit beside what is live is gathered again, least time
    saved for a byte first. What stays over micro-steps lies in a state of its own, `gathered_from` its shard: the
    first micro-step gathers it, the others read it, and evaluation gathers into the same place.

    Requires: phase scheduled, reductions placed (their buffers count as live, and so do workspaces to come).
    Ensures: (E1) a gather is issued no later than its value is needed or its shard changed, and no earlier than hiding
    it asks for; (E2)
    what is kept is gathered once, and nothing is kept that is not to stay; (E3) prefetching and keeping respect the machine's memory and the limits in elements, which are
    those of DeepSpeed; (E4) `gathers` of `ds.decisions` say what is kept, and what forbids to keep the rest; (E5)
    nothing stays over micro-steps whose shard one of them changes before the last one gathers it.

    With `stay = #ds.stay<segment>` of the state that `%w` is
    ```
    ds.launch @a ins(%x) outs(%y) on compute                  ds.communicate all_gather ins(%w) outs(%f) ... on gather
    ds.communicate all_gather ins(%w) outs(%f) ... on gather  ds.launch @a ins(%x) outs(%y) on compute
    ds.launch @b ins(%f) outs(%z) on compute             ->   ds.launch @b ins(%f) outs(%z) on compute
    ds.communicate all_gather ins(%w) outs(%g) ... on gather  ds.launch @c ins(%f) outs(%u) on compute
    ds.launch @c ins(%g) outs(%u) on compute
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"prefetchElements", "prefetch-elements", "int64_t", "50000000",
           "A gather is issued ahead of need only while fewer elements are under way">,
    Option<"maxLiveElements", "max-live-elements", "int64_t", "1000000000", "Elements that are gathered at one time">,
    Option<"maxReuseElements", "max-reuse-elements", "int64_t", "1000000000",
           "Elements of other parameters over which one may be kept">,
    Option<"memory", "memory", "::mlir::ds::MemoryLimit", "::mlir::ds::MemoryWord::Machine",
           "Bytes of the device for what is gathered and all else; machine: what the machine has, least: nothing is kept or gathered ahead">,
    Option<"remarks", "remarks", "bool", "false", "Say what is kept and what is gathered again">];
}

def SplitGathers : Pass<"ds-split-gathers", "::mlir::func::FuncOp"> {
  let summary = "Gathers parameters between nodes first, and within them then";
  let description = [{
    A gather of parameters along the axes that `gather_first_axes` of `ds.training` names and others becomes one along
    those, into memory of its own, and one along the others for each part that this brings.

    Requires: phase scheduled, gathers placed.
    Ensures: (E1) the gathered value has the bits and the order that one gather gives it; (E2) a rank sends as many bytes as
    before; (E3) a gather along axes of one kind alone stays as it is, and so does one into a state's place.

    With `gather_first_axes = ["dp.node"]` on a mesh of `dp.node = 2, dp.local = 4`
    ```
    ds.communicate all_gather ins(%w) outs(%f) along dp ... on gather            // 512 elements to 4096
    ```
    becomes
    ```
    ds.communicate all_gather ins(%w) outs(%t) along dp.node ... on gather       // 512 to 1024
    ds.communicate all_gather ins(%t0) outs(%f0) along dp.local ... on gather    // 512 to 2048 each
    ds.communicate all_gather ins(%t1) outs(%f1) along dp.local ... on gather
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def GroupLaunches : Pass<"ds-group-launches", "::mlir::ModuleOp"> {
  let summary = "Makes launches of one kernel over many tensors one launch";
  let description = [{
    On CUDA, launches of one `?` kernel with no other command between them become one launch of several items, at
    the place of the first. So does the update of a step that waits for the norm of all gradients: one launch for some
    fifty parameters instead of one for each. Launches over scalars of the device alone that are commands one after another
    become one as well, of a kernel of all their bodies.

    Requires: phase scheduled, the issue order final.
    Ensures: (E1) items share their inputs of rank 0, and none touches what another, or a launch that stood between
    them, writes; (E2) items write states and inputs only: no allocation lives longer than before; (E3) a kernel's
    `items` is that of its largest launch, and what a launch hands to its kernel has at most 4096 bytes; (E4)
    programs for other targets are as before; (E5) two launches over scalars, of one work, with no command between
    them are one, unless the second reads a part of what the first writes; one that reads nothing stands before the first
    command that has to do with what it writes.

    ```
    ds.launch @k ins(%g, %s) outs(%p) extent 8 on compute
    ds.launch @k ins(%h, %s) outs(%q) extent 4 on compute
    ```
    becomes
    ```
    ds.launch @k ins(%g, %s, %h, %s) outs(%p, %q) extent 8, 4 on compute
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def InsertEvents : Pass<"ds-insert-events", "::mlir::func::FuncOp"> {
  let summary = "Orders the streams where they touch the same bytes";
  let description = [{
    Requires: phase scheduled, the issue order final.
    Ensures: (E1) of two commands on different streams that touch a common byte of one root, one writing it, the later
    waits for the earlier; (E2) a command beside compute waits for all that compute was given before it; (E3) an event
    that is known to have happened is not waited for again; (E4) collectives are numbered in issue order.

    ```
    ds.launch @a ins(%x) outs(%g) on compute                       ds.launch @a ins(%x) outs(%g) on compute
    ds.communicate reduce_scatter ins(%g) outs(%s) ... on reduce   ds.record 0 on compute
    ds.launch @update ins(%s) outs(%p) on compute             ->   ds.wait 0 on reduce
                                                                   ds.communicate reduce_scatter ins(%g) outs(%s) ... number 0 on reduce
                                                                   ds.record 1 on reduce
                                                                   ds.wait 1 on compute
                                                                   ds.launch @update ins(%s) outs(%p) on compute
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def VerifyScheduled : Pass<"ds-verify-scheduled", "::mlir::ModuleOp"> {
  let summary = "Refuses a module that is not in phase scheduled";
  let description = [{
    Later passes place and lower commands without looking at tensors again, so this border says what they may find.

    Requires: nothing.
    Ensures: (E1) functions take buffers and return nothing, and hold `ds.alloc`, `ds.view`, `ds.launch`, `ds.call`,
    `ds.communicate` and events only; (E2) every argument is one state of the state's shape, or one input; (E3) calls
    have as many buffers as their function takes, and a copy's buffers are alike; (E4) every `ds.alloc` is used by a command,
    and the first such command writes it; (E5) a kernel's body is fusable ops; (E6) a state with `gathered_from` is
    written by gathers of that shard alone, in `first` before it is read, not at all in `middle` and `last`, and in
    evaluation before it is read, or by copies of what such a gather brought; no micro-step changes the shard before the last of them has read the state, but for
    the update, which may do so before the rest of its own micro-step has: that reads parameters as they were; (E7) a
    kernel of two stages is launched on stream compute alone, for its launches share counters and must not overlap; (E8)
    beside the scheduled segment that updates there are none or two: one does what the schedule's first does, after updating
    what the other updates; they and the scheduled one alone touch states whose work is `update`.

    ```
    func.func @last(%x: tensor<4xf32> {ds.input = "x"}) -> tensor<4xf32>   // expects buffers, but got 'tensor<4xf32>'
    ```
  }];
}

#endif // DS_STREAM_PASSES
