//===- PipelineSegments.cpp - A stage runs its micro-batches in an order of its own ---===//
//
// Problem: a segment that does a micro-batch forward and backward waits inside for the stages behind, and a
// pipeline of such segments works on one micro-batch at a time. Idea: once it is known what lies in memory,
// the segment falls apart (SegmentParts.h), and a schedule runs the parts of several micro-batches in turns:
//
//   @first    recv forward send recv backward send          @first.forward, @first.backward, @receive_value,
//   ...
//   @middle   the same, and adds                       ->   F0 F1 B0 F2 B1 ... and transfers beside them
//   @last     the same, adds and updates                    @last.update
//
// What one part leaves for another is in a state with slots (Slots.h): as many as micro-batches are between
// the two. Variants of a segment share these states by their types, for no two of them run for one
// micro-batch, and parts that say the same are one. Runs on different lanes wait for each other where they
// share a slot, and for nothing else (docs/pipelines.md).
//
// The price: what is kept has memory for the whole step, in the number of slots.
//
//===------------------------------------------------------------------------------===//
#include "Buffers/CopyCommands.h"
#include "SegmentParts.h"
#include "Snapshots.h"
#include "StageTimes.h"
#include "WeightValues.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/Slots.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_PIPELINESEGMENTS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

static constexpr std::array<StringLiteral, kSegmentParts> kPartNames = {
    "receive_value", "forward", "send_value", "receive_gradient", "backward", "send_gradient", "update"};

static Work workOf(SegmentPart part) {
  return part == SegmentPart::Forward    ? Work::Forward
         : part == SegmentPart::Backward ? Work::Backward
         : part == SegmentPart::Update   ? Work::Update
                                         : Work::Transfer;
}

namespace {
/// The states that segments leave for each other, by the type of what lies in a slot.
class SlotStates {
public:
  explicit SlotStates(ModuleOp module) : module(module) {}

  /// Begins another variant: it may use all states again.
  void begin() { used.clear(); }
  /// A state with one slot for what `alloc` holds.
  StateOp take(AllocOp alloc);

private:
  ModuleOp module;
  llvm::MapVector<Type, SmallVector<StateOp>> states;
  DenseMap<Type, unsigned> used;
  unsigned count = 0;
};

/// Rewrites one stage.
class SegmentSplitter {
public:
  SegmentSplitter(ModuleOp module, ScheduleOp schedule)
      : module(module), schedule(schedule), states(module) {}

  LogicalResult run(const StageTimes &times);

private:
  LogicalResult split(func::FuncOp func);
  LogicalResult carry(func::FuncOp func, AllocOp alloc);
  func::FuncOp makePart(func::FuncOp func, SegmentPart part, ArrayRef<Operation *> commands);

  ModuleOp module;
  ScheduleOp schedule;
  SlotStates states;
  DenseMap<StringAttr, std::array<func::FuncOp, kSegmentParts>> partsOf; ///< by the segment's name
  llvm::StringMap<func::FuncOp> known;                                   ///< parts by what they say
};
} // namespace

StateOp SlotStates::take(AllocOp alloc) {
  const BufferType type = alloc.getBuffer().getType();
  SmallVector<StateOp> &alike = states[type];
  const unsigned index = used[type]++;
  if (index < alike.size())
    return alike[index];
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  for (StateOp state : module.getOps<StateOp>())
    builder.setInsertionPointAfter(state);
  std::string name;
  do
    name = "slots_" + std::to_string(count++);
  while (module.lookupSymbol(name));
  auto state = builder.create<StateOp>(
      alloc.getLoc(), name, Role::Buffer, /*trainable=*/false, /*aliases=*/ArrayAttr(),
      /*owner=*/FlatSymbolRefAttr(), InitAttr::get(module.getContext(), InitKind::Zero, 0.0, 0.0),
      type.getSpace(), RankedTensorType::get({1, slotElements(type)}, type.getTensor().getElementType()));
  state.setSlots(1);
  alike.push_back(state);
  return state;
}

/// Has a state in the place of `alloc`.
LogicalResult SegmentSplitter::carry(func::FuncOp func, AllocOp alloc) {
  const BufferType type = alloc.getBuffer().getType();
  if (!type.isContiguous() || alloc.getAlignment())
    return alloc.emitOpError("expects to lie in one piece, as what waits between segments does, but is ")
           << type;
  Builder builder(func.getContext());
  const NamedAttribute held =
      builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(states.take(alloc)));
  func.insertArgument(func.getNumArguments(), type, builder.getDictionaryAttr(held), alloc.getLoc());
  alloc.getBuffer().replaceAllUsesWith(func.getArguments().back());
  alloc.erase();
  return success();
}

