//===- VerifyPlanned.cpp - The border after memory planning ---------------------===//
//
// The plan is the truth: what it says is looked at once more, on the IR alone. Lifetimes are read off the
// block by a few lines of their own, so that a mistake in what the solver was asked shows as well as one in
// its answer.
//
//===---------------------------------------------------------------------------===//
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

#include <deque>
#include <map>

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYPLANNED
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Offsets are multiples of a cache line, which every vector load is content with.
static constexpr int64_t kAlignment = 64;
/// Disks move whole units, from and to memory of such offsets.
static constexpr int64_t kStorageAlignment = 4096;

namespace {
/// Bytes of the arena that hold one value, from the first to the last command of its function that uses it.
struct Place {
  std::string name;
  Location loc;
  Space space;
  int64_t begin, end;                          ///< bytes
  Operation *first = nullptr, *last = nullptr; ///< null for what lives always

  bool livesWith(const Place &other) const {
    if (space != other.space)
      return false;
    return !first || !other.first ||
           !(last->isBeforeInBlock(other.first) || other.last->isBeforeInBlock(first));
  }
};

/// Collects the places of a module and verifies them.
class PlanVerifier {
public:
  explicit PlanVerifier(ModuleOp module) : module(module) {}
  LogicalResult verify();

private:
  /// Adds a place after checking its offset, its alignment and the arena (E1, E2, E3).
  LogicalResult add(SmallVectorImpl<Place> &places, Place place, IntegerAttr offset, BufferType type);
  LogicalResult addStates();
  LogicalResult addInputs(func::FuncOp func);
  LogicalResult verifySegment(func::FuncOp func);

  ModuleOp module;
  SmallVector<Place> permanent;
  DenseMap<StringAttr, int64_t> inputs;
};
} // namespace

/// For each command of another stream than compute the op behind which compute knows that it has run: its
/// first wait for an event that tells, of the command's stream or of one that knew; or the end. Streams
/// differ in what they know to have run, which an event hands on.
static DenseMap<Operation *, Operation *> findEnds(Block &block) {
  using Known = DenseMap<StreamKind, int64_t>; // of each stream, how many of its commands
  DenseMap<StreamKind, Known> known;
  DenseMap<int64_t, Known> told;
  DenseMap<StreamKind, std::deque<Operation *>> waiting; // issued, and not known to compute
  DenseMap<StreamKind, int64_t> issued;
  DenseMap<Operation *, Operation *> ends;
  auto settle = [&](Operation *wait) { // what compute has just heard of
    for (auto &[stream, commands] : waiting) {
      int64_t left = issued[stream] - known[StreamKind::Compute].lookup(stream);
      while (int64_t(commands.size()) > left)
        ends[commands.front()] = wait, commands.pop_front();
    }
  };
  for (auto op : block.getOps<ScheduledOpInterface>()) {
    StreamKind stream = op.getStream();
    if (std::optional<int64_t> event = op.getRecordedEvent()) {
      told[*event] = known[stream];
    } else if (std::optional<int64_t> event = op.getAwaitedEvent()) {
      for (auto [other, count] : told.lookup(*event))
        known[stream][other] = std::max(known[stream].lookup(other), count);
      if (stream == StreamKind::Compute)
        settle(op);
    } else if (stream != StreamKind::Compute) {
      known[stream][stream] = ++issued[stream];
      waiting[stream].push_back(op);
      ends[op] = block.getTerminator();
    }
  }
  return ends;
}

/// Widens `place` by the commands that name `buffer` or a view of it; those of `ends` last until theirs.
static void addUses(Value buffer, const DenseMap<Operation *, Operation *> &ends, Place &place) {
  for (Operation *user : buffer.getUsers()) {
    if (isa<ViewOp>(user)) {
      addUses(user->getResult(0), ends, place);
      continue;
    }
    auto known = ends.find(user);
    Operation *end = known != ends.end() ? known->second : user;
    if (!place.first || user->isBeforeInBlock(place.first))
      place.first = user;
    if (!place.last || place.last->isBeforeInBlock(end))
      place.last = end;
  }
}

