//===- ExplainPeak.cpp - What is live at a plan's peak, and why ------------------===//
//
// Everything is read off the order of commands: who touches a value first and last, whether the peak lies
// between forward and backward, and what the configuration divides already.
//
//===---------------------------------------------------------------------------===//
#include "ExplainPeak.h"

#include "PlanBuffers.h"
#include "TrainingAttr.h"
#include "ds/Passes/LowerToProgram.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;
using analysis::Category;
using analysis::PeakValue;

namespace {
class PeakExplainer {
public:
  PeakExplainer(ModuleOp module, const Moment &peak)
      : module(module), symbols(module), peak(peak), scheduled(peak.func) {
    if (FailureOr<TrainingOptions> read = readTrainingAttr(module); succeeded(read))
      training = *read;
  }
  analysis::PeakExplanation explain();

private:
  /// First and last command that touch an allocation, and the next one from the peak on.
  struct Uses {
    int64_t first = -1, next = -1, last = -1;
  };

  void findUses();
  void findBackward();
  std::string spell(int64_t command);
  PeakValue describe(const AllocLifetime &lifetime);
  PeakValue describe(const WholeBuffer &whole);
  std::string reasonFor(Category category, const Uses &uses, Operation *writer);
  std::string remedyFor(Category category, const Uses &uses, Operation *writer, const std::string &layer);
  std::string remedyFor(const WholeBuffer &whole) const;

  ModuleOp module;
  SymbolTable symbols;
  const Moment &peak;
  ScheduledFunction scheduled;
  TrainingOptions training;
  DenseMap<Value, Uses> uses;
  int64_t backward = 0; ///< the first command of the backward pass
};
} // namespace

void PeakExplainer::findUses() {
  for (auto [index, command] : llvm::enumerate(scheduled.commands))
    for (const BufferAccess &access : accessesOf(command)) {
      Uses &use = uses[access.root];
      auto at = static_cast<int64_t>(index);
      use.first = use.first < 0 ? at : use.first;
      use.next = use.next < 0 && at >= peak.command ? at : use.next;
      use.last = at;
    }
}

/// The first gradient of a library function; without one, where the step comes back to a numbered layer.
void PeakExplainer::findBackward() {
  backward = static_cast<int64_t>(scheduled.commands.size());
  llvm::StringSet<> left;
  std::string current;
  for (auto [index, command] : llvm::enumerate(scheduled.commands)) {
    auto call = dyn_cast<CallOp>(command);
    if (call && call.getCallee().ends_with("_backward")) {
      backward = static_cast<int64_t>(index);
      return;
    }
    std::string layer = repeatedLayer(layerOf(command->getLoc()));
    bool isNumbered = !layer.empty() && llvm::isDigit(layer.back());
    if (!isNumbered || layer == current || !isa<LaunchOp, CallOp>(command))
      continue;
    if (left.contains(layer))
      backward = std::min(backward, static_cast<int64_t>(index));
    left.insert(current);
    current = layer;
  }
}

/// "matmul h.3.mlp".
std::string PeakExplainer::spell(int64_t command) {
  Operation *op = scheduled.commands[command];
  std::string layer = layerOf(op->getLoc());
  return nameOfCommand(op, symbols) + (layer.empty() ? "" : " " + layer);
}

std::string PeakExplainer::reasonFor(Category category, const Uses &use, Operation *writer) {
  std::string last = spell(use.last), next = use.next < 0 ? last : spell(use.next);
  if (category == Category::Workspace)
    return "scratch memory of " + next;
  auto communicate = dyn_cast<CommunicateOp>(writer);
  if (communicate && communicate.getKind() == CollectiveKind::AllGather) {
    bool kept = use.first < backward && use.last >= backward && peak.command < use.last;
    return "gathered for " + next + (kept ? ", and kept for " + last : "");
  }
  bool isReduced = isa<CommunicateOp>(scheduled.commands[use.last]);
  if (category == Category::Communication || isReduced)
    return isReduced ? "gradients on their way into " + last : "what " + next + " exchanges";
  if (use.first < backward && use.last >= backward)
    return "saved for the backward pass: " + last + " reads it";
  return (use.first < backward ? "result that " : "gradient that ") + next + " uses";
}

