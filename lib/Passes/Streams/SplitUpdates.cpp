//===- SplitUpdates.cpp - Updates on the host in pieces ------------------------------===//
//
// Problem: an update on the host takes a bucket or a parameter at once, and memory of the host for all of it
// that comes from storage or goes on to the device. Idea: what a kernel of any size does to all elements it
// does to windows of them, one after the other, through two sets of memory in turn:
//
//   storage  %m[0..] to %a    %m[n..] to %b                   (waits) %a to %m[0..]   ...
//   host                      update %a                       update %b
//
// Launches that are tied by memory that only they and transfers touch are a chain, which is moved to one
// place and repeated for each window. Reads run ahead and writes behind as far as the sets allow: events
// order them, and ds-prefetch-loads puts the reads in front. What storage has no part in goes on to the
// device from a ring, where each window lies behind the last and the first place comes again behind the end:
// an update waits for the copy of what lay in its place, of two of the largest windows ago. Price: kernels
// that are not uniform stay whole, and so does what cannot be moved together.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Program.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SPLITUPDATES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

static constexpr int64_t kUnit = ::ds::rt::kStorageUnit;
/// The largest windows that a ring holds. While one is copied the next is made; one more, for small windows
/// between large ones leave less than a whole one in front of the ring's end.
static constexpr int64_t kRingWindows = 3;
static constexpr int64_t kRingStep = 64; ///< elements that windows of a ring begin at multiples of

static BufferType typeOf(Value buffer) { return cast<BufferType>(buffer.getType()); }
static int64_t elementsOf(Value buffer) { return typeOf(buffer).getTensor().getNumElements(); }
static bool isScalar(Value buffer) { return typeOf(buffer).getTensor().getRank() == 0; }
static int64_t elementBytes(Value buffer) {
  return llvm::divideCeil(typeOf(buffer).getTensor().getElementTypeBitWidth(), 8);
}

/// Whether `op` is a launch on the host that may run over windows of its buffers. What is launched early and
/// maybe again stays whole.
static bool isUniform(Operation *op) {
  auto launch = dyn_cast<LaunchOp>(op);
  return launch && !launch.getSpeculative() && !launch.getPredicate() &&
         launch.getStream() == StreamKind::Host && launch.getExtents() && launch.getNumItems() == 1;
}

static bool isOnStorage(TransferOp op) { return op.getStream() == StreamKind::Storage; }

namespace {
/// Launches that go over the same elements one after the other, and what brings and takes them.
struct Chain {
  int64_t elements = 0;
  SmallVector<Operation *> commands; ///< in issue order
  SmallVector<Value> own;            ///< allocations that nothing else touches

  auto launches() const { return llvm::make_filter_range(commands, isUniform); }
  bool movesStorage() const {
    return llvm::any_of(commands, [](Operation *op) {
      auto transfer = dyn_cast<TransferOp>(op);
      return transfer && isOnStorage(transfer);
    });
  }
  /// Whether it lies in a ring: nothing but the device is given what it makes.
  bool passesOn() const { return !movesStorage() && llvm::any_of(commands, llvm::IsaPred<TransferOp>); }
};

/// A chain and how many of its elements are updated at once.
struct Cut {
  Chain chain;
  int64_t piece = 0;
};

/// Splits the updates of one function.
/// Size: how far updates are split is a decision about memory; one memory model is to replace it whole;
/// parts that it were cut into now would go with it.
class UpdateSplitter {
public:
  UpdateSplitter(func::FuncOp func, int64_t subGroup, int64_t staging, unsigned sets)
      : func(func), subGroup(subGroup), staging(staging), sets(sets), builder(func.getContext(), &listener) {}
  void run();

private:
  bool isOwn(AllocOp alloc) const;
  SmallVector<Chain> findChains();
  bool canMove(const Chain &chain);
  int64_t pieceOf(const Chain &chain) const;
  SmallVector<Cut> findCuts();
  void split(const Chain &chain, int64_t piece);
  AllocOp allocate(Value like, int64_t elements);
  Value slotFor(Value own, unsigned index, int64_t count);
  Value ringFor(Value own, unsigned index, int64_t count);
  void trimSlots();

