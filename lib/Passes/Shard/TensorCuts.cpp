//===- TensorCuts.cpp - Where the values of a segment could be cut ---------------===//
#include "TensorCuts.h"

#include "ds/Analysis/Placement/Placement.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;

TensorCuts::TensorCuts(func::FuncOp func, ArrayRef<Alike> parameters, int64_t ranks, CutSeeds seeds)
    : ranks(ranks) {
  for (Operation &op : func.getBody().front())
    if (auto sharding = dyn_cast<ShardingOpInterface>(op))
      rules.try_emplace(&op, sharding.getShardingRule());
  if (seeds == CutSeeds::Sequences)
    seedSequences(func);
  else
    seedLayers(func, parameters, seeds == CutSeeds::LayersAndRows);
  spreadAll();
  if (seeds == CutSeeds::Sequences)
    addHeads(func);
}

void TensorCuts::spreadAll() {
  while (!open.empty()) {
    auto [value, cut] = open.pop_back_val();
    for (Value other : alike.lookup(value))
      add(other, cut);
    if (Operation *maker = value.getDefiningOp())
      visit(maker, value, cut);
    for (Operation *user : value.getUsers())
      visit(user, value, cut);
  }
}

ArrayRef<Cut> TensorCuts::of(Value value) const {
  auto found = cuts.find(value);
  return found == cuts.end() ? ArrayRef<Cut>() : ArrayRef<Cut>(found->second);
}

const ShardingRule &TensorCuts::ruleOf(Operation *op) const {
  static const ShardingRule none;
  auto found = rules.find(op);
  return found == rules.end() ? none : found->second;
}

void TensorCuts::add(Value value, const Cut &cut) {
  constexpr size_t kMost = ::ds::analysis::kMaxForms - ::ds::analysis::kFirstPart;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !cut.blocks.divide(type.getDimSize(cut.dim), ranks))
    return;
  SmallVector<Cut, 4> &known = cuts[value];
  if (known.size() == kMost || llvm::is_contained(known, cut))
    return;
  known.push_back(cut);
  open.push_back({value, cut});
}

bool mlir::ds::hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 3 && isFloatTensor(value) && isForward(value.getDefiningOp());
}

/// What attention reads and makes is [batch, sequence, heads, width], keys and values of another sequence
/// too.
void TensorCuts::seedSequences(func::FuncOp func) {
  if (func.getBody().getOps<AttentionOp>().empty())
    return seedRows(func);
  constexpr int64_t kSequence = 1;
  auto isOfHeads = [](Value value) { return isFloatTensor(value) && tensorType(value).getRank() == 4; };
  for (Operation &op : func.getBody().front()) {
    if (!isa<AttentionOp, AttentionGradOp>(op))
      continue;
    const Value mask =
        isa<AttentionOp>(op) ? cast<AttentionOp>(op).getMask() : cast<AttentionGradOp>(op).getMask();
    for (Value operand : op.getOperands())
      if (operand != mask && isOfHeads(operand))
        add(operand, {kSequence});
    for (Value result : llvm::make_filter_range(op.getResults(), isOfHeads))
      add(result, {kSequence});
  }
}

/// Heads of attention's own operands and results: sequences are exchanged for heads right there, so that
/// nothing else is cut by them.
void TensorCuts::addHeads(func::FuncOp func) {
  constexpr int64_t kHeads = 2;
  for (Operation &op : func.getBody().front())
    if (isa<AttentionOp, AttentionGradOp>(op))
      for (const ShardingFactor &factor : ruleOf(&op).factors)
        if (factor.operands.front().dim == kHeads && Blocks().divide(factor.size, ranks))
          spread(&op, factor, {});
  open.clear();
}

void TensorCuts::seedLayers(func::FuncOp func, ArrayRef<Alike> parameters, bool rows) {
  for (const Alike &values : parameters) {
    for (Value value : values)
      llvm::append_range(alike[value], values);
    if (tensorType(values.front()).getRank() >= 2)
      for (int64_t dim : {int64_t(0), int64_t(1)})
        add(values.front(), {dim});
  }
  func.walk([&](AttentionOp op) {
    constexpr int64_t kHeads = 2;
    add(op.getQuery(), {kHeads});
    add(op.getKey(), {kHeads});
  });
  if (rows)
    seedRows(func);
}

void TensorCuts::seedRows(func::FuncOp func) {
  for (Operation &op : func.getBody().front())
    for (Value result : op.getResults())
      if (hasRows(result))
        add(result, {1});
}

/// All that has a place in `factor`, of which `blocks` are cut.
void TensorCuts::spread(Operation *op, const ShardingFactor &factor, const Blocks &blocks) {
  for (auto [value, place] : llvm::zip_equal(op->getOperands(), factor.operands))
    if (place.has())
      add(value, cutOf(place, blocks));
  for (auto [value, place] : llvm::zip_equal(op->getResults(), factor.results))
    if (place.has())
      add(value, cutOf(place, blocks));
}

void TensorCuts::visit(Operation *op, Value from, const Cut &cut) {
  for (const ShardingFactor &factor : ruleOf(op).factors) {
    auto look = [&](Value value, const FactorDim &place) {
      if (value == from)
        if (std::optional<Blocks> blocks = findBlocks(factor, place, cut, ranks))
          spread(op, factor, *blocks);
    };
    for (auto [value, place] : llvm::zip_equal(op->getOperands(), factor.operands))
      look(value, place);
    for (auto [value, place] : llvm::zip_equal(op->getResults(), factor.results))
      look(value, place);
  }
}
