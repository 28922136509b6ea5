//===- DsDialect.td - The dialect, its attributes and types ---------*- tablegen -*-===//
#ifndef DS_DIALECT
#define DS_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Ds_Dialect : Dialect {
  let name = "ds";
  let cppNamespace = "::mlir::ds";
  let summary = "Training steps of large models, from the imported graph to planned buffers";
  let description = [{
    One dialect carries a model from import to the program. A module says, in turn:

    - *model*: `@forward` computes the loss. Parameters and buffers are declared by `ds.state`; a function takes
      them as arguments that carry `ds.state = @name`, and the forward's own arguments carry `ds.input = "name"`.
    - *step*: segments, functions that do a part of a step's work, such as `@first`, `@middle` and `@last` (micro-steps;
      `@last` also updates) and `@evaluate`, and a `ds.schedule` of what runs when. States are arguments and, where a
      function changes them, results with `ds.state = @name`. Everything between is SSA on tensors. Each op says
      whether it is forward, backward or update (`ds.work`) and which layer it belongs to (`ds.layer`).
    - *sharded*: the same functions as one rank of a `ds.mesh` runs them. Parameters, gradients and moments lie flat
      in `ds.bucket`s that the `dp` axis cuts; collectives are ops. All ranks run one text: the rank appears only
      in `ds.axis_index` and `ds.local_shard`, never in a size.
    - *resident*: what backward needs is kept or recomputed: ops of the work `recompute` stand where they are read. States
      that live elsewhere are loaded, stored, and updated where they are (`ds.host`).
    - *scheduled*: the same functions on `!ds.buffer`s, in issue order, with views, in-place writes and streams
      explicit; nothing is returned.
    - *planned*: every `ds.alloc` has an offset in the arena of its space.

    `ds.phase = #ds.phase<step>` on a module says where it stands, and each op says in which phases it may.

    A model that is cut into stages of a pipeline is a module of modules, one for each stage: with a mesh, states, functions
    and a schedule of its own, whose segments say `stage k`. Passes take each for a whole model; what they meet in, messages
    and collectives along the mesh's `stages`, keeps its order. ds-verify-stages says what they have to have in common.

    **State is declared; passes change where it lives.** What lives from step to step is a symbol with a role, a
    logical type and a home, so sharding and offload change a declaration and insert the ops that follow from it.

    **Shapes are static and broadcasts are ops.** Elementwise ops take operands of one shape; `ds.broadcast`
    makes it so. The planner needs every size, differentiation needs to see what was repeated, and fusion makes
    the repetition free.

    **What a pass must know of an op stands in an interface**: how to differentiate it, what it costs, whether it
    fuses and what its scalar body is, which library function computes it. No pass lists op names.

    **Collectives write the resource `Fabric`**: generic passes neither drop, merge nor reorder them, for a rank
    that skips one hangs the others.

    Not modelled: dynamic shapes, control flow that depends on data, aliasing tensors (views appear with buffers),
    and random number generators with hidden state (`ds.dropout` reads an explicit counter).
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["arith::ArithDialect", "math::MathDialect", "func::FuncDialect"];
  let extraClassDeclaration = [{
    /// Function argument and result attribute: the state that the value holds (a FlatSymbolRefAttr), or, of a result of
    /// a differentiated forward, whose gradient it is (a GradientAttr).
    static constexpr StringLiteral kStateAttr = "ds.state";
    /// Function argument attribute: name of a forward argument that the host fills (a StringAttr).
    static constexpr StringLiteral kInputAttr = "ds.input";
    /// Function attribute: which part of a step this is (a SegmentAttr). The forward of a stage of a pipeline has it in
    /// phase model already, and says which stage that is.
    static constexpr StringLiteral kSegmentAttr = "ds.segment";
    /// Op attribute: which work of a step the op is part of (a WorkAttr); see Work.h.
    static constexpr StringLiteral kWorkAttr = "ds.work";
    /// Op attribute: the layer of the model that the op belongs to (a LayerAttr); see Work.h.
    static constexpr StringLiteral kLayerAttr = "ds.layer";
    /// Attribute of a ds.fused whose results are made in other layers than the one that it names: of each result its
    /// layer (a LayerAttr), or that it has none (a UnitAttr).
    static constexpr StringLiteral kLayersAttr = "ds.layers";
    /// Module attribute: how to train (a TrainingAttr; see Training.h).
    static constexpr StringLiteral kTrainingAttr = "ds.training";
    /// Module attribute: what was left to the compiler, and how it chose (a DecisionsAttr; see Decisions.h).
    static constexpr StringLiteral kDecisionsAttr = "ds.decisions";
    /// Module attribute: for what it is compiled (a MachineAttr; see Machine.h).
    static constexpr StringLiteral kMachineAttr = "ds.machine";
    /// Module attribute: what indices of inputs the host lets through beside those that commands show (an ArrayAttr of
    /// IndicesAttr).
    static constexpr StringLiteral kIndicesAttr = "ds.indices";
    /// Module attribute: the phase that the module is in (a PhaseAttr). A module without one is in any phase that its
    /// ops may be in.
    static constexpr StringLiteral kPhaseAttr = "ds.phase";
  }];
}

