//===- SpaceOps.cpp - Values and memory in other spaces than the device --------------===//
#include "ds/Dialect/Ds.h"

using namespace mlir;
using namespace mlir::ds;

LogicalResult StoreOp::verify() {
  if (getResult().getType().getTensor() != getValue().getType()) // C1; C2 is the type's.
    return emitOpError("expects a result that holds ")
           << getValue().getType() << ", but got " << getResult().getType();
  return success();
}

LogicalResult LoadOp::verify() {
  if (getStored().getType().getTensor() != getResult().getType()) // C1.
    return emitOpError("expects ") << getStored().getType().getTensor() << ", which is stored, but got "
                                   << getResult().getType();
  return success();
}

LogicalResult MoveOp::verify() {
  StoredType from = getStored().getType(), to = getResult().getType();
  if (from.getTensor() != to.getTensor()) // C1.
    return emitOpError("expects a result that holds ") << from.getTensor() << ", but got " << to;
  if (from.getSpace() == to.getSpace()) // C2; a third space is the device's, which no stored value is in.
    return emitOpError("expects to move between storage and the host, but both are in ")
           << stringifySpace(from.getSpace());
  return success();
}

OpFoldResult StoreOp::fold(FoldAdaptor) {
  auto load = getValue().getDefiningOp<LoadOp>();
  return load && load.getStored().getType() == getResult().getType() ? OpFoldResult(load.getStored())
                                                                     : nullptr;
}

//===----------------------------------------------------------------------===//
// HostOp
//===----------------------------------------------------------------------===//

bool HostOp::canHold(Operation *op) {
  if (isa<FusedOp, PresumeOp>(op) || op->hasTrait<OpTrait::RunsOnHost>())
    return true;
  return isa<FusableOpInterface>(op) && isPure(op);
}

/// Whether `tensors` are, one by one, what `stored` hold.
static bool holds(TypeRange stored, TypeRange tensors) {
  return llvm::equal(
      llvm::map_range(stored, [](Type type) -> Type { return cast<StoredType>(type).getTensor(); }), tensors);
}

LogicalResult HostOp::verify() {
  for (Type type : llvm::concat<const Type>(SmallVector<Type>(getInputs().getTypes()),
                                            SmallVector<Type>(getOutputs().getTypes())))
    if (cast<StoredType>(type).getSpace() != Space::Host) // C1.
      return emitOpError("expects operands and results in the host's memory, but got ") << type;
  if (!holds(getInputs().getTypes(), getBody().front().getArgumentTypes())) // C2.
    return emitOpError("expects ") << getInputs().size()
                                   << " block arguments of the tensors that the operands hold";
  return success();
}

LogicalResult HostOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield || !holds(getOutputs().getTypes(), yield.getValues().getTypes())) // C2.
    return emitOpError("expects to yield ") << getOutputs().size() << " values that the results hold";
  for (Operation &op : getBody().front().without_terminator())
    if (!canHold(&op)) { // C3.
      InFlightDiagnostic error = emitOpError("expects ops that run on the host in its body, but got ")
                                 << op.getName();
      error.attachNote(op.getLoc()) << "this op";
      return error;
    }
  return success();
}

StreamKind TransferOp::getStreamBetween(Space from, Space to) {
  if (from == Space::Nvme || to == Space::Nvme)
    return StreamKind::Storage;
  return to == Space::Host ? StreamKind::ToHost : StreamKind::ToDevice;
}

::ds::rt::CommandKind TransferOp::getCommandKind() {
  return getStream() == StreamKind::Storage ? ::ds::rt::CommandKind::Storage : ::ds::rt::CommandKind::Copy;
}

LogicalResult TransferOp::verify() {
  BufferType source = getSource().getType(), target = getTarget().getType();
  if (source.getTensor() != target.getTensor() || !source.isContiguous() || !target.isContiguous()) // C1.
    return emitOpError("expects contiguous buffers of one tensor type, but got ")
           << source << " and " << target;
  if (source.getSpace() == target.getSpace()) // C2.
    return emitOpError("expects buffers in two spaces, but both are in ")
           << stringifySpace(source.getSpace());
  bool isStorage = source.getSpace() == Space::Nvme || target.getSpace() == Space::Nvme;
  bool isHost = source.getSpace() == Space::Host || target.getSpace() == Space::Host;
  if (isStorage && !isHost) // C3.
    return emitOpError("expects storage to be reached through the host, but got ")
           << stringifySpace(source.getSpace()) << " and " << stringifySpace(target.getSpace());
  StreamKind stream = getStreamBetween(source.getSpace(), target.getSpace());
  if (getStream() != stream) // C4.
    return emitOpError("expects stream ")
           << stringifyStreamKind(stream) << ", but got " << stringifyStreamKind(getStream());
  return success();
}

void TransferOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSourceMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getTargetMutable());
}

ArenaOp ArenaOp::lookup(ModuleOp module, Space space) {
  for (auto arena : module.getOps<ArenaOp>())
    if (arena.getSpace() == space)
      return arena;
  return {};
}

LogicalResult ArenaOp::verify() {
  auto module = dyn_cast<ModuleOp>((*this)->getParentOp());
  if (!module)
    return emitOpError("expects to stand in a module");
  if (ArenaOp first = lookup(module, getSpace()); first != *this) { // C1.
    InFlightDiagnostic error = emitOpError("expects one arena of space ")
                               << stringifySpace(getSpace()) << ", but the module has two";
    error.attachNote(first.getLoc()) << "the first is here";
    return error;
  }
  if (getLowerBound() > getBytes()) // C2.
    return emitOpError("expects a lower bound of at most ") << getBytes() << ", but got " << getLowerBound();
  return success();
}