  /// The places that windows of the allocation of one number and element type take in turn.
  struct Slots {
    SmallVector<AllocOp> sets;
    int64_t elements = 0;
  };

  /// The place that windows of the allocation of one number and element type take one behind the other.
  struct Ring {
    AllocOp place;
    int64_t next = 0, end = 0; ///< elements: where the next window begins, how far any reached
  };

  func::FuncOp func;
  int64_t subGroup, staging;
  unsigned sets, turn = 0;
  WorkListener listener;
  OpBuilder builder;
  DenseMap<Operation *, size_t> position;
  SmallVector<Operation *> commands;
  std::vector<SmallVector<BufferAccess>> accesses;
  llvm::MapVector<std::pair<Type, unsigned>, Slots> slots;
  llvm::MapVector<std::pair<Type, unsigned>, Ring> rings;
  int64_t ringElements = 0; ///< that a ring has room for
};
} // namespace

/// Elements [first, first + count) of `buffer`, which is contiguous.
static Value windowAt(OpBuilder &builder, Value buffer, int64_t first, int64_t count) {
  BufferType type = typeOf(buffer);
  ShiftsAttr shifts;
  Location loc = buffer.getLoc();
  if (auto view = buffer.getDefiningOp<ViewOp>()) {
    first += static_cast<int64_t>(view.getOffset());
    shifts = view.getShiftsAttr();
    buffer = view.getSource();
  }
  auto window = BufferType::getContiguous(RankedTensorType::get(count, type.getTensor().getElementType()),
                                          type.getSpace());
  return builder.create<ViewOp>(loc, window, buffer, first, shifts);
}

/// Whether only uniform launches over all of `alloc` touch it, and transfers that bring it from storage or
/// take it anywhere. What comes from the device stays whole: it comes as soon as it is made.
bool UpdateSplitter::isOwn(AllocOp alloc) const {
  Value buffer = alloc.getBuffer();
  if (typeOf(buffer).getSpace() != Space::Host || isScalar(buffer))
    return false;
  bool isLaunched = false;
  for (Operation *user : buffer.getUsers()) {
    isLaunched |= isUniform(user);
    auto transfer = dyn_cast<TransferOp>(user);
    bool isMoved = transfer && (isOnStorage(transfer) || transfer.getSource() == buffer);
    bool isWhole = isUniform(user) && cast<LaunchOp>(user).getExtents()->front() == elementsOf(buffer);
    if (!isMoved && !isWhole)
      return false;
  }
  return isLaunched;
}

SmallVector<Chain> UpdateSplitter::findChains() {
  llvm::EquivalenceClasses<Operation *> tied;
  SmallVector<Value> owned;
  for (Operation *command : commands)
    if (isUniform(command))
      tied.insert(command);
  for (AllocOp alloc : func.getOps<AllocOp>()) {
    if (!isOwn(alloc))
      continue;
    owned.push_back(alloc.getBuffer());
    Operation *first = *llvm::find_if(alloc->getUsers(), isUniform);
    for (Operation *user : alloc->getUsers())
      tied.unionSets(first, user);
  }
  llvm::MapVector<Operation *, Chain> chains;
  for (Operation *command : commands)
    if (auto leader = tied.findLeader(command); leader != tied.member_end()) {
      Chain &chain = chains[*leader];
      chain.commands.push_back(command);
      if (isUniform(command))
        chain.elements = cast<LaunchOp>(command).getExtents()->front();
    }
  for (Value own : owned)
    chains[tied.getLeaderValue(*own.getUsers().begin())].own.push_back(own);
  return llvm::map_to_vector(chains, [](auto &entry) { return entry.second; });
}

