//===- ExplainPeak.cpp - What is live at a plan's peak, and why ------------------===//
//
// Everything is read off the commands: who touches a value first and last, whether that is forward or
// backward, and what the configuration divides already.
//
//===---------------------------------------------------------------------------===//
#include "ExplainPeak.h"

#include "PlanBuffers.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Training.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Workspaces.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;
namespace report = ::ds::report;
namespace rt = ::ds::rt;
using report::Category;
using report::PeakPart;
using report::PeakValue;
using report::repeatedLayer;

/// Whether `communicate`, which may be null, gathers a parameter.
static bool gathersParameter(CommunicateOp communicate) {
  return communicate && communicate.getKind() == CollectiveKind::AllGather &&
         communicate.getCarries() == Payload::Parameter;
}

/// `command` as a collective; null where it is another one.
static CommunicateOp asCollective(ScheduledOpInterface command) { return dyn_cast<CommunicateOp>(*command); }

/// What makes a value of each sample smaller.
static std::string smallerBatch(int64_t samples) {
  return samples > 1 ? "a smaller train_micro_batch_size_per_gpu, or shorter sequences" : "shorter sequences";
}

namespace {
class PeakExplainer {
public:
  /// Requires a moment at which a command runs. `samples` are those of a micro-batch.
  PeakExplainer(ModuleOp module, const Moment &peak, int64_t samples)
      : module(module), symbols(module), peak(peak), samples(samples), scheduled(peak.func) {}
  report::PeakExplanation explain();
  /// What `space`, which is not the device, has at that moment: what is saved there, and what is moved
  /// through.
  std::vector<PeakValue> list(Space space);

private:
  /// First and last command that touch an allocation, the next one from the peak on, and how many write it.
  struct Uses {
    int64_t first = -1, next = -1, last = -1;
    int64_t writers = 0;
  };

  void findUses();
  std::vector<const AllocLifetime *> findLive(Space space) const;
  bool isForward(int64_t command) const;
  std::string spell(int64_t command);
  PeakValue describe(const AllocLifetime &lifetime);
  /// Whether forward makes it and another direction reads it.
  bool isSaved(const Uses &use) const { return isForward(use.first) && !isForward(use.last); }
  PeakPart partOf(const AllocLifetime &lifetime, const Uses &use) const;
  std::string sourceFor(PeakPart part, ScheduledOpInterface writer);
  std::string reasonFor(Category category, const Uses &uses, ScheduledOpInterface writer);
  std::string remedyForGathered(const Uses &use) const;
  std::string remedyForReduced(CommunicateOp reduction) const;
  std::string remedyFor(Category category, const Uses &uses, const AllocLifetime &lifetime,
                        const std::string &layer);

  ModuleOp module;
  SymbolTable symbols;
  const Moment &peak;
  int64_t samples;
  ScheduledFunction scheduled;
  DenseMap<Value, Uses> uses;
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
      use.writers += access.isWrite && !asCollective(command) ? 1 : 0;
    }
}

bool PeakExplainer::isForward(int64_t command) const {
  return ::mlir::ds::isForward(scheduled.commands[command]);
}

/// "matmul h.3.mlp".
std::string PeakExplainer::spell(int64_t command) {
  ScheduledOpInterface op = scheduled.commands[command];
  std::string layer = layerOf(op);
  return op.getLabel(symbols) + (layer.empty() ? "" : " " + layer);
}

/// The allocations in `space` that are live at the peak, as they are made: layers then stand in the model's
/// order.
std::vector<const AllocLifetime *> PeakExplainer::findLive(Space space) const {
  std::vector<const AllocLifetime *> live;
  for (const AllocLifetime &lifetime : scheduled.lifetimes)
    if (lifetime.begin <= peak.command && peak.command < lifetime.end &&
        AllocOp(lifetime.alloc).getBuffer().getType().getSpace() == space)
      live.push_back(&lifetime);
  llvm::sort(live, [](const AllocLifetime *a, const AllocLifetime *b) {
    return std::pair(a->begin, a) < std::pair(b->begin, b);
  });
  return live;
}

