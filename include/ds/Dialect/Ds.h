//===- Ds.h - The ds dialect in C++ --------------------------------------------===//
//
// One header for the dialect, its attributes, types, interfaces and ops; what they mean stands in the .td
// files.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_DIALECT_DS_H
#define DS_DIALECT_DS_H

#include "ds/Runtime/Program/CommandKind.h"
#include "ds/Runtime/Program/Layout.h"
#include "ds/Runtime/Program/LibraryFn.h"
#include "ds/Runtime/Program/Mesh.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::ds {

/// How an op may take part in a fused region; see FusableOpInterface.
enum class FusionKind { Elementwise, Index, Reduction };

/// What collectives write: the order of a rank's traffic with the others.
struct Fabric : SideEffects::Resource::Base<Fabric> {
  StringRef getName() override { return "Fabric"; }
};

/// The float type an op is computed in when a model is trained in 16 bits; see PrecisionOpInterface.
enum class Precision {
  Low,    ///< the 16-bit type: what has fast units for it and sums in f32 inside
  Single, ///< f32: what loses too much range or accuracy in 16 bits
  Widest, ///< the widest type of the operands of this kind
  AsIs    ///< whatever type it has
};

/// The table behind PrecisionOpInterface: the entry of `op` for one operand or result.
Precision lookupOperandPrecision(Operation *op, unsigned index);
Precision lookupResultPrecision(Operation *op, unsigned index);

struct TrainingOptions; // Training.h
struct Decisions;       // Decisions.h
struct Machine;         // Machine.h

/// One call of a library function; see LibraryOpInterface.
struct LibraryCall {
  ::ds::rt::LibraryFn callee = {};
  SmallVector<unsigned> order;   ///< call operand -> operand, or numOperands + result
  SmallVector<Attribute> params; ///< IntegerAttr i64 or FloatAttr f64
  bool takesStrides = false;     ///< operands may be any views; otherwise all are packed in row-major order
  SmallVector<std::pair<unsigned, unsigned>> inPlace;  ///< (result, operand) that must share memory
  SmallVector<std::pair<unsigned, unsigned>> mayShare; ///< (result, operand) that may, when the operand dies
};

} // namespace mlir::ds

#include "ds/Dialect/DsDialect.h.inc"
#include "ds/Dialect/DsEnums.h.inc"

namespace mlir::ds {

/// Phases from `first` to `last`, both included; empty where `first` is the later one.
struct PhaseRange {
  Phase first = Phase::Model, last = Phase::Planned;

  bool contains(Phase phase) const { return first <= phase && phase <= last; }
  bool isEmpty() const { return first > last; }
  /// The phases of both.
  PhaseRange operator&(PhaseRange other) const {
    return {std::max(first, other.first), std::min(last, other.last)};
  }
};

/// The phases in which `op` may stand in a function or module: all for ops that say nothing of phases.
PhaseRange getLegalPhases(Operation *op);

/// Bytes of the elements of `buffers` together; of what is no buffer none.
int64_t sizeOfBuffers(ValueRange buffers);

/// Whether products with `epilogue` belong to backward: they multiply their sums by a derivative.
bool takesGradient(Epilogue epilogue);

} // namespace mlir::ds

namespace mlir::OpTrait {

/// Implements PhasedOpInterface.
template <::mlir::ds::Phase first, ::mlir::ds::Phase last>
struct InPhases {
  template <typename Concrete>
  class Impl : public TraitBase<Concrete, Impl> {
  public:
    static ::mlir::ds::PhaseRange getLegalPhases() { return {first, last}; }
  };
};

/// See DsBase.td.
template <typename Concrete>
class HeavyBody : public TraitBase<Concrete, HeavyBody> {};

/// See DsBase.td.
template <typename Concrete>
class RunsOnHost : public TraitBase<Concrete, RunsOnHost> {};

} // namespace mlir::OpTrait

#define GET_ATTRDEF_CLASSES
#include "ds/Dialect/DsAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ds/Dialect/DsInterfaces.h.inc"
#include "ds/Dialect/DsTypes.h.inc"
#define GET_OP_CLASSES
#include "ds/Dialect/DsOps.h.inc"

#endif // DS_DIALECT_DS_H
