//===- StageTimes.cpp - When a stage runs which part of which micro-batch ----------===//
#include "StageTimes.h"

#include "ds/Dialect/Stages.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/Slots.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

FailureOr<StageTimes> StageTimes::make(ModuleOp module, int64_t stages, int64_t microBatches,
                                       StringRef schedule) {
  // Of equal costs, so that all stages make the same one: backward takes twice as long as forward.
  const analysis::PipelineChunk chunk{.forward = 1, .inputGradient = 1, .weightGradient = 1};
  const analysis::PipelineProblem problem =
      analysis::makeEqualChunks(uint32_t(stages), 1, uint32_t(microBatches), chunk);
  analysis::PipelineTable table;
  if (schedule == "gpipe") {
    table = analysis::makeGPipe(problem);
  } else if (schedule == "1f1b") {
    table = analysis::makeOneForwardOneBackward(problem);
  } else {
    ::ds::Result<analysis::PipelineTable> read = analysis::parsePipelineTable(problem, schedule);
    if (!read)
      return module.emitError("the schedule of stages: ") << read.error().message;
    table = std::move(*read);
    for (const std::vector<analysis::PipelineEntry> &entries : table)
      for (const analysis::PipelineEntry &entry : entries)
        if (entry.work != analysis::PipelineWork::Forward && entry.work != analysis::PipelineWork::Backward)
          return module.emitError("the schedule of stages: expects backward to be whole, B, but got ")
                 << analysis::spell(problem, entry);
  }
  if (const std::string mistake = analysis::findMistake(problem, table); !mistake.empty())
    return module.emitError("the schedule of stages: ") << mistake;
  StageTimes times;
  times.stage = unsigned(*findStageNumber(module));
  times.items = analysis::makeTimetable(problem, table)[times.stage];
  return times;
}

/// The part that `item` is of stage `stage`; nothing for what is no whole part.
static std::optional<SegmentPart> partOf(const analysis::PipelineItem &item) {
  const bool isForward = item.entry.work == analysis::PipelineWork::Forward;
  switch (item.kind) {
  case analysis::PipelineItem::Compute:
    return isForward ? SegmentPart::Forward : SegmentPart::Backward;
  case analysis::PipelineItem::Send:
    return isForward ? SegmentPart::SendValue : SegmentPart::SendGradient;
  case analysis::PipelineItem::Receive:
    return isForward ? SegmentPart::ReceiveValue : SegmentPart::ReceiveGradient;
  }
  llvm_unreachable("all items are known");
}

namespace {
/// The runs of one schedule as they are written.
class RunWriter {
public:
  explicit RunWriter(int64_t microBatches) : microBatches(microBatches) {}

  void add(func::FuncOp func, int64_t microBatch, SegmentPart part);
  /// Gives slots to all that waits, and has each run wait for whom it shares them with.
  SmallVector<Attribute> finish(ModuleOp module);

private:
  struct Run {
    func::FuncOp func;
    int64_t microBatch;
    SegmentPart part;
  };
  /// When a state is touched, by micro-batch.
  struct Range {
    std::vector<int64_t> first, last;
    int64_t slots = 1;
  };
  void findRanges();
  void touch(StringAttr name, int64_t microBatch, int64_t at);
  void giveSlots(ModuleOp module);
  SmallVector<int64_t> waitsOf(const Run &run);

  const int64_t microBatches;
  SmallVector<Run> runs;
  llvm::MapVector<StringAttr, Range> ranges;                                ///< of states with slots, by name
  DenseMap<std::pair<StringAttr, int64_t>, std::array<int64_t, 2>> touched; ///< by name and slot, by lane
  std::array<int64_t, 2> counts{};                                          ///< of runs, by lane
};
} // namespace

void RunWriter::add(func::FuncOp func, int64_t microBatch, SegmentPart part) {
  if (func)
    runs.push_back({func, microBatch, part});
}

/// The state with slots that argument `index` of `func` is; null for none.
static StringAttr slotsIn(func::FuncOp func, unsigned index) {
  FlatSymbolRefAttr name = getStateOf(func, index);
  auto state = name ? SymbolTable::lookupNearestSymbolFrom<StateOp>(func, name) : StateOp();
  return state && state.getSlots() ? name.getAttr() : StringAttr();
}

void RunWriter::touch(StringAttr name, int64_t microBatch, int64_t at) {
  Range &range = ranges[name];
  if (range.first.empty()) {
    range.first.assign(microBatches, std::numeric_limits<int64_t>::max());
    range.last.assign(microBatches, -1);
  }
  range.first[microBatch] = std::min(range.first[microBatch], at);
  range.last[microBatch] = std::max(range.last[microBatch], at);
}

void RunWriter::findRanges() {
  for (auto [at, run] : llvm::enumerate(runs))
    for (unsigned index = 0; index < run.func.getNumArguments(); ++index)
      if (StringAttr name = slotsIn(run.func, index))
        touch(name, run.microBatch, int64_t(at));
}

void RunWriter::giveSlots(ModuleOp module) {
  for (auto &[name, range] : ranges) {
    range.slots = analysis::countSlots(range.first, range.last);
    auto state = module.lookupSymbol<StateOp>(name);
    state.setSlots(range.slots);
    state.setType(state.getTensorType().clone({range.slots, state.getTensorType().getDimSize(1)}));
  }
}

/// Runs of the other lane that are to be over before `run`, which is counted.
SmallVector<int64_t> RunWriter::waitsOf(const Run &run) {
  const unsigned own = isTransfer(run.part), other = 1 - own;
  int64_t after = 0;
  ++counts[own];
  func::FuncOp func = run.func;
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    StringAttr name = slotsIn(func, index);
    if (!name)
      continue;
    auto &last = touched[{name, run.microBatch % ranges[name].slots}];
    after = std::max(after, last[other]);
    last[own] = counts[own];
  }
  return after == 0 ? SmallVector<int64_t>() : SmallVector<int64_t>{after, 0};
}

SmallVector<Attribute> RunWriter::finish(ModuleOp module) {
  findRanges();
  giveSlots(module);
  SmallVector<Attribute> written;
  bool areSet = false;
  for (const Run &run : runs) {
    const bool isBackward = run.part == SegmentPart::Backward;
    const Gradients gradients = !isBackward ? Gradients::None : areSet ? Gradients::Add : Gradients::Set;
    areSet |= isBackward;
    written.push_back(
        RunAttr::get(module.getContext(), FlatSymbolRefAttr::get(func::FuncOp(run.func)), run.microBatch,
                     /*count=*/1, gradients,
                     /*reduced=*/isBackward && run.microBatch + 1 == microBatches, waitsOf(run)));
  }
  return written;
}

LogicalResult StageTimes::write(ModuleOp module, ScheduleOp schedule, FindSegment find) const {
  int64_t microBatches = 0;
  for (const analysis::PipelineItem &item : items)
    microBatches = std::max<int64_t>(microBatches, item.entry.microBatch + 1);
  RunWriter writer(microBatches);
  for (const analysis::PipelineItem &item : items)
    if (std::optional<SegmentPart> part = partOf(item))
      writer.add(find(item.entry.microBatch, *part), item.entry.microBatch, *part);
  const auto last = unsigned(microBatches - 1);
  writer.add(find(last, SegmentPart::Update), last, SegmentPart::Update);
  schedule.setRunsAttr(ArrayAttr::get(module.getContext(), writer.finish(module)));
  return success();
}