std::string PeakExplainer::reasonFor(Category category, const Uses &use, ScheduledOpInterface writer) {
  std::string last = spell(use.last), next = use.next < 0 ? last : spell(use.next);
  if (category == Category::Workspace)
    return "scratch memory of " + next;
  auto communicate = asCollective(writer);
  if (gathersParameter(communicate)) {
    bool kept = isSaved(use) && peak.command < use.last;
    return "gathered for " + next + (kept ? ", and kept for " + last : "");
  }
  const bool isReduced = bool(asCollective(scheduled.commands[use.last]));
  if (category == Category::Communication || isReduced)
    return isReduced ? "gradients on their way into " + last : "what " + next + " exchanges";
  if (isSaved(use))
    return "saved for the backward pass: " + last + " reads it";
  return (isForward(use.first) ? "result that " : "gradient that ") + next + " uses";
}

/// What makes scratch memory smaller: on the CPU fewer threads, where the library says so. What NVIDIA's
/// libraries may use is a budget.
static std::string remedyForScratch(Operation *command, int64_t bytes) {
  auto call = dyn_cast<CallOp>(command);
  if (isForCuda(command->getParentOfType<ModuleOp>()))
    return call && call.getCallee() == rt::LibraryFn::AttentionBackward
               ? "none is needed: less memory means smaller pieces, which take longer"
               : "none by itself: the budget follows from the sizes of its operands";
  ::ds::Result<uint64_t> alone =
      call ? workspaceBytes(call, {/*threads=*/1}) : ::ds::Result<uint64_t>(uint64_t(bytes));
  return alone && *alone < uint64_t(bytes) ? "fewer --threads-per-rank"
                                           : "none: the library takes as much with one thread";
}

/// Gathered parameters are there for a use that has come, or wait for one.
std::string PeakExplainer::remedyForGathered(const Uses &use) const {
  if (use.next <= peak.command)
    return "none: it is read at this moment";
  return isSaved(use) && use.first < peak.command && isForward(use.first) && !isForward(use.next)
             ? "a lower zero_optimization.stage3_max_live_parameters: it is gathered again for backward"
             : "a smaller zero_optimization.stage3_prefetch_bucket_size: it is gathered later";
}

/// A bucket of several gradients can be a smaller one.
std::string PeakExplainer::remedyForReduced(CommunicateOp reduction) const {
  for (const BufferAccess &access : accessesOf(reduction))
    if (auto use = uses.find(access.root); use != uses.end() && use->second.writers > 1)
      return "a smaller zero_optimization.reduce_bucket_size";
  return "none: one parameter's gradient is no smaller";
}

std::string PeakExplainer::remedyFor(Category category, const Uses &use, const AllocLifetime &lifetime,
                                     const std::string &layer) {
  AllocOp alloc = lifetime.alloc;
  auto communicate = asCollective(lifetime.writer);
  if (category == Category::Workspace && !communicate)
    return remedyForScratch(scheduled.commands[use.first], alloc.getBuffer().getType().getSizeInBytes());
  if (gathersParameter(communicate))
    return remedyForGathered(use);
  if (category == Category::Workspace)
    return remedyForReduced(communicate);
  if (auto last = asCollective(scheduled.commands[use.last]))
    return remedyForReduced(last);
  if (category == Category::Communication)
    return smallerBatch(samples);
  if (category == Category::Gradients)
    return "none: it has the size of its parameter";
  if (isSaved(use) && !layer.empty())
    return "recomputing " + repeatedLayer(layer) +
           " in the backward pass: activation_checkpointing.number_checkpoints";
  return smallerBatch(samples);
}

PeakPart PeakExplainer::partOf(const AllocLifetime &lifetime, const Uses &use) const {
  auto communicate = asCollective(lifetime.writer);
  switch (categoryOf(lifetime.alloc)) {
  case Category::Gradients:
    return PeakPart::Gradients;
  case Category::Workspace:
    return PeakPart::Workspace;
  case Category::Communication:
    return gathersParameter(communicate) ? PeakPart::Gathered : PeakPart::Exchanged;
  default:
    return isSaved(use) ? PeakPart::Activations : PeakPart::Temporaries;
  }
}

