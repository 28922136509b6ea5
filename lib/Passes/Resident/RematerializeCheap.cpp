//===- RematerializeCheap.cpp - Backward computes again what memory is too dear for ==//
//
// What backward reads of the forward lives through the rest of it. Elementwise and index ops cost little
// where they are fused into what reads them, and a kernel where a product does. Which values are kept, and
// which made again from them, is chosen together with all else that takes the step's memory
// (ResidencyModel.h): what costs time is made again where memory does not hold it, and what saves most bytes
// for a second first.
//
//===----------------------------------------------------------------------------===//
#include "Repeater.h"
#include "ResidencyModel.h"
#include "Support/VerifyPhases.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/Residency.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::ds {
#define GEN_PASS_DEF_REMATERIALIZECHEAP
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// Two narrow values a layer: what enters a block of a transformer, and what stands between its halves.
static constexpr int64_t kFirstStride = 2;
/// With fewer groups than this the whole forward would be made again at once.
static constexpr int64_t kFewestGroups = 3;

namespace {

/// Makes again in `func` what is not `kept`.
void rematerialize(func::FuncOp func, const ResidencyModel &model, const analysis::ResidencyPlan &plan) {
  SegmentAttr segment = SegmentAttr::of(func);
  if (func.isExternal() || !segment || segment.does(Work::Evaluation))
    return;
  repeatInBackward(func, model.findKept(func, plan));
}

struct RematerializeCheap : mlir::ds::impl::RematerializeCheapBase<RematerializeCheap> {
  using RematerializeCheapBase::RematerializeCheapBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Sharded)))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>())
      if (SegmentAttr::of(func) && failed(verifyWork(func)))
        return signalPassFailure();
    FailureOr<::ds::cost::Rates> rates = readRates(module, cluster);
    if (failed(rates))
      return signalPassFailure();
    std::optional<Choice> choice = choose(*rates);
    if (!choice)
      return signalPassFailure();
    const auto &[model, plan] = *choice;
    module->setAttr(kResidencyAttr, describe(*model, plan));
    parallelForEach(&getContext(), llvm::to_vector(module.getOps<func::FuncOp>()),
                    [&](func::FuncOp func) { rematerialize(func, *model, plan); });
    setPhase(module, Phase::Resident);
  }

  /// A problem and its solution.
  struct Choice {
    std::unique_ptr<ResidencyModel> model;
    analysis::ResidencyPlan plan;
  };
  std::optional<Choice> choose(const ::ds::cost::Rates &rates);
  std::optional<Choice> solve(const ::ds::cost::Rates &rates, RepeatPlan repeats);
  DictionaryAttr describe(const ResidencyModel &model, const analysis::ResidencyPlan &plan);
};

} // namespace

std::optional<RematerializeCheap::Choice> RematerializeCheap::solve(const ::ds::cost::Rates &rates,
                                                                    RepeatPlan repeats) {
  auto model = std::make_unique<ResidencyModel>(
      getOperation(), rates, ResidencyLimits{memory, maxReuseElements, attentionBytes}, repeats);
  ::ds::Result<analysis::ResidencyPlan> plan = analysis::solveResidency(model->problem);
  std::optional<std::string> fault =
      plan ? analysis::check(*plan, model->problem) : std::optional(plan.error().message);
  if (fault) {
    getOperation().emitError("the choice of what is kept is wrong: ") << *fault;
    return std::nullopt;
  }
  return Choice{std::move(model), std::move(*plan)};
}

/// Cheap ops alone where they are enough; else all between two borders, which come further apart until what
/// is kept fits.
std::optional<RematerializeCheap::Choice> RematerializeCheap::choose(const ::ds::cost::Rates &rates) {
  std::optional<Choice> best = solve(rates, {});
  if (!best || best->plan.fits || !calls)
    return best;
  for (int64_t stride = kFirstStride;; stride *= 2) {
    std::optional<Choice> other = solve(rates, {RepeatPlan::Kind::Groups, stride});
    if (!other)
      return std::nullopt;
    bool isLast = other->plan.fits || stride * kFewestGroups > other->model->getNumGroups();
    if (other->plan.fits || other->plan.peakBytes[0] < best->plan.peakBytes[0])
      best = std::move(other);
    if (isLast)
      return best;
  }
}

/// What a reader knows the result of `op` by: what is converted or seen in another shape, rather than that it
/// is.
static StringRef nameOf(Operation *op) {
  while ((isa<ConvertOp>(op) || formOf(op) == OpForm::View) && op->getOperand(0).getDefiningOp())
    op = op->getOperand(0).getDefiningOp();
  return op->getName().stripDialect();
}

/// What the choice is, for the planner and the report; see kResidencyAttr.
DictionaryAttr RematerializeCheap::describe(const ResidencyModel &model,
                                            const analysis::ResidencyPlan &plan) {
  Builder builder(&getContext());
  struct Group {
    DenseMap<uint32_t, std::pair<int64_t, int64_t>> ofSegment{}; ///< bytes, values
    double seconds = 0;
  };
  llvm::MapVector<StringAttr, Group> groups;
  for (size_t index = 0; index < plan.ways.size(); ++index) {
    const analysis::ResidencyValue &value = model.problem.values[index];
    if (plan.ways[index] != analysis::kMadeAgain || value.homes.empty())
      continue;
    Operation *maker = model.valueOf(index).getDefiningOp();
    Group &group = groups[builder.getStringAttr(nameOf(maker))];
    const int64_t bytes = value.homes[0].holds[0].bytes;
    // What lies between a value and what it is made of would not be kept beside it.
    double seconds = value.again->charges[0].seconds - (value.isRead ? value.homes[0].charges[0].seconds : 0);
    auto &[savedBytes, values] = group.ofSegment[*model.choices[index].segment];
    group.seconds += seconds;
    if (value.isRead)
      savedBytes += bytes, ++values;
    if (remarks)
      maker->emitRemark("is made again in backward: ")
          << bytes << " bytes are not kept, for " << llvm::formatv("{0:E2}", seconds) << " s a step";
  }
  SmallVector<Attribute> again;
  for (const auto &[what, group] : groups) {
    std::pair<int64_t, int64_t> most;
    for (const auto &[segment, saved] : group.ofSegment)
      most = std::max(most, saved);
    again.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("what", what),
         builder.getNamedAttr("values", builder.getI64IntegerAttr(most.second)),
         builder.getNamedAttr("saved_bytes", builder.getI64IntegerAttr(most.first)),
         builder.getNamedAttr("more_seconds", builder.getF64FloatAttr(group.seconds))}));
  }
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("again", builder.getArrayAttr(again)),
       builder.getNamedAttr("fits", builder.getBoolAttr(plan.fits)),
       builder.getNamedAttr("expected_bytes", builder.getI64IntegerAttr(plan.peakBytes[0])),
       builder.getNamedAttr("expected_seconds", builder.getF64FloatAttr(plan.seconds)),
       builder.getNamedAttr("bound_seconds", builder.getF64FloatAttr(plan.bound))});
}
