//===- DsStateOps.td - States, fused regions, buffers and commands --*- tablegen -*-===//
#ifndef DS_STATE_OPS
#define DS_STATE_OPS

include "ds/Dialect/DsBase.td"

def Ds_StateOp : Ds_Op<"state", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Declares a tensor that lives from step to step";
  let description = [{
    Its name is the tensor's name in weights files; `aliases` are further names of the same tensor (tied
    parameters). `owner` names the parameter that a gradient, moment or master belongs to, and `slot` what it is of it
    ("grad", "master", "exp_avg"): states of equal slots are of one kind, whatever they are called. Functions see the state as an
    argument with `ds.state`, and give it a new value by a result with `ds.state`.

    `bucket` names the bucket that the state holds one value per element of: its members' parameters, gradients,
    moments or masters, flat. The members' own declarations then stay as names, shapes and initial values, but have no
    memory. `shards` says per dimension along which mesh axes it is cut, `none` where it is not: `type` is the
    state of all ranks together, and functions see one rank's part. A member of a bucket can have `shards` too: the bucket
    then holds its parts.

    Along some axes each rank makes an addend of a parameter's gradient, which is their sum: along the mesh's `samples`,
    and along `addends`, but along none that cuts the parameter. A parameter that is `tied 2` is on stage 2 of the
    pipeline as well, and the sum of both stages' gradients updates both; a `copy` is the later one, which counts nowhere.

    `view` is a shape in whose dimensions `shards` cuts, in place of the type's: each dimension of the type is the product
    of some of its that follow each other. A rank's part has the type's rank: a fused `tensor<2304x768xf32>` with view
    [3, 12, 64, 768] whose second dimension is cut in two is a `tensor<1152x768xf32>` on each rank. `existing` says that
    the view has more rows than the type, and how many of its dimension 0 the type has: the others are padding, which
    functions see, and which is zero; no file knows of it. `pieces` are sizes of what lies one behind the other in the
    dimension that is cut, where each is cut by itself: query, key and value with fewer key heads than heads.

    `offset` is its place in the arena of its home, in bytes, in phase planned; `stay` how long a parameter stays where it
    was gathered, without one for a use. `read_names` are further names under which weights files may hold it, which are
    never written. A state that is `gathered_from` another is memory for what a step gathers once from that one: no value
    outlives the step, so that it is a state of the schedule alone, nothing that is saved. A state with `slots` is what
    segments of a pipeline leave for each other, a row for each micro-batch: m has row m modulo their number, and functions
    see what lies in that one (Slots.h).

    Constraints:
    - (C1) a gradient, moment or master has an `owner` or a `bucket`, and only these have an owner, which is a
      parameter.
    - (C2) only parameters are `trainable`; a state with a `bucket` is not, nor has it aliases.
    - (C3) `bucket` is a bucket; the state has rank 1 and as many elements, and is a parameter, gradient, moment or
      master; a parameter has the members' element type, and a rank's part is a multiple of 32 elements.
    - (C4) `shards` has one entry per dimension of the view, names no axis twice, and the ranks along the axes of an
      entry divide its dimension.
    - (C5) gradients, moments and masters have a `slot`, and only these.
    - (C6) only parameters without a bucket have `addends`, axes of the mesh of which none cuts it, or are a `copy` or
      `tied`, which is a stage of the mesh.
    - (C7) the existing rows of `view` have the type's elements, and its dimensions multiply to the type's; a state with
      a `bucket` has none.
    - (C8) only with a `view` there are `existing` rows: at least 1 and less than the view's dimension 0.
    - (C9) a state that starts as `sinusoid` is a matrix of floats with an even number of columns, at least 4, and its
      `a` is finite and above 0.
    - (C10) `pieces` make up the one dimension of the view that is cut, without rows of padding, and the ranks divide
      each; a state with a `bucket` has none.
    - (C11) only a buffer has `slots`, at least 1, and is a matrix of as many rows.

    Example: `ds.state @bucket_0.exp_avg role (moment) slot("exp_avg") bucket(@bucket_0) shards [dp] init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<4096xf32>`

    Example: `ds.state @norm role (parameter) trainable addends tp init(#ds.init<constant, 1.000000e+00, 0.000000e+00>) home (device) : tensor<8xf32>`

    Example: `ds.state @qkv role (parameter) trainable view [3, 12, 64, 768] shards [none, tp, none, none] init(#ds.init<normal, 0.000000e+00, 2.000000e-02>) home (device) : tensor<2304x768xf32>`

    Example: `ds.state @table role (parameter) trainable view [50264, 768] existing 50257 shards [tp, none] init(#ds.init<normal, 0.000000e+00, 2.000000e-02>) home (device) : tensor<50257x768xf32>`

    Example: `ds.state @kv role (parameter) trainable pieces [1024, 256, 256] shards [tp, none] init(#ds.init<normal, 0.000000e+00, 2.000000e-02>) home (device) : tensor<1536x1024xf32>`

    Example: `ds.state @positions role (parameter) init(#ds.init<sinusoid, 1.000000e+04, 0.000000e+00>) home (device) : tensor<1500x384xf32>`

    Example: `ds.state @wte role (parameter) trainable init(#ds.init<normal, 0.000000e+00, 2.000000e-02>) home (device) : tensor<100x8xf32>`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Ds_RoleAttr:$role, OptionalAttr<StrAttr>:$slot, UnitAttr:$trainable,
                       OptionalAttr<StrArrayAttr>:$aliases, OptionalAttr<FlatSymbolRefAttr>:$owner,
                       OptionalAttr<FlatSymbolRefAttr>:$bucket, OptionalAttr<ArrayAttr>:$shards,
                       OptionalAttr<Ds_AxesAttr>:$addends, UnitAttr:$copy,
                       Ds_InitAttr:$init, Ds_SpaceAttr:$home, TypeAttrOf<Ds_Tensor>:$type,
                       OptionalAttr<I64Attr>:$offset, OptionalAttr<Ds_StayAttr>:$stay,
                       OptionalAttr<StrArrayAttr>:$read_names, OptionalAttr<FlatSymbolRefAttr>:$gathered_from,
                       OptionalAttr<DenseI64ArrayAttr>:$view, OptionalAttr<I64Attr>:$existing,
                       OptionalAttr<DenseI64ArrayAttr>:$pieces, OptionalAttr<I64Attr>:$slots,
                       OptionalAttr<I64Attr>:$tied);
  let assemblyFormat = [{
    $sym_name `role` custom<InParens>($role) (`slot` `(` $slot^ `)`)? (`trainable` $trainable^)? (`aliases` $aliases^)? (`owner` `(` $owner^ `)`)?
    (`bucket` `(` $bucket^ `)`)? (`view` $view^)? (`existing` $existing^)? (`pieces` $pieces^)? (`shards` custom<Shards>($shards)^)? (`addends` custom<Axes>($addends)^)? (`copy` $copy^)? (`tied` $tied^)? (`slots` $slots^)? `init` `(` qualified($init) `)` `home` custom<InParens>($home) attr-dict `:` $type
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of the state of all ranks together.
    RankedTensorType getTensorType() { return cast<RankedTensorType>(getType()); }
    /// The type of one rank's part, with its padding: what functions take and return. Requires a verified state.
    RankedTensorType getLocalType();
    /// Which part that is of the state, as a program says it, but for its bucket. Requires the state's mesh to be
    /// verified, if it has `shards`.
    ::ds::rt::Layout getLayout();
    /// True when ranks hold different parts.
    bool isSharded();
    /// The axes that cut it.
    ::ds::rt::AxisSet getCutAxes();
    /// The axes along which ranks hold addends of its gradient.
    ::ds::rt::AxisSet getAddendAxes();
  }];
  // What most states need: neither bucket nor shards.
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "Role":$role, "bool":$trainable, "ArrayAttr":$aliases,
                                 "FlatSymbolRefAttr":$owner, "InitAttr":$init, "Space":$home,
                                 "::mlir::RankedTensorType":$type), [{
    build($_builder, $_state, name, role, /*slot=*/StringAttr(), trainable, aliases, owner, /*bucket=*/FlatSymbolRefAttr(),
          /*shards=*/ArrayAttr(), /*addends=*/AxesAttr(), /*copy=*/false, init, home, type, /*offset=*/IntegerAttr(), /*stay=*/StayAttr(),
          /*read_names=*/ArrayAttr(), /*gathered_from=*/FlatSymbolRefAttr(),
          /*view=*/DenseI64ArrayAttr(), /*existing=*/IntegerAttr(), /*pieces=*/DenseI64ArrayAttr(),
          /*slots=*/IntegerAttr(), /*tied=*/IntegerAttr());
  }]>];
}

