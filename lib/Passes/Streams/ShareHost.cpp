//===- ShareHost.cpp - Memory of the host that updates take in turn -------------------===//
//
// Problem: a plan knows that a command of another stream has run when compute has waited for it, and compute
// does not wait for the host's cores: what they work on has memory of its own until the segment ends. Idea:
// what is touched no more when something else is first touched, in issue order and by a simulation, gives
// that its memory, as one window of a pool:
//
//   to_host  %a = g0           %b = g1           %c = g2         pool, over time:  a a a c c c
//   host                 add %a            add %b          ...                         b b b b
//
// Events order %c behind the addition that read %a, which has run by then: in issue order alone %b could take
// the place of %a, but the copy of g1 would wait for the addition. Price: the pool, one for each element
// type, lives from its first use to its last, so that it is made only where the host's peak falls; first fit;
// and events are inserted once more.
//
//===---------------------------------------------------------------------------------===//
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/CommandMemory.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "llvm/ADT/MapVector.h"

#include <array>

namespace mlir::ds {
#define GEN_PASS_DEF_SHAREHOST
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Elements that windows of a pool begin at multiples of.
static constexpr int64_t kStep = 64;

/// Element type and alignment: what a pool's windows have in common.
using Kind = std::pair<Type, IntegerAttr>;

/// Elements that windows of `alloc`'s pool begin at multiples of: where storage is moved, whole units.
static int64_t stepOf(AllocOp alloc) {
  std::optional<int64_t> alignment = alloc.getAlignment();
  int64_t bits = alloc.getBuffer().getType().getTensor().getElementTypeBitWidth();
  return alignment ? std::max<int64_t>(*alignment * 8 / bits, 1) : kStep;
}

namespace {
/// A window of a pool, and when it is needed.
struct Window {
  AllocOp alloc;
  int64_t elements = 0, offset = 0; ///< in whole steps
  size_t first = 0, last = 0;       ///< the commands that touch it, in issue order
  double begin = 0, end = 0;        ///< seconds

