//===- SchedulePasses.td - From one rank's step to buffers in issue order ---*- tablegen -*-===//
//
// Size: most of it are descriptions: each pass says what it requires and ensures, and shows it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SCHEDULE_PASSES
#define DS_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// resident -> scheduled
//===----------------------------------------------------------------------===//

def InlineRecompute : Pass<"ds-inline-recompute", "::mlir::func::FuncOp"> {
  let summary = "Puts what backward makes again between the ops that read it";
  let description = [{
    Requires: phase resident.
    Ensures: no `ds.recompute` is left; its ops stand in its place, of the work `recompute` and its layer, and read what was
    kept through `ds.after`, so that no later pass can move them to where the values were made first. Nothing that merges
    equal ops may follow.

    ```
    %again = ds.recompute (%x) after(%dy : tensor<8xf32>) : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>):
      %e = ds.exp %a : tensor<8xf32>               ->     %late = ds.after %x, %dy : tensor<8xf32>, tensor<8xf32>
      ds.yield %e : tensor<8xf32>                         %e = ds.exp %late {ds.work = #ds.work<recompute>} : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def NormalizeShapes : Pass<"ds-normalize-shapes", "::mlir::func::FuncOp"> {
  let summary = "Brings elementwise chains and reductions into the forms that fuse";
  let description = [{
    Reshapes that stand between elementwise ops sink below them, unit dimensions of broadcasts are dropped, what is
    widened and then repeated or reshaped is widened last, and reductions along inner dimensions read a transposed
    view.

    Requires: phase sharded, or step on one rank.
    Ensures: (E1) an elementwise op whose operands are reshapes from one shape computes in that shape, unless only
    reductions over other rows than that shape has read what it gives, which it joins where it is;
    (E2) no broadcast reads a reshape that only adds unit dimensions, and neither a broadcast nor a reshape a conversion
    to a wider type; (E3) every reduction is over leading or trailing dimensions; (E4) a full reduction of more than
    16384 elements is done row by row first, where there are rows (rank >= 2).

    ```
    %r = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>      %e = ds.exp %x : tensor<4x8xf32>
    %e = ds.exp %r : tensor<32xf32>                         ->  %r = ds.reshape %e : tensor<4x8xf32> -> tensor<32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def FuseRegions : Pass<"ds-fuse-regions", "::mlir::func::FuncOp"> {
  let summary = "Groups fusable ops into regions of one kernel each";
  let description = [{
    Elementwise chains, broadcasts and reductions with one iteration domain become one `ds.fused`. Constants, iotas,
    broadcasts and conversions to wider types are copied into every region that reads them; a column reduction copies
    the cheap elementwise ops before it. Row-wise and column-wise reductions never share a region. What
    ds-rematerialize-cheap has made again (work `recompute`) joins what reads it, not what made its operands: it would
    be kept from there on after all.

    Requires: phase sharded, or step on one rank; shapes normalised (ds-normalize-shapes).
    Ensures: (E1) every fusable op but reshape, transpose, slice, pad and concat stands in a `ds.fused`;
    (E2) values that only one region reads do not leave it; (E3) regions are convex: the block stays in
    topological order.

    ```
    %e = ds.exp %x : tensor<4xf32>               %r = ds.fused(%x) : (tensor<4xf32>) -> tensor<4xf32> {
    %r = ds.neg %e : tensor<4xf32>           ->  ^bb0(%a: tensor<4xf32>):
                                                   %e = ds.exp %a : tensor<4xf32>
                                                   %n = ds.neg %e : tensor<4xf32>
                                                   ds.yield %n : tensor<4xf32>
                                                 }
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def ApplyGelu : Pass<"ds-apply-gelu", "::mlir::func::FuncOp"> {
  let summary = "Lets products on CUDA take GELU and its gradient of what they give";
  let description = [{
    On CUDA, a product of 16 bits whose result goes into a region that is its GELU in the tanh form takes GELU itself,
    and gives both where something else reads the input: the region read the input, two bytes for each element. A
    product that only a region with GELU's gradient reads gives the gradient, and reads GELU's input: what reached
    the gradient was written and read, four bytes. The rest of such a region stays, and reads the gradient or the
    input, but not both: then nothing is saved, and it is left.

    Requires: regions fused.
    Ensures: (E1) GELU is taken by the product before it unless that accumulates or has an epilogue, or a library call or
    collective stands between, as before GELU that backward takes again, or a product of forward is made again in the function, whose bits an
    epilogue could change; (E2) GELU's gradient is taken by the product that
    reaches it unless that accumulates, adds a bias or comes before GELU's input, or nothing is saved; (E3) other
    regions, the erf form, products in f32 and other targets are as before; (E4) no value of that size lives longer.

    ```
    %h = ds.matmul %x, %w bias(%b) : ...                               %g, %h = ds.matmul %x, %w bias(%b) epilogue(gelu) : ...
    %g = ds.fused(%h) : ... { ... ds.gelu tanh ... }                   %y = ds.matmul %g, %v : ...
    %y = ds.matmul %g, %v : ...                                   ->   ...
    ...                                                                %dh = ds.matmul %dy, %v input(%h) transpose_rhs epilogue(gelu_gradient) : ...
    %dg = ds.matmul %dy, %v transpose_rhs : ...
    %dh = ds.fused(%dg, %h) : ... { ... ds.gelu_grad tanh ... }
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def SplitColumns : Pass<"ds-split-columns", "::mlir::func::FuncOp"> {
  let summary = "Shares long columns out to more blocks of a GPU";
  let description = [{
    On CUDA, a region that adds up columns and would have few blocks becomes two: one that adds up a column in parts,
    which are rows apart as many as there are parts, and one that adds up the parts, in f32 for 16-bit operands.

    Requires: regions fused.
    Ensures: (E1) a region that adds up leading dimensions has a block for each 32 bytes of a row and each part, 512 in
    all if its rows can be cut so, of 32 rows at least; (E2) other regions, and those of other targets, are as before.

    ```
    %s = ds.fused(%x) : (tensor<8192x768xbf16>) -> tensor<768xbf16>   ->   %c = ds.reshape %x : tensor<8192x768xbf16> -> tensor<512x16x768xbf16>
                                                                           %p = ds.fused(%c) : (tensor<512x16x768xbf16>) -> tensor<16x768xf32>
                                                                           %s = ds.fused(%p) : (tensor<16x768xf32>) -> tensor<768xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def OrderIssue : Pass<"ds-order-issue", "::mlir::func::FuncOp"> {
  let summary = "Orders ops so that the peak of live memory is low";
  let description = [{
    Keeps the given order unless another topological order has a lower peak; an op that replaces a state in place
    comes after every reader of the old value where the dependences allow it.

    Requires: phase sharded, or step on one rank; regions fused.
    Ensures: (E1) the block is in topological order; (E2) the peak of live bytes is not higher than before;
    (E3) an op that makes a state's new value stands behind the last reader of the old one, unless an op that
    comes before needs the new value.

    ```
    %a = ds.matmul %x, %x : ...                                  %a = ds.matmul %x, %x : ...
    %b = ds.matmul %x, %y : ...                                  %p = ds.fused(%a) : ... -> tensor<f32>
    %p = ds.fused(%a) : ... -> tensor<f32>                  ->   %b = ds.matmul %x, %y : ...   // %a is dead
    %q = ds.fused(%b) : ... -> tensor<f32>                       %q = ds.fused(%b) : ... -> tensor<f32>
    ```
  }];
}

def Bufferize : Pass<"ds-bufferize", "::mlir::ModuleOp"> {
  let summary = "Replaces tensors by buffers, views and commands";
  let description = [{
    Every tensor becomes a `!ds.buffer`: a state, an input, a `ds.alloc`, or a `ds.view` of one of these. Reshapes,
    transposes, slices and splits are views where strides can say them; an op writes over an operand that dies
    there when its access pattern allows it; the new value of a state is made in the state's place. Regions become
    kernels, equal ones only one; library ops become calls.

    Requires: phase sharded, or step on one rank; regions fused, issue order final.
    Ensures: (E1) functions take buffers and return nothing; (E2) no tensor value is left outside kernels;
    (E3) after a function the buffer of each state that it returned holds the returned value; (E4) equal kernels
    are one symbol; (E5) transfers of storage begin at whole units of 4096 bytes of host memory; (E6) an update makes what
    it can in the place of gradients that micro-steps have added up, which nobody reads behind it.

    ```
    %t = ds.transpose %x perm [1, 0] : ...                  %t = ds.view %x offset 0 : ... -> !ds.buffer<..., [1, 4], device>
    %e = ds.fused(%t, %w) : ... { ... }                ->   ds.launch @kernel_0 ins(%t, %w) outs(%w) on compute : ...
    return %e : tensor<4x4xf32>     // becomes @w           return
    ```

    What storage holds reaches the device through two pieces of host memory in turn, each of `staging` bytes at most.
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [Option<"staging", "staging", "int64_t", "16777216",
                        "bytes of each of the two pieces of host memory through which storage is moved">];
}

def SpeculateUpdates : Pass<"ds-speculate-updates", "::mlir::func::FuncOp"> {
  let summary = "Updates states on the host before the norm is known";
  let description = [{
    A launch on the host that reads what `ds.presumed` names waits for all gradients. It is launched twice: as soon as all
    else that it reads is there, with the guess, behind copies of what it changes; and in its old place, with the truth and
    of those copies, `when` the guess was wrong.

    Requires: phase scheduled, no events yet.
    Ensures: (E1) where the guess was right, the early launch is the old one, by the same kernel on the same bits; where it
    was wrong, what it has written is written again by the old one, on what was there before it: results are bit-equal.
    (E2) An early launch passes nothing that touches what it does. (E3) What would come no earlier than the truth stays as
    it is, and so does what would have to be put aside in part. (E4) Nothing but launches on the host goes early: what is sent to the
    device is sent behind the second launch. (E5) Early commands have `ds.early`, and no `ds.presumed` is left.

    ```
    ds.transfer %d to %g on to_host                            ds.transfer %d to %g on to_host
    ds.launch @norm ins(%g) outs(%c, %wrong) on host           ds.call "copy"(%m, %undo) ... on host
    ds.presumed %c as %one unless %wrong                  ->   ds.launch @update ins(%m, %g, %one) outs(%m) on host
    ds.launch @update ins(%m, %g, %c) outs(%m) on host         ds.launch @norm ins(%g) outs(%c, %wrong) on host
                                                               ds.launch @update ins(%undo, %g, %c) outs(%m) when(%wrong) on host
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def SplitUpdates : Pass<"ds-split-updates", "::mlir::func::FuncOp"> {
  let summary = "Updates states on the host in pieces";
  let description = [{
    Launches on the host of kernels that serve any size, tied by memory that only they and transfers touch, and the
    transfers that bring it from storage and take it away become one sequence for each window of at most `sub-group`
    elements; where storage is moved or something goes on to the device, of at most `staging` bytes. What only they touch
    lies in `sets` sets of staging memory, which take turns; where storage has no part in it, in a ring of three of the
    largest windows, each behind the last.

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

def ChooseProducts : Pass<"ds-choose-products", "::mlir::ModuleOp"> {
  let summary = "Gives products the form that was measured fastest";
  let description = [{
    Reads a file of `ds-run --tune` and gives each matmul call on the compute stream that it knows the form that was
    fastest (ProductForm.h), as four params behind its own, and the time that was measured, as `measured_seconds`.

    Requires: phase scheduled, no workspaces yet. On CUDA, and without a file, nothing happens.
    Ensures: (E1) calls of the same types, sizes and orders of operands have the same form, so that what is made again has
    the same bits; (E2) a product that the file does not know, or whose fastest form is its usual one, keeps its params;
    (E3) a file for another number of threads is refused, and so is a form that the product cannot have.

    ```
    ds.call "matmul"(%a, %b, %c) writes [2] params [0, 0, 0, 0] ...
    ->  ds.call "matmul"(%a, %b, %c) writes [2] params [0, 0, 0, 0, 0, 0, 0, 3072] ... {measured_seconds = 1.84e-01 : f64}
    ```
  }];
  let options = [
    Option<"tuning", "tuning", "std::string", "", "The file">,
    Option<"threads", "threads", "unsigned", "1", "Threads that the program will run with">,
  ];
}

def OverlapReductions : Pass<"ds-overlap-reductions", "::mlir::func::FuncOp"> {
  let summary = "Runs reductions beside the rest of backward";
  let description = [{
    Moves commands in the issue order: a reduction up to where what it sums up is complete, what reads its result
    down to where it is expected to be done, by a simulation of both streams with doubled times.

    Requires: phase scheduled.
    Ensures: (E1) a reduction stands behind the last command that it depends on, or another reduction; (E2) what
    reads its result, and what depends on that, comes no earlier than the reduction is expected to be done; (E3)
    compute waits for a reduction of a tensor there, or where `memory` cannot hold its operand any longer.

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
    Option<"cluster", "cluster", "std::string", "\"cpu\"", "File or name of the cluster whose rates say how long commands take">,
    Option<"memory", "memory", "int64_t", "0", "Bytes that everything together may take; 0: no limit">];
}

def ReleaseStored : Pass<"ds-release-stored", "::mlir::func::FuncOp"> {
  let summary = "Gives up memory of the device that was copied to the host";
  let description = [{
    Compute waits for copies to the host of what nothing reads any more, so that its memory is free from there on.

    Requires: phase scheduled, reductions placed.
    Ensures: (E1) compute waits for such a copy where it is expected to be done, by a simulation with doubled times, or
    earlier where `memory` cannot hold what is copied any longer; (E2) not where that is the end of the segment.

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
    Option<"cluster", "cluster", "std::string", "\"cpu\"", "File or name of the cluster whose rates say how long commands take">,
    Option<"memory", "memory", "int64_t", "0", "Bytes that everything together may take; 0: no limit">];
}

def PrefetchLoads : Pass<"ds-prefetch-loads", "::mlir::func::FuncOp"> {
  let summary = "Copies from the host and from storage ahead of need";
  let description = [{
    Moves what brings a value to the device, or from storage to the host, up in the issue order: to where it is done when
    its value is needed and the next load of its stream begins, by a simulation with doubled times.

    Requires: phase scheduled, gathers placed.
    Ensures: (E1) a load overtakes nothing that touches what it does; (E2) loads on one stream keep their order, and so do
    those through one piece of memory; (E3) with `memory`, what is loaded ahead has room where it is.

    ```
    ds.launch @a ins(%x) outs(%y) on compute           ds.transfer %h to %w on to_device
    ds.transfer %h to %w on to_device                  ds.launch @a ins(%x) outs(%y) on compute
    ds.launch @b ins(%y, %w) outs(%z) on compute   ->  ds.launch @b ins(%y, %w) outs(%z) on compute
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"cluster", "cluster", "std::string", "\"cpu\"", "File or name of the cluster whose rates say how long commands take">,
    Option<"memory", "memory", "int64_t", "0", "Bytes that everything together may take; 0: no limit">,
    Option<"threads", "threads", "unsigned", "1", "As ds-assign-workspaces has it: what calls take is not free">,
    Option<"attentionBytes", "attention-bytes", "uint64_t", "268435456", "As ds-assign-workspaces has it">];
}

def ShareHost : Pass<"ds-share-host", "::mlir::func::FuncOp"> {
  let summary = "Lets what the host's cores work on take the same memory in turn";
  let description = [{
    Allocations of the host that its cores work on become windows of one pool for each element type and alignment. Two
    may lie in the same place if the one is touched for the last time before the other is for the first, in issue order
    and, by a simulation with the rates of `cluster`, in time, where a command counts twice that may still run.

    Requires: phase scheduled, events inserted; they are to be inserted once more behind it.
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
  let options = [
    Option<"cluster", "cluster", "std::string", "\"cpu\"", "File or name of the cluster whose rates say how long commands take">];
}

def ScheduleCommunication : Pass<"ds-schedule-communication", "::mlir::ModuleOp"> {
  let summary = "Gathers parameters ahead of need, and keeps those that are to stay";
  let description = [{
    Decides with Analysis/GatherSchedule where each gather is issued. How long a parameter stays gathered its state says
    (`ds.stay`, chosen by ds-rematerialize-cheap); what does not fit beside what is live is gathered again, least time
    saved for a byte first. What stays over micro-steps lies in a state of its own, `ds.gathered_from` its shard: the
    first micro-step gathers it, the others read it, and evaluation gathers into the same place.

    Requires: phase scheduled, reductions placed (their buffers count as live, and so do workspaces to come).
    Ensures: (E1) a gather is issued no later than its value is needed or its shard changed, and no earlier than hiding
    it asks for; (E2)
    what is kept is gathered once, and nothing is kept that is not to stay; (E3) prefetching and keeping respect `memory` and the limits in elements, which are
    those of DeepSpeed; (E4) the function says in `ds.gathers` what is kept, and what forbids to keep the rest; (E5)
    nothing stays over micro-steps whose shard one of them changes before the last one gathers it.

    With `ds.stay = #ds.stay<segment>` of the state that `%w` is
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
    Option<"cluster", "cluster", "std::string", "\"cpu\"", "File or name of the cluster whose rates say how long commands take">,
    Option<"memory", "memory", "int64_t", "0", "Bytes that everything together may take; 0: no limit">,
    Option<"prefetchElements", "prefetch-elements", "int64_t", "50000000",
           "A gather is issued ahead of need only while fewer elements are under way">,
    Option<"maxLiveElements", "max-live-elements", "int64_t", "1000000000", "Elements that are gathered at one time">,
    Option<"maxReuseElements", "max-reuse-elements", "int64_t", "1000000000",
           "Elements of other parameters over which one may be kept">,
    Option<"threads", "threads", "unsigned", "1", "As ds-assign-workspaces has it: what calls take is not free">,
    Option<"attentionBytes", "attention-bytes", "uint64_t", "268435456", "As ds-assign-workspaces has it">,
    Option<"remarks", "remarks", "bool", "false", "Say what is kept and what is gathered again">];
}

def GroupLaunches : Pass<"ds-group-launches", "::mlir::ModuleOp"> {
  let summary = "Makes launches of one kernel over many tensors one launch";
  let description = [{
    On CUDA, launches of one `?` kernel with no other command between them become one launch of several items, at
    the place of the first. So does the update of a step that waits for the norm of all gradients: one launch for some
    fifty parameters instead of one for each.

    Requires: phase scheduled, the issue order final.
    Ensures: (E1) items share their inputs of rank 0, and none touches what another, or a launch that stood between
    them, writes; (E2) items write states and inputs only: no allocation lives longer than before; (E3) a kernel's
    `items` is that of its largest launch, and what a launch hands to its kernel has at most 4096 bytes; (E4)
    programs for other targets are as before.

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
    `ds.communicate` and events only; (E2) every argument is one state of the state's shape, or one input; (E3) calls name a library function and
    have as many buffers as it takes, and a copy's buffers are alike; (E4) every `ds.alloc` is used by a command,
    and the first such command writes it; (E5) a kernel's body is fusable ops; (E6) a state with `ds.gathered_from` is
    written by gathers of that shard alone, in `first` before it is read, not at all in `middle` and `last`, and in
    evaluation before it is read; no micro-step changes the shard before the last of them has read the state, but for
    the update, which may do so before the rest of its own micro-step has: that reads parameters as they were.

    ```
    func.func @last(%x: tensor<4xf32> {ds.input = "x"}) -> tensor<4xf32>   // expects buffers, but got 'tensor<4xf32>'
    ```
  }];
}

#endif // DS_SCHEDULE_PASSES