std::string PeakExplainer::remedyFor(Category category, const Uses &use, Operation *writer,
                                     const std::string &layer) {
  if (category == Category::Workspace && !isa<CommunicateOp>(writer))
    return "fewer --threads-per-rank";
  auto communicate = dyn_cast<CommunicateOp>(writer);
  if (communicate && communicate.getKind() == CollectiveKind::AllGather)
    return use.first < backward && use.last >= backward
               ? "a lower zero_optimization.stage3_max_live_parameters: it is gathered again for backward"
               : "a smaller zero_optimization.stage3_prefetch_bucket_size: it is gathered later";
  if (category == Category::Communication || isa<CommunicateOp>(scheduled.commands[use.last]))
    return "a smaller zero_optimization.reduce_bucket_size";
  if (use.first < backward && use.last >= backward && !layer.empty())
    return "recomputing " + repeatedLayer(layer) +
           " in the backward pass: activation_checkpointing, for which programs have no pass yet";
  return "a smaller train_micro_batch_size_per_gpu, or shorter sequences";
}

PeakValue PeakExplainer::describe(const AllocLifetime &lifetime) {
  AllocOp alloc = lifetime.alloc;
  Category category = categoryOf(alloc);
  const Uses &use = uses.at(alloc.getBuffer());
  PeakValue value;
  value.name = nameOfCommand(lifetime.writer, symbols);
  value.layer = layerOf(alloc.getLoc());
  value.category = analysis::spell(category);
  value.type = spellType(alloc.getBuffer().getType());
  value.bytes = alloc.getBuffer().getType().getSizeInBytes();
  value.madeBy = spell(use.first);
  value.lastUsedBy = spell(use.last);
  value.reason = reasonFor(category, use, lifetime.writer);
  value.remedy = remedyFor(category, use, lifetime.writer, value.layer);
  return value;
}

std::string PeakExplainer::remedyFor(const WholeBuffer &whole) const {
  if (whole.isInput)
    return "a smaller train_micro_batch_size_per_gpu";
  int64_t stage = whole.category == Category::Parameters ? 3 : whole.category == Category::Gradients ? 2 : 1;
  if (training.world > 1 && training.sharding.stage < stage)
    return "zero_optimization.stage = " + std::to_string(stage) + " divides it by " +
           std::to_string(training.world) + " ranks";
  if (training.world > 1)
    return "more --ranks: it is divided already";
  return "more --ranks with zero_optimization.stage = " + std::to_string(stage);
}

PeakValue PeakExplainer::describe(const WholeBuffer &whole) {
  PeakValue value;
  value.name = whole.name;
  value.category = analysis::spell(whole.category);
  value.type = spellType(whole.type);
  value.bytes = whole.type.getSizeInBytes();
  value.reason =
      whole.isInput ? "input: the host fills it before each micro-step" : "state: kept from step to step";
  value.remedy = remedyFor(whole);
  return value;
}

analysis::PeakExplanation PeakExplainer::explain() {
  findUses();
  findBackward();
  analysis::PeakExplanation result;
  Operation *op = scheduled.commands[peak.command];
  result.op = nameOfCommand(op, symbols);
  result.layer = layerOf(op->getLoc());
  result.segment = func::FuncOp(peak.func).getSymName().str();
  for (const WholeBuffer &whole : findWholeBuffers(module))
    result.largest.push_back(describe(whole));
  for (const AllocLifetime &lifetime : scheduled.lifetimes)
    if (lifetime.begin <= peak.command && peak.command < lifetime.end)
      result.largest.push_back(describe(lifetime));
  llvm::stable_sort(result.largest, [](const PeakValue &a, const PeakValue &b) { return a.bytes > b.bytes; });
  if (result.largest.size() > 10)
    result.largest.resize(10);
  return result;
}

std::optional<analysis::PeakExplanation> mlir::ds::explainPeak(ModuleOp module) {
  Moment peak = findPeak(module);
  if (!peak.func)
    return std::nullopt;
  return PeakExplainer(module, peak).explain();
}
