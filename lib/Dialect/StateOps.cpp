//===- StateOps.cpp - Verifiers and effects of states, kernels and commands -----===//
#include "ds/Dialect/Ds.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::ds;

//===----------------------------------------------------------------------===//
// StateOp
//===----------------------------------------------------------------------===//

/// Gradients, moments and masters belong to a parameter.
static bool needsOwner(Role role) {
  return role == Role::Gradient || role == Role::Moment || role == Role::Master;
}

LogicalResult StateOp::verify() {
  if (!isa<RankedTensorType>(getType()) || !getTensorType().hasStaticShape())
    return emitOpError("expects a static tensor type, but got ") << getType();
  if (getBucket() ? getOwner().has_value() : needsOwner(getRole()) != getOwner().has_value()) // C1.
    return emitOpError(
               "expects an owner exactly for gradients, moments and masters without a bucket, but got role ")
           << stringifyRole(getRole()) << (getOwner() ? " with" : " without") << " one";
  if (getTrainable() && getRole() != Role::Parameter) // C2.
    return emitOpError("expects only parameters to be trainable, but got role ") << stringifyRole(getRole());
  return success();
}

//===----------------------------------------------------------------------===//
// FusedOp
//===----------------------------------------------------------------------===//

LogicalResult FusedOp::verify() {
  Block &body = getBody().front();
  if (!llvm::equal(body.getArgumentTypes(), getInputs().getTypes())) // C1.
    return emitOpError("expects ") << getInputs().size() << " block arguments of the operands' types";
  return success();
}

LogicalResult FusedOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield || !llvm::equal(yield.getValues().getTypes(), getOutputs().getTypes())) // C1.
    return emitOpError("expects to yield ") << getOutputs().size() << " values of the results' types";
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<FusableOpInterface>(op)) { // C2.
      InFlightDiagnostic error = emitOpError("expects fusable ops in its body, but got ") << op.getName();
      error.attachNote(op.getLoc()) << "this op";
      return error;
    }
  return success();
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

LogicalResult KernelOp::verifyRegions() {
  Block &body = getBody().front();
  auto yield = dyn_cast<YieldOp>(body.back());
  size_t inputs = getNumInputs();
  if (!yield || body.getNumArguments() != inputs ||
      inputs + yield.getValues().size() != getBuffers().size()) // C1.
    return emitOpError("expects ") << inputs << " arguments and a yielded value for each other of "
                                   << getBuffers().size() << " buffers, but got " << body.getNumArguments()
                                   << " and " << (yield ? yield.getValues().size() : 0);
  SmallVector<Type> types(body.getArgumentTypes());
  llvm::append_range(types, yield.getValues().getTypes());
  for (auto [index, type, attribute] : llvm::enumerate(types, getBuffers())) { // C2.
    auto buffer = dyn_cast<BufferType>(cast<TypeAttr>(attribute).getValue());
    if (!buffer || buffer.getTensor() != type)
      return emitOpError("expects buffer ") << index << " to hold " << type << ", but got " << attribute;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// AllocOp, ViewOp
//===----------------------------------------------------------------------===//

LogicalResult AllocOp::verify() {
  if (!getBuffer().getType().isContiguous()) // C1.
    return emitOpError("expects a contiguous buffer, but got ") << getBuffer().getType();
  return success();
}

/// Elements from a buffer's first to its last, inclusive; 0 for an empty buffer.
static int64_t span(BufferType type) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.getTensor().getShape(), type.getStrides())) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return last + 1;
}

int64_t ViewOp::getNumRanks() {
  MeshOp mesh = getAxis() ? MeshOp::lookup(*this) : MeshOp();
  return mesh ? mesh.getSize(*getAxis()) : 1;
}

LogicalResult ViewOp::verify() {
  BufferType source = getSource().getType(), result = getResult().getType();
  if (source.getTensor().getElementType() != result.getTensor().getElementType() ||
      source.getSpace() != result.getSpace()) // C1.
    return emitOpError("expects the element type and space of ") << source << ", but got " << result;
  if (getAxis().has_value() != getStride().has_value() || (getAxis() && !MeshOp::lookup(*this))) // C3.
    return emitOpError("expects an axis of the module's mesh and a stride together");
  int64_t last = static_cast<int64_t>(getOffset()) + (getNumRanks() - 1) * getRankStride();
  int64_t end = last + span(result);
  if (span(result) && end > span(source)) // C2.
    return emitOpError("expects to end within ") << span(source) << " elements, but got " << end;
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchOp, CallOp
//===----------------------------------------------------------------------===//

/// True when `actual` may stand where a kernel asks for `formal`: equal, or a contiguous buffer for a `?`.
static bool fits(BufferType formal, BufferType actual) {
  if (formal == actual)
    return true;
  return !formal.getTensor().hasStaticShape() && actual.isContiguous() &&
         formal.getSpace() == actual.getSpace() &&
         formal.getTensor().getElementType() == actual.getTensor().getElementType();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto kernel = symbolTable.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) // C1.
    return emitOpError("expects a kernel, but got ") << getKernelAttr();
  SmallVector<Type> actual(getInputs().getTypes());
  llvm::append_range(actual, getOutputs().getTypes());
  bool isDynamic = false;
  if (actual.size() != kernel.getBuffers().size() || getInputs().size() != kernel.getNumInputs())
    return emitOpError("expects ") << kernel.getBuffers().size() << " buffers, but got " << actual.size();
  for (auto [index, formal, type] :
       llvm::enumerate(kernel.getBuffers().getAsValueRange<TypeAttr>(), actual)) {
    isDynamic |= !cast<BufferType>(formal).getTensor().hasStaticShape();
    if (fits(cast<BufferType>(formal), cast<BufferType>(type)))
      continue;
    InFlightDiagnostic error = emitOpError("expects buffer ")
                               << index << " to be " << formal << ", but got " << type;
    error.attachNote(kernel.getLoc()) << "kernel " << getKernelAttr() << " is defined here";
    return error;
  }
  if (isDynamic != getExtent().has_value()) // C2.
    return emitOpError("expects an extent exactly where the kernel serves any size");
  return success();
}

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

void LaunchOp::getEffects(Effects &effects) {
  for (OpOperand &operand : getInputsMutable())
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
  for (OpOperand &operand : getOutputsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
}

LogicalResult CallOp::verify() {
  for (int64_t position : getWrites())
    if (position < 0 || position >= static_cast<int64_t>(getBuffers().size())) // C1.
      return emitOpError("expects to write operands below ")
             << getBuffers().size() << ", but got " << position;
  return success();
}

void CallOp::getEffects(Effects &effects) {
  for (auto [index, operand] : llvm::enumerate(getBuffersMutable())) {
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (llvm::is_contained(getWrites(), static_cast<int64_t>(index)))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
  for (OpOperand &operand : getWorkspaceMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
}