/// What `func` says but for its name.
static std::string textOf(func::FuncOp func) {
  const std::string name = func.getSymName().str();
  func.setSymName("part");
  std::string text;
  llvm::raw_string_ostream stream(text);
  func.print(stream, OpPrintingFlags().useLocalScope());
  func.setSymName(name);
  return text;
}

/// A segment of `commands`, which is one that is there already where that says the same; null for none.
func::FuncOp SegmentSplitter::makePart(func::FuncOp func, SegmentPart part, ArrayRef<Operation *> commands) {
  if (commands.empty())
    return {};
  OpBuilder builder(func);
  const StringLiteral ending = kPartNames[unsigned(part)];
  const std::string name = isTransfer(part) ? ending.str() : (func.getSymName() + "." + ending).str();
  auto made = builder.create<func::FuncOp>(func.getLoc(), name, builder.getFunctionType({}, {}));
  const SegmentAttr segment = SegmentAttr::of(func);
  const Work work = workOf(part);
  made->setAttr(DsDialect::kSegmentAttr,
                SegmentAttr::get(func.getContext(), segment.getStage(), segment.getChunk(), ArrayRef(work)));
  builder.setInsertionPointToStart(made.addEntryBlock());
  builder.setInsertionPoint(builder.create<func::ReturnOp>(func.getLoc()));
  CommandCopier copier(func, made, builder);
  for (Operation *command : commands)
    copier.copy(command);
  placeBuffers(made);
  // Runs of one backward do the same with gradients.
  func::FuncOp &alike = known[(part == SegmentPart::Backward ? func.getSymName() : "").str() + textOf(made)];
  if (alike) {
    made.erase();
    return alike;
  }
  for (unsigned number = 0; module.lookupSymbol(made.getSymNameAttr()) != made; ++number)
    made.setSymName(name + "_" + std::to_string(number));
  return alike = made;
}

LogicalResult SegmentSplitter::split(func::FuncOp func) {
  remakeWeightValues(func);
  if (failed(keepSnapshots(func)))
    return failure();
  FailureOr<SegmentParts> parts = SegmentParts::of(func);
  if (failed(parts))
    return failure();
  states.begin();
  for (AllocOp alloc : parts->getShared())
    if (failed(carry(func, alloc)))
      return failure();
  std::array<func::FuncOp, kSegmentParts> &made = partsOf[func.getSymNameAttr()];
  for (unsigned part = 0; part < kSegmentParts; ++part)
    made[part] = makePart(func, SegmentPart(part), parts->commands(SegmentPart(part)));
  func.erase();
  return success();
}

LogicalResult SegmentSplitter::run(const StageTimes &times) {
  SmallVector<StringAttr> segments; // by micro-batch
  for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>())
    segments.append(run.getCount(), run.getSegment().getAttr());
  for (StringAttr name : segments)
    if (!partsOf.contains(name) && failed(split(module.lookupSymbol<func::FuncOp>(name))))
      return failure();
  return times.write(module, schedule, [&](unsigned microBatch, SegmentPart part) {
    return partsOf.lookup(segments[microBatch])[unsigned(part)];
  });
}

namespace {
struct PipelineSegments : mlir::ds::impl::PipelineSegmentsBase<PipelineSegments> {
  using PipelineSegmentsBase::PipelineSegmentsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    const MeshShape shape = getMeshShape(module);
    const int64_t stages = shape.mesh.size(shape.stages);
    auto schedules = llvm::to_vector(module.getOps<ScheduleOp>());
    const int64_t microBatches = schedules.size() == 1 ? countWhole(module, schedules.front()) : 0;
    if (stages == 1 || microBatches == 0)
      return markAllAnalysesPreserved();
    FailureOr<StageTimes> times = StageTimes::make(module, stages, microBatches, schedule);
    if (failed(times) || failed(SegmentSplitter(module, schedules.front()).run(*times)))
      signalPassFailure();
  }

  /// The micro-batches of a step of which each run is of a segment that does all of one; else 0.
  static int64_t countWhole(ModuleOp module, ScheduleOp schedule) {
    int64_t microBatches = 0;
    for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>()) {
      SegmentAttr segment = SegmentAttr::of(module.lookupSymbol<func::FuncOp>(run.getSegment()));
      if (!segment.does(Work::Forward) || !segment.does(Work::Backward))
        return 0;
      microBatches += run.getCount();
    }
    return microBatches;
  }
};
} // namespace
