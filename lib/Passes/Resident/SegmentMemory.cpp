//===- SegmentMemory.cpp - What a segment's values take -----------------------------===//
#include "SegmentMemory.h"

#include "Fusing/FusionDomain.h"
#include "ds/Cost/RowPitch.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/ADT/SetVector.h"

#include <numeric>

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
static bool isMadeInState(Value value) {
  for (Operation *user : value.getUsers()) {
    auto reshape = dyn_cast<ReshapeOp>(user);
    if (isa<func::ReturnOp>(user) || (reshape && isMadeInState(reshape.getResult())))
      return true;
  }
  auto library = value.hasOneUse() ? dyn_cast<LibraryOpInterface>(*value.user_begin()) : LibraryOpInterface();
  if (!library)
    return false;
  const unsigned operand = value.use_begin()->getOperandNumber();
  return llvm::any_of(library.getLibraryCall().inPlace, [&](auto pair) {
    return pair.second == operand && isMadeInState(library->getResult(pair.first));
  });
}

/// Bytes of the device.
static int64_t byteSize(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() * std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
}

SegmentMemory::SegmentMemory(func::FuncOp func, const OpenRegions &regions, const RecomputeRules &rules,
                             const SymbolTable &symbols)
    : func(func), regions(regions), rules(rules) {
  findEnding(symbols);
  Block &block = func.getBody().front();
  for (Operation &op : block.without_terminator())
    addOp(op);
  for (Operation &op : block.without_terminator())
    addReads(op);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    followReads(op);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    join(op);
  for (ArrayRef<Operation *> command : commands)
    markInPlace(command);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    shareCollective(op);
}

std::optional<uint32_t> SegmentMemory::find(Value value) const {
  auto it = indices.find(value);
  return it == indices.end() ? std::nullopt : std::optional(it->second);
}

/// Whether `op`, of a region, makes a constant that others read in memory.
static bool isStoredConstant(Operation &op, const OpenRegions &regions) {
  return regions.find(&op) &&
         llvm::any_of(op.getUsers(), [&](Operation *user) { return !regions.areTogether(&op, user); });
}

/// Gives the op a moment and its results memory.
void SegmentMemory::addOp(Operation &op) {
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
    } else if (isa<RankedTensorType>(result.getType()) &&
               (!op.hasTrait<OpTrait::ConstantLike>() || isStoredConstant(op, regions))) {
      addResult(result, form);
    }
  }
}

void SegmentMemory::addResult(OpResult result, OpForm form) {
  ValueMemory memory;
  memory.value = result, memory.bytes = isMadeInState(result) ? 0 : byteSize(result);
  memory.begin = memory.end = moments.lookup(result.getOwner());
  memory.isForward = isForward(result.getOwner());
  memory.isStored = form == OpForm::Call || form == OpForm::Join;
  indices[result] = memories.size();
  memories.push_back(std::move(memory));
}

/// Notes that `op`, which is no view, reads `operand`, which lies in `memory`.
void SegmentMemory::readBy(Operation &op, OpForm form, Value operand, ValueMemory &memory) {
  const bool isCall = form == OpForm::Call || form == OpForm::Join;
  if (memory.isForward && !isForward(&op)) {
    memory.isRead = true;
    memory.firstRead = std::min(memory.firstRead, moments.lookup(&op));
    // What is recomputed can be viewed in memory alone.
    memory.isReadByCall |= isCall || operand != memory.value;
    if (!isCall)
      memory.kernels.insert(moments.lookup(&op));
    return;
  }
  memory.isReadByCall |= isCall && rules.recomputesCalls() && rules.mayRecompute(&op);
  memory.isStored |= !regions.areTogether(&op, memory.value.getDefiningOp());
  memory.isSent |= isa<StoreOp>(op);
}

