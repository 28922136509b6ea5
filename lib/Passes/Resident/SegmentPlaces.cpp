//===- SegmentPlaces.cpp - Which of a segment's values lie in others' memory --------------===//
#include "SegmentPlaces.h"

#include "Support/StatePlaces.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;
using namespace mlir::ds;

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
void SegmentPlaces::join(Operation &op) {
  if (!isa<ConcatOp>(op))
    return;
  const uint32_t whole = *of.find(op.getResult(0));
  for (Value operand : op.getOperands())
    for (Value made = operand; made && llvm::count(op.getOperands(), operand) == 1;
         made = madeInPlaceOf(rootOf(made)))
      joinPart(made, whole);
}

void SegmentPlaces::joinPart(Value value, uint32_t whole) {
  std::optional<uint32_t> part = of.find(value);
  if (!part || !isWhole(value) || of.memories[*part].joined >= 0 ||
      of.memories[*part].isForward != of.memories[whole].isForward)
    return;
  of.memories[*part].joined = int32_t(whole);
  for (auto in = int32_t(whole); in >= 0; in = of.memories[in].joined) { // a join may lie in another
    of.memories[in].begin = std::min(of.memories[in].begin, of.memories[*part].begin);
    of.memories[in].end = std::max(of.memories[in].end, of.memories[*part].end);
  }
}

/// Whether `op` reads `memory` last.
bool SegmentPlaces::endsAt(Operation &op, const ValueMemory &memory) const {
  return std::max(memory.end, memory.isRead ? memory.lastRead : 0) == of.momentOf(&op);
}

/// The last moment at which `value` or a view of it is read; nothing where it is returned.
static std::optional<uint32_t> lastReadOf(Value value, const SegmentMemory &memory) {
  uint32_t last = 0;
  for (Operation *user : value.getUsers()) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      return std::nullopt;
    last = std::max(last, memory.momentOf(user));
    if (formOf(user) != OpForm::View)
      continue;
    for (Value view : user->getResults()) {
      const std::optional<uint32_t> read = lastReadOf(view, memory);
      if (!read)
        return std::nullopt;
      last = std::max(last, *read);
    }
  }
  return last;
}

/// Finds what `ending` holds.
void SegmentPlaces::findEnding(const SymbolTable &symbols) {
  const DenseSet<Attribute> states = mlir::ds::findEnding(func, symbols);
  for (BlockArgument argument : func.getArguments())
    if (FlatSymbolRefAttr state = getStateOf(func, argument); state && states.contains(state))
      if (tensorOf(argument))
        if (const std::optional<uint32_t> last = lastReadOf(argument, of))
          ending[argument] = *last;
}

/// Whether nothing reads `state`, an argument that ends, behind `reader`.
bool SegmentPlaces::isVacated(Value state, Operation &reader) const {
  const auto last = ending.find(state);
  return last != ending.end() && last->second <= of.momentOf(&reader);
}

/// Lets `made`, a result of `reader`'s command, lie where `operand` did, if that is read there last.
void SegmentPlaces::takeOver(uint32_t made, Value operand, Operation &reader) {
  if (operand.getType() == of.memories[made].value.getType())
    of.memories[made].isInState |= isVacated(operand, reader);
  std::optional<uint32_t> read = of.find(operand);
  const bool isOwn = read && *read != made && of.memories[*read].joined < 0; // not a part of a larger memory
  if (isOwn && endsAt(reader, of.memories[*read]) && of.memories[*read].bytes >= of.memories[made].bytes) {
    of.memories[made].isInPlace = true;
    of.memories[made].isInState |= of.memories[*read].isInState;
  }
}

/// Lets what `store` gives take the place of a state that ends: that of the gradient so far, which was loaded
/// for a product to add to.
void SegmentPlaces::takeVacated(StoreOp store) {
  Value value = store->getOperand(0);
  while (value && !value.getDefiningOp<LoadOp>())
    value = madeInPlaceOf(value);
  Value state = value ? value.getDefiningOp()->getOperand(0) : Value();
  std::optional<uint32_t> made = of.find(store->getResult(0));
  if (made && state && isVacated(state, *store) && tensorOf(state) == tensorOf(store->getResult(0)))
    of.memories[*made].isInState = true;
}

