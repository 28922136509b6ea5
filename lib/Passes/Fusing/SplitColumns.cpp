//===- SplitColumns.cpp - Shares long columns out to more blocks of a GPU --------===//
//
// A kernel that adds down columns has a block for each strip of them, side by side: too few for a GPU where
// rows are many and short. The innermost of the dimensions that are added up is cut in two, of which the
// kernel leaves one: partial sums, one for each of `parts` rows, and a second kernel adds those. Both orders
// of additions follow from shapes alone. The price is the partial sums, and one more launch where
// ds-join-column-sums cannot take it back.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SPLITCOLUMNS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Blocks that keep the memory of a GPU busy: about four for each multiprocessor.
static constexpr int64_t kWantedBlocks = 512;
/// Bytes of a row that one block takes at least.
static constexpr int64_t kStripBytes = 32;
/// Rows that a block should have to add up.
static constexpr int64_t kLeastRows = 32;

namespace {
/// Takes one region apart.
class ColumnSplitter {
public:
  explicit ColumnSplitter(FusedOp fused) : fused(fused), body(fused.getBody().front()) {}

  /// Whether the region adds up columns in a form that can be split, and that gains by it.
  bool analyse();
  /// Replaces the region by two.
  void split();

private:
  bool findReductions();
  bool findCuts();
  bool setCut(Value value, int64_t dim);
  int64_t chooseParts() const;
  bool isPartial(Operation *op) const { return reductions.contains(op) || afterwards.contains(op); }
  RankedTensorType cutType(Value value) const;
  void cloneCut(OpBuilder &builder, Operation *op, IRMapping &mapping) const;
  SmallVector<Value> addPartially(OpBuilder &builder);
  void addParts(OpBuilder &builder, ValueRange partials);

  FusedOp fused;
  Block &body;
  SmallVector<int64_t> full; ///< the shape that is added up
  int64_t cutDim = -1;       ///< the innermost of its dimensions that go
  int64_t parts = 1;
  llvm::SetVector<Operation *> reductions, afterwards; ///< afterwards: what reads reductions
  DenseMap<Value, int64_t> cuts;                       ///< the dimension of each value that is cut; -1: none
};
} // namespace

/// Finds the reductions, which remove the same leading dimensions of one shape, and what comes after them.
bool ColumnSplitter::findReductions() {
  for (Operation &op : body.without_terminator()) {
    bool readsTotals = llvm::any_of(op.getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && isPartial(operand.getDefiningOp());
    });
    auto reduce = dyn_cast<ReduceOp>(op);
    if (readsTotals && reduce)
      return false;
    if (readsTotals)
      afterwards.insert(&op);
    if (!reduce)
      continue;
    ArrayRef<int64_t> shape = tensorType(reduce.getInput()).getShape(), dims = reduce.getDims();
    int64_t count = dims.size();
    bool isLeading = count > 0 && dims.back() == count - 1 && count < static_cast<int64_t>(shape.size());
    if (!isLeading || (cutDim >= 0 && (cutDim != count - 1 || full != shape)))
      return false;
    cutDim = count - 1;
    full.assign(shape.begin(), shape.end());
    reductions.insert(&op);
  }
  // Nothing else leaves the region, and no total is spread over rows again.
  return !reductions.empty() && llvm::all_of(body.getTerminator()->getOperands(), [&](Value value) {
    return value.getDefiningOp() && isPartial(value.getDefiningOp());
  }) && llvm::none_of(afterwards, [&](Operation *op) {
    return tensorType(op->getResult(0)).getShape() == ArrayRef(full);
  });
}

/// Notes that dimension `dim` of `value` is cut. False where another one is.
bool ColumnSplitter::setCut(Value value, int64_t dim) {
  return cuts.try_emplace(value, dim).first->second == dim;
}

