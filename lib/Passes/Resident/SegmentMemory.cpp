//===- SegmentMemory.cpp - What a segment's values will take, before there are kernels ==//
#include "SegmentMemory.h"

#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

static bool widens(Operation *op) {
  auto convert = dyn_cast<ConvertOp>(op);
  return convert && tensorType(convert.getInput()).getElementTypeBitWidth() <
                        tensorType(convert.getResult()).getElementTypeBitWidth();
}

OpForm mlir::ds::formOf(Operation *op) {
  if (isa<ReshapeOp, TransposeOp, SliceOp, SplitOp>(op))
    return OpForm::View;
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

/// Whether the op copies what it makes to a state, which is there all the time: a part that outlives its
/// whole.
static bool isKeptInState(Operation &op) {
  return isa<LocalShardOp>(op) && llvm::any_of(op.getUsers(), llvm::IsaPred<func::ReturnOp>);
}

static int64_t byteSize(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() * std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
}

SegmentMemory::SegmentMemory(func::FuncOp func, const RecomputeRules &rules, const HostPlacement &onHost,
                             const SymbolTable &symbols)
    : rules(rules), placement(&onHost) {
  findEnding(func, symbols);
  Block &block = func.getBody().front();
  for (Operation &op : block.without_terminator())
    addOp(op);
  for (Operation &op : block.without_terminator())
    addReads(op);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    followReads(op);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    join(op);
  for (Operation &op : block.without_terminator())
    markInPlace(op);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    shareCollective(op);
  if (!onHost.empty())
    for (Operation *op : ops)
      addLoads(*op);
  placement = nullptr;
}

/// Notes what `op`, which the device runs, reads of the host's.
void SegmentMemory::addLoads(Operation &op) {
  if (placement->isOnHost(&op))
    return;
  llvm::SmallDenseSet<Value> seen;
  for (Value operand : op.getOperands())
    if (Value source = rootOf(operand); placement->isHostValue(source) && seen.insert(source).second)
      loadedBytes[moments.lookup(&op)] += byteSize(source);
}

std::optional<uint32_t> SegmentMemory::find(Value value) const {
  auto it = indices.find(value);
  return it == indices.end() ? std::nullopt : std::optional(it->second);
}

/// Gives the op a moment and its results a level and memory.
void SegmentMemory::addOp(Operation &op) {
  const OpForm form = forms[&op] = formOf(&op);
  moments[&op] = ops.size();
  if (form != OpForm::View && form != OpForm::Free)
    ops.push_back(&op);
  uint32_t level = 0;
  for (Value operand : op.getOperands())
    level = std::max(level, levels.lookup(operand));
  level += form == OpForm::Call;
  for (OpResult result : op.getResults()) {
    levels[result] = level;
    if (form == OpForm::View) {
      if (std::optional<uint32_t> memory = find(op.getOperand(0)))
        indices[result] = *memory;
    } else if (!op.hasTrait<OpTrait::ConstantLike>()) {
      addResult(result, form, level);
    }
  }
}

void SegmentMemory::addResult(OpResult result, OpForm form, uint32_t level) {
  ValueMemory memory;
  memory.value = result, memory.bytes = byteSize(result);
  memory.begin = memory.end = moments.lookup(result.getOwner());
  memory.isForward = isForward(result.getOwner());
  memory.isStored = form == OpForm::Call || form == OpForm::Join;
  if (placement->isOnHost(result.getOwner()) || isKeptInState(*result.getOwner()))
    memory.bytes = 0;
  indices[result] = memories.size();
  memories.push_back(std::move(memory));
}

/// Notes that `op`, which is no view, reads `memory`.
void SegmentMemory::readBy(Operation &op, OpForm form, ValueMemory &memory) {
  bool isCall = form == OpForm::Call || form == OpForm::Join;
  uint32_t level = op.getNumResults() ? levels.lookup(op.getResult(0)) : 0, moment = moments.lookup(&op);
  bool isOther = memory.isForward && !isForward(&op);
  if (isOther) {
    memory.firstRead = std::min(memory.firstRead, moment);
    memory.isRead = true, memory.isReadByCall |= isCall;
    if (!isCall)
      memory.kernels.insert(level);
    return;
  }
  memory.isReadByCall |= isCall && rules.recomputesCalls() && rules.mayRecompute(&op);
  // A kernel that waits for a call which the value's kernel does not is another one.
  bool isApart = form == OpForm::Fused && level > levels.lookup(memory.value);
  bool isFree = knownForm(*memory.value.getDefiningOp()) == OpForm::Free;
  memory.isStored |= isCall || (isApart && !isFree);
}

void SegmentMemory::addReads(Operation &op) {
  const OpForm form = knownForm(op);
  if (form == OpForm::View || form == OpForm::Free)
    return;
  for (Value operand : op.getOperands())
    addRead(op, form, operand);
}

/// Notes that `op` reads `operand`. What that is made of where it is part of each kernel that reads it, `op`
/// reads as well; a call needs it in memory, where a kernel of its own puts it.
void SegmentMemory::addRead(Operation &op, OpForm form, Value operand) {
  std::optional<uint32_t> index = find(operand);
  if (!index)
    return;
  const Value value = memories[*index].value;
  if (placement->isOnHost(&op)) { // it is sent, unless it is there
    if (knownForm(*value.getDefiningOp()) != OpForm::Free && memories[*index].bytes > 0)
      memories[*index].isSent = memories[*index].isStored = true;
    return;
  }
  readBy(op, form, memories[*index]);
  Operation *maker = value.getDefiningOp();
  if (knownForm(*maker) == OpForm::Free && isForward(maker) == isForward(&op))
    for (Value source : maker->getOperands())
      addRead(form == OpForm::Fused ? op : *maker, OpForm::Fused, source);
}

/// Extends `memory` to where `op`, which backward may run again, reads it then.
void SegmentMemory::followRepeats(Operation &op, ValueMemory &memory) {
  for (Value result : op.getResults())
    if (std::optional<uint32_t> made = find(result)) {
      const ValueMemory &by = memories[*made];
      memory.firstRead = std::min(memory.firstRead, by.firstRead);
      uint32_t last = isCheap(&op) ? by.lastRead : by.firstRead;
      if (by.firstRead <= by.lastRead)
        memory.lastRead = std::max(memory.lastRead, last);
    }
}

/// Whether `op` runs as late as who has it in its kernel. A reduction does not: its result is small against
/// what it reads, and the kernel runs as soon as that is made, whoever converts the result at the function's
/// end.
static bool runsWithReader(Operation &op, OpForm form) {
  if (form == OpForm::Free)
    return true;
  return form == OpForm::Fused && cast<FusableOpInterface>(op).getFusionKind() != FusionKind::Reduction;
}

/// Extends the memory of `operand` to where `op` reads it, or whoever has `op` in its kernel.
void SegmentMemory::followRead(Operation &op, OpForm form, Value operand) {
  std::optional<uint32_t> index = find(operand);
  if (!index || placement->isOnHost(&op)) // who sends it has a copy
    return;
  ValueMemory &memory = memories[*index];
  const bool isOther = memory.isForward && !isForward(&op);
  uint32_t read = moments.lookup(&op);
  for (Value result : op.getResults()) {
    std::optional<uint32_t> made = find(result);
    if (!made)
      continue;
    const ValueMemory &by = memories[*made];
    if (runsWithReader(op, form) && !by.isStored)
      read = std::max(read, by.end);
  }
  // Parameters that were gathered for forward are gathered again for what backward recomputes.
  bool isGathered = isa_and_present<CollectiveOpInterface>(memory.value.getDefiningOp());
  if (isForward(&op) && rules.mayRecompute(&op) && !(rules.recomputesCalls() && isGathered))
    followRepeats(op, memory);
  uint32_t &last = isOther ? memory.lastRead : memory.end;
  last = std::max(last, read);
}

void SegmentMemory::followReads(Operation &op) {
  const OpForm form = knownForm(op);
  if (form == OpForm::View)
    return;
  for (Value operand : op.getOperands())
    followRead(op, form, operand);
}

/// Lets what a join is made of lie in it: its memory is taken from the first part on.
void SegmentMemory::join(Operation &op) {
  if (knownForm(op) != OpForm::Join)
    return;
  const uint32_t whole = *find(op.getResult(0));
  for (Value operand : op.getOperands()) {
    std::optional<uint32_t> part = find(operand);
    if (!part || memories[*part].joined >= 0 || memories[*part].isForward != memories[whole].isForward)
      continue;
    memories[*part].joined = int32_t(whole);
    memories[whole].begin = std::min(memories[whole].begin, memories[*part].begin);
    memories[whole].end = std::max(memories[whole].end, memories[*part].end);
  }
}

/// Whether `op` reads `memory` last.
bool SegmentMemory::endsAt(Operation &op, const ValueMemory &memory) const {
  return std::max(memory.end, memory.isRead ? memory.lastRead : 0) == moments.lookup(&op);
}

/// Finds what `ending` holds.
void SegmentMemory::findEnding(func::FuncOp func, const SymbolTable &symbols) {
  for (BlockArgument argument : func.getArguments())
    if (FlatSymbolRefAttr state = getStateOf(func, argument))
      if (argument.hasOneUse() && !placement->isHostValue(argument) &&
          endsWith(func, symbols.lookup<StateOp>(state.getAttr())))
        ending.insert(argument);
}

void SegmentMemory::markInPlace(Operation &op) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  if (knownForm(op) == OpForm::Fused)
    for (unsigned operand = 0; operand < op.getNumOperands(); ++operand)
      pairs.emplace_back(0, operand);
  if (auto library = dyn_cast<LibraryOpInterface>(&op)) {
    LibraryCall call = library.getLibraryCall();
    llvm::append_range(pairs, call.inPlace);
    llvm::append_range(pairs, call.mayShare);
  }
  for (auto [result, operand] : pairs) {
    std::optional<uint32_t> made = find(op.getResult(result)), read = find(op.getOperand(operand));
    if (made && op.getOperand(operand).getType() == op.getResult(result).getType())
      memories[*made].isInState |= ending.contains(op.getOperand(operand));
    if (!made || !read || *made == *read)
      continue;
    if (endsAt(op, memories[*read]) && memories[*read].bytes >= memories[*made].bytes)
      memories[*made].isInPlace = true;
  }
}

/// Lets what each rank has lie in one memory with what they add up to, where a collective puts the one in the
/// place of the other. It is not enough that one begins where the other ends: compute waits for the
/// collective later.
void SegmentMemory::shareCollective(Operation &op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective || traitsOf(collective.getCollectiveKind()).sharing != ::ds::rt::Sharing::Same)
    return;
  for (auto [operand, result] : llvm::zip(op.getOperands(), op.getResults())) {
    std::optional<uint32_t> read = find(operand), made = find(result);
    if (!read || !made || memories[*read].isForward != memories[*made].isForward ||
        !endsAt(op, memories[*read]))
      continue;
    memories[*made].joined = int32_t(*read);
    for (int32_t in = int32_t(*read); in >= 0; in = memories[in].joined)
      memories[in].end = std::max(memories[in].end, memories[*made].end);
  }
}
