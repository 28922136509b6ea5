//===- DsInterfaces.td - What passes may ask an op ------------------*- tablegen -*-===//
#ifndef DS_INTERFACES
#define DS_INTERFACES

include "mlir/IR/OpBase.td"

def PhasedOpInterface : OpInterface<"PhasedOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that belongs to some phases only, where it stands in a module or in a function. What is inside of an op with
    regions belongs to that op.
  }];
  let methods = [
    StaticInterfaceMethod<"The phases in which the op may stand.", "::mlir::ds::PhaseRange", "getLegalPhases", (ins)>
  ];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op whose vector-Jacobian product can be written in ops of this dialect.
  }];
  let methods = [
    InterfaceMethod<[{
      Appends to `operandGrads` one value per operand: the gradient of the loss by that operand, or null where it
      is zero or the operand is not differentiable. `resultGrads` has one entry per result, null where the loss
      does not depend on it; at least one is not null. `needed[i]` is false where the gradient of operand i will
      not be used: it may be skipped. Gradients have the operand's type. Uses of the op's own
      operands and results are allowed; they are what backward keeps alive, so the cheaper choice is made here.
    }], "void", "buildGradients",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGrads, "::llvm::ArrayRef<bool>":$needed,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGrads)>
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{ An op that can tell the floating-point operations it performs. }];
  let methods = [
    InterfaceMethod<"Floating-point operations; a multiply-add counts 2, a transcendental function 1.",
      "int64_t", "getFlops", (ins), [{}], [{
        int64_t flops = 0;
        for (auto result : $_op->getResults())
          if (auto type = llvm::dyn_cast<::mlir::RankedTensorType>(result.getType()))
            if (llvm::isa<::mlir::FloatType>(type.getElementType()))
              flops += type.getNumElements();
        return flops;
      }]>,
    InterfaceMethod<"Bytes that one rank sends to others; the most that any rank of the group sends.",
      "int64_t", "getSentBytes", (ins), [{}], [{ return 0; }]>
  ];
}

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface", [CostOpInterface]> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that the ranks of a group run together. It has at most one tensor operand and one result, and
    may not be dropped, repeated or moved past another one of its kind.
  }];
  let methods = [
    InterfaceMethod<"What the ranks do.", "::mlir::ds::CollectiveKind", "getCollectiveKind", (ins)>,
    InterfaceMethod<"The axes along which ranks form a group.", "::mlir::ds::AxesAttr", "getAxes", (ins)>,
    InterfaceMethod<"What it carries.", "::mlir::ds::Payload", "getCarries", (ins)>,
    InterfaceMethod<"How contributions are combined; none where they are only moved.",
      "::std::optional<::mlir::ds::ReduceKind>", "getReduction", (ins), [{}], [{ return std::nullopt; }]>,
    InterfaceMethod<"Position in the group of the one rank that is named: root or peer; 0 where none is.",
      "int64_t", "getPeerIndex", (ins), [{}], [{ return 0; }]>
  ];
}

def ScheduledOpInterface : OpInterface<"ScheduledOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    A command: an op of phase scheduled that a stream executes. What streams, plans, reports and lowering have to know of
    commands stands here; which buffers a command reads and writes is said by its memory effects. How long it takes is
    for `CommandCosts` to say (include/ds/Passes/CommandCost.h).
  }];
  let methods = [
    InterfaceMethod<"The stream that executes it.", "::mlir::ds::StreamKind", "getStream", (ins),
      [{ return $_op.getStream(); }]>,
    InterfaceMethod<"As which kind of command a program has it.", "::ds::rt::CommandKind", "getCommandKind", (ins)>,
    InterfaceMethod<[{
      What it is called in reports and traces: "matmul", or of a kernel its main op. `symbols` are those of its module.
    }], "::std::string", "getLabel", (ins "::mlir::SymbolTable &":$symbols), [{}],
      [{ return $_op->getName().stripDialect().str(); }]>,
    InterfaceMethod<"Floating-point operations as plans count them.", "int64_t", "getCountedFlops", (ins), [{}],
      [{ return 0; }]>,
    InterfaceMethod<"Bytes that it touches beside its workspace, or that a collective sends.", "int64_t", "getTraffic",
      (ins), [{}], [{ return ::mlir::ds::sizeOfBuffers($_op->getOperands()); }]>,
    InterfaceMethod<"Whether it does not wait for the norm: an update that may be wrong, or a copy of what that changes.",
      "bool", "getSpeculative", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"The event that it records.", "::std::optional<int64_t>", "getRecordedEvent", (ins), [{}],
      [{ return ::std::nullopt; }]>,
    InterfaceMethod<"The event that it waits for.", "::std::optional<int64_t>", "getAwaitedEvent", (ins), [{}],
      [{ return ::std::nullopt; }]>
  ];
  let extraSharedClassDeclaration = [{
    /// The row of its kind.
    const ::ds::rt::CommandTraits &getCommandTraits() { return ::ds::rt::traitsOf($_op.getCommandKind()); }
    /// Whether it runs on cores, the device's or the host's.
    bool computes() { return getCommandTraits().computes(); }
    /// Whether it is an event, which touches nothing and takes no time.
    bool isEvent() { return getCommandTraits().isEvent(); }
  }];
}

