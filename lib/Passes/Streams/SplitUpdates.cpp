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
#include "UpdateChains.h"
#include "UpdateWindows.h"

#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Runtime/Program/Program.h"

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

static BufferType typeOf(Value buffer) { return cast<BufferType>(buffer.getType()); }
static bool isScalar(Value buffer) { return typeOf(buffer).getTensor().getRank() == 0; }
static int64_t elementBytes(Value buffer) {
  return llvm::divideCeil(typeOf(buffer).getTensor().getElementTypeBitWidth(), 8);
}

namespace {
/// What is updated at once, at most.
struct Limits {
  int64_t subGroup; ///< elements; 0 for all
  int64_t staging;  ///< bytes of a window that storage or the device is waited for
};

/// A chain and how many of its elements are updated at once.
struct Cut {
  UpdateChain chain;
  int64_t piece = 0;
};

/// What is cut in a function, and how many elements its rings have room for.
struct Cuts {
  SmallVector<Cut> cuts;
  int64_t ringElements = 0;
};
} // namespace

/// How many elements are updated at once. What storage moves begins at whole units in both places.
static int64_t pieceOf(const UpdateChain &chain, const Limits &limits) {
  int64_t most = limits.subGroup > 0 ? limits.subGroup : chain.elements;
  if (!chain.movesStorage() && !chain.passesOn())
    return std::min(most, chain.elements);
  int64_t least = INT64_MAX, widest = 1;
  for (Value own : chain.own) {
    least = std::min(least, elementBytes(own));
    widest = std::max(widest, elementBytes(own));
  }
  int64_t unit = chain.movesStorage() ? kUnit / least : kRingStep;
  most = std::min(most, limits.staging / widest);
  if (most >= chain.elements)
    return chain.elements;
  return std::min(chain.elements, std::max<int64_t>(most / unit, 1) * unit);
}

/// The chains that become windows. What goes on to the device does where it is too large, or where more
/// follows than a ring has room for: otherwise nothing would take its place again.
static Cuts findCuts(const UpdateChains &chains, const Limits &limits) {
  Cuts found;
  int64_t passed = 0;
  for (const UpdateChain &chain : chains.find()) {
    int64_t piece = pieceOf(chain, limits);
    if (piece <= 0 || !chains.canMove(chain))
      continue;
    found.cuts.push_back({chain, piece});
    if (chain.passesOn()) {
      passed += chain.elements;
      found.ringElements = std::max(found.ringElements, kRingWindows * piece);
    }
  }
  llvm::erase_if(found.cuts, [&](const Cut &cut) {
    bool isReused = cut.chain.passesOn() && passed > found.ringElements;
    return cut.piece == cut.chain.elements && !cut.chain.movesStorage() && !isReused;
  });
  return found;
}

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

/// Has the commands of `chain` run over one window of `count` elements from `first` on, where `builder` is.
static void makeWindow(OpBuilder &builder, WorkListener &listener, UpdateWindows &places,
                       const UpdateChain &chain, int64_t first, int64_t count) {
  DenseMap<Value, Value> windows;
  llvm::SmallDenseMap<Type, unsigned> numbers;
  for (Value own : chain.own) {
    unsigned number = numbers[typeOf(own).getTensor().getElementType()]++;
    windows[own] = chain.passesOn() ? places.inRing(own, number, count) : places.inSlot(own, number, count);
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

/// Replaces the commands of each chain by those of its windows, in the place of its last launch.
static void splitUpdates(func::FuncOp func, const Cuts &found, unsigned sets) {
  WorkListener listener;
  OpBuilder builder(func.getContext(), &listener);
  UpdateWindows places(func, builder, sets, found.ringElements);
  for (const auto &[chain, piece] : found.cuts) {
    for (Operation *launch : chain.launches())
      builder.setInsertionPointAfter(launch);
    for (int64_t first = 0; first < chain.elements; first += piece, places.nextTurn())
      makeWindow(builder, listener, places, chain, first, std::min(piece, chain.elements - first));
    for (Operation *command : chain.commands)
      command->erase();
    for (Value own : chain.own)
      own.getDefiningOp()->erase();
  }
  places.trim();
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
    // All are judged before any is rewritten: positions are those of the commands as they stand.
    Cuts found = findCuts(UpdateChains(getOperation()), {subGroup, staging});
    if (found.cuts.empty())
      return;
    splitUpdates(getOperation(), found, sets);
    for (ViewOp view : llvm::make_early_inc_range(getOperation().getOps<ViewOp>()))
      if (view->use_empty())
        view.erase();
    placeBuffers(getOperation());
  }
};
} // namespace