std::string PeakExplainer::sourceFor(PeakPart part, ScheduledOpInterface writer) {
  switch (part) {
  case PeakPart::Gradients:
    return "gradients of parameters";
  case PeakPart::Gathered:
    return "gathered for their use";
  case PeakPart::Exchanged:
    return "operands of " + writer.getLabel(symbols);
  case PeakPart::Workspace:
    return (isForCuda(module) ? "budgets of cuBLASLt for " : "scratch memory of ") + writer.getLabel(symbols);
  case PeakPart::Activations:
    return "read by the backward pass";
  default:
    return "made and read by one pass";
  }
}

PeakValue PeakExplainer::describe(const AllocLifetime &lifetime) {
  AllocOp alloc = lifetime.alloc;
  Category category = categoryOf(alloc);
  const Uses &use = uses.at(alloc.getBuffer());
  PeakValue value;
  value.name = ScheduledOpInterface(lifetime.writer).getLabel(symbols);
  value.layer = layerOf(alloc);
  value.part = partOf(lifetime, use);
  value.source = sourceFor(value.part, lifetime.writer);
  value.type = spellType(alloc.getBuffer().getType());
  value.bytes = alloc.getBuffer().getType().getSizeInBytes();
  value.madeBy = spell(use.first);
  value.lastUsedBy = spell(use.last);
  value.reason = reasonFor(category, use, lifetime.writer);
  value.remedy = remedyFor(category, use, lifetime, value.layer);
  return value;
}

report::PeakExplanation PeakExplainer::explain() {
  findUses();
  report::PeakExplanation result;
  ScheduledOpInterface op = scheduled.commands[peak.command];
  result.op = op.getLabel(symbols);
  result.layer = layerOf(op);
  result.segment = func::FuncOp(peak.func).getSymName().str();
  for (const AllocLifetime *lifetime : findLive(Space::Device))
    result.largest.push_back(describe(*lifetime));
  return result;
}

std::vector<PeakValue> PeakExplainer::list(Space space) {
  findUses();
  std::vector<PeakValue> values;
  for (const AllocLifetime *lifetime : findLive(space)) {
    AllocOp alloc = lifetime->alloc;
    PeakValue value;
    value.name = ScheduledOpInterface(lifetime->writer).getLabel(symbols);
    value.layer = layerOf(alloc);
    value.part = isSaved(uses.at(alloc.getBuffer())) ? PeakPart::Activations : PeakPart::Staging;
    value.source = value.part == PeakPart::Staging ? "what copies and updates move or keep here for a while"
                                                   : sourceFor(value.part, lifetime->writer);
    value.bytes = alloc.getBuffer().getType().getSizeInBytes();
    values.push_back(std::move(value));
  }
  return values;
}

//===----------------------------------------------------------------------===//
// States and inputs
//===----------------------------------------------------------------------===//

/// The stage of ZeRO that divides a part of the states; 0: none does.
static int64_t stageThatDivides(PeakPart part) {
  switch (part) {
  case PeakPart::Parameters:
  case PeakPart::Gathered:
    return 3;
  case PeakPart::Accumulators:
    return 2;
  case PeakPart::Masters:
  case PeakPart::Moments:
    return 1;
  default:
    return 0;
  }
}

/// Whether a state is a node's part of parameters that all ranks divide.
static bool isSecondary(const WholeBuffer &whole) {
  return whole.part == PeakPart::Gathered && whole.isSharded;
}