def FusableOpInterface : OpInterface<"FusableOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that may stand inside a `ds.fused` region: its result at an index is a function of its operands at
    indices that are known at compile time.
  }];
  let methods = [
    StaticInterfaceMethod<[{
      `elementwise`: result[i] depends on operands[i] only. `index`: result[i] is an operand's element at a mapped
      index (broadcast, reshape, transpose, slice, pad, concat), or a function of i alone (iota, constant, random).
      `reduction`: result[i] combines many elements.
    }], "::mlir::ds::FusionKind", "getFusionKind", (ins)>
  ];
}

def ScalarBodyOpInterface : OpInterface<"ScalarBodyOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{ An elementwise op that can be written in arith and math ops on one element or one vector. }];
  let methods = [
    InterfaceMethod<[{
      Builds the op on `operands`, which are scalars of the operands' element types, or vectors of them of one
      shape; returns the result of the same shape.
    }], "::mlir::Value", "buildScalar",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands)>
  ];
}

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{ A composite op that equals a few elementwise ops, broadcasts and reductions. }];
  let methods = [
    InterfaceMethod<"Builds the equivalent ops and returns one value per result.",
    "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>,
    InterfaceMethod<"Whether a library function computes the op, which then stays whole.",
    "bool", "isLibraryCall", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"Whether the op is to be seen whole until ranks have divided the step.",
    "bool", "isNeededWhole", (ins), [{}], [{ return false; }]>
  ];
}

def RandomOpInterface : OpInterface<"RandomOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that draws random numbers from a generator that it reads as an operand, (seed, counter): the same operand draws
    the same numbers. An op that may draw and does not has none.
  }];
  let methods = [
    InterfaceMethod<"The generator; null where nothing is drawn.", "::mlir::Value", "getGenerator", (ins), [{}], [{ return $_op.getRng(); }]>,
    InterfaceMethod<[{
      Lets the op give what it gives where nothing is random, as in evaluation: it may erase itself. What is nothing but
      random stays.
    }], "void", "removeNoise", (ins), [{}], [{ return; }]>
  ];
}

def LibraryOpInterface : OpInterface<"LibraryOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that a library function computes (include/ds/Runtime/Program/Library.h). The call's operands are the op's
    operands and results in the function's order.
  }];
  let methods = [
    InterfaceMethod<[{
      Describes the call: callee, the order of its operands (entries < number of operands name an operand, others
      a result), its parameters, and which result may or must share memory with which operand.
    }], "::mlir::ds::LibraryCall", "getLibraryCall", (ins)>
  ];
}

def ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that adds up products, and may do more with each sum before it stores it: its epilogue. The first result is
    what is stored.
  }];
  let methods = [
    InterfaceMethod<"What the op does with its sums.", "::mlir::ds::Epilogue", "getEpilogue", (ins), [{}],
      [{ return ::mlir::ds::Epilogue::None; }]>,
    InterfaceMethod<[{
      Whether the op can be built again with `epilogue`: it has none, its types and operands permit this one, and it has
      no accumulator, which would go on to hold what the epilogue gave.
    }], "bool", "canTake", (ins "::mlir::ds::Epilogue":$epilogue), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      Builds the op again, at `loc`, with `epilogue`, which it can take, and returns that. `input` is what a gradient is
      taken at, and null for other epilogues. With `keeps`, for epilogues that have a gradient, the second result is what
      the epilogue is taken of. The op itself stays.
    }], "::mlir::Operation *", "buildWithEpilogue",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ds::Epilogue":$epilogue,
         "::mlir::Value":$input, "bool":$keeps), [{}], [{ llvm_unreachable("an op that takes no epilogue"); }]>
  ];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::mlir::ds";
  let description = [{
    An op that says in which float type it is to be computed when a model is trained in 16 bits. What each op says
    stands in one table, lib/Dialect/Precision.cpp.
  }];
  let methods = [
    InterfaceMethod<"In which type the float operand `index` is to be read.", "::mlir::ds::Precision",
      "getOperandPrecision", (ins "unsigned":$index), [{}], [{ return lookupOperandPrecision($_op, index); }]>,
    InterfaceMethod<"Which type the float result `index` then has.", "::mlir::ds::Precision",
      "getResultPrecision", (ins "unsigned":$index), [{}], [{ return lookupResultPrecision($_op, index); }]>
  ];
}

#endif // DS_INTERFACES
