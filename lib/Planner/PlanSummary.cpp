//===- PlanSummary.cpp - What a planned module says of itself --------------------===//
//
// Every figure of memory comes from the sizes and lifetimes of the planned buffers, every figure of time from
// the simulation of their commands. Of a model that is cut into stages each is planned and summed up for
// itself: what is of one rank stays of its stage, what is of all ranks is added up, and of lists the longest
// entries come first again.
//
//===---------------------------------------------------------------------------===//
#include "ds/Planner/PlanSummary.h"
#include "CountStates.h"
#include "ExplainPeak.h"
#include "PlanBuffers.h"
#include "PlanNotes.h"
#include "StageSimulation.h"
#include "StepSimulation.h"
#include "ds/Analysis/Packing/MemoryPlan.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Stages.h"
#include "ds/Dialect/Training.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Runtime/Checkpoint/ShardPlan.h"
#include "ds/Runtime/Program/Program.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;
namespace report = ::ds::report;
using report::PlanReport;

/// Adds the lines of the arena of `space`, whose memory is `where`; its bytes, 0 where there is none.
static int64_t addArena(ModuleOp module, Space space, const char *where, report::RankPlan &rank) {
  ArenaOp arena = ArenaOp::lookup(module, space);
  const int64_t bytes = arena ? arena.getBytes() : 0;
  if (bytes > 0)
    llvm::append_range(rank.memory, report::listParts(listElsewhere(module, space), bytes, where));
  return bytes;
}

/// What the rank keeps, what lies in its arena at the peak, and the curve of which that is the top.
static void addMemory(ModuleOp module, report::RankPlan &rank) {
  rank.states = countStateBytes(module, analysis::PackProblem().alignment);
  ArenaOp arena = ArenaOp::lookup(module, Space::Device);
  rank.lowerBound = arena ? arena.getLowerBound() : 0;
  SymbolTable symbols(module);
  LiveCurve live = findLiveCurve(module);
  rank.peakAt = live.peak.spell(symbols);
  describePeak(explainPeak(module, live.peak), arena ? arena.getBytes() : 0, rank);
  const char *host = isForCuda(module) ? "host, page-locked" : "host";
  rank.hostArena = addArena(module, Space::Host, host, rank);
  rank.nvmeArena = addArena(module, Space::Nvme, "nvme", rank);
  for (StateOp state : getPlacedStates(module))
    if (state.getRole() == Role::Parameter && state.getHome() == Space::Nvme)
      rank.nvmeParameters += reservedBytes(BufferType::getContiguous(state.getLocalType(), Space::Nvme));
  int64_t wholeStep = 0;
  for (const WholeBuffer &whole : findWholeBuffers(module))
    wholeStep += whole.type.getSpace() == Space::Device ? whole.type.getSizeInBytes() : 0;
  for (int64_t bytes : live.bytes)
    rank.liveBytes.push_back(wholeStep + bytes);
}

/// Tokens that all ranks read in a step, counted as a run counts them: the elements of the first input that
/// is a matrix of integers; 0: there is none.
static int64_t tokensPerStep(ModuleOp module) {
  const TrainingOptions training = getTraining(module);
  for (const WholeBuffer &whole : findWholeBuffers(module)) {
    RankedTensorType type = whole.type.getTensor();
    if (whole.part == report::PeakPart::Inputs && type.getRank() == 2 &&
        (type.getElementType().isInteger(64) || type.getElementType().isInteger(32)))
      return type.getNumElements() * training.accumulation * MeshOp::countSampleRanks(module);
  }
  return 0;
}

/// Operations of the library functions that one rank runs in a step, or of those that recompute what forward
/// made.
static double flopsPerStep(ModuleOp module, bool onlyRecompute = false) {
  double flops = 0;
  for (func::FuncOp func : getSegments(module)) {
    auto runs = static_cast<double>(runsPerStep(func)); // goes through all states: not for each call
    for (CallOp call : func.getOps<CallOp>())
      if (!onlyRecompute || getWork(call) == Work::Recompute)
        flops += runs * static_cast<double>(call.getFlops().value_or(0));
  }
  return flops;
}

/// What saving the module's states takes.
static void addCheckpoint(ModuleOp module, report::PlanReport &report) {
  const FailureOr<::ds::rt::Program> states = lowerStates(module);
  if (succeeded(states))
    report.checkpoint = {static_cast<int64_t>(::ds::rt::checkpointBytes(*states)),
                         static_cast<int64_t>(::ds::rt::mostSnapshotBytes(*states))};
}

