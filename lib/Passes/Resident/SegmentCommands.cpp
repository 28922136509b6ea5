//===- SegmentCommands.cpp - What a segment's ops are, whatever may be recomputed ----------===//
#include "SegmentMemory.h"

#include "Fusing/FusionDomain.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;

OpForm mlir::ds::formOf(Operation *op) {
  if (isa<ReshapeOp, TransposeOp, SliceOp, SplitOp, AfterOp>(op))
    return OpForm::View;
  if (isa<LocalShardOp>(op)) // a copy where it becomes a state
    return llvm::any_of(op->getUsers(), llvm::IsaPred<func::ReturnOp>) ? OpForm::Call : OpForm::View;
  // Asked of the name: a cast, which is not needed for most ops, costs more than all else here.
  if (!op->getName().hasInterface<FusableOpInterface>())
    return OpForm::Call;
  if (isa<IotaOp, BroadcastOp>(op) || op->hasTrait<OpTrait::ConstantLike>() || widens(op))
    return OpForm::Free;
  bool isIndex =
      cast<FusableOpInterface>(op).getFusionKind() == FusionKind::Index && !isa<RandomUniformOp>(op);
  return isIndex ? OpForm::Join : OpForm::Fused;
}

Value mlir::ds::rootOf(Value value) {
  while (value.getDefiningOp() && formOf(value.getDefiningOp()) == OpForm::View)
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

LocalShardOp mlir::ds::findPartOf(AllGatherOp gather) {
  for (Operation *user : gather->getUsers())
    if (auto part = dyn_cast<LocalShardOp>(user))
      return part;
  return {};
}

/// Whether `value`, or what products add to it in its place, is a state's new value, which is made there.
/// `known` has the answers for what stands behind it: chunks of a loss are a chain of hundreds.
static bool isMadeInState(Value value, DenseMap<Value, bool> &known) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  auto isReturned = [&](Operation *user) {
    auto reshape = dyn_cast<ReshapeOp>(user);
    return isa<func::ReturnOp>(user) || (reshape && isMadeInState(reshape.getResult(), known));
  };
  bool isMade = llvm::any_of(value.getUsers(), isReturned);
  auto library =
      !isMade && value.hasOneUse() ? dyn_cast<LibraryOpInterface>(*value.user_begin()) : LibraryOpInterface();
  if (library) {
    const unsigned operand = value.use_begin()->getOperandNumber();
    isMade = llvm::any_of(library.getLibraryCall().inPlace, [&](auto pair) {
      return pair.second == operand && isMadeInState(library->getResult(pair.first), known);
    });
  }
  known[value] = isMade;
  return isMade;
}

RankedTensorType mlir::ds::tensorOf(Value value) {
  auto stored = dyn_cast<StoredType>(value.getType());
  return stored ? stored.getTensor() : dyn_cast<RankedTensorType>(value.getType());
}

int64_t mlir::ds::byteSize(Value value) {
  RankedTensorType type = tensorOf(value);
  return type.getNumElements() * std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
}

SegmentCommands::SegmentCommands(func::FuncOp func, const OpenRegions &regions,
                                 DenseMap<Value, Space> elsewhere)
    : func(func), regions(regions), elsewhere(std::move(elsewhere)) {
  Block &block = func.getBody().front();
  for (Operation &op : block.without_terminator())
    addOp(op);
  for (Operation &op : block.without_terminator())
    addReads(op);
}

std::optional<uint32_t> SegmentCommands::find(Value value) const {
  auto it = indices.find(value);
  return it == indices.end() ? std::nullopt : std::optional(it->second);
}

/// Whether `op`, of a region, makes a constant that others read in memory.
static bool isStoredConstant(Operation &op, const OpenRegions &regions) {
  return regions.find(&op) &&
         llvm::any_of(op.getUsers(), [&](Operation *user) { return !regions.areTogether(&op, user); });
}

/// Gives the op a moment and its results memory.
void SegmentCommands::addOp(Operation &op) {
  const OpForm form = forms[&op] = formOf(&op);
  const bool isBeside =
      !commands.empty() && regions.find(&op) && regions.areTogether(&op, commands.back().front());
  const bool isCommand = form != OpForm::View && (form != OpForm::Free || regions.find(&op));
  if (isBeside)
    commands.back().push_back(&op);
  else if (isCommand)
    commands.push_back({&op});
  moments[&op] = isCommand ? commands.size() - 1 : commands.size();
  for (OpResult result : op.getResults()) {
    if (form == OpForm::View) {
      if (std::optional<uint32_t> memory = find(op.getOperand(0)))
        indices[result] = *memory;
    } else if (tensorOf(result) && (!op.hasTrait<OpTrait::ConstantLike>() || isStoredConstant(op, regions))) {
      addResult(result, form);
    }
  }
}

void SegmentCommands::addResult(OpResult result, OpForm form) {
  ValueMemory memory;
  memory.value = result, memory.bytes = isMadeInState(result, madeInState) ? 0 : byteSize(result);
  auto stored = dyn_cast<StoredType>(result.getType());
  memory.space = stored ? stored.getSpace() : elsewhere.lookup(result);
  memory.begin = memory.end = moments.lookup(result.getOwner());
  memory.isForward = isForward(result.getOwner());
  memory.isStored = form == OpForm::Call || form == OpForm::Join;
  indices[result] = memories.size();
  memories.push_back(std::move(memory));
}

/// Notes that `op`, which is no view, reads `operand`, which lies in `memory`.
void SegmentCommands::readBy(Operation &op, OpForm form, Value operand, ValueMemory &memory) {
  const bool isCall = form == OpForm::Call || form == OpForm::Join;
  if (memory.isForward && !isForward(&op)) {
    memory.isRead = true;
    memory.firstRead = std::min(memory.firstRead, moments.lookup(&op));
    // What is recomputed can be viewed in memory alone.
    memory.isReadByCall |= isCall || operand != memory.value;
    const uint32_t moment = moments.lookup(&op);
    if (!isCall && !llvm::is_contained(memory.kernels, moment))
      memory.kernels.push_back(moment);
    return;
  }
  memory.isStored |= !regions.areTogether(&op, memory.value.getDefiningOp());
  memory.isSent |= isa<StoreOp>(op);
}

void SegmentCommands::addReads(Operation &op) {
  const OpForm form = knownForm(op);
  if (form == OpForm::View)
    return;
  for (Value operand : op.getOperands())
    if (std::optional<uint32_t> index = find(operand))
      readBy(op, form, operand, memories[*index]);
}
