//===- PlanSummary.cpp - What a planned module says of itself --------------------===//
//
// Every figure of memory comes from the sizes and lifetimes of the planned buffers, every figure of time from
// the simulation of their commands.
//
//===---------------------------------------------------------------------------===//
#include "ds/Planner/PlanSummary.h"
#include "CountStates.h"
#include "ExplainPeak.h"
#include "PlanBuffers.h"
#include "PlanNotes.h"
#include "StepSimulation.h"
#include "ds/Analysis/Packing/MemoryPlan.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Training.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Runtime/Checkpoint/ShardPlan.h"
#include "ds/Runtime/Program/Program.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;
namespace report = ::ds::report;

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
  report.mesh = {size("dp"), size("tp"), size("pp"), size("sp")};
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

report::PlanReport mlir::ds::summarizePlan(ModuleOp module, const ::ds::cost::Rates &rates) {
  report::PlanReport report;
  report::RankPlan rank;
  report.parameters = countParameters(module);
  if (const int64_t trained = countParameters(module, /*onlyTrained=*/true); trained < report.parameters)
    report.trainedParameters = trained;
  addMemory(module, rank);
  double flops = flopsPerStep(module);
  report.predicted = predictStep(module, rates, flops);
  describeChoices(module, report);
  addCommunication(module, report);
  describeLoss(module, report);
  describeRecomputed(module, report);
  describeLargestValues(module, report);
  describeAttention(module, report);
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
  report.target = getTarget(module).str();
  return report;
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
