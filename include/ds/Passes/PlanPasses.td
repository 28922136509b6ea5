//===- PlanPasses.td - From buffers to offsets -------------------*- tablegen -*-===//
#ifndef DS_PLAN_PASSES
#define DS_PLAN_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// scheduled -> planned
//===----------------------------------------------------------------------===//

def AssignWorkspaces : Pass<"ds-assign-workspaces", "::mlir::func::FuncOp"> {
  let summary = "Plans the scratch memory of library calls";
  let description = [{
    Asks each library, on this machine, how much scratch memory a call needs, and makes that an allocation; a
    reduction needs a block of every rank's part beside each other.

    Requires: phase scheduled.
    Ensures: (E1) a call whose library asks for scratch memory has a `workspace` of at least that size, and so has a
    reduction for its staging; (E2) where the machine's memory does not hold what is live beside the usual pieces of attention's
    gradient, that command has the largest that it does hold, or none: then cuDNN is not asked.

    ```
    ds.call matmul(%a, %b, %c) ... on compute : ...  ->  %s = ds.alloc workspace : !ds.buffer<tensor<4096xi8>, [1], device>
                                                           ds.call matmul(%a, %b, %c) ... workspace(%s : ...) on compute : ...
    ```
  }];
  let options = [
    Option<"memory", "memory", "::mlir::ds::MemoryLimit", "::mlir::ds::MemoryWord::Machine",
           "Bytes of the device for workspaces of attention's gradient and all else; machine: what the machine has, least: none has one">];
}

def PlanMemory : Pass<"ds-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every buffer an offset in its arena";
  let description = [{
    Each space is a problem of its own. States and inputs keep one place for the whole step; each segment's buffers
    share what remains, by lifetime in issue order. The offsets come from Analysis/MemoryPlan and are checked by its independent checker.

    Requires: phase scheduled.
    Ensures: (E1) every `ds.alloc`, `ds.state` and input has an offset; (E2) two values that are live at once
    never overlap; (E3) a `ds.arena` says the size of each space's arena and
    the lower bound; the device has one even if nothing lies in it.

    ```
    %a = ds.alloc activations : ...   // dead before %b       ->  %a = ds.alloc activations offset 128 : ...
    %b = ds.alloc activations : ...                               %b = ds.alloc activations offset 128 : ...
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

def VerifyPlanned : Pass<"ds-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Refuses a module whose plan has a gap or a clash";
  let description = [{
    Looks at the offsets alone, with lifetimes read off the block, and shares no code with the solver or its checker.

    Requires: phase planned.
    Ensures: (E1) the device has a `ds.arena`, as has each space in which something lies, and every `ds.alloc`, state and input an offset; (E2) offsets are
    multiples of 64, in storage of 4096; (E3) everything lies inside the arena of its space; (E4) an input has one place in all segments; (E5) no two
    values of a space that are live at once overlap: states and inputs live always, an allocation from the first to the
    last command that names it or a view of it; what other streams than compute name, until compute has waited for that;
    (E6) host memory through which storage is moved begins at a multiple of 4096.

    ```
    %a = ds.alloc activations offset 0 : !ds.buffer<tensor<4xf32>, [1], device>
    %b = ds.alloc activations offset 0 : !ds.buffer<tensor<4xf32>, [1], device>   // overlaps %a while both live
    ```
  }];
}

def VerifyCollectives : Pass<"ds-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "Refuses a module in which ranks could hang or streams race";
  let description = [{
    Runs the streams on vector clocks, without the code that inserts events. After planning, everything that ever lies
    in the same bytes is looked at, so that the reuse of memory is proved as well. All ranks of a stage run one text; the
    sizes of a collective are its op's own constraints. What stages have with each other is played: each does one command
    after another, sends and receives that stand side by side being one exchange.

    Requires: phase scheduled, events inserted.
    Ensures: (E1) an event is recorded once, and before it is waited for; (E2) commands of different streams that touch
    a common byte, one of them writing it, are ordered by an event; (E3) collectives are numbered from 0 in issue order;
    (E4) buffers of a collective are apart, or parts in their place in the whole; (E5) functions do not branch;
    (E6) no item of a launch touches what another writes; (E7) over the schedules of all stages, what one sends another
    receives, in one order, and no stage waits for ever for others; messages stand in segments and run along axes of the
    mesh's stages. Of stages that are modules of their own, ds-verify-stages sees to that.

    ```
    ds.communicate all_gather ins(%w) outs(%f) axis dp number 0 on gather : ...
    ds.launch @a ins(%f) outs(%y) on compute : ...   // expects stream compute to wait for stream gather
    ```
  }];
}

//===----------------------------------------------------------------------===//
// stages of a pipeline
//===----------------------------------------------------------------------===//

def VerifyStages : Pass<"ds-verify-stages", "::mlir::ModuleOp"> {
  let summary = "Refuses stages that do not make one model";
  let description = [{
    A model that is cut into stages is a module of modules, one for each stage: with a mesh, states, functions and a
    schedule of its own, on which all other passes run as on a model of one piece. What they have in common is looked at
    here; of a model of one piece nothing is.

    Requires: nothing; what is said of buffers holds from phase scheduled on.
    Ensures: (E1) beside stages there is nothing; (E2) each has segments, which, like its schedules, are of one stage, or a forward that says its stage;
    (E3) all declare the same mesh, with the same sets; (E4) stages are numbered from 0, each once, and there are as many
    as the mesh has ranks along `stages`; (E5) inputs of one name are of one type, and states of one name copies of one
    value: of one type, role, owner, slot and initial value; (E6) all have an evaluation or none; (E7) where all stages are
    on buffers, they meet as ds-verify-collectives asks for (E7).

    ```
    module {
      module { ds.mesh @mesh axes [pp = 2] stages pp ... }   // segments of stage 0
      module { ds.mesh @mesh axes [pp = 2] stages pp ... }   // of stage 0 as well: expects each stage once
    }
    ```
  }];
}

def ShareKernels : Pass<"ds-share-kernels", "::mlir::ModuleOp"> {
  let summary = "Gives kernels of several stages one name where they are equal, and else names of their own";
  let description = [{
    Each stage names its kernels by itself, so that two may call different kernels alike, and equal ones by two names. A
    program has one table for all: from here on a name says which kernel it is. Other names of the stages stay theirs.

    Requires: phase scheduled or later.
    Ensures: (E1) kernels of two stages have one name exactly where they say the same; (E2) no kernel has the name of
    another symbol of its stage; (E3) a model of one piece is as it was.

    ```
    module { ds.kernel @kernel_0 { exp } }                                     ->  module { ds.kernel @kernel_0 { exp } }
    module { ds.kernel @kernel_0 { tanh }  ds.kernel @kernel_1 { exp } }           module { ds.kernel @kernel_1 { tanh }  ds.kernel @kernel_0 { exp } }
    ```
  }];
}

#endif // DS_PLAN_PASSES
