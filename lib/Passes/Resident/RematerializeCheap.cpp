//===- RematerializeCheap.cpp - Backward computes again what memory is too dear for ==//
//
// What backward reads of the forward lives through the rest of it. Elementwise and index ops cost little
// where they are fused into what reads them, and a kernel where a product does. Which values are kept, and
// which made again from them, is chosen together with all else that takes the step's memory
// (ResidencyModel.h): what costs time is made again where memory does not hold it, and what saves most bytes
// for a second first.
//
//===----------------------------------------------------------------------------===//
#include "ResidencyModel.h"
#include "Support/VerifyPhases.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/Residency.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::ds {
#define GEN_PASS_DEF_REMATERIALIZECHEAP
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

namespace {

/// True for what an op of forward makes: arguments are there anyway, and constants are no work.
bool isMadeForward(Value value) { return value.getDefiningOp() && isForward(value.getDefiningOp()); }

/// Copies cheap forward ops to where backward reads them. Copies are shared until the next op that no
/// generated kernel can take in: further on, a copy would be a value that lives again.
class Copier {
public:
  explicit Copier(DenseSet<Value> kept) : kept(std::move(kept)) {}

  void visit(Operation *op) {
    if (isForward(op))
      return;
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(copy(operand.get(), builder));
    if (!isa<FusableOpInterface>(op))
      copies.clear();
  }

private:
  Value copy(Value value, OpBuilder &builder) {
    if (!isMadeForward(value) || kept.contains(value))
      return value;
    Operation *op = value.getDefiningOp();
    if (Value existing = copies.lookup(value))
      return existing;
    assert(isCheap(op) && "the cut keeps what is not cheap");
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, copy(operand, builder));
    Operation *clone = builder.clone(*op, mapping);
    setWork(clone, Work::Recompute);
    for (auto [original, result] : llvm::zip_equal(op->getResults(), clone->getResults()))
      copies[original] = result;
    return copies.lookup(value);
  }

  DenseSet<Value> kept;
  DenseMap<Value, Value> copies;
};

/// Makes again in `func` what is not `kept`.
void rematerialize(func::FuncOp func, const ResidencyModel &model, const analysis::ResidencyPlan &plan) {
  SegmentAttr segment = SegmentAttr::of(func);
  if (func.isExternal() || !segment || segment.does(Work::Evaluation))
    return;
  Copier copier(model.findKept(func, plan));
  SmallVector<Operation *> ops =
      llvm::map_to_vector(func.getBody().front().without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : ops)
    copier.visit(op);
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
    ResidencyModel model(module, *rates, {memory, maxReuseElements, attentionBytes});
    ::ds::Result<analysis::ResidencyPlan> plan = analysis::solveResidency(model.problem);
    std::optional<std::string> fault =
        plan ? analysis::check(*plan, model.problem) : std::optional(plan.error().message);
    if (fault) {
      module.emitError("the choice of what is kept is wrong: ") << *fault;
      return signalPassFailure();
    }
    module->setAttr(kResidencyAttr, describe(model, *plan));
    parallelForEach(&getContext(), llvm::to_vector(module.getOps<func::FuncOp>()),
                    [&](func::FuncOp func) { rematerialize(func, model, *plan); });
    setPhase(module, Phase::Resident);
  }

  DictionaryAttr describe(const ResidencyModel &model, const analysis::ResidencyPlan &plan);
};

} // namespace

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