/// Whether no two of `places` that live at once overlap: goes through the block, and looks only at what lies
/// beside a place when that begins to live.
static bool areDisjoint(ArrayRef<Place> places, Block &block) {
  DenseMap<Operation *, size_t> position;
  size_t end = 1;
  for (Operation &op : block)
    position[&op] = end++;
  std::vector<std::tuple<size_t, bool, size_t>> events; // when, whether a place ends then, which
  for (auto [index, place] : llvm::enumerate(places)) {
    events.push_back({place.first ? position.at(place.first) : 0, false, index});
    events.push_back({place.first ? position.at(place.last) : end, true, index});
  }
  llvm::sort(events);
  std::map<std::pair<Space, int64_t>, int64_t> living; // space and first byte -> behind the last
  for (auto [when, ends, index] : events) {
    const Place &place = places[index];
    if (ends) {
      living.erase({place.space, place.begin});
      continue;
    }
    auto [known, isNew] = living.try_emplace({place.space, place.begin}, place.end);
    auto next = std::next(known);
    const bool meetsNext =
        next != living.end() && next->first.first == place.space && next->first.second < place.end;
    const bool meetsLast = known != living.begin() && std::prev(known)->first.first == place.space &&
                           std::prev(known)->second > place.begin;
    if (!isNew || meetsNext || meetsLast)
      return false;
  }
  return true;
}

/// Verifies that no two of `places` that live at once overlap (E5).
static LogicalResult verifyDisjoint(SmallVector<Place> places, Block &block) {
  if (areDisjoint(places, block))
    return success();
  llvm::sort(places, [](const Place &a, const Place &b) {
    return std::tie(a.space, a.begin, a.name) < std::tie(b.space, b.begin, b.name);
  });
  for (size_t index = 0; index < places.size(); ++index)
    for (size_t other = index + 1; other < places.size() && places[other].space == places[index].space &&
                                   places[other].begin < places[index].end;
         ++other)
      if (places[index].livesWith(places[other])) {
        InFlightDiagnostic error =
            emitError(places[other].loc, "expects ")
            << places[other].name << " to lie apart from what lives with it, but bytes ["
            << places[other].begin << ", " << places[other].end << ") of the "
            << stringifySpace(places[other].space) << " overlap " << places[index].name;
        error.attachNote(places[index].loc)
            << "it has bytes [" << places[index].begin << ", " << places[index].end << ")";
        return error;
      }
  return success();
}

LogicalResult PlanVerifier::add(SmallVectorImpl<Place> &places, Place place, IntegerAttr offset,
                                BufferType type) {
  if (!offset) { // E1.
    InFlightDiagnostic error = emitError(place.loc, "expects ") << place.name << " to have an offset";
    error.attachNote() << "run ds-plan-memory first";
    return error;
  }
  ArenaOp arena = ArenaOp::lookup(module, type.getSpace());
  if (!arena && type.getSizeInBytes() > 0)
    return emitError(place.loc, "expects an arena of space ")
           << stringifySpace(type.getSpace()) << ", in which " << place.name << " lies";
  int64_t arenaBytes = arena ? static_cast<int64_t>(arena.getBytes()) : 0;
  place.space = type.getSpace();
  place.begin = offset.getInt();
  int64_t alignment = place.space == Space::Nvme ? kStorageAlignment : kAlignment;
  place.end = place.begin + llvm::alignTo(type.getSizeInBytes(), place.space == Space::Nvme ? alignment : 1);
  if (place.begin % alignment != 0) // E2.
    return emitError(place.loc, "expects the offset of ")
           << place.name << " to be a multiple of " << alignment << ", but got " << place.begin;
  if (place.begin < 0 || place.end > arenaBytes) // E3.
    return emitError(place.loc, "expects ") << place.name << " inside the arena's " << arenaBytes
                                            << " bytes, but got [" << place.begin << ", " << place.end << ")";
  if (place.begin != place.end)
    places.push_back(std::move(place));
  return success();
}

