//===- RematerializeCheap.cpp - Backward computes again what is cheap -----------===//
//
// What backward reads of the forward lives through the rest of it. Elementwise and index ops cost next to
// nothing where they are fused into what reads them, so the question is only: which values, kept, make all
// others computable by such ops, and have the fewest bytes? That is a minimum cut between what only expensive
// ops give (products, attention, reductions) and what backward reads.
//
//===----------------------------------------------------------------------------===//
#include "Support/VerifyPhases.h"
#include "ds/Analysis/MinCut.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/IR/Threading.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_REMATERIALIZECHEAP
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {

/// The forward of one segment, and what crosses into the rest.
class Border {
public:
  explicit Border(func::FuncOp func) : body(func.getBody().front()) { findCrossing(); }

  /// Values that have to be kept for all that cross to be computable by cheap ops.
  DenseSet<Value> chooseKept() const;

private:
  void findCrossing();

  Block &body;
  SetVector<Value> crossing; ///< what forward makes and other ops read
};

/// True for ops whose repetition costs nothing but arithmetic on data that is being read anyway.
bool isCheap(Operation *op) {
  auto fusable = dyn_cast<FusableOpInterface>(op);
  return fusable && fusable.getFusionKind() != FusionKind::Reduction;
}

bool isConstant(Operation *op) { return op->hasTrait<OpTrait::ConstantLike>(); }

/// True for what an op of forward makes: arguments are there anyway, and constants are no work.
bool isMadeForward(Value value) { return value.getDefiningOp() && isForward(value.getDefiningOp()); }

int64_t byteSize(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
}

void Border::findCrossing() {
  for (Operation &op : body.without_terminator())
    if (!isForward(&op))
      for (Value operand : op.getOperands())
        if (isMadeForward(operand))
          crossing.insert(operand);
}

DenseSet<Value> Border::chooseKept() const {
  // Nodes are the values from which something that crosses is reached by cheap ops alone.
  ::ds::analysis::CutProblem problem;
  SetVector<Value> values(crossing.begin(), crossing.end());
  DenseMap<Value, uint32_t> indices;
  for (auto [index, value] : llvm::enumerate(values))
    indices[value] = index;
  for (unsigned index = 0; index < values.size(); ++index) {
    Operation *op = values[index].getDefiningOp();
    problem.nodes.push_back({byteSize(values[index]), !isCheap(op), crossing.contains(values[index])});
    if (!isCheap(op))
      continue;
    for (Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (!maker || isConstant(maker)) // states and inputs are there anyway
        continue;
      if (values.insert(operand))
        indices[operand] = values.size() - 1;
      problem.edges.emplace_back(indices.at(operand), index);
    }
  }
  std::vector<bool> cut = ::ds::analysis::findMinimumCut(problem);
  DenseSet<Value> kept;
  for (unsigned index = 0; index < values.size(); ++index)
    if (cut[index])
      kept.insert(values[index]);
  return kept;
}

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

/// Each function on its own: what one does says nothing of another.
void rematerialize(func::FuncOp func) {
  SegmentAttr segment = SegmentAttr::of(func);
  if (func.isExternal() || !segment || segment.does(Work::Evaluation))
    return;
  Copier copier(Border(func).chooseKept());
  SmallVector<Operation *> ops =
      llvm::map_to_vector(func.getBody().front().without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : ops)
    copier.visit(op);
}

struct RematerializeCheap : mlir::ds::impl::RematerializeCheapBase<RematerializeCheap> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Sharded)))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>())
      if (SegmentAttr::of(func) && failed(verifyWork(func)))
        return signalPassFailure();
    parallelForEach(&getContext(), llvm::to_vector(module.getOps<func::FuncOp>()), rematerialize);
    setPhase(module, Phase::Resident);
  }
};
} // namespace