def Ds_FilesOp : Ds_Op<"files", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "Says what a model's files hold beside its states";
  let description = [{
    `unused` are tensors that weights files may hold and no state is; with `converts`, parameters may be there in another
    float type than the model's. `config` is the text of the config.json that the model was built from, to go with it into
    checkpoints.

    Constraints:
    - (C1) `config` is one JSON object of bounded size.
    - (C2) a module has one of these at most.

    Example: `ds.files unused ["lm_head.weight"] converts config "{\22model_type\22: \22gpt2\22}"`
  }];
  let arguments = (ins OptionalAttr<StrArrayAttr>:$unused, UnitAttr:$converts, OptionalAttr<StrAttr>:$config);
  let assemblyFormat = "(`unused` $unused^)? (`converts` $converts^)? (`config` $config^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// That of `module`, or null.
    static FilesOp lookup(ModuleOp module);
  }];
}

def Ds_FusedOp : Ds_Op<"fused", [InPhases<"Fused", "Resident">, Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "Groups ops that one generated kernel computes";
  let description = [{
    The body's arguments are the operands; it holds fusable ops only and yields the results. What the body names
    but does not yield never reaches memory.

    Constraints:
    - (C1) block arguments have the operands' types, and the yielded values the results' types.
    - (C2) every op of the body is fusable.

    Example:
    ```
    %r = ds.fused (%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      %s = ds.add %x, %y : tensor<4xf32>
      ds.yield %s : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Ds_Tensor>:$inputs);
  let results = (outs Variadic<Ds_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ds_YieldOp : Ds_Op<"yield", [Pure, Terminator, ParentOneOf<["FusedOp", "HostOp", "KernelOp", "RecomputeOp", "UpdateOp"]>]> {
  let summary = "Ends a body with its results: a fused one, the host's, a kernel's, an update's or a recomputation's";
  let description = [{ Example: `ds.yield %s : tensor<4xf32>` }];
  let arguments = (ins Variadic<Ds_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Phase scheduled
//===----------------------------------------------------------------------===//

def Ds_KernelOp : Ds_Op<"kernel", [OnBuffers, Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "Defines a generated kernel";
  let description = [{
    A fused body with the buffers it reads and writes: the first `num_inputs` entries of `buffers` are the body's
    arguments, the others receive what it yields. Launches of equal bodies share one kernel. A body over
    `tensor<?x...>` serves contiguous buffers of any size, whose number of elements the launch names; where `items`
    is given, one launch may do so for as many lists of buffers.
    An input and an output may be given the same memory when the input's element is read at the same index only.

    Constraints:
    - (C1) the body has `num_inputs` arguments and yields one value per other buffer.
    - (C2) every argument and yielded value has its buffer's tensor type.
    - (C3) `items` is given for a `?` kernel only.

    Example:
    ```
    ds.kernel @kernel_0 inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
    ^bb0(%x: tensor<4xf32>):
      %s = ds.exp %x : tensor<4xf32>
      ds.yield %s : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ConfinedAttr<I64Attr, [IntNonNegative]>:$num_inputs,
                       TypeArrayAttr:$buffers, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$items);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `inputs` $num_inputs `buffers` $buffers (`items` $items^)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "int64_t":$numInputs, "ArrayAttr":$buffers), [{
    build($_builder, $_state, name, numInputs, buffers, /*items=*/IntegerAttr());
  }]>];
  let extraClassDeclaration = [{
    /// True when it serves buffers of any size.
    bool isDynamic();
    /// True when the host's cores run it: all its buffers are in the host's memory.
    bool runsOnHost();
  }];
}

