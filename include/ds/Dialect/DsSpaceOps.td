//===- DsSpaceOps.td - Values and memory in other spaces than the device -*- tablegen -*-===//
#ifndef DS_SPACE_OPS
#define DS_SPACE_OPS

include "ds/Dialect/DsBase.td"

def Ds_StoreOp : Ds_Op<"store", [InPhases<"Fused", "Resident">, Pure]> {
  let summary = "Puts a value into another space";
  let description = [{
    The result holds the value until it is loaded. Only `ds.load`, `ds.move` and `ds.host` read it: whatever else computes works on
    tensors, which are in the device's memory. What was loaded and not changed is not stored again: it folds.

    Constraints:
    - (C1) the result holds the operand's tensor.
    - (C2) the space is not the device's.

    Example: `%s = ds.store %x : tensor<4x8xf32> -> !ds.stored<tensor<4x8xf32>, host>`
  }];
  let arguments = (ins Ds_Tensor:$value);
  let results = (outs Ds_StoredType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` qualified(type($result))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Ds_LoadOp : Ds_Op<"load", [InPhases<"Fused", "Resident">, Pure]> {
  let summary = "Brings a stored value to the device";
  let description = [{
    Constraints:
    - (C1) the result is the tensor that the operand holds.

    Example: `%x = ds.load %s : !ds.stored<tensor<4x8xf32>, host> -> tensor<4x8xf32>`
  }];
  let arguments = (ins Ds_StoredType:$stored);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$stored attr-dict `:` qualified(type($stored)) `->` type($result)";
  let hasVerifier = 1;
}

def Ds_MoveOp : Ds_Op<"move", [InPhases<"Fused", "Resident">, Pure]> {
  let summary = "Copies a stored value from one space into another, past the device";
  let description = [{
    What lies in storage is moved to the host's memory to be computed on there, and what comes of it back.

    Constraints:
    - (C1) operand and result hold one tensor.
    - (C2) one of them is in storage, the other in the host's memory.

    Example: `%h = ds.move %s : !ds.stored<tensor<4x8xf32>, nvme> -> !ds.stored<tensor<4x8xf32>, host>`
  }];
  let arguments = (ins Ds_StoredType:$stored);
  let results = (outs Ds_StoredType:$result);
  let assemblyFormat = "$stored attr-dict `:` qualified(type($stored)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Ds_HostOp : Ds_Op<"host", [InPhases<"Fused", "Resident">, Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "Computes on the host's cores, on values in the host's memory";
  let description = [{
    The body's arguments are the tensors that the operands hold, and what it yields are the tensors that the results
    hold. Nothing of it is on the device, before or after: what comes from there is stored first, what goes there is
    loaded after it. It holds what the host has code for: fusable ops, regions of them, and library functions that run
    on the host (`RunsOnHost`), and `ds.presume`, which computes nothing. Its ops say no work of their own: the region does.

    Constraints:
    - (C1) operands and results are in the host's memory.
    - (C2) block arguments are the tensors that the operands hold, and yielded values those that the results hold.
    - (C3) every op of the body runs on the host.

    Example:
    ```
    %new = ds.host(%m, %g) : (!ds.stored<tensor<4xf32>, host>, !ds.stored<tensor<4xf32>, host>) -> !ds.stored<tensor<4xf32>, host> {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      %s = ds.add %x, %y : tensor<4xf32>
      ds.yield %s : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Ds_StoredType>:$inputs);
  let results = (outs Variadic<Ds_StoredType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the host can run `op` as part of a body.
    static bool canHold(::mlir::Operation *op);
  }];
}

def Ds_TransferOp : Ds_CommandOp<"transfer", [], [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Copies a buffer into one of another space";
  let description = [{
    Constraints:
    - (C1) both buffers have one tensor type and are contiguous.
    - (C2) they are in different spaces.
    - (C3) a buffer in storage is copied from and to one of the host.
    - (C4) the stream is that of the way: `storage` from and to storage, `to_host` from the device to the host, `to_device`
      back. A link carries both ways at once, so that neither waits for the other.

    Example: `ds.transfer %a to %h on to_host : !ds.buffer<tensor<4x8xf32>, [8, 1], device>, !ds.buffer<tensor<4x8xf32>, [8, 1], host>`
  }];
  let arguments = (ins Ds_BufferType:$source, Ds_BufferType:$target, Ds_StreamAttr:$stream);
  let assemblyFormat = [{
    $source `to` $target `on` custom<Keyword>($stream) attr-dict `:` qualified(type($source)) `,`
    qualified(type($target))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::mlir::Value":$target), [{
    Space from = ::llvm::cast<BufferType>(source.getType()).getSpace();
    Space to = ::llvm::cast<BufferType>(target.getType()).getSpace();
    build($_builder, $_state, source, target, getStreamBetween(from, to));
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The stream of transfers from `from` to `to`, two spaces.
    static StreamKind getStreamBetween(Space from, Space to);
  }];
}

def Ds_ArenaOp : Ds_Op<"arena", [InPhases<"Planned", "Planned">]> {
  let summary = "Says how much memory of a space a rank takes";
  let description = [{
    Planning gives every buffer and state of `space` an offset below `bytes`. No plan of the same lifetimes takes less
    than `lower_bound` bytes.

    Constraints:
    - (C1) a module has at most one arena of a space.
    - (C2) `lower_bound` is at most `bytes`.

    Example: `ds.arena device bytes 4096 lower_bound 4032`
  }];
  let arguments = (ins Ds_SpaceAttr:$space, ConfinedAttr<I64Attr, [IntNonNegative]>:$bytes,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$lower_bound);
  let assemblyFormat = "custom<Keyword>($space) `bytes` $bytes `lower_bound` $lower_bound attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The arena of `space` in `module`, or null.
    static ArenaOp lookup(::mlir::ModuleOp module, Space space);
  }];
}

#endif // DS_SPACE_OPS