/// Whether the chain's commands may stand together where its last launch does, and each window come after all
/// that is done to the one before: nothing in between may touch what they do, and what one of them writes no
/// other may see through another window.
bool UpdateSplitter::canMove(const Chain &chain) {
  size_t place = 0;
  SmallVector<BufferAccess> all;
  for (Operation *launch : chain.launches()) {
    place = position.at(launch);
    if (cast<LaunchOp>(launch).getExtents()->front() != chain.elements)
      return false;
  }
  for (Operation *command : chain.commands) {
    size_t own = position.at(command);
    llvm::append_range(all, accesses[own]);
    for (size_t other = std::min(own, place); other < std::max(own, place); ++other)
      if (!llvm::is_contained(chain.commands, commands[other]) && conflict(accesses[own], accesses[other]))
        return false;
  }
  return llvm::none_of(all, [&](const BufferAccess &a) {
    return llvm::any_of(all, [&](const BufferAccess &b) {
      return a.conflictsWith(b) && (a.begin != b.begin || a.end != b.end);
    });
  });
}

/// How many elements are updated at once. What storage moves begins at whole units in both places.
int64_t UpdateSplitter::pieceOf(const Chain &chain) const {
  int64_t most = subGroup > 0 ? subGroup : chain.elements;
  if (!chain.movesStorage() && !chain.passesOn())
    return std::min(most, chain.elements);
  int64_t least = INT64_MAX, widest = 1;
  for (Value own : chain.own) {
    least = std::min(least, elementBytes(own));
    widest = std::max(widest, elementBytes(own));
  }
  int64_t unit = chain.movesStorage() ? kUnit / least : kRingStep;
  most = std::min(most, staging / widest);
  if (most >= chain.elements)
    return chain.elements;
  return std::min(chain.elements, std::max<int64_t>(most / unit, 1) * unit);
}

/// Memory of the host for the function's updates, of the element type of `like`.
AllocOp UpdateSplitter::allocate(Value like, int64_t elements) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&func.getBody().front());
  auto type = BufferType::getContiguous(
      RankedTensorType::get(elements, typeOf(like).getTensor().getElementType()), Space::Host);
  return builder.create<AllocOp>(like.getLoc(), type, AllocCategory::Workspace);
}

/// A window of `count` elements for what `own` holds, which is number `index` of its chain, in a ring.
Value UpdateSplitter::ringFor(Value own, unsigned index, int64_t count) {
  Type element = typeOf(own).getTensor().getElementType();
  Ring &ring = rings[{element, index}];
  if (!ring.place)
    ring.place = allocate(own, ringElements);
  int64_t first = ring.next + count > ringElements ? 0 : ring.next;
  ring.next = llvm::alignTo(first + count, kRingStep);
  ring.end = std::max(ring.end, first + count);
  auto window = BufferType::getContiguous(RankedTensorType::get(count, element), Space::Host);
  return builder.create<ViewOp>(own.getLoc(), window, ring.place.getBuffer(), first);
}

/// A window of `count` elements for what `own` holds, which is number `index` of its chain.
Value UpdateSplitter::slotFor(Value own, unsigned index, int64_t count) {
  Type element = typeOf(own).getTensor().getElementType();
  Slots &ring = slots[{element, index}];
  ring.elements = std::max(ring.elements, count);
  while (ring.sets.size() <= turn % sets) {
    ring.sets.push_back(allocate(own, kUnit));
    ring.sets.back().setAlignment(kUnit);
  }
  auto window = BufferType::getContiguous(RankedTensorType::get(count, element), Space::Host);
  return builder.create<ViewOp>(own.getLoc(), window, ring.sets[turn % sets].getBuffer(), 0);
}

/// Leaves each slot as large as its largest window, in whole units, and each ring as far as it was used.
void UpdateSplitter::trimSlots() {
  for (auto &[key, ring] : rings)
    ring.place.getBuffer().setType(
        BufferType::getContiguous(RankedTensorType::get(ring.end, key.first), Space::Host));
  for (auto &[key, ring] : slots)
    for (AllocOp slot : ring.sets) {
      int64_t bytes = elementBytes(slot.getBuffer());
      int64_t elements = llvm::alignTo(ring.elements * bytes, kUnit) / bytes;
      slot.getBuffer().setType(
          BufferType::getContiguous(RankedTensorType::get(elements, key.first), Space::Host));
    }
}

