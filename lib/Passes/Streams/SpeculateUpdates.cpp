//===- SpeculateUpdates.cpp - Updates on the host before the norm is known ----------===//
//
// Problem: with clipping, or where an overflow skips the step, the host's updates wait for the norm of all
// gradients, and then the step waits for them; but most steps are not clipped, and their factor was known
// from the start. Idea: each update is launched as soon as its own gradient is there, with that factor, after
// what it changes was copied. When the norm is known, one truth value says whether the factor was wrong, and
// the same kernel runs again, of the copies, only where it was:
//
//   host   copy %m0 to %u0   update %m0   copy %m1 to %u1   update %m1   norm   (update %m0 of %u0)   ...
//
// Nothing is undone by arithmetic. Where a launch may go early follows from what commands touch, so that a
// guess that is known late, or memory that is still read, costs speed and never bits. Price: host memory for
// all that updates change, and its copy, which is hidden where backward takes longer.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SPECULATEUPDATES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// A launch that is to be made twice.
struct Update {
  LaunchOp launch;
  Value wrong;                   ///< whether the early one was made of wrong guesses
  SmallVector<Value> inputs;     ///< of the early one
  llvm::SetVector<Value> undone; ///< what it reads and writes
  SmallVector<BufferAccess> accesses;
};

/// Launches the updates of one function early.
class UpdateSpeculator {
public:
  explicit UpdateSpeculator(func::FuncOp func) : func(func), builder(func.getContext(), &listener) {}
  void run();

private:
  void findCommands();
  void findMakers(Value memory, size_t end);
  std::optional<Update> judge(LaunchOp launch);
  bool findUndone(Update &update) const;
  size_t earliestPlace(ArrayRef<BufferAccess> touched, size_t own) const;
  bool comesEarlier(const Update &update);
  void speculate(const Update &update);
  void hoistMakers();
  void insertEarly();

  func::FuncOp func;
  WorkListener listener;
  OpBuilder builder;
  llvm::MapVector<Value, PresumedOp> presumed; ///< by the memory of the truth
  SmallVector<Operation *> commands;
  std::vector<SmallVector<BufferAccess>> accesses;
  DenseMap<Operation *, size_t> position; ///< commands before an op
  llvm::SetVector<Operation *> makers;    ///< of guesses, and of what they are made of
  DenseMap<Operation *, size_t> makerPlace;
  SmallVector<BufferAccess> touchedEarly;                  ///< by updates that go early already
  llvm::MapVector<size_t, SmallVector<Operation *>> early; ///< by the place before which they stand
};
} // namespace

void UpdateSpeculator::findCommands() {
  for (Operation &op : func.getBody().front()) {
    position[&op] = commands.size();
    if (!isa<ScheduledOpInterface>(op))
      continue;
    commands.push_back(&op);
    accesses.push_back(accessesOf(&op));
  }
}

/// Adds the commands before number `end` that write `memory`, if that is an allocation, and what they are
/// made of. The memory of what is dead may be taken by what comes later.
void UpdateSpeculator::findMakers(Value memory, size_t end) {
  SmallVector<std::pair<Value, size_t>> pending = {{rootOfBuffer(memory), end}};
  while (!pending.empty()) {
    auto [root, before] = pending.pop_back_val();
    if (!root.getDefiningOp<AllocOp>())
      continue;
    auto writes = [root = root](const BufferAccess &access) { return access.isWrite && access.root == root; };
    for (size_t at = 0; at < before; ++at)
      if (llvm::any_of(accesses[at], writes) && makers.insert(commands[at]))
        for (const BufferAccess &access : accesses[at])
          if (access.isRead)
            pending.emplace_back(access.root, at);
  }
}

/// The number of the command before which something that touches `touched`, and stands at `own`, may stand:
/// right behind the last that conflicts with it. Makers count where they will be.
size_t UpdateSpeculator::earliestPlace(ArrayRef<BufferAccess> touched, size_t own) const {
  size_t place = 0;
  for (size_t at = 0; at < own; ++at) {
    if (!conflict(touched, accesses[at]))
      continue;
    auto moved = makerPlace.find(commands[at]);
    place = std::max(place, moved == makerPlace.end() ? at + 1 : moved->second);
  }
  return place;
}

/// Gives the makers of guesses their places, in order, so that each finds those before it moved.
void UpdateSpeculator::hoistMakers() {
  for (auto &[truth, op] : presumed)
    findMakers(op.getGuess(), position.at(op));
  SmallVector<Operation *> ordered = makers.takeVector();
  llvm::sort(ordered, [&](Operation *a, Operation *b) { return position.at(a) < position.at(b); });
  for (Operation *maker : ordered) {
    size_t own = position.at(maker), place = earliestPlace(accesses[own], own);
    makerPlace[maker] = place;
    early[place].push_back(maker);
  }
}