//===----------------------------------------------------------------------===//
// Enums and attributes
//===----------------------------------------------------------------------===//

class Ds_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::ds";
}
class Ds_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Ds_Dialect, info, mnemonic>;

def Ds_Phase : Ds_Enum<"Phase", "how far a module has come", [
  I32EnumAttrCase<"Model", 0, "model">, I32EnumAttrCase<"Step", 1, "step">, I32EnumAttrCase<"Sharded", 2, "sharded">,
  I32EnumAttrCase<"Fused", 3, "fused">, I32EnumAttrCase<"Resident", 4, "resident">,
  I32EnumAttrCase<"Scheduled", 5, "scheduled">, I32EnumAttrCase<"Planned", 6, "planned">]>;
def Ds_PhaseAttr : Ds_EnumAttr<Ds_Phase, "phase"> {
  let assemblyFormat = "`<` $value `>`";  // a discardable attribute: #ds.phase<step>
}

def Ds_Role : Ds_Enum<"Role", "what a state is for", [
  I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Buffer", 1, "buffer">,
  I32EnumAttrCase<"Gradient", 2, "gradient">, I32EnumAttrCase<"Moment", 3, "moment">,
  I32EnumAttrCase<"Master", 4, "master">, I32EnumAttrCase<"Scalar", 5, "scalar">]>;
def Ds_RoleAttr : Ds_EnumAttr<Ds_Role, "role">;

def Ds_Space : Ds_Enum<"Space", "memory space", [
  I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Host", 1, "host">, I32EnumAttrCase<"Nvme", 2, "nvme">]>;
def Ds_SpaceAttr : Ds_EnumAttr<Ds_Space, "space">;

def Ds_Stay : Ds_Enum<"Stay", "how long a gathered parameter stays", [
  I32EnumAttrCase<"Use", 0, "use">, I32EnumAttrCase<"Segment", 1, "segment">, I32EnumAttrCase<"Step", 2, "step">]>;
def Ds_StayAttr : Ds_EnumAttr<Ds_Stay, "stay"> {
  let assemblyFormat = "`<` $value `>`";
}

def Ds_Work : Ds_Enum<"Work", "what a step does", [
  I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"InputGradient", 2, "input_gradient">, I32EnumAttrCase<"WeightGradient", 3, "weight_gradient">,
  I32EnumAttrCase<"Update", 4, "update">, I32EnumAttrCase<"Evaluation", 5, "evaluation">,
  I32EnumAttrCase<"Recompute", 6, "recompute">, I32EnumAttrCase<"Transfer", 7, "transfer">]>;
def Ds_WorkAttr : Ds_EnumAttr<Ds_Work, "work"> {
  let assemblyFormat = "`<` $value `>`";  // a discardable attribute: #ds.work<forward>
}

def Ds_SegmentAttr : AttrDef<Ds_Dialect, "Segment"> {
  let mnemonic = "segment";
  let summary = "Which part of a step a function is";
  let description = [{
    `#ds.segment<forward, backward>` does the forward and the backward work of a micro-batch; work that a function joins
    needs nothing between. `#ds.segment<stage 1, chunk 0, forward>` does it for the layers that stage 1 of a pipeline has
    in its first chunk; both are 0 where nothing is said. Which micro-batch it does it for is for `ds.schedule` to say.
    `evaluation` stands alone: a forward whose loss no step reads. So does `transfer`: messages beside what computes.
  }];
  let parameters = (ins "int64_t":$stage, "int64_t":$chunk, ArrayRefParameter<"Work">:$works);
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<Work>":$works), [{
    return $_get($_ctxt, 0, 0, works);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether the segment does `work`.
    bool does(Work work) const { return ::llvm::is_contained(getWorks(), work); }
    /// The segment that `func` is, or null.
    static SegmentAttr of(::mlir::Operation *func);
  }];
}