def Ds_AllocOp : Ds_Op<"alloc", [OnBuffers]> {
  let summary = "Reserves memory for a value of one segment";
  let description = [{
    The buffer lives from its first to its last use in issue order: there is no release. `offset`, in bytes from
    the start of the arena, is what planning adds; it is a multiple of `alignment` bytes, where more is asked for than
    all allocations have. `category` is the line of the memory report it counts in.

    Constraints:
    - (C1) the buffer is contiguous.

    Example: `%b = ds.alloc activations : !ds.buffer<tensor<4x8xf32>, [8, 1], device>`

    Example: `%w = ds.alloc workspace offset 4096 alignment 256 : !ds.buffer<tensor<512xi8>, [1], device>`
  }];
  let arguments = (ins Ds_AllocCategoryAttr:$category, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$alignment);
  let results = (outs Res<Ds_BufferType, "", [MemAlloc]>:$buffer);
  let assemblyFormat = [{
    custom<Keyword>($category) (`offset` $offset^)? (`alignment` $alignment^)? attr-dict `:` qualified(type($buffer))
  }];
  let builders = [OpBuilder<(ins "BufferType":$buffer, "AllocCategory":$category), [{
    build($_builder, $_state, buffer, category, /*offset=*/IntegerAttr(), /*alignment=*/IntegerAttr());
  }]>];
  let hasVerifier = 1;
}

