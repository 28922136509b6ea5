//===- BufferPasses.td - From tensors to buffers in issue order -------*- tablegen -*-===//
#ifndef DS_BUFFER_PASSES
#define DS_BUFFER_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// resident -> scheduled: fusing and buffers
//===----------------------------------------------------------------------===//

def InlineRecompute : Pass<"ds-inline-recompute", "::mlir::func::FuncOp"> {
  let summary = "Puts what backward recomputes between the ops that read it";
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

    Requires: phase fused.
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

def JoinLoss : Pass<"ds-join-loss", "::mlir::func::FuncOp"> {
  let summary = "Lets cross-entropy on CUDA write its gradient while it reads the logits";
  let description = [{
    Forward reads logits, and backward reads them again and writes their gradient: three passes over what is often the largest value
    of a step. Where what reaches the loss is known before the loss, one op does both and passes twice.

    Requires: phase resident, nothing left in `ds.recompute`.
    Ensures: (E1) on CUDA, a cross-entropy and the only gradient that reads its row statistics are one op, in the place of the
    gradient, unless it reads what depends on the loss; what read the loss or the count before comes after;
    (E2) other cross-entropies, those of evaluation among them, and those of other targets are as before; (E3) no value
    lives longer: what is computed of the loss and is a number follows it, and the row statistics are none.

    ```
    %loss, %lse, %count = ds.cross_entropy %x, %t ...             %loss, %count, %dx = ds.cross_entropy_with_grad %x, %t, %g ...
    %dx = ds.cross_entropy_grad %x, %t, %lse, %count, %g ...  ->
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
    ds-rematerialize-cheap has recomputed (work `recompute`) joins what reads it, not what made its operands: it would
    be kept from there on after all.

    Regions that are there already stay as they are, but for ops that are recomputed, which may join them.

    Requires: phase fused, shapes normalised (ds-normalize-shapes), or phase resident, nothing left in `ds.recompute`.
    Ensures: (E1) every fusable op but reshape, transpose, slice, pad and concat stands in a `ds.fused`;
    (E2) values that only one region reads do not leave it; (E3) regions are convex: the block stays in
    topological order; (E4) no region has ops of forward and of another work; (E5) ops that were in one region are,
    and those of two regions are in two; (E6) where the results of a region are made in different layers, `ds.layers` says in which.

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

def VerifyFused : Pass<"ds-verify-fused", "::mlir::ModuleOp"> {
  let summary = "Checks what the passes after phase fused rely on";
  let description = [{
    Requires: nothing. Ensures, or fails:
    - what ds-verify-sharded ensures of segments, and that no op belongs to another phase;
    - what a region may hold stands in one, so that all that is no result of an op of the function is in no memory;
    - nothing is recomputed yet.
  }];
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
    collective stands between, as before GELU that backward takes again, or a product of forward is recomputed in the function, whose bits an
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

    Requires: phase fused or resident; regions fused.
    Ensures: (E1) the block is in topological order; (E2) the peak of live bytes is not higher than before;
    (E3) an op that makes a state's new value stands after the last reader of the old one, unless an op that
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
    it can in the place of gradients that micro-steps have added up, which nobody reads after it; (E7) the squares of
    several tensors on the host are summed up behind what last writes each, and their sums where all were.

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

def AlignRows : Pass<"ds-align-rows", "::mlir::ModuleOp"> {
  let summary = "Begins rows that products on CUDA read at multiples of 16 bytes";
  let description = [{
    Tensor cores are fed by kernels that load 16 bytes at a time; rows that begin elsewhere go by kernels that take several times
    as long. On CUDA, rows of an allocation that a product reads or writes and that are no multiple of 16 bytes lie further apart
    than they are long: by whole 128 bytes where that makes them longer by at most 1/64, else by whole 16 where it is at most
    1/16. The allocation has the longer rows, so that plans count them; commands name windows of it.

    Requires: phase scheduled.
    Ensures: (E1) an allocation of rank 2 or more of the device's memory, whose readers and writers are products,
    cross-entropies and kernels that reduce rows, a product among them, has rows of whole 16 bytes, where these are worth it;
    (E2) no command reads or writes what lies between rows; (E3) a launch whose buffers have other strides than before has a kernel
    for them, and no kernel is left that nothing launches for that reason; (E4) what another kernel, a copy, a collective or
    another function reads or writes, what a product with GELU makes, what has a window across the ends of rows, and all
    states, inputs and other targets are as before.

    ```
    %x = ds.alloc activations : <64x257xbf16>, [257, 1]        %m = ds.alloc activations : <64x264xbf16>, [264, 1]
    ds.call matmul(%h, %w, %x) ...                        ->   %x = ds.view %m offset 0 : ... -> <64x257xbf16>, [264, 1]
                                                               ds.call matmul(%h, %w, %x) ...
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [Option<"stages", "stages", "bool", "false", "only in models whose layers are stages">];
}

#endif // DS_BUFFER_PASSES
