//===- DsSpaceOps.td - Values and memory in other spaces than the device -*- tablegen -*-===//
#ifndef DS_SPACE_OPS
#define DS_SPACE_OPS

include "ds/Dialect/DsBase.td"

def Ds_StoreOp : Ds_Op<"store", [InPhases<"Resident", "Resident">, Pure]> {
  let summary = "Puts a value into another space";
  let description = [{
    The result holds the value until it is loaded. Only `ds.load` reads it: whatever computes works on tensors, which
    are in the device's memory.

    Constraints:
    - (C1) the result holds the operand's tensor.
    - (C2) the space is not the device's.

    Example: `%s = ds.store %x : tensor<4x8xf32> -> !ds.stored<tensor<4x8xf32>, host>`
  }];
  let arguments = (ins Ds_Tensor:$value);
  let results = (outs Ds_StoredType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Ds_LoadOp : Ds_Op<"load", [InPhases<"Resident", "Resident">, Pure]> {
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

def Ds_TransferOp : Ds_Op<"transfer", [OnBuffers, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Copies a buffer into one of another space";
  let description = [{
    Constraints:
    - (C1) both buffers have one tensor type and are contiguous.
    - (C2) they are in different spaces.
    - (C3) a buffer in storage is copied from and to one of the host, on stream storage; no other transfer is on it.

    Example: `ds.transfer %a to %h on host_copy : !ds.buffer<tensor<4x8xf32>, [8, 1], device>, !ds.buffer<tensor<4x8xf32>, [8, 1], host>`
  }];
  let arguments = (ins Ds_BufferType:$source, Ds_BufferType:$target, Ds_StreamAttr:$stream);
  let assemblyFormat = [{
    $source `to` $target `on` custom<Keyword>($stream) attr-dict `:` qualified(type($source)) `,`
    qualified(type($target))
  }];
  let hasVerifier = 1;
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
