//===- PlanSummary.cpp - What a planned module says of itself --------------------===//
//
// Sweeps each segment's commands once to find the moment at which most bytes are live, then lists what is
// live there, by category and by layer. What the arena has beyond those bytes (alignment, and gaps that the
// packing could not fill) counts as workspace, so that the categories add up to the arena.
//
//===---------------------------------------------------------------------------===//
#include "CountStates.h"
#include "ExplainPeak.h"
#include "PlanBuffers.h"
#include "StepPlay.h"
#include "TrainingAttr.h"
#include "ds/Passes/Analysis/MemoryPlan.h"
#include "ds/Passes/LowerToProgram.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

std::string mlir::ds::layerOf(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string layer = layerOf(part); !layer.empty())
        return layer;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return layerOf(call.getCallee());
  return "";
}

std::string mlir::ds::nameOfCommand(Operation *command, SymbolTable &symbols) {
  if (auto call = dyn_cast<CallOp>(command))
    return call.getCallee().str();
  if (auto communicate = dyn_cast<CommunicateOp>(command))
    return stringifyCollectiveKind(communicate.getKind()).str();
  if (!isa<LaunchOp>(command))
    return command->getName().stripDialect().str(); // an event
  auto kernel = symbols.lookup<KernelOp>(cast<LaunchOp>(command).getKernel());
  // A reduction says more than the arithmetic around it; otherwise the last op is what the kernel is for.
  StringRef name;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (isa<ReduceOp>(op) || !name.starts_with("reduce"))
      name = op.getName().stripDialect();
  return name.str();
}

/// Adds what lives all the time to `rank`: inputs to the bytes of its peak, states to the values there too.
/// Returns its bytes.
static int64_t addWhole(ModuleOp module, analysis::RankPlan &rank) {
  int64_t total = 0;
  rank.states = countStateBytes(module, analysis::PackProblem().alignment);
  for (const WholeBuffer &whole : findWholeBuffers(module)) {
    int64_t bytes = whole.type.getSizeInBytes();
    rank.atPeak[static_cast<size_t>(whole.category)] += bytes;
    if (!whole.isInput)
      rank.largest.push_back({whole.name, "", bytes, whole.category});
    total += bytes;
  }
  return total;
}

std::string mlir::ds::repeatedLayer(StringRef layer) {
  SmallVector<StringRef> parts;
  layer.split(parts, '.');
  for (size_t length = 0; length < parts.size(); ++length)
    if (!parts[length].empty() && llvm::all_of(parts[length], llvm::isDigit))
      return llvm::join(ArrayRef(parts).take_front(length + 1), ".");
  return layer.str();
}

/// Adds what is live at `peak` to `rank`; returns its bytes.
static int64_t addLiveValues(const ScheduledFunction &scheduled, const Moment &peak, SymbolTable &symbols,
                             analysis::RankPlan &rank) {
  int64_t total = 0;
  for (const AllocLifetime &lifetime : scheduled.lifetimes) {
    if (lifetime.begin > peak.command || lifetime.end <= peak.command)
      continue;
    AllocOp alloc = lifetime.alloc;
    analysis::LiveValue value;
    value.bytes = alloc.getBuffer().getType().getSizeInBytes();
    value.category = categoryOf(alloc);
    value.layer = layerOf(alloc.getLoc());
    value.name = nameOfCommand(lifetime.writer, symbols);
    rank.atPeak[static_cast<size_t>(value.category)] += value.bytes;
    total += value.bytes;
    std::string group = repeatedLayer(value.layer);
    auto layer =
        llvm::find_if(rank.byLayer, [&](const analysis::LayerBytes &entry) { return entry.layer == group; });
    if (layer == rank.byLayer.end())
      rank.byLayer.push_back({group, value.bytes});
    else
      layer->bytes += value.bytes;
    rank.largest.push_back(std::move(value));
  }
  return total;
}

/// What the module's plan says of the arena, and the curve of live bytes on top of what lives always.
static void addArena(ModuleOp module, int64_t accounted, int64_t permanent, analysis::RankPlan &rank) {
  if (auto plan = module->getAttrOfType<DictionaryAttr>(kPlanAttr)) {
    rank.deviceArena = rank.peakBytes = plan.getAs<IntegerAttr>("arena").getInt();
    rank.lowerBound = plan.getAs<IntegerAttr>("lower_bound").getInt();
  }
  rank.atPeak[static_cast<size_t>(analysis::Category::Workspace)] += rank.peakBytes - accounted;
  for (int64_t &live : rank.liveBytes)
    live += permanent;
}

/// Operations of the library functions that one rank runs in a step.
static double flopsPerStep(ModuleOp module) {
  FailureOr<TrainingOptions> training = readTrainingAttr(module);
  int64_t accumulation = succeeded(training) ? training->accumulation : 1;
  double flops = 0;
  for (func::FuncOp func : getSegments(module))
    for (CallOp call : func.getOps<CallOp>())
      flops += static_cast<double>(runsPerStep(func, accumulation)) *
               static_cast<double>(call.getFlops().value_or(0));
  return flops;
}

/// What is live at the peak, largest first, and the curve that it is the top of.
static int64_t addPeak(ModuleOp module, SymbolTable &symbols, analysis::RankPlan &rank) {
  for (func::FuncOp func : getSegments(module))
    llvm::append_range(rank.liveBytes, liveAllocations(ScheduledFunction(func)));
  Moment peak = findPeak(module);
  rank.peakAt = peak.spell(symbols);
  int64_t bytes = peak.func ? addLiveValues(ScheduledFunction(peak.func), peak, symbols, rank) : 0;
  llvm::stable_sort(rank.largest, [](const analysis::LiveValue &a, const analysis::LiveValue &b) {
    return a.bytes > b.bytes;
  });
  if (rank.largest.size() > 10)
    rank.largest.resize(10);
  return bytes;
}

analysis::PlanReport mlir::ds::summarizePlan(ModuleOp module, const ::ds::cost::Rates &rates) {
  analysis::PlanReport report;
  analysis::RankPlan rank;
  SymbolTable symbols(module);
  report.parameters = countParameters(module);
  int64_t permanent = addWhole(module, rank);
  addArena(module, permanent + addPeak(module, symbols, rank), permanent, rank);
  double flops = flopsPerStep(module);
  report.predicted = predictStep(module, rates, flops);
  addCommunication(module, report);
  rank.lastRank = report.world - 1;
  report.flopsPerStep = flops * report.world;
  rank.explanation = explainPeak(module);
  report.ranks.push_back(std::move(rank));
  report.target = "cpu";
  return report;
}