LogicalResult PlanVerifier::addStates() {
  for (StateOp state : getPlacedStates(module))
    if (failed(add(permanent, {("state @" + state.getSymName()).str(), state.getLoc(), state.getHome(), 0, 0},
                   state.getOffsetAttr(), BufferType::getContiguous(state.getLocalType(), state.getHome()))))
      return failure();
  return success();
}

LogicalResult PlanVerifier::addInputs(func::FuncOp func) {
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    StringAttr name = getInputOf(func, index);
    if (!name)
      continue;
    auto offset = func.getArgAttrOfType<IntegerAttr>(index, kOffsetAttr);
    auto known = inputs.find(name);
    if (known != inputs.end() && offset && known->second != offset.getInt()) // E4.
      return func.emitError("expects input ") << name << " at offset " << known->second
                                              << " as in other segments, but got " << offset.getInt();
    if (known != inputs.end() && offset)
      continue;
    if (failed(add(permanent,
                   {("input \"" + name.getValue() + "\"").str(), func.getLoc(), Space::Device, 0, 0}, offset,
                   cast<BufferType>(type))))
      return failure();
    inputs[name] = offset.getInt();
  }
  return success();
}

/// Verifies that what is moved from or to storage begins at a unit of host memory (E6).
static LogicalResult verifyStaging(AllocOp alloc) {
  if (alloc.getBuffer().getType().getSpace() != Space::Host || !alloc.getOffset() ||
      *alloc.getOffset() % kStorageAlignment == 0)
    return success();
  auto movesStorage = [](Operation *user) {
    auto transfer = dyn_cast<TransferOp>(user);
    return transfer && transfer.getStream() == StreamKind::Storage;
  };
  for (Operation *user : alloc.getBuffer().getUsers())
    if (movesStorage(user) || (isa<ViewOp>(user) && llvm::any_of(user->getUsers(), movesStorage)))
      return alloc.emitOpError("expects an offset that is a multiple of ")
             << kStorageAlignment << ", as storage is moved through it, but got " << *alloc.getOffset();
  return success();
}

LogicalResult PlanVerifier::verifySegment(func::FuncOp func) {
  SmallVector<Place> places = permanent;
  const DenseMap<Operation *, Operation *> ends = findEnds(func.getBody().front());
  for (AllocOp alloc : func.getOps<AllocOp>()) {
    Place place{("this " + stringifyAllocCategory(alloc.getCategory()) + " buffer").str(), alloc.getLoc(),
                Space::Device, 0, 0};
    addUses(alloc.getBuffer(), ends, place);
    if (failed(verifyStaging(alloc)))
      return failure();
    if (failed(add(places, std::move(place), alloc.getOffsetAttr(), alloc.getBuffer().getType())))
      return failure();
  }
  return verifyDisjoint(std::move(places), func.getBody().front());
}

LogicalResult PlanVerifier::verify() {
  if (!ArenaOp::lookup(module, Space::Device)) { // E1.
    InFlightDiagnostic error = emitError(module.getLoc(), "expects an arena of the device");
    error.attachNote() << "run ds-plan-memory first";
    return error;
  }
  if (failed(addStates()))
    return failure();
  for (func::FuncOp func : getSegments(module))
    if (failed(addInputs(func)))
      return failure();
  for (func::FuncOp func : getSegments(module))
    if (failed(verifySegment(func)))
      return failure();
  return success();
}

namespace {
struct VerifyPlanned : mlir::ds::impl::VerifyPlannedBase<VerifyPlanned> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Planned)))
      return signalPassFailure();
    if (failed(PlanVerifier(getOperation()).verify()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
