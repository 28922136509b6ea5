//===- PrefetchLoads.cpp - Copies from the host and from storage ahead of need -----------===//
//
// Problem: what is loaded stands right before its first reader, which then waits for all of the copy. A
// command beside compute waits for all that compute was given before it, so that a load runs ahead as far as
// it stands ahead. Idea: from the last load to the first, each is to begin so early that it is done when it
// is needed and the next one begins; then it moves up to there:
//
//   compute    a   b   c (reads %x)            compute    a   b   c
//   to_device          load %x            ->   to_device  load %x
//
// No further than behind the last command that touches what it does (a set of staging memory that is still to
// be written back), and where memory is bounded only as long as it holds what was loaded. Loads of one stream
// keep their order. Price: times are doubled, as a machine that does other things as well may take them.
//
//===---------------------------------------------------------------------------===//
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ComputeMemory.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_PREFETCHLOADS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// Transfers that bring one value nearer, all its pieces and both legs of each.
struct Load {
  SmallVector<TransferOp> transfers;
  SmallVector<BufferAccess> accesses;
  SmallVector<size_t> before; ///< loads that it must not overtake: on its streams, or in memory that it takes
  double storageSeconds = 0, copySeconds = 0;
  int64_t bytes = 0; ///< of the device, that are taken from where it begins
  size_t place = 0;  ///< how many fixed commands stand before it

  double seconds() const { return std::max(storageSeconds, copySeconds); }
  bool isOnStorage() const { return TransferOp(transfers.front()).getStream() == StreamKind::Storage; }
  bool isCopied() const { return TransferOp(transfers.back()).getStream() == StreamKind::ToDevice; }
};

class LoadScheduler {
public:
  LoadScheduler(func::FuncOp func, CommandCosts &costs, const WorkspaceLimits &limits,
                std::optional<int64_t> budget);
  void run();

private:
  void addLoad(TransferOp op);
  void addFixed(ScheduledOpInterface op);
  void orderLoads();
  std::vector<size_t> findEarliest() const;
  size_t placeBehindConflicts(const Load &load, size_t least) const;
  /// The places that loads go to.
  std::vector<size_t> findPlaces();
  /// The place nearest to `wanted` up to which there is room for what `load` brings.
  size_t takeRoom(const Load &load, size_t wanted);

  func::FuncOp func;
  CommandCosts &costs;
  std::vector<Load> loads;
  SmallVector<Operation *> fixed; ///< all other commands
  std::vector<SmallVector<BufferAccess>> accesses;
  DenseMap<Value, SmallVector<size_t>> touching; ///< by root, numbers of the fixed commands
  std::vector<double> reached;   ///< seconds of compute and of the host's cores before each fixed command
  std::vector<int64_t> computed; ///< compute commands before each
  std::optional<ComputeMemory> memory; ///< where it is bounded
};
} // namespace

static bool isNear(TransferOp op) { return op.getTarget().getType().getSpace() == Space::Device; }

/// Whether `op` brings something nearer to where it is computed on.
static bool isLoad(Operation *op) {
  auto transfer = dyn_cast<TransferOp>(op);
  return transfer && (isNear(transfer) || transfer.getSource().getType().getSpace() == Space::Nvme);
}

LoadScheduler::LoadScheduler(func::FuncOp func, CommandCosts &costs, const WorkspaceLimits &limits,
                             std::optional<int64_t> budget)
    : func(func), costs(costs) {
  reached.push_back(0);
  computed.push_back(0);
  for (Operation &op : func.getBody().front())
    if (isLoad(&op))
      addLoad(cast<TransferOp>(op));
    else if (auto command = dyn_cast<ScheduledOpInterface>(op))
      addFixed(command);
  orderLoads();
  if (budget && !loads.empty()) {
    memory.emplace(func, budget);
    memory->holdWorkspaces(limits);
  }
}

/// A piece joins those of the same value, and the leg from storage the one behind it.
void LoadScheduler::addLoad(TransferOp op) {
  Value root = rootOfBuffer(op.getTarget());
  auto isOpen = [&] { // the last load's first leg has no second one yet
    return rootOfBuffer(loads.back().transfers.back().getTarget()) == rootOfBuffer(op.getSource());
  };
  auto isSame = [&] { // another piece, of which only the second leg tells
    auto last = loads.size() > 1 ? &loads[loads.size() - 2] : nullptr;
    return last && last->place == fixed.size() && isNear(last->transfers.back()) &&
           rootOfBuffer(last->transfers.back().getTarget()) == root;
  };
  if (loads.empty() || loads.back().place != fixed.size() || !isNear(op) || !isOpen()) {
    loads.emplace_back();
    loads.back().place = fixed.size();
  } else if (isSame()) {
    Load piece = loads.back();
    loads.pop_back();
    llvm::append_range(loads.back().transfers, piece.transfers);
    llvm::append_range(loads.back().accesses, piece.accesses);
    loads.back().storageSeconds += piece.storageSeconds;
  }
  Load &load = loads.back();
  load.transfers.push_back(op);
  llvm::append_range(load.accesses, accessesOf(op));
  (op.getStream() == StreamKind::Storage ? load.storageSeconds : load.copySeconds) += 2 * costs.seconds(op);
  auto alloc = isNear(op) ? root.getDefiningOp<AllocOp>() : AllocOp();
  load.bytes = alloc ? alloc.getBuffer().getType().getSizeInBytes() : 0;
}