/// Finds for each value that the reductions depend on which of its dimensions is cut with theirs.
bool ColumnSplitter::findCuts() {
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (afterwards.contains(&op))
      continue;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      if (!setCut(reduce.getInput(), cutDim))
        return false;
      continue;
    }
    auto cut = cuts.find(op.getResult(0));
    if (cut == cuts.end())
      continue; // only what comes afterwards reads it
    int64_t dim = cut->second;
    SplatElementsAttr splat;
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      auto *place = llvm::find(broadcast.getDims(), dim);
      bool isCut = place != broadcast.getDims().end();
      if (!setCut(broadcast.getInput(), isCut ? place - broadcast.getDims().begin() : -1))
        return false;
    } else if (isa<ScalarBodyOpInterface>(op)) {
      if (!llvm::all_of(op.getOperands(), [&](Value operand) { return setCut(operand, dim); }))
        return false;
    } else if (!matchPattern(&op, m_Constant(&splat))) {
      return false;
    }
  }
  return true;
}

/// Into how many sums a column falls apart; 1: into none.
int64_t ColumnSplitter::chooseParts() const {
  int64_t rows = 1, columns = 1, narrowest = sizeof(double);
  for (auto [dim, size] : llvm::enumerate(full))
    (static_cast<int64_t>(dim) <= cutDim ? rows : columns) *= size;
  for (BlockArgument argument : body.getArguments())
    if (tensorType(argument).getShape() == ArrayRef(full))
      narrowest =
          std::min<int64_t>(narrowest, llvm::divideCeil(tensorType(argument).getElementTypeBitWidth(), 8));
  int64_t strips = llvm::divideCeil(columns * narrowest, kStripBytes);
  int64_t most = llvm::PowerOf2Ceil(llvm::divideCeil(kWantedBlocks, std::max<int64_t>(strips, 1)));
  while (most > 1 && (full[cutDim] % most != 0 || rows / most < kLeastRows))
    most /= 2;
  return most;
}

bool ColumnSplitter::analyse() {
  if (!findReductions() || !findCuts())
    return false;
  parts = chooseParts();
  return parts > 1;
}

/// The type of `value` once its dimension is cut.
RankedTensorType ColumnSplitter::cutType(Value value) const {
  RankedTensorType type = tensorType(value);
  int64_t dim = cuts.lookup(value);
  if (dim < 0)
    return type;
  SmallVector<int64_t> shape(type.getShape());
  bool isUnit = shape[dim] == 1; // repeated along the dimension
  shape[dim] = isUnit ? 1 : shape[dim] / parts;
  shape.insert(shape.begin() + dim + 1, isUnit ? 1 : parts);
  return type.clone(shape);
}

/// Copies `op`, which a reduction depends on.
void ColumnSplitter::cloneCut(OpBuilder &builder, Operation *op, IRMapping &mapping) const {
  Value result = op->getResult(0);
  RankedTensorType type = cutType(result);
  SplatElementsAttr splat;
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    SmallVector<int64_t> dims;
    int64_t dim = cuts.lookup(result);
    for (int64_t each : broadcast.getDims()) {
      dims.push_back(dim >= 0 && each > dim ? each + 1 : each);
      if (each == dim)
        dims.push_back(each + 1);
    }
    mapping.map(result,
                builder.create<BroadcastOp>(op->getLoc(), type, mapping.lookup(broadcast.getInput()), dims));
  } else if (matchPattern(op, m_Constant(&splat))) {
    mapping.map(result, builder.create<ConstantOp>(op->getLoc(), type, splat.resizeSplat(type)));
  } else {
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.addOperands(mapping.lookup(operand));
    state.addAttributes(op->getAttrs());
    state.addTypes(type);
    mapping.map(result, builder.create(state)->getResult(0));
  }
}

