//===- RotateUpdates.cpp - The host's updates beside the next step's forward --------===//
//
// Problem: with clipping or a check for overflows the host updates when the last gradient is there, and the
// device is idle until the last parameter is back. Idea: the next step begins with those updates, in the
// order in which its forward reads what they make, so that it waits for the first layer's alone:
//
//   last      ... backward   norm                     host  update 0   update 1   update 2   ...
//   rotated                                        compute             layer 0    layer 1    ...
//
// What is late is cut out of the segment that updates (LateCommands.h) and put before a copy of the segment
// that a schedule begins with; a segment of late updates alone serves whoever reads states between two steps.
// Events order what then runs side by side, as all else, by what it touches. The price: what the updates read
// of the step, gradients above all, has memory of its own for the whole step, and the program one segment
// more that forwards.
//
//===---------------------------------------------------------------------------===//
#include "Buffers/CopyCommands.h"
#include "LateCommands.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/LateUpdates.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

namespace mlir::ds {
#define GEN_PASS_DEF_ROTATEUPDATES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// Rewrites one module.
class UpdateRotator {
public:
  explicit UpdateRotator(ModuleOp module) : module(module) {}
  /// Why the module stays as it is, or nothing.
  std::optional<std::string> run();

private:
  std::optional<std::string> findSegments();
  void carry(AllocOp alloc);
  func::FuncOp makeFlush(const LateCommands &late);
  void removeFromUpdate(const LateCommands &late);
  func::FuncOp makeRotated();
  void insertLate(func::FuncOp into, func::FuncOp flush);
  std::string freeName(StringRef wanted);

  ModuleOp module;
  func::FuncOp first, update; ///< of the schedule; the same where it runs one segment
  int64_t numCarried = 0;
};
} // namespace

/// Finds what the schedule begins and ends with.
std::optional<std::string> UpdateRotator::findSegments() {
  auto schedules = llvm::to_vector(module.getOps<ScheduleOp>());
  const MeshShape shape = getMeshShape(module);
  if (schedules.size() != 1 || shape.mesh.size(shape.stages) > 1)
    return "the step has several stages";
  auto runs = llvm::to_vector(schedules.front().getRuns().getAsRange<RunAttr>());
  first = module.lookupSymbol<func::FuncOp>(runs.front().getSegment());
  update = module.lookupSymbol<func::FuncOp>(runs.back().getSegment());
  if (!first || !update || !SegmentAttr::of(update).does(Work::Update))
    return "the last segment does not update";
  if (runs.front().getCount() != 1 || !SegmentAttr::of(first).does(Work::Forward))
    return "the first segment runs for several micro-batches, or does not forward";
  if (getRotated(module) || getFlush(module))
    return "updates are late already";
  for (StateOp state : module.getOps<StateOp>())
    if (state.getGatheredFrom())
      return "a value stays gathered for the step";
  return std::nullopt;
}

std::string UpdateRotator::freeName(StringRef wanted) {
  std::string name = wanted.str();
  for (unsigned number = 0; module.lookupSymbol(name); ++number)
    name = (wanted + "_" + Twine(number)).str();
  return name;
}

/// Makes a state of `alloc`, which the update leaves for what is late.
void UpdateRotator::carry(AllocOp alloc) {
  BufferType type = alloc.getBuffer().getType();
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  for (StateOp state : module.getOps<StateOp>())
    builder.setInsertionPointAfter(state);
  auto state = builder.create<StateOp>(
      alloc.getLoc(), freeName("late_" + std::to_string(numCarried++)), Role::Buffer, /*trainable=*/false,
      /*aliases=*/ArrayAttr(), /*owner=*/FlatSymbolRefAttr(),
      InitAttr::get(module.getContext(), InitKind::Zero, 0.0, 0.0), type.getSpace(), type.getTensor());
  setWork(state, Work::Update);
  alloc.getBuffer().replaceAllUsesWith(addStateArgument(update, state));
  alloc.erase();
}

/// A segment that does what is late and nothing else, in the order in which `first` reads it.
func::FuncOp UpdateRotator::makeFlush(const LateCommands &late) {
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfter(update);
  auto flush = builder.create<func::FuncOp>(update.getLoc(), freeName("late_updates"),
                                            builder.getFunctionType({}, {}));
  flush->setAttr(DsDialect::kSegmentAttr, SegmentAttr::get(module.getContext(), {Work::Update}));
  builder.setInsertionPointToStart(flush.addEntryBlock());
  builder.setInsertionPoint(builder.create<func::ReturnOp>(update.getLoc()));
  CommandCopier copier(update, flush, builder);
  for (Operation *command : late.inOrderOf(first))
    copier.copy(command);
  placeBuffers(flush);
  return flush;
}

/// Erases the arguments of `func` for states that nothing reads.
static void eraseUnusedStates(func::FuncOp func) {
  BitVector unused(func.getNumArguments());
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    unused[index] = getStateOf(func, index) && func.getArgument(index).use_empty();
  func.eraseArguments(unused);
}

void UpdateRotator::removeFromUpdate(const LateCommands &late) {
  for (Operation *command : late.commands())
    command->erase();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(update.getBody().front())))
    if (isa<ViewOp, AllocOp>(op) && op.use_empty())
      op.erase();
  eraseUnusedStates(update);
  placeBuffers(update);
}

/// A copy of the first segment, which is still to begin with what is late.
func::FuncOp UpdateRotator::makeRotated() {
  func::FuncOp rotated = first.clone();
  rotated.setName(freeName((first.getName() + "_after_update").str()));
  SegmentAttr segment = SegmentAttr::of(first);
  SmallVector<Work> works(segment.getWorks());
  if (!segment.does(Work::Update)) // the last of a step's works
    works.push_back(Work::Update);
  rotated->setAttr(DsDialect::kSegmentAttr,
                   SegmentAttr::get(module.getContext(), segment.getStage(), segment.getChunk(), works));
  module.insert(std::next(update->getIterator()), rotated);
  return rotated;
}

/// Puts the commands of `flush` into `into`: before all others, but for those of the compute stream and what
/// comes after them, which stand before the first that touches what they do.
void UpdateRotator::insertLate(func::FuncOp into, func::FuncOp flush) {
  Operation *start = &into.getBody().front().front();
  OpBuilder builder(start);
  CommandCopier copier(flush, into, builder);
  SmallVector<Operation *> copies;
  for (ScheduledOpInterface command : flush.getBody().front().getOps<ScheduledOpInterface>())
    copies.push_back(copier.copy(command));
  for (auto [tail, place] : placeTails(into, copies))
    for (Operation *command : tail)
      command->moveBefore(place);
  placeBuffers(into);
}

std::optional<std::string> UpdateRotator::run() {
  if (std::optional<std::string> reason = findSegments())
    return reason;
  LateCommands late(update);
  if (std::optional<std::string> reason = late.findFault())
    return reason;
  for (AllocOp alloc : late.findCarried())
    carry(alloc);
  func::FuncOp flush = makeFlush(late);
  removeFromUpdate(late);
  insertLate(makeRotated(), flush);
  return std::nullopt;
}

namespace {
struct RotateUpdates : mlir::ds::impl::RotateUpdatesBase<RotateUpdates> {
  using RotateUpdatesBase::RotateUpdatesBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    std::optional<std::string> reason = UpdateRotator(getOperation()).run();
    if (reason && remarks)
      getOperation().emitRemark("no update is late: ") << *reason;
  }
};
} // namespace
