//===- PlanSummary.cpp - What a planned module says of itself --------------------===//
//
// Sweeps each segment's commands once to find the moment at which most bytes are live, then lists what is
// live there, by category and by layer. What the arena has beyond those bytes (alignment, and gaps that the
// packing could not fill) counts as workspace, so that the categories add up to the arena.
//
//===---------------------------------------------------------------------------===//
#include "CountStates.h"
#include "ScheduledFunction.h"
#include "ds/Passes/Analysis/MemoryPlan.h"
#include "ds/Passes/LowerToProgram.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

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

namespace {
/// A moment of a step and what is live then.
struct Moment {
  func::FuncOp func;
  int64_t command = 0;
  int64_t bytes = -1; ///< of allocations alone
};
} // namespace

/// Rounds up to what the planner aligns to.
static int64_t alignedBytes(BufferType type) {
  return llvm::alignTo(type.getSizeInBytes(), analysis::PackProblem().alignment);
}

/// The moment of `scheduled` at which allocations take most; also appends the live bytes at each command.
static Moment findPeak(const ScheduledFunction &scheduled, std::vector<int64_t> &curve) {
  std::vector<int64_t> change(scheduled.commands.size() + 1, 0);
  for (const AllocLifetime &lifetime : scheduled.lifetimes) {
    int64_t bytes = alignedBytes(AllocOp(lifetime.alloc).getBuffer().getType());
    change[lifetime.begin] += bytes;
    change[lifetime.end] -= bytes;
  }
  Moment peak{scheduled.func};
  int64_t live = 0;
  for (size_t command = 0; command < scheduled.commands.size(); ++command) {
    live += change[command];
    curve.push_back(live);
    if (live > peak.bytes) {
      peak.bytes = live;
      peak.command = command;
    }
  }
  return peak;
}

static analysis::Category categoryOf(StringRef name) {
  return llvm::StringSwitch<analysis::Category>(name)
      .Case("gradients", analysis::Category::Gradients)
      .Case("communication", analysis::Category::Communication)
      .Case("workspace", analysis::Category::Workspace)
      .Default(analysis::Category::Activations);
}

static analysis::Category categoryOf(Role role) {
  switch (role) {
  case Role::Parameter:
  case Role::Buffer:
    return analysis::Category::Parameters;
  case Role::Gradient:
    return analysis::Category::Gradients;
  default:
    return analysis::Category::Optimizer;
  }
}

/// Adds the states, which live all the time, to `rank` and to the values at its peak.
static int64_t addStates(ModuleOp module, analysis::RankPlan &rank) {
  int64_t total = 0;
  rank.states = countStateBytes(module, analysis::PackProblem().alignment);
  for (StateOp state : getPlacedStates(module)) {
    BufferType type = BufferType::getContiguous(state.getLocalType());
    analysis::Category category = categoryOf(state.getRole());
    rank.atPeak[static_cast<size_t>(category)] += type.getSizeInBytes();
    rank.largest.push_back({state.getSymName().str(), "", type.getSizeInBytes(), category});
    total += type.getSizeInBytes();
  }
  return total;
}

/// The repeated layer that `layer` is part of: "blocks.0" for "blocks.0.attention.qkv"; itself where nothing
/// repeats.
static std::string repeatedLayer(StringRef layer) {
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
    value.category = categoryOf(alloc.getCategory());
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

/// Bytes of the forward's inputs, which live all the time.
static int64_t inputBytes(ModuleOp module) {
  llvm::StringMap<int64_t> inputs;
  for (func::FuncOp func : getSegments(module))
    for (unsigned index = 0; index < func.getNumArguments(); ++index)
      if (StringAttr name = getInputOf(func, index))
        inputs[name.getValue()] = cast<BufferType>(func.getArgumentTypes()[index]).getSizeInBytes();
  int64_t total = 0;
  for (auto &entry : inputs)
    total += entry.second;
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

analysis::PlanReport mlir::ds::summarizePlan(ModuleOp module) {
  analysis::PlanReport report;
  analysis::RankPlan rank;
  SymbolTable symbols(module);
  report.parameters = countParameters(module);
  int64_t accounted = addStates(module, rank);
  int64_t inputs = inputBytes(module);
  rank.atPeak[static_cast<size_t>(analysis::Category::Activations)] += inputs;
  accounted += inputs;
  int64_t permanent = accounted;

  Moment peak;
  for (func::FuncOp func : getSegments(module)) {
    Moment candidate = findPeak(ScheduledFunction(func), rank.liveBytes);
    if (candidate.bytes > peak.bytes)
      peak = candidate;
  }
  if (peak.func) {
    ScheduledFunction scheduled(peak.func);
    accounted += addLiveValues(scheduled, peak, symbols, rank);
    if (!scheduled.commands.empty()) {
      Operation *command = scheduled.commands[peak.command];
      std::string layer = layerOf(command->getLoc());
      rank.peakAt = nameOfCommand(command, symbols) + (layer.empty() ? "" : " " + layer) + " (" +
                    peak.func.getSymName().str() + ")";
    }
  }
  llvm::stable_sort(rank.largest, [](const analysis::LiveValue &a, const analysis::LiveValue &b) {
    return a.bytes > b.bytes;
  });
  if (rank.largest.size() > 10)
    rank.largest.resize(10);
  addArena(module, accounted, permanent, rank);
  addCommunication(module, report);
  rank.lastRank = report.world - 1;
  report.ranks.push_back(std::move(rank));
  report.target = "cpu";
  return report;
}