def Ds_LayerAttr : AttrDef<Ds_Dialect, "Layer"> {
  let mnemonic = "layer";
  let summary = "Layer of the model that an op belongs to";
  let description = [{
    `#ds.layer<"h", 3, "attn">` is the part `attn` of layer 3 of the stack `h`; models call it h.3.attn. The first part
    of a name that is a number is that of the layer. `#ds.layer<"wte">` has none, `#ds.layer<"", 3>` is called 3.
  }];
  let parameters = (ins StringRefParameter<"what comes before the number, or the whole name">:$stack,
                        "std::optional<int64_t>":$number, StringRefParameter<"what comes after it">:$part);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The layer that a model calls `name`, which is not empty.
    static LayerAttr named(::mlir::MLIRContext *context, ::llvm::StringRef name);
    /// The layer that `op` says, or else its location; null for none.
    static LayerAttr of(::mlir::Operation *op);
    /// As the model calls it.
    std::string getName() const;
    /// What all parts of one numbered layer share; nothing where there is no number.
    std::optional<std::pair<::llvm::StringRef, int64_t>> getBlock() const {
      return getNumber() ? std::optional(std::pair(getStack(), *getNumber())) : std::nullopt;
    }
  }];
}

def Ds_GradientAttr : AttrDef<Ds_Dialect, "Gradient"> {
  let mnemonic = "gradient";
  let summary = "Whose gradient a result is";
  let description = [{
    `-> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>})`: the second result is the gradient of the loss by the
    state `@w`. ds-differentiate appends such results, and ds-build-step reads them.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$state);
  let assemblyFormat = "`<` $state `>`";
  let extraClassDeclaration = [{
    /// Of which state result `index` of `func` is the gradient; null where it is none.
    static ::mlir::FlatSymbolRefAttr stateOf(::mlir::FunctionOpInterface func, unsigned index);
  }];
}

def Ds_IndicesAttr : AttrDef<Ds_Dialect, "Indices"> {
  let mnemonic = "indices";
  let summary = "Which indices an input may hold";
  let description = [{
    `#ds.indices<"tokens" below 50257>`: those from 0 to 50256; `#ds.indices<"labels" below 50257 ignore -100>`: and -100. A
    command that looks up what an input says shows how many rows there are. Where each rank has a part of them, no command
    does, and this says it.

    With `targets[1, 7]` losses have elements 1 to 7 of each sample for targets, of which the host counts those that are not
    ignored before it runs a step: behind phase model losses are cut in pieces, among ranks too, and nothing else tells of it.
    Runs of [first, count] ascend and do not touch.
  }];
  let parameters = (ins "::mlir::StringAttr":$input, "int64_t":$below, OptionalParameter<"std::optional<int64_t>">:$ignored,
                        OptionalArrayRefParameter<"int64_t">:$targets);
  let assemblyFormat = "`<` $input `below` $below (`ignore` $ignored^)? (`targets` `[` $targets^ `]`)? `>`";
  let genVerifyDecl = 1;
}

def Ds_Gradients : Ds_Enum<"Gradients", "what a run does with the gradients of the step", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Set", 1, "set">, I32EnumAttrCase<"Add", 2, "add">]>;
def Ds_GradientsParam : EnumParameter<Ds_Gradients>;

def Ds_RunAttr : AttrDef<Ds_Dialect, "Run"> {
  let mnemonic = "run";
  let summary = "Runs of one segment, each for the next micro-batch";
  let description = [{
    `#ds.run<@middle, first 1, count 3, gradients add>` runs `@middle` for the micro-batches 1, 2 and 3 and adds each one's
    gradients to those of the step so far; `set` begins them anew. With `reduced`, they are complete
    when the run ends: over the micro-batches and over the ranks.

    `after [2, 0]` of a run on the lane that computes: not before two runs of the transfers are over, of those that stand before
    it. Lanes are those that compute, transfer and move, in this order, and a run names each but its own; without it,
    there is nothing to wait for.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$segment, "int64_t":$first, "int64_t":$count,
                        Ds_GradientsParam:$gradients, DefaultValuedParameter<"bool", "false">:$reduced,
                        OptionalArrayRefParameter<"int64_t">:$after);
  let assemblyFormat = [{
    `<` $segment `,` `first` $first `,` `count` $count `,` `gradients` $gradients (`,` `reduced` $reduced^)?
    (`,` `after` `[` $after^ `]`)? `>`
  }];
}

// Facts that are plain structs: an attribute holds one by value, and its text is that of lib/Dialect/FieldText.h.
class Ds_Fact<string struct, string text> : AttrParameter<"::mlir::ds::" # struct, text,
                                                          "const ::mlir::ds::" # struct # " &">;

def Ds_TrainingAttr : AttrDef<Ds_Dialect, "Training"> {
  let mnemonic = "training";
  let summary = "How a model is trained";
  let description = [{
    `#ds.training<gradient_accumulation_steps = 2, optimizer = {type = sgd, lr = 5.0e-01}>`: what is not said has its default. Keys are in
    TrainingFields.h, and their meanings in the description of ds-build-step.
  }];
  let parameters = (ins Ds_Fact<"TrainingOptions", "how to train">:$options);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Ds_DecisionsAttr : AttrDef<Ds_Dialect, "Decisions"> {
  let mnemonic = "decisions";
  let summary = "What was left to the compiler, and how it chose";
  let description = [{
    `#ds.decisions<loss_split = {chunks = 32, rows = 512}>`: see Decisions.h. Passes and the planner add to it, reports
    tell of it in sentences.
  }];
  let parameters = (ins Ds_Fact<"Decisions", "what was chosen">:$decisions);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Ds_MachineAttr : AttrDef<Ds_Dialect, "Machine"> {
  let mnemonic = "machine";
  let summary = "For what a module is compiled";
  let description = [{ `#ds.machine<target = "cuda:sm_90">`: see Machine.h. }];
  let parameters = (ins Ds_Fact<"Machine", "for what">:$machine);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Ds_Stream : Ds_Enum<"StreamKind", "queue that executes a command", [
  I32EnumAttrCase<"Compute", 0, "compute">, I32EnumAttrCase<"Gather", 1, "gather">,
  I32EnumAttrCase<"Reduce", 2, "reduce">, I32EnumAttrCase<"ToHost", 3, "to_host">,
  I32EnumAttrCase<"ToDevice", 4, "to_device">, I32EnumAttrCase<"Storage", 5, "storage">,
  I32EnumAttrCase<"Host", 6, "host">, I32EnumAttrCase<"Exchange", 7, "exchange">,
  I32EnumAttrCase<"Transfer", 8, "transfer">]>;
def Ds_StreamAttr : Ds_EnumAttr<Ds_Stream, "stream">;

def Ds_Payload : Ds_Enum<"Payload", "what a collective carries", [
  I32EnumAttrCase<"Bucket", 0, "bucket">,       // gradients of a bucket
  I32EnumAttrCase<"Parameter", 1, "parameter">, // parts of parameters that are gathered
  I32EnumAttrCase<"Exchange", 2, "exchange">,   // values that are cut among ranks
  I32EnumAttrCase<"Transfer", 3, "transfer">,   // what one stage makes and another reads
  I32EnumAttrCase<"Statistic", 4, "statistic">]>; // losses, norms, what buffers count
def Ds_PayloadAttr : Ds_EnumAttr<Ds_Payload, "payload">;

def Ds_AllocCategory : Ds_Enum<"AllocCategory", "the line of the memory report that an allocation counts in", [
  I32EnumAttrCase<"Activations", 0, "activations">, I32EnumAttrCase<"Gradients", 1, "gradients">,
  I32EnumAttrCase<"Optimizer", 2, "optimizer">, I32EnumAttrCase<"Communication", 3, "communication">,
  I32EnumAttrCase<"Workspace", 4, "workspace">]>;
def Ds_AllocCategoryAttr : Ds_EnumAttr<Ds_AllocCategory, "category">;

def Ds_LibraryFnAttr : AttrDef<Ds_Dialect, "LibraryFn"> {
  let mnemonic = "library";
  let summary = "A library function that a program can call";
  let description = [{
    `#ds.library<matmul>`: one of the runtime's own list, include/ds/Runtime/Program/LibraryFn.h.
  }];
  let parameters = (ins "::ds::rt::LibraryFn":$value);
  let returnType = "::ds::rt::LibraryFn";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::mlir::ds::LibraryFnAttr::get($_builder.getContext(), $0)";
  let hasCustomAssemblyFormat = 1;
}

def Ds_Predicate : Ds_Enum<"Predicate", "ordered comparison", [
  I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">, I32EnumAttrCase<"LT", 2, "lt">,
  I32EnumAttrCase<"LE", 3, "le">, I32EnumAttrCase<"GT", 4, "gt">, I32EnumAttrCase<"GE", 5, "ge">]>;
def Ds_PredicateAttr : Ds_EnumAttr<Ds_Predicate, "predicate">;

def Ds_ReduceKind : Ds_Enum<"ReduceKind", "combining function of a reduction", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">]>;
def Ds_ReduceKindAttr : Ds_EnumAttr<Ds_ReduceKind, "reduce">;

def Ds_AxesAttr : AttrDef<Ds_Dialect, "Axes"> {
  let mnemonic = "axes";
  let summary = "Axes of the mesh along which ranks form a group";
  let description = [{
    `#ds.axes<dp>`, `#ds.axes<dp.node, sp>`: axes of the module's mesh by name. Where the mesh cuts an axis into
    sub-axes, `dp` stands for all of `dp.node`, `dp.local` and the like. Ranks whose other coordinates are equal are a
    group; their order in it is that of the mesh, whatever the order of the names.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$name), [{
    return $_get($_ctxt, ::llvm::ArrayRef<::mlir::StringAttr>(::mlir::StringAttr::get($_ctxt, name)));
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Ds_ShiftsAttr : AttrDef<Ds_Dialect, "Shifts"> {
  let mnemonic = "shifts";
  let summary = "How far apart the windows of neighbours along mesh axes lie";
  let description = [{
    `#ds.shifts<dp = 512, tp = 8>`: in elements, for each axis by name; the window of a rank starts at the sum of its
    positions along the axes times these. Axes that are not named shift nothing.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names, ArrayRefParameter<"int64_t">:$strides);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

// What products do with their sums; lib/Dialect/Epilogues.cpp says what each asks of a product. Epilogues stand in
// programs by number.
def Ds_Epilogue : Ds_Enum<"Epilogue", "what a product does with its sums before it stores them", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Relu", 1, "relu">, I32EnumAttrCase<"Gelu", 2, "gelu">,
  I32EnumAttrCase<"GeluGradient", 3, "gelu_gradient">]>;
def Ds_EpilogueAttr : Ds_EnumAttr<Ds_Epilogue, "epilogue">;

def Ds_CollectiveKind : Ds_Enum<"CollectiveKind", "what a group of ranks does together", [
  I32EnumAttrCase<"AllGather", 0, "all_gather">, I32EnumAttrCase<"ReduceScatter", 1, "reduce_scatter">,
  I32EnumAttrCase<"AllReduce", 2, "all_reduce">, I32EnumAttrCase<"Broadcast", 3, "broadcast">,
  I32EnumAttrCase<"AllToAll", 4, "all_to_all">, I32EnumAttrCase<"Send", 5, "send">,
  I32EnumAttrCase<"Recv", 6, "recv">]>;
def Ds_CollectiveKindAttr : Ds_EnumAttr<Ds_CollectiveKind, "collective">;

def Ds_InitKind : Ds_Enum<"InitKind", "how a state starts without a weights file", [
  I32EnumAttrCase<"Zero", 0, "zero">, I32EnumAttrCase<"Constant", 1, "constant">,
  I32EnumAttrCase<"Normal", 2, "normal">, I32EnumAttrCase<"Uniform", 3, "uniform">,
  I32EnumAttrCase<"Required", 4, "required">, I32EnumAttrCase<"Sinusoid", 5, "sinusoid">]>;
def Ds_InitKindParam : EnumParameter<Ds_InitKind>;

def Ds_InitAttr : AttrDef<Ds_Dialect, "Init"> {
  let mnemonic = "init";
  let summary = "How a state starts when no weights file names it";
  let description = [{
    `#ds.init<normal, 0.0, 0.02>` draws from a normal distribution of mean 0 and deviation 0.02; `uniform` draws
    from [a, b); `constant` is a; `zero` ignores both; `required` refuses to start without a weights file.
    `#ds.init<sinusoid, 10000.0, 0.0>` is a table of positions (arXiv 1706.03762): row p of 2n columns has
    sin(p / a^(i / (n - 1))) for i from 0 to n - 1, and behind these the cosines of the same.
  }];
  let parameters = (ins Ds_InitKindParam:$kind, APFloatParameter<"f64">:$a, APFloatParameter<"f64">:$b);
  let builders = [AttrBuilder<(ins "InitKind":$kind, "double":$a, "double":$b), [{
    return $_get($_ctxt, kind, ::llvm::APFloat(a), ::llvm::APFloat(b));
  }]>];
  let hasCustomAssemblyFormat = 1;
}

include "ds/Dialect/DsTypes.td"

#endif // DS_DIALECT