/// The region up to its reductions, whose sums over parts of the columns it gives in f32 at least.
SmallVector<Value> ColumnSplitter::addPartially(OpBuilder &builder) {
  Region region;
  Block &block = region.emplaceBlock();
  OpBuilder inside(builder.getContext());
  inside.setInsertionPointToEnd(&block);
  IRMapping mapping;
  SmallVector<Value> inputs, yielded;
  for (auto [argument, input] : llvm::zip_equal(body.getArguments(), fused.getInputs()))
    if (cuts.contains(argument)) {
      RankedTensorType type = cutType(argument);
      inputs.push_back(
          type == argument.getType() ? input : builder.createOrFold<ReshapeOp>(fused.getLoc(), type, input));
      mapping.map(argument, block.addArgument(type, argument.getLoc()));
    }
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, cutDim + 1));
  for (Operation &op : body.without_terminator())
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      Value wide = Emitter(inside, op.getLoc()).widen(mapping.lookup(reduce.getInput()));
      yielded.push_back(inside.create<ReduceOp>(op.getLoc(), reduce.getKind(), wide, dims));
    } else if (cuts.contains(op.getResult(0))) {
      cloneCut(inside, &op, mapping);
    }
  inside.create<YieldOp>(fused.getLoc(), yielded);
  SmallVector<Type> types = llvm::map_to_vector(yielded, [](Value value) { return value.getType(); });
  auto first = builder.create<FusedOp>(fused.getLoc(), types, inputs);
  copyWork(fused, first);
  first.getBody().takeBody(region);
  return llvm::to_vector_of<Value>(first.getResults());
}

/// The region from its reductions on, which add up the parts.
void ColumnSplitter::addParts(OpBuilder &builder, ValueRange partials) {
  Region region;
  Block &block = region.emplaceBlock();
  OpBuilder inside(builder.getContext());
  inside.setInsertionPointToEnd(&block);
  IRMapping mapping;
  SmallVector<Value> inputs = llvm::to_vector(partials);
  for (Value partial : partials)
    block.addArgument(partial.getType(), partial.getLoc());
  // What is done to totals may read other things than totals.
  std::function<void(Value)> import = [&](Value value) {
    if (mapping.contains(value))
      return;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      inputs.push_back(fused.getInputs()[argument.getArgNumber()]);
      mapping.map(value, block.addArgument(value.getType(), value.getLoc()));
      return;
    }
    llvm::for_each(value.getDefiningOp()->getOperands(), import);
    inside.clone(*value.getDefiningOp(), mapping);
  };
  for (auto [index, op] : llvm::enumerate(reductions)) {
    auto reduce = cast<ReduceOp>(op);
    Value total = inside.create<ReduceOp>(op->getLoc(), reduce.getKind(), block.getArgument(index),
                                          ArrayRef<int64_t>{0});
    Type element = tensorType(reduce.getResult()).getElementType();
    mapping.map(reduce.getResult(), Emitter(inside, op->getLoc()).convert(total, element));
  }
  SmallVector<Value> yielded;
  for (Value value : body.getTerminator()->getOperands()) {
    import(value);
    yielded.push_back(mapping.lookup(value));
  }
  inside.create<YieldOp>(fused.getLoc(), yielded);
  auto second = builder.create<FusedOp>(fused.getLoc(), fused.getResultTypes(), inputs);
  copyWork(fused, second);
  second.getBody().takeBody(region);
  fused.replaceAllUsesWith(second.getResults());
}

void ColumnSplitter::split() {
  OpBuilder builder(fused);
  addParts(builder, addPartially(builder));
  fused.erase();
}

namespace {
struct SplitColumns : mlir::ds::impl::SplitColumnsBase<SplitColumns> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Resident)))
      return signalPassFailure();
    if (!isForCuda(getOperation()->getParentOfType<ModuleOp>()))
      return;
    for (FusedOp fused : llvm::to_vector(getOperation().getOps<FusedOp>()))
      if (ColumnSplitter splitter(fused); splitter.analyse())
        splitter.split();
  }
};
} // namespace