/// Fills what `update` reads and writes; false where it writes a part of what it reads, or with gaps.
bool UpdateSpeculator::findUndone(Update &update) const {
  for (Value input : update.launch.getInputs())
    for (Value output : update.launch.getOutputs()) {
      BufferAccess read = windowOf(input), written = windowOf(output);
      written.isWrite = true;
      if (!read.conflictsWith(written))
        continue;
      if (input != output || !cast<BufferType>(input.getType()).isContiguous())
        return false;
      update.undone.insert(input);
    }
  return true;
}

/// What becomes of `launch`; none where it reads nothing that is presumed, or cannot be made twice.
std::optional<Update> UpdateSpeculator::judge(LaunchOp launch) {
  Update update{launch, {}, {}, {}, {}};
  for (Value input : launch.getInputs()) {
    auto known = presumed.find(rootOfBuffer(input));
    bool isTruth = known != presumed.end() && known->second->isBeforeInBlock(launch);
    update.inputs.push_back(isTruth ? known->second.getGuess() : input);
    if (!isTruth)
      continue;
    Value wrong = known->second.getWrong();
    if (update.wrong && update.wrong != wrong)
      return std::nullopt;
    update.wrong = wrong;
  }
  auto isScalar = [](Value output) { return cast<BufferType>(output.getType()).getTensor().getRank() == 0; };
  if (launch.getStream() != StreamKind::Host || !update.wrong || launch.getPredicate() ||
      llvm::any_of(launch.getOutputs(), isScalar) || !findUndone(update))
    return std::nullopt;
  for (Value input : update.inputs)
    update.accesses.push_back(windowOf(input)), update.accesses.back().isRead = true;
  for (Value output : launch.getOutputs())
    update.accesses.push_back(windowOf(output)), update.accesses.back().isWrite = true;
  return update;
}

/// Whether `update` would be launched before its guess is judged, and nothing that goes early as well touches
/// what it does.
bool UpdateSpeculator::comesEarlier(const Update &update) {
  if (conflict(update.accesses, touchedEarly))
    return false;
  size_t own = position.at(update.launch), judged = 0;
  for (size_t at = 0; at < own; ++at)
    if (llvm::any_of(accesses[at], [&](const BufferAccess &access) {
          return access.isWrite && access.root == rootOfBuffer(update.wrong);
        }))
      judged = at;
  return !makerPlace.contains(commands[judged]) && earliestPlace(update.accesses, own) <= judged;
}

/// Adds the early launch of `update` with its copies, and lets the one that is there run of those where that
/// was wrong.
void UpdateSpeculator::speculate(const Update &update) {
  LaunchOp launch = update.launch;
  SmallVector<Operation *> &place = early[earliestPlace(update.accesses, position.at(launch))];
  listener.follow(launch);
  builder.setInsertionPoint(launch);
  IRMapping undo;
  for (Value buffer : update.undone) {
    auto type = cast<BufferType>(buffer.getType());
    auto copyType = BufferType::getContiguous(type.getTensor(), type.getSpace());
    auto copy = builder.create<AllocOp>(buffer.getLoc(), copyType, AllocCategory::Optimizer);
    auto call = builder.create<CallOp>(buffer.getLoc(), ::ds::rt::LibraryFn::Copy, ValueRange{buffer, copy},
                                       ArrayRef<int64_t>{1}, builder.getArrayAttr({}), StreamKind::Host);
    call.setSpeculative(true);
    place.push_back(call);
    undo.map(buffer, copy.getBuffer());
  }
  auto first = builder.create<LaunchOp>(launch.getLoc(), launch.getKernel(), update.inputs,
                                        launch.getOutputs(), launch.getExtentsAttr(), StreamKind::Host);
  first.setSpeculative(true);
  place.push_back(first);
  for (OpOperand &input : launch.getInputsMutable())
    input.set(undo.lookupOrDefault(input.get()));
  launch.getPredicateMutable().assign(update.wrong);
  llvm::append_range(touchedEarly, update.accesses);
}

/// Puts all that goes early into its place: before what stands there and stays.
void UpdateSpeculator::insertEarly() {
  for (auto &[place, ops] : early) {
    size_t at = place;
    while (at < commands.size() && makerPlace.contains(commands[at]))
      ++at;
    Operation *next = at < commands.size() ? commands[at] : func.getBody().front().getTerminator();
    for (Operation *op : ops)
      op->moveBefore(next);
  }
}

void UpdateSpeculator::run() {
  for (PresumedOp op : func.getOps<PresumedOp>())
    presumed[rootOfBuffer(op.getTruth())] = op;
  if (presumed.empty())
    return;
  findCommands();
  hoistMakers();
  SmallVector<Update> updates;
  for (Operation *command : commands)
    if (auto launch = dyn_cast<LaunchOp>(command))
      if (std::optional<Update> update = judge(launch))
        updates.push_back(std::move(*update));
  for (const Update &update : updates)
    if (comesEarlier(update))
      speculate(update);
  insertEarly();
  for (PresumedOp op : llvm::make_early_inc_range(func.getOps<PresumedOp>()))
    op.erase();
  placeBuffers(func);
}

namespace {
struct SpeculateUpdates : mlir::ds::impl::SpeculateUpdatesBase<SpeculateUpdates> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    UpdateSpeculator(getOperation()).run();
  }
};
} // namespace