/// Whether `operand` is all of what lies in its memory.
bool SegmentPlaces::isWhole(Value operand) const {
  std::optional<uint32_t> read = of.find(operand);
  return !read || of.memories[*read].bytes == byteSize(operand);
}

void SegmentPlaces::markInPlace(ArrayRef<Operation *> command) {
  if (auto library = dyn_cast<LibraryOpInterface>(command.front())) {
    LibraryCall call = library.getLibraryCall();
    SmallVector<std::pair<unsigned, unsigned>> pairs(call.inPlace.begin(), call.inPlace.end());
    llvm::append_range(pairs, call.mayShare);
    for (auto [result, operand] : pairs)
      if (std::optional<uint32_t> made = of.find(command.front()->getResult(result)))
        takeOver(*made, command.front()->getOperand(operand), *command.front());
    return;
  }
  if (regions.find(command.front()) || isa<FusedOp>(command.front()))
    markRegion(command);
}

/// Each result takes the place of one operand of its type.
void SegmentPlaces::markRegion(ArrayRef<Operation *> command) {
  DenseSet<Operation *> members(command.begin(), command.end());
  llvm::SetVector<std::pair<Value, Operation *>> operands;
  for (Operation *op : command)
    for (Value operand : op->getOperands())
      if (!members.contains(operand.getDefiningOp()))
        operands.insert({operand, op});
  DenseSet<Value> taken;
  // What storage takes begins at a unit, and a state anywhere.
  auto candidatesFor = [&](OpResult result) {
    const bool isMoved = llvm::any_of(result.getUsers(), llvm::IsaPred<MoveOp>);
    std::multimap<unsigned, std::pair<Value, Operation *>> byRank;
    for (auto [operand, reader] : operands) {
      const std::optional<uint32_t> read = of.find(operand);
      const bool isInState = read ? of.memories[*read].isInState || of.memories[*read].bytes == 0
                                  : isa<BlockArgument>(rootOf(operand));
      if (operand.getType() == result.getType() && !taken.contains(operand) && isWhole(operand) &&
          !(isMoved && isInState))
        byRank.insert({rankOfPlace(operand, isInState, result), {operand, reader}});
    }
    return byRank;
  };
  auto place = [&](OpResult result) {
    std::optional<uint32_t> made = of.find(result);
    if (!made || !of.memories[*made].isStored || of.memories[*made].bytes == 0) // a state's place is there
      return;
    for (const auto &[rank, candidate] : candidatesFor(result)) {
      const auto [operand, reader] = candidate;
      takeOver(*made, operand, *reader);
      if (!of.memories[*made].isInPlace && !of.memories[*made].isInState)
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
void SegmentPlaces::shareCollective(Operation &op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective || traitsOf(collective.getCollectiveKind()).sharing != ::ds::rt::Sharing::Same)
    return;
  for (auto [operand, result] : llvm::zip(op.getOperands(), op.getResults())) {
    std::optional<uint32_t> read = of.find(operand), made = of.find(result);
    if (!read || !made || of.memories[*read].isForward != of.memories[*made].isForward ||
        !endsAt(op, of.memories[*read]))
      continue;
    of.memories[*made].joined = int32_t(*read);
    for (int32_t in = int32_t(*read); in >= 0; in = of.memories[in].joined)
      of.memories[in].end = std::max(of.memories[in].end, of.memories[*made].end);
  }
}

void SegmentPlaces::find() {
  Block &block = func.getBody().front();
  for (Operation &op : llvm::reverse(block.without_terminator()))
    join(op);
  for (StoreOp store : block.getOps<StoreOp>()) // before what takes the place of what was stored
    takeVacated(store);
  for (ArrayRef<Operation *> command : of.commands())
    markInPlace(command);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    shareCollective(op);
}