/// Replaces the commands of `chain` by those of its windows, in the place of its last launch.
void UpdateSplitter::split(const Chain &chain, int64_t piece) {
  Operation *last = nullptr;
  for (Operation *launch : chain.launches())
    last = launch;
  builder.setInsertionPointAfter(last);
  for (int64_t first = 0; first < chain.elements; first += piece, ++turn) {
    int64_t count = std::min(piece, chain.elements - first);
    DenseMap<Value, Value> windows;
    llvm::SmallDenseMap<Type, unsigned> numbers;
    for (Value own : chain.own) {
      unsigned number = numbers[typeOf(own).getTensor().getElementType()]++;
      windows[own] = chain.passesOn() ? ringFor(own, number, count) : slotFor(own, number, count);
    }
    auto windowOf = [&](Value buffer) {
      if (isScalar(buffer))
        return buffer;
      Value &window = windows[buffer];
      return window = window ? window : windowAt(builder, buffer, first, count);
    };
    for (Operation *command : chain.commands) {
      listener.follow(command);
      if (auto transfer = dyn_cast<TransferOp>(command)) {
        Value source = windowOf(transfer.getSource()), target = windowOf(transfer.getTarget());
        builder.create<TransferOp>(transfer.getLoc(), source, target);
        continue;
      }
      auto launch = cast<LaunchOp>(command);
      SmallVector<Value> inputs = llvm::map_to_vector(launch.getInputs(), windowOf);
      SmallVector<Value> outputs = llvm::map_to_vector(launch.getOutputs(), windowOf);
      builder.create<LaunchOp>(launch.getLoc(), launch.getKernel(), inputs, outputs,
                               builder.getDenseI64ArrayAttr(count), StreamKind::Host);
    }
  }
  for (Operation *command : chain.commands)
    command->erase();
  for (Value own : chain.own)
    own.getDefiningOp()->erase();
}

/// The chains that become windows. What goes on to the device does where it is too large, or where more
/// follows than a ring has room for: otherwise nothing would take its place again.
SmallVector<Cut> UpdateSplitter::findCuts() {
  SmallVector<Cut> cuts;
  int64_t passed = 0;
  for (const Chain &chain : findChains()) {
    int64_t piece = pieceOf(chain);
    if (piece <= 0 || !canMove(chain))
      continue;
    cuts.push_back({chain, piece});
    if (chain.passesOn()) {
      passed += chain.elements;
      ringElements = std::max(ringElements, kRingWindows * piece);
    }
  }
  llvm::erase_if(cuts, [&](const Cut &cut) {
    bool isReused = cut.chain.passesOn() && passed > ringElements;
    return cut.piece == cut.chain.elements && !cut.chain.movesStorage() && !isReused;
  });
  return cuts;
}

void UpdateSplitter::run() {
  for (Operation &op : func.getBody().front())
    if (isa<ScheduledOpInterface>(op)) {
      position[&op] = commands.size();
      commands.push_back(&op);
      accesses.push_back(accessesOf(&op));
    }
  // All are judged before any is rewritten: positions are those of the commands as they stand.
  SmallVector<Cut> cuts = findCuts();
  if (cuts.empty())
    return;
  for (const Cut &cut : cuts)
    split(cut.chain, cut.piece);
  trimSlots();
  for (ViewOp view : llvm::make_early_inc_range(func.getOps<ViewOp>()))
    if (view->use_empty())
      view.erase();
  placeBuffers(func);
}

namespace {
struct SplitUpdates : mlir::ds::impl::SplitUpdatesBase<SplitUpdates> {
  using SplitUpdatesBase::SplitUpdatesBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    if (sets < 1)
      return getOperation().emitError("expects at least one set of staging memory, but got ") << sets,
             signalPassFailure();
    UpdateSplitter(getOperation(), subGroup, staging, sets).run();
  }
};
} // namespace
