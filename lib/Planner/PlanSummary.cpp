//===- PlanSummary.cpp - What a planned module says of itself --------------------===//
//
// Every figure of memory comes from the sizes and lifetimes of the planned buffers, every figure of time from
// the play of their commands.
//
//===---------------------------------------------------------------------------===//
#include "../Passes/Model/SplitLoss.h"
#include "CountStates.h"
#include "ExplainPeak.h"
#include "PlanBuffers.h"
#include "StepPlay.h"
#include "ds/Analysis/MemoryPlan.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Passes/Pipeline.h"
#include "ds/Passes/TrainingAttr.h"

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

/// What the rank keeps, what lies in its arena at the peak, and the curve of which that is the top.
static void addMemory(ModuleOp module, analysis::RankPlan &rank) {
  rank.states = countStateBytes(module, analysis::PackProblem().alignment);
  auto plan = module->getAttrOfType<DictionaryAttr>(kPlanAttr);
  rank.lowerBound = plan ? plan.getAs<IntegerAttr>("lower_bound").getInt() : 0;
  SymbolTable symbols(module);
  LiveCurve live = findLiveCurve(module);
  rank.peakAt = live.peak.spell(symbols);
  describePeak(explainPeak(module, live.peak), plan ? plan.getAs<IntegerAttr>("arena").getInt() : 0, rank);
  int64_t wholeStep = 0;
  for (const WholeBuffer &whole : findWholeBuffers(module))
    wholeStep += whole.type.getSizeInBytes();
  for (int64_t bytes : live.bytes)
    rank.liveBytes.push_back(wholeStep + bytes);
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

analysis::PlanReport mlir::ds::summarizePlan(ModuleOp module, const ::ds::cost::Rates &rates) {
  analysis::PlanReport report;
  analysis::RankPlan rank;
  report.parameters = countParameters(module);
  addMemory(module, rank);
  double flops = flopsPerStep(module);
  report.predicted = predictStep(module, rates, flops);
  addCommunication(module, report);
  describeLoss(module, report);
  describeAttention(module, report);
  rank.lastRank = report.world - 1;
  report.flopsPerStep = flops * report.world;
  report.ranks.push_back(std::move(rank));
  report.target = getTarget(module).str();
  return report;
}