void LoadScheduler::addFixed(ScheduledOpInterface op) {
  const bool isCompute = isComputeCommand(op), isOnHost = op.getStream() == StreamKind::Host;
  reached.push_back(reached.back() + (op.computes() && (isCompute || isOnHost) ? costs.seconds(op) : 0));
  computed.push_back(computed.back() + isCompute);
  accesses.push_back(accessesOf(op));
  for (const BufferAccess &access : accesses.back())
    if (SmallVector<size_t> &list = touching[access.root]; list.empty() || list.back() != fixed.size())
      list.push_back(fixed.size());
  fixed.push_back(op);
}

/// Streams run what they are given in order, and memory that was loaded into is not to be again before the
/// load in between has taken it on.
void LoadScheduler::orderLoads() {
  DenseMap<Value, size_t> touched;
  std::optional<size_t> stored, copied;
  for (auto [index, load] : llvm::enumerate(loads)) {
    auto follow = [&](std::optional<size_t> other) {
      if (other && *other != index)
        load.before.push_back(*other);
    };
    if (load.isOnStorage())
      follow(std::exchange(stored, index));
    if (load.isCopied())
      follow(std::exchange(copied, index));
    for (const BufferAccess &access : load.accesses) {
      auto [last, isNew] = touched.try_emplace(access.root, index);
      if (!isNew)
        follow(std::exchange(last->second, index));
    }
  }
}

/// The place behind the last fixed command in front of `load` that touches what it does, from `least` on.
/// Only those are looked at that touch its memory: a parameter comes in hundreds of pieces.
size_t LoadScheduler::placeBehindConflicts(const Load &load, size_t least) const {
  llvm::SmallDenseSet<Value, 4> seen;
  for (const BufferAccess &access : load.accesses) {
    auto found = touching.find(access.root);
    if (found == touching.end() || !seen.insert(access.root).second)
      continue;
    ArrayRef<size_t> list = found->second;
    for (size_t index : llvm::reverse(list.take_front(llvm::lower_bound(list, load.place) - list.begin()))) {
      if (index < least)
        break;
      if (conflict(accesses[index], load.accesses))
        least = index + 1;
    }
  }
  return std::min(least, load.place);
}

/// For each load the place behind the last fixed command that it must not overtake.
std::vector<size_t> LoadScheduler::findEarliest() const {
  std::vector<size_t> earliest;
  for (const Load &load : loads) {
    size_t least = 0;
    for (size_t other : load.before)
      least = std::max(least, earliest[other]);
    earliest.push_back(placeBehindConflicts(load, least));
  }
  return earliest;
}

size_t LoadScheduler::takeRoom(const Load &load, size_t wanted) {
  if (!memory || load.bytes == 0)
    return wanted;
  size_t place = load.place;
  for (; place > wanted; --place) {
    int64_t command = computed[place - 1];
    if (computed[place] == command) // not a compute command
      continue;
    if (load.bytes > memory->roomAt(command))
      break;
    memory->hold(command, load.bytes);
  }
  return place;
}

std::vector<size_t> LoadScheduler::findPlaces() {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<size_t> places = findEarliest();
  double nextRead = kNever, nextCopy = kNever; // when the load behind begins, on each stream
  for (size_t index = loads.size(); index-- > 0;) {
    const Load &load = loads[index];
    double end = std::min(
        {reached[load.place], load.isOnStorage() ? nextRead : kNever, load.isCopied() ? nextCopy : kNever});
    double start = end - load.seconds();
    auto first = reached.begin() + places[index], last = reached.begin() + load.place + 1;
    size_t behind = std::upper_bound(first, last, start) - reached.begin();
    places[index] = takeRoom(load, std::max<size_t>(places[index], behind == 0 ? 0 : behind - 1));
    start = std::max(start, reached[places[index]]);
    if (load.isOnStorage())
      nextRead = start;
    if (load.isCopied())
      nextCopy = start;
  }
  for (auto [load, place] : llvm::zip_equal(loads, places)) {
    for (size_t other : load.before)
      place = std::max(place, places[other]);
    while (place < load.place && isa<RecordOp>(fixed[place])) // who waits for that would wait for the load
      ++place;
  }
  return places;
}

void LoadScheduler::run() {
  std::vector<size_t> places = findPlaces();
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [load, place] : llvm::zip_equal(loads, places))
    for (TransferOp transfer : load.transfers)
      transfer->moveBefore(place < fixed.size() ? fixed[place] : terminator);
  if (!loads.empty())
    placeBuffers(func);
}

namespace {
struct PrefetchLoads : mlir::ds::impl::PrefetchLoadsBase<PrefetchLoads> {
  using PrefetchLoadsBase::PrefetchLoadsBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    FailureOr<::ds::cost::Rates> rates = readRates(getOperation());
    if (failed(rates))
      return signalPassFailure();
    auto module = getOperation()->getParentOfType<ModuleOp>();
    CommandCosts costs(module, *rates);
    LoadScheduler(getOperation(), costs, limitsOf(module), bytesWithin(memory, module)).run();
  }
};
} // namespace