/// Bytes that one rank reads from storage and writes there in a step.
static void addStorage(ModuleOp module, report::PlanReport &report) {
  if (!ArenaOp::lookup(module, Space::Nvme))
    return;
  report::StorageTraffic traffic;
  for (func::FuncOp func : getSegments(module)) {
    int64_t runs = runsPerStep(func);
    for (TransferOp op : func.getOps<TransferOp>())
      if (op.getStream() == StreamKind::Storage) {
        bool reads = op.getSource().getType().getSpace() == Space::Nvme;
        BufferType stored = reads ? op.getSource().getType() : op.getTarget().getType();
        (reads ? traffic.readBytes : traffic.writtenBytes) += runs * reservedBytes(stored);
      }
  }
  report.storage = traffic;
}

/// Bytes of the host's arena that storage is moved through: io_uring holds them in memory.
static int64_t registeredBytes(ModuleOp module) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (func::FuncOp func : getSegments(module))
    for (TransferOp op : func.getOps<TransferOp>()) {
      if (op.getStream() != StreamKind::Storage)
        continue;
      bool reads = op.getSource().getType().getSpace() == Space::Nvme;
      BufferAccess window = windowOf(reads ? op.getTarget() : op.getSource());
      if (auto alloc = window.root.getDefiningOp<AllocOp>(); alloc && alloc.getOffset())
        ranges.push_back({*alloc.getOffset() + window.begin, *alloc.getOffset() + window.end});
    }
  llvm::sort(ranges);
  int64_t bytes = 0, reached = 0;
  for (auto [begin, end] : ranges) {
    bytes += std::max<int64_t>(0, llvm::alignTo(end, ::ds::rt::kStorageUnit) - std::max(begin, reached));
    reached = std::max<int64_t>(reached, llvm::alignTo(end, ::ds::rt::kStorageUnit));
  }
  return bytes;
}

/// What the ranks of a node take of its memory. A GPU copies from page-locked memory alone.
static void addHost(ModuleOp module, const ::ds::cost::Rates &rates, report::PlanReport &report) {
  int64_t bytes = report.ranks.front().hostArena;
  if (bytes == 0)
    return;
  int64_t onNode = std::min<int64_t>(report.world, std::max<int64_t>(1, rates.cluster().devicesPerNode));
  report.host = {onNode * bytes, isForCuda(module) ? bytes : registeredBytes(module)};
}

/// Adds to `report` the mesh of `module`, what a rank sends in one step, each collective as often as a step
/// runs it, and what stays gathered.
static void addCommunication(ModuleOp module, report::PlanReport &report) {
  MeshOp mesh = MeshOp::lookup(module);
  if (!mesh)
    return;
  auto size = [&](StringRef axis) { return static_cast<uint32_t>(mesh.getSize(axis)); };
  const AxesAttr stages = mesh.getStagesAttr();
  report.mesh = {size("dp"), size("tp"), stages ? static_cast<uint32_t>(mesh.getSize(stages)) : size("pp"),
                 size("sp")};
  report.world = static_cast<uint32_t>(mesh.getNumRanks());
  llvm::MapVector<CollectiveKind, int64_t> bytes;
  llvm::MapVector<std::pair<CollectiveKind, AxesAttr>, int64_t> byAxes;
  for (func::FuncOp func : getSegments(module)) {
    int64_t runs = runsPerStep(func);
    for (CommunicateOp op : func.getOps<CommunicateOp>()) {
      const int64_t sent = runs * op.getSentBytes(mesh.getSize(op.getAxes()));
      bytes[op.getKind()] += sent;
      byAxes[{op.getKind(), nameAxes(module.getContext(), mesh.getMesh(), mesh.find(op.getAxes()))}] += sent;
    }
    if (runs > 0)
      describeGathers(func, report);
  }
  for (auto [kind, sent] : bytes)
    report.predicted.communicationBytes.push_back({stringifyCollectiveKind(kind).str(), sent});
  llvm::sort(report.predicted.communicationBytes);
  for (auto [key, sent] : byAxes)
    report.predicted.communicationByAxes.push_back(
        {stringifyCollectiveKind(key.first).str(), llvm::join(key.second.getNames(), ", "), sent});
  llvm::sort(report.predicted.communicationByAxes);
}