/// What would make a state or an input smaller. ZeRO divides by `ranks`.
static std::string remedyFor(const WholeBuffer &whole, const TrainingOptions &training, int64_t ranks,
                             int64_t samples) {
  if (whole.part == PeakPart::Inputs)
    return smallerBatch(samples);
  if (whole.part == PeakPart::Waiting)
    return "more recomputation, or fewer pipeline.stages after this one: it is kept of each micro-batch "
           "under way";
  int64_t stage = stageThatDivides(whole.part);
  if (stage == 0)
    return "none: every rank needs all of it";
  if (isSecondary(whole))
    return "a larger zero_optimization.zero_hpz_partition_size, or 1: then there is none";
  if (whole.isSharded)
    return "more --ranks: it is divided already";
  const std::string threshold = "zero_optimization.stage3_param_persistence_threshold";
  if (ranks > 1 && training.sharding.stage >= stage)
    return whole.part == PeakPart::Parameters ? "a lower " + threshold + ": it is kept whole"
                                              : "none: it is not divided";
  // What stage 3 keeps whole it does not divide.
  bool isKept = stage == 3 && whole.type.getTensor().getNumElements() <= training.sharding.parameterThreshold;
  std::string key =
      "zero_optimization.stage = " + std::to_string(stage) + (isKept ? " with a lower " + threshold : "");
  return ranks == 1 ? "more --ranks with " + key : key + " divides it by " + std::to_string(ranks) + " ranks";
}

/// What gives a state or an input its size. ZeRO divides by `ranks`.
static std::string sourceFor(const WholeBuffer &whole, int64_t ranks) {
  if (whole.part == PeakPart::Inputs)
    return "inputs of one micro-step";
  if (whole.part == PeakPart::Waiting)
    return "values that segments leave for each other, by micro-batch";
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "states of " << whole.type.getTensor().getElementType();
  if (whole.part == PeakPart::Gathered)
    out << (isSecondary(whole) ? ", secondary partition" : ", gathered once a step");
  else if (whole.isSharded)
    out << ", divided by " << ranks << " ranks";
  else if (ranks > 1)
    out << ", the same on each rank";
  return text;
}

static PeakValue describe(const WholeBuffer &whole, const TrainingOptions &training, int64_t ranks,
                          int64_t samples) {
  PeakValue value;
  value.name = whole.name;
  value.part = whole.part;
  value.source = sourceFor(whole, ranks);
  value.type = spellType(whole.type);
  value.bytes = whole.type.getSizeInBytes();
  value.reason = whole.part == PeakPart::Inputs    ? "input: the host fills it before each micro-step"
                 : whole.part == PeakPart::Waiting ? "waits for a later segment of its micro-batch"
                                                   : "state: kept from step to step";
  value.remedy = remedyFor(whole, training, ranks, samples);
  return value;
}

/// Samples of a micro-batch: the first dimension of its inputs.
static int64_t samplesOf(ArrayRef<WholeBuffer> buffers) {
  int64_t samples = 1;
  for (const WholeBuffer &whole : buffers)
    if (ArrayRef<int64_t> shape = whole.type.getTensor().getShape();
        whole.part == PeakPart::Inputs && !shape.empty())
      samples = std::max(samples, shape.front());
  return samples;
}

/// What is in `space` for the whole step.
static std::vector<PeakValue> describeWhole(ModuleOp module, ArrayRef<WholeBuffer> buffers, Space space) {
  const TrainingOptions training = getTraining(module);
  const int64_t ranks = getMeshShape(module).countZeroRanks();
  int64_t samples = samplesOf(buffers);
  std::vector<PeakValue> values;
  for (const WholeBuffer &whole : buffers)
    if (whole.type.getSpace() == space)
      values.push_back(describe(whole, training, ranks, samples));
  return values;
}

report::PeakExplanation mlir::ds::explainPeak(ModuleOp module, const Moment &peak) {
  std::vector<WholeBuffer> buffers = findWholeBuffers(module);
  report::PeakExplanation result;
  if (peak.func)
    result = PeakExplainer(module, peak, samplesOf(buffers)).explain();
  std::vector<PeakValue> all = describeWhole(module, buffers, Space::Device);
  std::move(result.largest.begin(), result.largest.end(), std::back_inserter(all));
  result.largest = std::move(all);
  return result;
}

std::vector<PeakValue> mlir::ds::listElsewhere(ModuleOp module, Space space) {
  std::vector<WholeBuffer> buffers = findWholeBuffers(module);
  std::vector<PeakValue> values = describeWhole(module, buffers, space);
  Moment peak = findLiveCurve(module, space).peak;
  if (peak.func && peak.bytes > 0)
    llvm::append_range(values, PeakExplainer(module, peak, samplesOf(buffers)).list(space));
  return values;
}