void SegmentMemory::addReads(Operation &op) {
  const OpForm form = knownForm(op);
  if (form == OpForm::View)
    return;
  for (Value operand : op.getOperands())
    if (std::optional<uint32_t> index = find(operand))
      readBy(op, form, operand, memories[*index]);
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

bool mlir::ds::isBroughtAgain(Operation *maker) {
  return isa<CollectiveOpInterface>(maker) || isa<LoadOp>(maker);
}

/// Extends the memory of `operand` to where `op` reads it.
void SegmentMemory::followRead(Operation &op, Value operand) {
  std::optional<uint32_t> index = find(operand);
  if (!index)
    return;
  ValueMemory &memory = memories[*index];
  const bool isOther = memory.isForward && !isForward(&op);
  Operation *maker = memory.value.getDefiningOp();
  // Parameters that were gathered or loaded for forward are brought again for what backward recomputes.
  const bool comesAgain = isa<LoadOp>(maker) || (rules.recomputesCalls() && isBroughtAgain(maker));
  if (isForward(&op) && rules.mayRecompute(&op) && !comesAgain)
    followRepeats(op, memory);
  uint32_t &last = isOther ? memory.lastRead : memory.end;
  last = std::max(last, moments.lookup(&op));
}

void SegmentMemory::followReads(Operation &op) {
  if (knownForm(op) == OpForm::View)
    return;
  for (Value operand : op.getOperands())
    followRead(op, operand);
}

/// What `value`, which a library call makes in the place of an operand that nothing else reads, is made in
/// the place of; null where it is made by others.
static Value madeInPlaceOf(Value value) {
  auto library = value.getDefiningOp<LibraryOpInterface>();
  if (!library)
    return {};
  for (auto [result, operand] : library.getLibraryCall().inPlace)
    if (library->getResult(result) == value && library->getOperand(operand).hasOneUse())
      return library->getOperand(operand);
  return {};
}

/// Lets what a join is made of lie in it, with what was added to that in its place before: the join's memory
/// is taken from the first of it on, for as long as any of it is read. What it is made of twice is copied.
void SegmentMemory::join(Operation &op) {
  if (!isa<ConcatOp>(op))
    return;
  const uint32_t whole = *find(op.getResult(0));
  for (Value operand : op.getOperands())
    for (Value made = operand; made && llvm::count(op.getOperands(), operand) == 1;
         made = madeInPlaceOf(rootOf(made)))
      joinPart(made, whole);
}

void SegmentMemory::joinPart(Value value, uint32_t whole) {
  std::optional<uint32_t> part = find(value);
  if (!part || !isWhole(value) || memories[*part].joined >= 0 ||
      memories[*part].isForward != memories[whole].isForward)
    return;
  memories[*part].joined = int32_t(whole);
  for (auto in = int32_t(whole); in >= 0; in = memories[in].joined) { // a join may lie in another
    memories[in].begin = std::min(memories[in].begin, memories[*part].begin);
    memories[in].end = std::max(memories[in].end, memories[*part].end);
  }
}

/// Whether `op` reads `memory` last.
bool SegmentMemory::endsAt(Operation &op, const ValueMemory &memory) const {
  return std::max(memory.end, memory.isRead ? memory.lastRead : 0) == moments.lookup(&op);
}

/// Finds what `ending` holds.
void SegmentMemory::findEnding(const SymbolTable &symbols) {
  for (BlockArgument argument : func.getArguments())
    if (FlatSymbolRefAttr state = getStateOf(func, argument))
      if (argument.hasOneUse() && isa<RankedTensorType>(argument.getType()) &&
          endsWith(func, symbols.lookup<StateOp>(state.getAttr())))
        ending.insert(argument);
}

/// Lets `made`, a result of `reader`'s command, lie where `operand` did, if that is read there last.
void SegmentMemory::takeOver(uint32_t made, Value operand, Operation &reader) {
  if (operand.getType() == memories[made].value.getType())
    memories[made].isInState |= ending.contains(operand);
  std::optional<uint32_t> read = find(operand);
  const bool isOwn = read && *read != made && memories[*read].joined < 0; // not a part of a larger memory
  if (isOwn && endsAt(reader, memories[*read]) && memories[*read].bytes >= memories[made].bytes) {
    memories[made].isInPlace = true;
    memories[made].isInState |= memories[*read].isInState;
  }
}

/// Whether `operand` is all of what lies in its memory.
bool SegmentMemory::isWhole(Value operand) const {
  std::optional<uint32_t> read = find(operand);
  return !read || memories[*read].bytes == byteSize(operand);
}

void SegmentMemory::markInPlace(ArrayRef<Operation *> command) {
  if (auto library = dyn_cast<LibraryOpInterface>(command.front())) {
    LibraryCall call = library.getLibraryCall();
    SmallVector<std::pair<unsigned, unsigned>> pairs(call.inPlace.begin(), call.inPlace.end());
    llvm::append_range(pairs, call.mayShare);
    for (auto [result, operand] : pairs)
      if (std::optional<uint32_t> made = find(command.front()->getResult(result)))
        takeOver(*made, command.front()->getOperand(operand), *command.front());
    return;
  }
  if (!regions.find(command.front()) && !isa<FusedOp>(command.front()))
    return;
  // Of a region: each result takes the place of one operand of its type.
  DenseSet<Operation *> members(command.begin(), command.end());
  llvm::SetVector<std::pair<Value, Operation *>> operands;
  for (Operation *op : command)
    for (Value operand : op->getOperands())
      if (!members.contains(operand.getDefiningOp()))
        operands.insert({operand, op});
  DenseSet<Value> taken;
  auto place = [&](Value result) {
    std::optional<uint32_t> made = find(result);
    if (!made || !memories[*made].isStored || memories[*made].bytes == 0) // a state's place is there
      return;
    for (auto [operand, reader] : operands) {
      if (operand.getType() != result.getType() || taken.contains(operand) || !isWhole(operand))
        continue;
      takeOver(*made, operand, *reader);
      if (!memories[*made].isInPlace && !memories[*made].isInState)
        continue;
      taken.insert(operand);
      return;
    }
  };
  for (Operation *op : command)
    llvm::for_each(op->getResults(), place);
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

std::vector<int64_t> SegmentMemory::getLiveBytes() const {
  std::vector<uint32_t> ends;
  for (const ValueMemory &memory : memories)
    ends.push_back(std::max(memory.end, memory.isRead ? memory.lastRead : 0));
  for (size_t part = 0; part < memories.size(); ++part) // a join lasts as long as any of its parts
    for (int32_t in = memories[part].joined; in >= 0; in = memories[in].joined)
      ends[in] = std::max(ends[in], ends[part]);
  std::vector<int64_t> live(commands.size() + 2, 0);
  for (auto [memory, end] : llvm::zip_equal(memories, ends)) {
    if ((!memory.isStored && !memory.isRead) || memory.joined >= 0 || memory.isInState)
      continue;
    const uint32_t begin = memory.begin + memory.isInPlace;
    live[begin] += memory.bytes;
    live[std::max(begin, end + 1)] -= memory.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.resize(commands.size());
  return live;
}

/// Whether `use` is by an op that walks rows of its last dimension, as a product or a loss does.
static bool takesRows(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<MatmulOp>(op))
    return use.getOperandNumber() < 2;
  return isa<CrossEntropyOp, CrossEntropyGradOp>(op) && use.getOperandNumber() == 0;
}

/// Whether all that makes or reads `value`, be it in another shape of the same rows, walks its rows.
static bool isOfRows(Value value) {
  const int64_t columns = tensorType(value).getShape().back();
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    auto reshape = dyn_cast<ReshapeOp>(use.getOwner());
    return reshape ? reshape.getType().getRank() > 1 && reshape.getType().getShape().back() == columns &&
                         isOfRows(reshape.getResult())
                   : takesRows(use);
  });
}

void mlir::ds::layRowsApart(SegmentMemory &of) {
  for (ValueMemory &memory : of.memories) {
    auto product = memory.value.getDefiningOp<MatmulOp>();
    const bool isMadeByRows = product ? product.getLibraryCall().takesStrides
                                      : isa<CrossEntropyGradOp>(memory.value.getDefiningOp());
    RankedTensorType type = tensorType(memory.value);
    if (!isMadeByRows || memory.bytes == 0 || memory.joined >= 0 || type.getRank() < 2 ||
        !isOfRows(memory.value))
      continue;
    const int64_t columns = type.getShape().back();
    if (std::optional<int64_t> pitch = ::ds::cost::rowPitch(columns, type.getElementTypeBitWidth() / 8))
      memory.bytes = memory.bytes / columns * *pitch;
  }
}