/// What the plan of `module`, one stage or a model of one piece, says of itself.
static report::PlanReport summarizeStage(ModuleOp module, const ::ds::cost::Rates &rates) {
  report::PlanReport report;
  report::RankPlan rank;
  report.parameters = countParameters(module);
  if (const int64_t trained = countParameters(module, /*onlyTrained=*/true); trained < report.parameters)
    report.trainedParameters = trained;
  addMemory(module, rank);
  double flops = flopsPerStep(module);
  report.predicted = predictStep(module, rates, flops);
  describeChoices(module, report);
  describeSharedLayers(module, report);
  addCommunication(module, report);
  describeLoss(module, report);
  describeRecomputed(module, report);
  describeLargestValues(module, report);
  describeAttention(module, rates, report);
  addCheckpoint(module, report);
  addStorage(module, report);
  rank.lastRank = report.world - 1;
  report.flopsPerStep = report.hardwareFlops = flops * report.world;
  report.modelFlops = (flops - flopsPerStep(module, /*onlyRecompute=*/true)) * report.world;
  report.tokensPerStep = tokensPerStep(module);
  report.ranks.push_back(std::move(rank));
  addHost(module, rates, report);
  if (std::string early = describeSpeculation(module, rates); !early.empty())
    report.notes.push_back(early);
  if (std::string late = describeLateUpdates(module); !late.empty())
    report.notes.push_back(late);
  report.target = getTarget(module).str();
  return report;
}

//===----------------------------------------------------------------------===//
// Several stages
//===----------------------------------------------------------------------===//

/// Elements of all parameters, or of those that are trained; those that several stages have count once.
static int64_t countOfStages(ArrayRef<ModuleOp> stages, bool onlyTrained = false) {
  llvm::StringSet<> seen;
  int64_t elements = 0;
  for (ModuleOp stage : stages)
    for (StateOp state : stage.getOps<StateOp>())
      if (state.getRole() == Role::Parameter && !state.getBucket() &&
          (state.getTrainable() || !onlyTrained) && seen.insert(state.getSymName()).second)
        elements += state.getTensorType().getNumElements();
  return elements;
}

/// The ranks of all stages: a row for each run of neighbours of one stage.
static std::vector<report::RankPlan> joinRanks(const MeshShape &shape, ArrayRef<PlanReport> reports) {
  std::vector<report::RankPlan> rows;
  for (uint32_t rank = 0; rank < shape.mesh.size(); ++rank) {
    const uint32_t stage = shape.mesh.position(rank, shape.stages);
    if (rows.empty() || rows.back().stage != stage) {
      rows.push_back(reports[stage].ranks.front());
      rows.back().stage = stage;
      rows.back().firstRank = rank;
    }
    rows.back().lastRank = rank;
  }
  return rows;
}

/// Adds what is not in `list` yet.
static void addNew(std::vector<std::string> &list, std::vector<std::string> more) {
  for (std::string &each : more)
    if (!llvm::is_contained(list, each))
      list.push_back(std::move(each));
}

/// Adds what `more`, of a stage behind the first, says to `whole`.
static void addReport(PlanReport &whole, PlanReport more) {
  auto most = [](auto &own, const auto &other, auto key) {
    if (other && (!own || key(*own) < key(*other)))
      own = other;
  };
  whole.flopsPerStep += more.flopsPerStep;
  whole.hardwareFlops += more.hardwareFlops;
  whole.modelFlops += more.modelFlops;
  if (whole.tokensPerStep == 0)
    whole.tokensPerStep = more.tokensPerStep;
  whole.hostActivations.values += more.hostActivations.values;
  whole.hostActivations.bytes += more.hostActivations.bytes;
  most(whole.lossChunks, more.lossChunks, [](const report::LossChunks &each) { return each.chunks; });
  most(whole.attentionChoice, more.attentionChoice,
       [](const report::AttentionChoice &each) { return each.seconds; });
  most(whole.attention, more.attention, [](const report::AttentionWorkspace &each) { return each.bytes; });
  most(whole.checkpoint, more.checkpoint, [](const report::CheckpointBytes &each) { return each.copyBytes; });
  most(whole.storage, more.storage, [](const report::StorageTraffic &each) { return each.readBytes; });
  most(whole.host, more.host, [](const report::HostUse &each) { return each.nodeBytes; });
  llvm::append_range(whole.recomputed, more.recomputed);
  llvm::append_range(whole.largestValues, more.largestValues);
  llvm::append_range(whole.products, more.products);
  addNew(whole.notes, std::move(more.notes));
}