def Ds_ViewOp : Ds_Op<"view", [OnBuffers, Pure]> {
  let summary = "Names a window of a buffer";
  let description = [{
    The window starts `offset` elements after the source's first and has the result's sizes and strides. With
    `shifts`, it starts that many elements further on for each step along the axes: ranks see parts of their own.

    Constraints:
    - (C1) element type and space are the source's.
    - (C2) the window lies inside the memory that the source spans, on every rank.
    - (C3) `shifts` names axes of the module's mesh.

    Example: `%v = ds.view %b offset 4 : !ds.buffer<tensor<4x8xf32>, [8, 1], device> -> !ds.buffer<tensor<4x4xf32>, [8, 1], device>`

    Example: `%v = ds.view %b offset 0 shifts [dp = 512] : !ds.buffer<tensor<2048xf32>, [1], device> -> !ds.buffer<tensor<512xf32>, [1], device>`
  }];
  let arguments = (ins Ds_BufferType:$source, ConfinedAttr<I64Attr, [IntNonNegative]>:$offset,
                       OptionalAttr<Ds_ShiftsAttr>:$shifts);
  let results = (outs Ds_BufferType:$result);
  let assemblyFormat = [{
    $source `offset` $offset (`shifts` custom<Shifts>($shifts)^)? attr-dict `:`
    qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "Type":$result, "Value":$source, "int64_t":$offset), [{
    build($_builder, $_state, result, source, offset, ShiftsAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Elements by which the last rank's window starts behind `offset`. Requires a verified view.
    int64_t getLargestShift();
  }];
}

def Ds_LaunchOp : Ds_CommandOp<"launch", ["getLabel"], [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, AttrSizedOperandSegments]> {
  let summary = "Runs a generated kernel";
  let description = [{
    A launch with several extents has as many items, each the kernel over buffers of its own: `inputs` and `outputs`
    hold those of the first item, then those of the second, and so on. Items run in any order, or at once.

    Constraints:
    - (C1) the kernel exists; each item's buffers have the types of its `buffers`, but for the sizes of a `?` kernel.
    - (C2) `extent` is given exactly for a `?` kernel: the number of elements of each item.
    - (C3) there are at most as many items as the kernel's `items`, or one; they share their inputs of rank 0.
    - (C4) no item touches what another writes. Checked once places are known.
    - (C5) `when` names a truth value in the host's memory, and the launch is on stream host: it does nothing where that is
      false.

    A `speculative` launch does not wait for the norm that says whether it is right; ds-speculate-updates makes it.

    Example: `ds.launch @any ins(%a, %b) outs(%c, %d) extent 4, 8 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>)`

    Example: `ds.launch @kernel_0 ins(%a) outs(%b) on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> !ds.buffer<tensor<4xf32>, [1], device>`

    Example: `ds.launch @kernel_1 ins(%a) outs(%b) on host speculative : (!ds.buffer<tensor<4xf32>, [1], host>) -> !ds.buffer<tensor<4xf32>, [1], host>`

    Example: `ds.launch @kernel_1 ins(%a) outs(%b) when(%p : !ds.buffer<tensor<i1>, [], host>) on host : (!ds.buffer<tensor<4xf32>, [1], host>) -> !ds.buffer<tensor<4xf32>, [1], host>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Ds_BufferType>:$inputs, Variadic<Ds_BufferType>:$outputs,
                       Optional<Ds_BufferType>:$predicate, OptionalAttr<DenseI64ArrayAttr>:$extents, Ds_StreamAttr:$stream,
                       UnitAttr:$speculative);
  let assemblyFormat = [{
    $kernel `ins` `(` $inputs `)` `outs` `(` $outputs `)` (`extent` custom<Numbers>($extents)^)?
    (`when` `(` $predicate^ `:` qualified(type($predicate)) `)`)? `on` custom<Keyword>($stream)
    (`speculative` $speculative^)? attr-dict `:`
    functional-type($inputs, $outputs)
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$kernel, "::mlir::ValueRange":$inputs, "::mlir::ValueRange":$outputs,
                                 "::mlir::DenseI64ArrayAttr":$extents, "StreamKind":$stream), [{
    build($_builder, $_state, kernel, inputs, outputs, /*predicate=*/Value(), extents, stream);
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many times the kernel runs, each over its own buffers.
    int64_t getNumItems() { return getExtents() ? getExtents()->size() : 1; }
    /// The buffers of one item. Requires a verified op.
    OperandRange getItemInputs(int64_t item);
    OperandRange getItemOutputs(int64_t item);
    /// Elements of all items together; 1 unless the kernel serves any size.
    int64_t getNumElements();
  }];
}

def Ds_PresumedOp : Ds_Op<"presumed", [InPhases<"Scheduled", "Scheduled">, AllTypesMatch<["truth", "guess"]>]> {
  let summary = "Says which scalar is known early to be what another will most probably be";
  let description = [{
    What `ds.presume` says, on buffers. It is no command: ds-speculate-updates reads and removes it.

    Constraints:
    - (C1) all three are scalars in the host's memory; `truth` and `guess` have one type, and `wrong` is a truth value.

    Example: `ds.presumed %c as %g unless %w : !ds.buffer<tensor<f32>, [], host>, !ds.buffer<tensor<i1>, [], host>`
  }];
  let arguments = (ins Ds_BufferType:$truth, Ds_BufferType:$guess, Ds_BufferType:$wrong);
  let assemblyFormat = [{
    $truth `as` $guess `unless` $wrong attr-dict `:` qualified(type($truth)) `,` qualified(type($wrong))
  }];
  let hasVerifier = 1;
}

def Ds_CallOp : Ds_CommandOp<"call", ["getLabel", "getCountedFlops", "getTraffic"],
                             [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, AttrSizedOperandSegments]> {
  let summary = "Runs a library function";
  let description = [{
    `callee` is a function of include/ds/Runtime/Program/Library.h, operands are in its order; those at the positions
    `writes` are written (and those among `reads_writes` also read). `params` are integers and floats. Of a call that was
    timed on the machine of the program, `measured_seconds` counts in place of what the rates of the device say. A
    `speculative` call keeps what a speculative launch overwrites.

    Constraints:
    - (C1) positions in `writes` are operands' positions.

    Example: `ds.call fill(%b) writes [0] params [0.000000e+00] on compute : !ds.buffer<tensor<4xf32>, [1], device>`

    Example: `ds.call copy(%a, %b) writes [1] params [] on host measured 1.250000e-01 speculative : !ds.buffer<tensor<4xf32>, [1], host>, !ds.buffer<tensor<4xf32>, [1], host>`
  }];
  let arguments = (ins Ds_LibraryFnAttr:$callee, Variadic<Ds_BufferType>:$buffers, Optional<Ds_BufferType>:$workspace,
                       DenseI64ArrayAttr:$writes, ArrayAttr:$params, Ds_StreamAttr:$stream,
                       OptionalAttr<I64Attr>:$flops, OptionalAttr<F64Attr>:$measured_seconds, UnitAttr:$speculative);
  let assemblyFormat = [{
    custom<Keyword>($callee) `(` $buffers `)` `writes` $writes `params` $params (`workspace` `(` $workspace^ `:` qualified(type($workspace)) `)`)?
    `on` custom<Keyword>($stream) (`measured` $measured_seconds^)? (`speculative` $speculative^)? attr-dict `:`
    qualified(type($buffers))
  }];
  let builders = [OpBuilder<(ins "::ds::rt::LibraryFn":$callee, "::mlir::ValueRange":$buffers,
                                 "::llvm::ArrayRef<int64_t>":$writes, "::mlir::ArrayAttr":$params, "StreamKind":$stream,
                                 CArg<"::mlir::IntegerAttr", "{}">:$flops), [{
    build($_builder, $_state, callee, buffers, /*workspace=*/Value(), writes, params, stream, flops,
          /*measured_seconds=*/FloatAttr(), /*speculative=*/false);
  }]>];
  let hasVerifier = 1;
}

#endif // DS_STATE_OPS