  bool meets(const Window &other) const {
    return first <= other.last && other.first <= last ? true : begin < other.end && other.begin < end;
  }
};

/// The windows of each pool, in the order of their first use.
using PoolWindows = llvm::MapVector<Kind, std::vector<Window>>;

/// When the commands of a function run, in the order of their streams and of events.
class Clocks {
public:
  explicit Clocks(CommandCosts &costs) : costs(costs) {}
  /// Begin and end of `command`, which is issued next.
  std::pair<double, double> issue(ScheduledOpInterface command);

private:
  CommandCosts &costs;
  std::array<double, getMaxEnumValForStreamKind() + 1> streams{};
  DenseMap<int64_t, double> events;
};
} // namespace

std::pair<double, double> Clocks::issue(ScheduledOpInterface command) {
  double &stream = streams[static_cast<size_t>(command.getStream())];
  if (std::optional<int64_t> event = command.getRecordedEvent())
    events[*event] = stream;
  if (std::optional<int64_t> event = command.getAwaitedEvent())
    stream = std::max(stream, events.lookup(*event));
  double begin = stream;
  stream += costs.seconds(command);
  return {begin, stream};
}

/// Whether the memory of `alloc` is worth sharing: the host's cores work on it.
static bool isShared(AllocOp alloc) {
  BufferType type = alloc.getBuffer().getType();
  if (type.getSpace() != Space::Host || type.getTensor().getRank() == 0)
    return false;
  auto isOnCores = [](Operation *user) {
    auto command = dyn_cast<ScheduledOpInterface>(user);
    return command && command.computes() && command.getStream() == StreamKind::Host;
  };
  return llvm::any_of(alloc->getUsers(), [&](Operation *user) {
    return isOnCores(user) || (isa<ViewOp>(user) && llvm::any_of(user->getUsers(), isOnCores));
  });
}

/// What would lie in pools, and when it is needed there.
static PoolWindows findWindows(func::FuncOp func, CommandCosts &costs) {
  llvm::MapVector<Value, Window> found;
  DenseMap<Value, bool> shared; ///< staging memory has thousands of users
  Clocks clocks(costs);
  size_t place = 0;
  for (auto command : func.getBody().front().getOps<ScheduledOpInterface>()) {
    auto [begin, end] = clocks.issue(command);
    for (const BufferAccess &access : accessesOf(command)) {
      auto alloc = access.root.getDefiningOp<AllocOp>();
      if (!alloc)
        continue;
      auto [isOne, isUnknown] = shared.try_emplace(access.root, false);
      if (isUnknown)
        isOne->second = isShared(alloc);
      if (!isOne->second)
        continue;
      auto [known, isNew] = found.try_emplace(access.root, Window{alloc, 0, 0, place, place, begin, end});
      Window &window = known->second;
      window.last = place;
      window.end = std::max(window.end, end + (end - begin)); // it may take twice as long
      if (isNew)
        window.elements =
            llvm::alignTo(alloc.getBuffer().getType().getTensor().getNumElements(), stepOf(alloc));
    }
    ++place;
  }
  PoolWindows windows;
  for (auto &[root, window] : found)
    windows[{cast<BufferType>(root.getType()).getTensor().getElementType(), window.alloc.getAlignmentAttr()}]
        .push_back(window);
  return windows;
}

/// Gives each window the first offset at which it meets none that lies there; returns the elements of the
/// pool.
static int64_t place(std::vector<Window> &windows) {
  int64_t elements = 0;
  SmallVector<Window *> placed; // by offset
  for (Window &window : windows) {
    llvm::erase_if(placed, [&](Window *other) { // nobody meets it any more
      return other->last < window.first && other->end <= window.begin;
    });
    for (const Window *other : placed)
      if (window.meets(*other) && other->offset < window.offset + window.elements &&
          window.offset < other->offset + other->elements)
        window.offset = other->offset + other->elements;
    elements = std::max(elements, window.offset + window.elements);
    placed.insert(
        llvm::upper_bound(placed, &window, [](Window *a, Window *b) { return a->offset < b->offset; }),
        &window);
  }
  return elements;
}

/// Makes views of `pool` of all that named the window's allocation.
static void moveTo(AllocOp pool, Window &window) {
  OpBuilder builder(window.alloc);
  Value buffer = window.alloc.getBuffer();
  for (Operation *user : llvm::make_early_inc_range(buffer.getUsers()))
    if (auto view = dyn_cast<ViewOp>(user)) {
      view.getSourceMutable().assign(pool.getBuffer());
      view.setOffset(view.getOffset() + static_cast<uint64_t>(window.offset));
    }
  if (!buffer.use_empty())
    buffer.replaceAllUsesWith(
        builder.create<ViewOp>(window.alloc.getLoc(), buffer.getType(), pool.getBuffer(), window.offset));
  window.alloc.erase();
}

/// Most bytes of the host that allocations of `func` have at a command, as a plan counts them; with `pools`,
/// those that would be windows lie in pools of so many elements from their first use to the last.
static int64_t findPeak(func::FuncOp func, const PoolWindows &windows, ArrayRef<int64_t> pools) {
  ScheduledFunction scheduled(func);
  ::ds::analysis::StepMemory memory(1, scheduled.commands.size());
  auto hold = [&](int64_t begin, int64_t end, int64_t bytes) {
    memory.hold({0, bytes, uint32_t(begin), uint32_t(end)});
  };
  DenseMap<Operation *, unsigned> poolOf;
  for (auto [index, entry] : llvm::enumerate(windows))
    for (const Window &window : entry.second)
      poolOf[window.alloc] = index;
  SmallVector<std::pair<int64_t, int64_t>> spans(windows.size(), {INT64_MAX, 0});
  for (const AllocLifetime &lifetime : scheduled.lifetimes) {
    AllocOp alloc = lifetime.alloc;
    if (alloc.getBuffer().getType().getSpace() != Space::Host)
      continue;
    auto pool = poolOf.find(alloc);
    if (pools.empty() || pool == poolOf.end()) {
      hold(lifetime.begin, lifetime.end, reservedBytes(alloc));
      continue;
    }
    auto &[begin, end] = spans[pool->second];
    begin = std::min(begin, lifetime.begin);
    end = std::max(end, lifetime.end);
  }
  for (auto [index, elements] : llvm::enumerate(pools))
    hold(spans[index].first, spans[index].second,
         elements * llvm::divideCeil((windows.begin() + index)->first.first.getIntOrFloatBitWidth(), 8));
  return memory.mostBytes(0);
}

/// Replaces the windows' allocations by a pool of `elements`.
static void makePool(func::FuncOp func, Kind kind, std::vector<Window> &windows, int64_t elements) {
  OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
  auto type = BufferType::getContiguous(RankedTensorType::get(elements, kind.first), Space::Host);
  auto pool = builder.create<AllocOp>(func.getLoc(), type, AllocCategory::Workspace);
  if (kind.second)
    pool.setAlignmentAttr(kind.second);
  for (Window &window : windows)
    moveTo(pool, window);
}

namespace {
struct ShareHost : mlir::ds::impl::ShareHostBase<ShareHost> {
  using ShareHostBase::ShareHostBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (failed(requirePhase(func, getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    FailureOr<::ds::cost::Rates> rates = readRates(func);
    if (failed(rates))
      return signalPassFailure();
    CommandCosts costs(func->getParentOfType<ModuleOp>(), *rates);
    PoolWindows windows = findWindows(func, costs);
    SmallVector<int64_t> pools;
    for (auto &[kind, of] : windows)
      pools.push_back(place(of));
    if (pools.empty() || findPeak(func, windows, pools) >= findPeak(func, windows, {}))
      return;
    for (auto [entry, elements] : llvm::zip_equal(windows, pools))
      makePool(func, entry.first, entry.second, elements);
    placeBuffers(func);
  }
};
} // namespace