/// What `reports`, one for each of `stages`, say of the whole: ranks by stage, and what a rank sends of rank
/// 0. How long a step takes is left open.
static PlanReport joinReports(ArrayRef<ModuleOp> stages, std::vector<PlanReport> reports) {
  const MeshShape shape = getMeshShape(stages.front());
  PlanReport whole = reports.front();
  whole.ranks = joinRanks(shape, reports);
  report::Prediction predicted;
  predicted.communicationBytes = whole.predicted.communicationBytes;
  predicted.communicationByAxes = whole.predicted.communicationByAxes;
  whole.predicted = predicted;
  for (PlanReport &more : llvm::drop_begin(reports))
    addReport(whole, std::move(more));
  // Each stage has counted itself on all ranks.
  const auto count = static_cast<double>(stages.size());
  for (double *flops : {&whole.flopsPerStep, &whole.hardwareFlops, &whole.modelFlops})
    *flops /= count;
  llvm::stable_sort(whole.recomputed, [](const report::Recomputed &a, const report::Recomputed &b) {
    return a.moreSeconds > b.moreSeconds;
  });
  llvm::stable_sort(whole.largestValues, [](const report::ResidentValue &a, const report::ResidentValue &b) {
    return a.bytes > b.bytes;
  });
  whole.parameters = countOfStages(stages);
  if (const int64_t trained = countOfStages(stages, /*onlyTrained=*/true); trained < whole.parameters)
    whole.trainedParameters = trained;
  return whole;
}

/// Each stage's segments in the order in which it runs them.
static std::vector<std::vector<report::ScheduledRun>> scheduleOf(ArrayRef<ModuleOp> stages) {
  std::vector<std::vector<report::ScheduledRun>> all;
  for (ModuleOp stage : stages) {
    std::vector<report::ScheduledRun> &own = all.emplace_back();
    for (ScheduleOp schedule : stage.getOps<ScheduleOp>())
      for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>())
        for (int64_t count = 0; count < run.getCount(); ++count)
          own.push_back({run.getSegment().getValue().str(), run.getFirst() + count});
  }
  return all;
}

/// Says in `report`, of a rank's `report.flopsPerStep`, how long a step of `stages` takes, and how much of it
/// each of them computes.
static void predictStages(ArrayRef<ModuleOp> stages, const ::ds::cost::Rates &rates, PlanReport &report) {
  const std::optional<SmallVector<StageRun>> runs = simulateStages(stages, rates);
  if (!runs) {
    report.notes.push_back("how long a step takes is not predicted: its " + std::to_string(stages.size()) +
                           " stages wait for each other inside of segments");
    return;
  }
  double seconds = 0;
  for (const StageRun &run : *runs)
    seconds = std::max(seconds, run.endSeconds);
  report.predicted.stepSeconds = seconds;
  if (seconds == 0)
    return;
  report.predicted.tflopsPerDevice = report.flopsPerStep / report.world / seconds / 1e12;
  std::string shares;
  for (auto [stage, run] : llvm::enumerate(*runs))
    shares += (stage == 0 ? "of a step, stage " : ", stage ") + std::to_string(stage) +
              (stage == 0 ? " computes for " : " for ") +
              std::to_string(std::lround(100 * run.computeSeconds / seconds)) + " %";
  report.notes.push_back(shares);
}

report::PlanReport mlir::ds::summarizePlan(ModuleOp module, const ::ds::cost::Rates &rates) {
  if (!hasStages(module))
    return summarizeStage(module, rates);
  SmallVector<ModuleOp> stages = getStages(module);
  std::vector<report::PlanReport> reports;
  for (ModuleOp stage : stages)
    reports.push_back(summarizeStage(stage, rates));
  report::PlanReport whole = joinReports(stages, std::move(reports));
  predictStages(stages, rates, whole);
  whole.schedule = scheduleOf(stages);
  const FailureOr<::ds::rt::Program> states = lowerStates(module);
  if (succeeded(states) && whole.checkpoint)
    whole.checkpoint->bytes = static_cast<int64_t>(::ds::rt::checkpointBytes(*states));
  return whole;
}

bool mlir::ds::hostsHold(const report::PlanReport &report, const ::ds::config::Cluster &cluster,
                         bool isShared) {
  int64_t onNode = std::min<int64_t>(report.world, std::max<int64_t>(1, cluster.devicesPerNode));
  return llvm::all_of(report.ranks, [&](const report::RankPlan &rank) {
    if (rank.hostArena == 0)
      return true;
    if (report.hostLimit > 0)
      return rank.hostArena <= report.hostLimit;
    if (isShared)
      return report.memoryLimit <= 0 || rank.deviceArena + rank.hostArena <= report.memoryLimit;
    return cluster.host.memoryBytes <= 0 || onNode * rank.hostArena <= cluster.host.memoryBytes;
  });
}
