//===- SchedulePasses.td - From the step to a memory plan -----------*- tablegen -*-===//
#ifndef DS_SCHEDULE_PASSES
#define DS_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Step -> scheduled
//===----------------------------------------------------------------------===//

def NormalizeShapes : Pass<"ds-normalize-shapes", "::mlir::func::FuncOp"> {
  let summary = "Brings elementwise chains and reductions into the forms that fuse";
  let description = [{
    Reshapes that stand between elementwise ops sink below them, unit dimensions of broadcasts are dropped, and
    reductions along inner dimensions read a transposed view.

    Requires: phase step.
    Ensures: (E1) an elementwise op whose operands are reshapes from one shape computes in that shape;
    (E2) no broadcast reads a reshape that only adds unit dimensions; (E3) every reduction is over leading or
    trailing dimensions; (E4) a full reduction of more than 16384 elements is done row by row first, where there are rows (rank >= 2).

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
    Elementwise chains, broadcasts and reductions with one iteration domain become one `ds.fused`. Constants, iotas
    and broadcasts are copied into every region that reads them; a column reduction copies the cheap elementwise
    ops before it. Row-wise and column-wise reductions never share a region.

    Requires: phase step, shapes normalised (ds-normalize-shapes).
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

def OrderIssue : Pass<"ds-order-issue", "::mlir::func::FuncOp"> {
  let summary = "Orders ops so that the peak of live memory is low";
  let description = [{
    Keeps the given order unless another topological order has a lower peak; an op that replaces a state in place
    comes after every reader of the old value where the dependences allow it.

    Requires: phase step, regions fused.
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

    Requires: phase step, regions fused, issue order final.
    Ensures: (E1) functions take buffers and return nothing; (E2) no tensor value is left outside kernels;
    (E3) after a function the buffer of each state that it returned holds the returned value; (E4) equal kernels
    are one symbol.

    ```
    %t = ds.transpose %x perm [1, 0] : ...                  %t = ds.view %x offset 0 : ... -> !ds.buffer<..., [1, 4], device>
    %e = ds.fused(%t, %w) : ... { ... }                ->   ds.launch @kernel_0 ins(%t, %w) outs(%w) on compute : ...
    return %e : tensor<4x4xf32>     // becomes @w           return
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def VerifyScheduled : Pass<"ds-verify-scheduled", "::mlir::ModuleOp"> {
  let summary = "Refuses a module that is not in phase scheduled";
  let description = [{
    Later passes place and lower commands without looking at tensors again, so this border says what they may find.

    Requires: nothing.
    Ensures: (E1) functions take buffers and return nothing, and hold `ds.alloc`, `ds.view`, `ds.launch` and `ds.call`
    only; (E2) every argument is one state of the state's shape, or one input; (E3) calls name a library function and
    have as many buffers as it takes, and a copy's buffers are alike; (E4) every `ds.alloc` is used by a command,
    and the first such command writes it; (E5) a kernel's body is fusable ops.

    ```
    func.func @last(%x: tensor<4xf32> {ds.input = "x"}) -> tensor<4xf32>   // expects buffers, but got 'tensor<4xf32>'
    ```
  }];
}

def AssignWorkspaces : Pass<"ds-assign-workspaces", "::mlir::func::FuncOp"> {
  let summary = "Plans the scratch memory of library calls";
  let description = [{
    Asks each library, on this machine, how much scratch memory a call needs, and makes that an allocation.

    Requires: phase scheduled.
    Ensures: (E1) a call whose library asks for scratch memory has a `workspace` of at least that size.

    ```
    ds.call "matmul"(%a, %b, %c) ... on compute : ...  ->  %s = ds.alloc "workspace" : !ds.buffer<tensor<4096xi8>, [1], device>
                                                           ds.call "matmul"(%a, %b, %c) ... workspace(%s : ...) on compute : ...
    ```
  }];
  let options = [Option<"threads", "threads", "unsigned", "1", "Threads that the program will run with">];
}

def PlanMemory : Pass<"ds-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer an offset in its arena";
  let description = [{
    States and inputs keep one place for the whole step; each segment's buffers share what remains, by lifetime in
    issue order. The offsets come from Analysis/MemoryPlan and are checked by its independent checker.

    Requires: phase scheduled.
    Ensures: (E1) every `ds.alloc`, `ds.state` and input has an offset; (E2) two values that are live at once
    never overlap; (E3) the module says the arena's size and the lower bound in `ds.plan`.

    ```
    %a = ds.alloc "activations" : ...   // dead before %b       ->  %a = ds.alloc "activations" offset 128 : ...
    %b = ds.alloc "activations" : ...                               %b = ds.alloc "activations" offset 128 : ...
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def VerifyPlanned : Pass<"ds-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Refuses a module whose plan has a gap or a clash";
  let description = [{
    Looks at the offsets alone, with lifetimes read off the block, and shares no code with the solver or its checker.

    Requires: phase scheduled.
    Ensures: (E1) the module has a `ds.plan`, and every `ds.alloc`, state and input an offset; (E2) offsets are
    multiples of 64; (E3) everything lies inside the arena; (E4) an input has one place in all segments; (E5) no two
    values that are live at once overlap: states and inputs live always, an allocation from the first to the
    last command that names it or a view of it.

    ```
    %a = ds.alloc "activations" offset 0 : !ds.buffer<tensor<4xf32>, [1], device>
    %b = ds.alloc "activations" offset 0 : !ds.buffer<tensor<4xf32>, [1], device>   // overlaps %a while both live
    ```
  }];
}

#endif // DS_SCHEDULE_PASSES
