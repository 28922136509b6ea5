//===- DsShardOps.td - Mesh, buckets and collectives ----------------*- tablegen -*-===//
#ifndef DS_SHARD_OPS
#define DS_SHARD_OPS

include "ds/Dialect/DsBase.td"

def Ds_MeshOp : Ds_Op<"mesh", [Symbol]> {
  let summary = "Names the directions along which ranks differ";
  let description = [{
    Ranks form a grid. Rank r has the coordinates of r in row-major order of the axes, the last one being the fastest:
    what communicates most stands last. Usual names are `pp` (pipeline), `dp` (data), `ep` (experts), `sp` (sequence)
    and `tp` (tensor), in this order. An axis may be cut into sub-axes, which share the part of their names before the
    dot: with `[dp.node = 2, dp.local = 8]`, `dp` names all 16 ranks, and `dp.local` the 8 of a node.

    What axes are for stands in sets, so that no pass knows a name: along `samples` ranks read other samples, along
    `zero` they divide what ZeRO divides, along `stages` they run other parts of the model, along `tensors` other parts of
    each layer, of the same samples. Along axes of `zero` that are not of `samples` ranks have other parts of each sequence. A
    set that is not there is empty. A module without a mesh is one rank's.

    Constraints:
    - (C1) every size is at least 1, there is one for each name, and ranks can be counted in 32 bits.
    - (C2) a module has at most one mesh.
    - (C3) there are 1 to 16 axes, of different names; none is named like the whole of which others are sub-axes.
    - (C4) sets have axes of the mesh; no axis of `stages` or of `tensors` is one of another set.

    Example: `ds.mesh @mesh axes [pp = 2, dp.node = 2, dp.local = 2, sp = 2, tp = 2] samples dp zero (dp, sp) stages pp tensors tp`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes, DenseI64ArrayAttr:$sizes,
                       OptionalAttr<Ds_AxesAttr>:$samples, OptionalAttr<Ds_AxesAttr>:$zero,
                       OptionalAttr<Ds_AxesAttr>:$stages, OptionalAttr<Ds_AxesAttr>:$tensors);
  let assemblyFormat = [{
    $sym_name `axes` custom<AxisSizes>($axes, $sizes) (`samples` custom<Axes>($samples)^)? (`zero` custom<Axes>($zero)^)?
    (`stages` custom<Axes>($stages)^)? (`tensors` custom<Axes>($tensors)^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The mesh of the module around `op`, or null.
    static MeshOp lookup(::mlir::Operation *op);
    /// What programs have of it.
    ::ds::rt::Mesh getMesh();
    /// Number of ranks that read other samples of a step: 1 where the module around `op` has no mesh.
    static int64_t countSampleRanks(::mlir::Operation *op);
    /// The axes of these names; names that the mesh has not stand for none, as null does.
    ::ds::rt::AxisSet find(AxesAttr axes);
    /// Number of ranks of a group along `axes`.
    int64_t getSize(AxesAttr axes);
    /// Number of ranks along the axis or sub-axes of that name: 1 where there are none.
    int64_t getSize(::llvm::StringRef name);
    /// Number of ranks of the whole mesh.
    int64_t getNumRanks() { return getMesh().size(); }
    /// Elements by which a window starts further on for each step along each axis, by its number.
    ::llvm::SmallVector<int64_t> resolve(ShiftsAttr shifts);
    /// The shifts of windows that lie one after the other, `stride` elements apart, in the order of the group's ranks.
    ShiftsAttr getShiftsOfParts(AxesAttr axes, int64_t stride);
  }];
}

def Ds_BucketOp : Ds_Op<"bucket", [InPhases<"Sharded", "Planned">, Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Lays parameters out one after the other in one flat array";
  let description = [{
    Member k occupies the elements [offsets[k], offsets[k] + its number of elements) in row-major order, of a member with
    `shards` those of a rank's part; what lies between and after the members is padding. States with `bucket` hold the
    array's parameters, gradients, moments or masters; their `shards` cut it into equal parts, through members where it
    falls so.

    Offsets are multiples of 32 elements and parts are too, so that each starts at a cache line, in bf16 as well.

    Constraints:
    - (C1) members are parameters of one element type, each in one bucket at most.
    - (C2) there is one offset per member, a multiple of 32, and members do not overlap and lie inside.
    - (C3) `elements` is a positive multiple of 32.
    - (C4) members are cut along the same axes, their gradients have the same addend axes, and all are copies or none is.

    Example: `ds.bucket @bucket_0 members [@wte, @h.0.w] offsets [0, 1024] elements 4096`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefArrayAttr:$members, DenseI64ArrayAttr:$offsets,
                       I64Attr:$elements);
  let assemblyFormat = "$sym_name `members` $members `offsets` $offsets `elements` $elements attr-dict";
  let extraClassDeclaration = [{
    /// What every member's offset is a multiple of, in elements.
    static constexpr int64_t kAlignment = 32;
  }];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

def Ds_Fabric : Resource<"::mlir::ds::Fabric">;

/// What a collective op carries: nothing else tells passes whether it is a bucket's, an exchange of the layers or a number.
class Ds_Carries<string payload> : DefaultValuedAttr<Ds_PayloadAttr, "::mlir::ds::Payload::" # payload>;

class Ds_CollectiveOp<string mnemonic, list<Trait> traits = [], string first = "Step">
    : Ds_Op<mnemonic, !listconcat([InPhases<first, "Resident">, MemoryEffects<[MemWrite<Ds_Fabric>]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "getSentBytes"]>,
        DeclareOpInterfaceMethods<CollectiveOpInterface, ["getCollectiveKind"]>], traits)> {
  let hasVerifier = 1;
}

def Ds_AllGatherOp : Ds_CollectiveOp<"all_gather"> {
  let summary = "Joins the parts of all ranks of a group";
  let description = [{
    Every rank contributes its `shard`; every rank receives all of them, in rank order, joined along dimension 0.
    With n ranks each sends (n - 1) * bytes(shard). `carries`, here and for all collectives, says what that is, where
    it is not a value of layers that are cut: a `bucket` of gradients, a `parameter`, a `statistic`.

    Constraints:
    - (C1) the module has a mesh with these axes.
    - (C2) `result` has the shape of `shard`, at least of rank 1, but n times longer in dimension 0, and its element
      type.

    Example: `%f = ds.all_gather %x along dp carries parameter : tensor<512xf32> -> tensor<2048xf32>`
  }];
  let arguments = (ins Ds_Tensor:$shard, Ds_AxesAttr:$axes,
                       Ds_Carries<"Exchange">:$carries);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = [{
    $shard `along` custom<Axes>($axes) (`carries` custom<Keyword>($carries)^)? attr-dict `:` type($shard) `->` type($result)
  }];
}

def Ds_ReduceScatterOp : Ds_CollectiveOp<"reduce_scatter"> {
  let summary = "Combines one tensor per rank and leaves each rank its part";
  let description = [{
    The tensors `full` of all ranks are combined element by element, in rank order, 16-bit ones in f32; rank r
    receives part r of n equal parts along dimension 0. Each rank sends (n - 1) * bytes(result).

    Constraints:
    - (C1) the module has a mesh with these axes.
    - (C2) `full` has the shape of `result`, at least of rank 1, but n times longer in dimension 0, and its element
      type.

    Example: `%s = ds.reduce_scatter sum %x along dp : tensor<2048xf32> -> tensor<512xf32>`
  }];
  let arguments = (ins Ds_ReduceKindAttr:$kind, Ds_TensorOf<Ds_Number>:$full, Ds_AxesAttr:$axes,
                       Ds_Carries<"Exchange">:$carries);
  let results = (outs Ds_TensorOf<Ds_Number>:$result);
  let assemblyFormat = [{
    custom<Keyword>($kind) $full `along` custom<Axes>($axes) (`carries` custom<Keyword>($carries)^)? attr-dict `:` type($full) `->` type($result)
  }];
  let extraClassDeclaration = [{
    std::optional<ReduceKind> getReduction() { return getKind(); }
  }];
}

def Ds_AllReduceOp : Ds_CollectiveOp<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "Combines one tensor per rank and gives all ranks the result";
  let description = [{
    As a reduce-scatter followed by an all-gather: the tensors of all ranks are combined element by element, in rank
    order, 16-bit ones in f32, so that all ranks get the same bits. Each rank sends 2 * (n - 1) * bytes / n, the n
    parts being rounded up to whole elements.

    Constraints:
    - (C1) the module has a mesh with these axes.

    Example: `%r = ds.all_reduce sum %x along dp : tensor<f32>`
  }];
  let arguments = (ins Ds_ReduceKindAttr:$kind, Ds_TensorOf<Ds_Number>:$input, Ds_AxesAttr:$axes,
                       Ds_Carries<"Exchange">:$carries);
  let results = (outs Ds_TensorOf<Ds_Number>:$result);
  let assemblyFormat = [{
    custom<Keyword>($kind) $input `along` custom<Axes>($axes) (`carries` custom<Keyword>($carries)^)? attr-dict `:` type($result)
  }];
  let extraClassDeclaration = [{
    std::optional<ReduceKind> getReduction() { return getKind(); }
  }];
}

def Ds_CollectiveBroadcastOp : Ds_CollectiveOp<"collective_broadcast", [SameOperandsAndResultType]> {
  let summary = "Gives all ranks of a group one rank's tensor";
  let description = [{
    The result is the `input` of the rank at position `root` of the group; those of the others are not read. Each rank sends at
    most bytes(input): the tensor travels along a chain.

    Constraints:
    - (C1) the module has a mesh with these axes.
    - (C2) `root` is below the number of ranks.

    Example: `%r = ds.collective_broadcast %x root 0 along dp : tensor<4xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input, ConfinedAttr<I64Attr, [IntNonNegative]>:$root, Ds_AxesAttr:$axes,
                       Ds_Carries<"Exchange">:$carries);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = [{
    $input `root` $root `along` custom<Axes>($axes) (`carries` custom<Keyword>($carries)^)? attr-dict `:` type($result)
  }];
  let extraClassDeclaration = [{
    int64_t getPeerIndex() { return getRoot(); }
  }];
}

def Ds_AllToAllOp : Ds_CollectiveOp<"all_to_all", [SameOperandsAndResultType]> {
  let summary = "Exchanges parts between all pairs of ranks";
  let description = [{
    Dimension 0 of `input` has n equal parts; part r goes to rank r, and part r of the result is what rank r sent.
    Each rank sends (n - 1) * bytes(input) / n.

    Constraints:
    - (C1) the module has a mesh with these axes.
    - (C2) `input` has at least rank 1, and n divides its dimension 0.

    Example: `%r = ds.all_to_all %x along sp : tensor<8x4xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input, Ds_AxesAttr:$axes,
                       Ds_Carries<"Exchange">:$carries);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = [{
    $input `along` custom<Axes>($axes) (`carries` custom<Keyword>($carries)^)? attr-dict `:` type($result)
  }];
}

def Ds_SendOp : Ds_CollectiveOp<"send", [], "Model"> {
  let summary = "Sends a tensor to one rank";
  let description = [{
    The rank at position `peer` of the group receives it by a `ds.recv` of the same type. The rank sends
    bytes(input). Of what is `trained` that rank sends the gradient back: differentiation adds both messages.

    Constraints:
    - (C1) the module has a mesh with these axes.
    - (C2) `peer` is below the number of ranks.

    Example: `ds.send %x to 1 along pp : tensor<4xf32>`
  }];
  let arguments = (ins Ds_Tensor:$input, ConfinedAttr<I64Attr, [IntNonNegative]>:$peer, Ds_AxesAttr:$axes,
                       Ds_Carries<"Transfer">:$carries, UnitAttr:$trained);
  let assemblyFormat = [{
    $input `to` $peer `along` custom<Axes>($axes) (`carries` custom<Keyword>($carries)^)? (`trained` $trained^)? attr-dict `:` type($input)
  }];
  let extraClassDeclaration = [{
    int64_t getPeerIndex() { return getPeer(); }
  }];
}

def Ds_RecvOp : Ds_CollectiveOp<"recv", [], "Model"> {
  let summary = "Receives a tensor from one rank";
  let description = [{
    What the rank at position `peer` of the group sends by `ds.send`. The rank sends nothing. What is `trained`
    depends on parameters there.

    Constraints:
    - (C1) the module has a mesh with these axes.
    - (C2) `peer` is below the number of ranks.

    Example: `%r = ds.recv from 0 along pp : tensor<4xf32>`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$peer, Ds_AxesAttr:$axes,
                       Ds_Carries<"Transfer">:$carries, UnitAttr:$trained);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = [{
    `from` $peer `along` custom<Axes>($axes) (`carries` custom<Keyword>($carries)^)? (`trained` $trained^)? attr-dict `:` type($result)
  }];
  let extraClassDeclaration = [{
    int64_t getPeerIndex() { return getPeer(); }
  }];
}

//===----------------------------------------------------------------------===//
// What depends on the rank without communication
//===----------------------------------------------------------------------===//

def Ds_LocalShardOp : Ds_Op<"local_shard", [InPhases<"Step", "Resident">, Pure]> {
  let summary = "Takes this rank's part of a tensor that all ranks have";
  let description = [{
    Part r of n equal parts along dimension 0, r being the rank's position in its group. The inverse of
    `ds.all_gather`; nothing is sent.

    Constraints:
    - (C1) the module has a mesh with these axes.
    - (C2) `full` has the shape of `result`, at least of rank 1, but n times longer in dimension 0, and its element
      type.

    Example: `%l = ds.local_shard %x along dp : tensor<2048xf32> -> tensor<512xf32>`
  }];
  let arguments = (ins Ds_Tensor:$full, Ds_AxesAttr:$axes);
  let results = (outs Ds_Tensor:$result);
  let assemblyFormat = "$full `along` custom<Axes>($axes) attr-dict `:` type($full) `->` type($result)";
  let hasVerifier = 1;
}

def Ds_AxisIndexOp : Ds_Op<"axis_index", [InPhases<"Step", "Resident">, Pure]> {
  let summary = "Gives this rank's position in its group";
  let description = [{
    A number from 0 to the group's size, exclusive: the only value by which ranks differ.

    Constraints:
    - (C1) the module has a mesh with these axes.

    Example: `%i = ds.axis_index dp : tensor<i64>`
  }];
  let arguments = (ins Ds_AxesAttr:$axes);
  let results = (outs 0DTensorOf<[I64]>:$result);
  let assemblyFormat = "custom<Axes>($axes) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // DS_SHARD_OPS
