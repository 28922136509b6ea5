//===- ShareSequences.cpp - A segment whose sequences ranks are to share -----------===//
//
// Ranks have some rows of a sequence each, and attention some heads of all rows (Jacobs et al., "DeepSpeed
// Ulysses", arXiv 2309.14509). Two things do not divide so by themselves. A mean over rows is no addend of
// the mean over all: its divisor is counted from the targets, which every rank has whole. And key heads may
// be fewer than ranks: of 2 on 4 ranks each is sent to 2, as 4 heads of which each is there twice.
//
//===---------------------------------------------------------------------------===//
#include "ShareSequences.h"

#include "TensorCuts.h"

#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

#include "llvm/ADT/StringExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;

//===----------------------------------------------------------------------===//
// What cannot be shared
//===----------------------------------------------------------------------===//

/// "28 or 32" for 30 and 4: the nearest numbers that `ranks` divide.
static std::string nearestOf(int64_t size, int64_t ranks) {
  const int64_t below = size / ranks * ranks;
  return (below > 0 ? std::to_string(below) + " or " : std::string()) + std::to_string(below + ranks);
}

static LogicalResult checkAttention(AttentionOp op, int64_t ranks) {
  for (Value value : {op.getQuery(), op.getKey()})
    if (const int64_t length = tensorType(value).getDimSize(1); length % ranks != 0)
      return emitError(op.getLoc()) << "sequence_parallel_size = " << ranks
                                    << " does not divide sequences of " << length << " tokens; "
                                    << nearestOf(length, ranks) << " tokens divide";
  const int64_t heads = tensorType(op.getQuery()).getDimSize(2);
  const int64_t keyHeads = tensorType(op.getKey()).getDimSize(2);
  if (heads % std::lcm(keyHeads, ranks) == 0)
    return success();
  SmallVector<std::string> sizes;
  for (int64_t size = 2; size < ranks; ++size)
    if (heads % std::lcm(keyHeads, size) == 0)
      sizes.push_back(std::to_string(size));
  InFlightDiagnostic error = emitError(op.getLoc());
  error << "sequence_parallel_size = " << ranks << " does not divide the " << heads << " heads of attention";
  if (keyHeads != heads)
    error << " by its " << keyHeads << " key heads";
  error << ", and there is no ring over ranks yet";
  if (!sizes.empty())
    error << "; sizes that do: " << llvm::join(sizes, ", ");
  return failure();
}

/// Whether some activation of `func` has a sequence that `ranks` divide.
static bool hasSequence(func::FuncOp func, int64_t ranks) {
  auto isShared = [&](Value value) { return hasRows(value) && tensorType(value).getDimSize(1) % ranks == 0; };
  return llvm::any_of(func.getBody().front(),
                      [&](Operation &op) { return llvm::any_of(op.getResults(), isShared); });
}

LogicalResult mlir::ds::checkSequences(func::FuncOp func, int64_t ranks) {
  auto attentions = func.getBody().getOps<AttentionOp>();
  for (AttentionOp op : attentions)
    if (failed(checkAttention(op, ranks)))
      return failure();
  if (attentions.empty() && !hasSequence(func, ranks))
    return emitError(func.getLoc()) << "sequence_parallel_size = " << ranks
                                    << " finds no sequence that it divides: no attention, and no activation "
                                       "[batch, sequence, width]";
  return success();
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// Divides a loss by the number of its targets, where it is divided by nothing else, and lets `count` of its
/// results be that number.
template <typename OpT>
static void countTargets(OpT op, Value count) {
  WorkListener listener(op);
  OpBuilder builder(op->getContext(), &listener);
  builder.setInsertionPoint(op);
  Emitter emit(builder, op.getLoc());
  Value targets = op.getTargets();
  const auto ignored = static_cast<int64_t>(op.getIgnoreIndex());
  Value isCounted =
      emit.compare(Predicate::NE, targets, emit.splatLike(targets, static_cast<double>(ignored)));
  Value all = emit.sum(emit.convert(isCounted, builder.getF32Type()), {0});
  if (!op.getDenominator())
    op.getDenominatorMutable().assign(all);
  count.replaceAllUsesWith(all);
}

//===----------------------------------------------------------------------===//
// Key heads
//===----------------------------------------------------------------------===//

/// Of [B, S, G, D] each head so many times, [B, S, G * times, D].
static Value repeatHeads(Emitter &emit, Value keys, int64_t times) {
  SmallVector<int64_t> shape(tensorType(keys).getShape());
  Value apart = emit.reshape(keys, {shape[0], shape[1], shape[2], 1, shape[3]});
  Value all = emit.broadcast(apart, {0, 1, 2, 3, 4}, {shape[0], shape[1], shape[2], times, shape[3]});
  return emit.reshape(all, {shape[0], shape[1], shape[2] * times, shape[3]});
}

/// The gradient of what `times` copies of each head were made of, given theirs.
static Value addCopies(Emitter &emit, Value gradient, int64_t times) {
  const RankedTensorType type = tensorType(gradient);
  const ArrayRef<int64_t> shape = type.getShape();
  Value apart = emit.reshape(gradient, {shape[0], shape[1], shape[2] / times, times, shape[3]});
  return emit.convert(emit.sum(emit.widen(apart), {3}), type.getElementType());
}

/// Lets attention, or its gradient, read `times` copies of each key head: the same as others read, which are
/// exchanged once for all. `repeated` has those that there are.
static void repeatKeyHeads(Operation *op, int64_t times, DenseMap<Value, Value> &repeated) {
  constexpr unsigned kKey = 1, kValue = 2; // of operands, and of a gradient's results
  WorkListener listener(op);
  OpBuilder builder(op->getContext(), &listener);
  builder.setInsertionPoint(op);
  Emitter emit(builder, op->getLoc());
  Operation *wide = op->clone();
  for (unsigned index : {kKey, kValue}) {
    Value &heads = repeated[op->getOperand(index)];
    if (!heads)
      heads = repeatHeads(emit, op->getOperand(index), times);
    wide->setOperand(index, heads);
  }
  builder.insert(wide);
  SmallVector<Value> results(wide->getResults());
  if (isa<AttentionGradOp>(op))
    for (unsigned index : {kKey, kValue}) {
      wide->getResult(index).setType(wide->getOperand(index).getType());
      results[index] = addCopies(emit, wide->getResult(index), times);
    }
  op->replaceAllUsesWith(results);
  op->erase();
}

void mlir::ds::openSequences(func::FuncOp func, int64_t ranks) {
  DenseMap<Value, Value> repeated;
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
    if (auto loss = dyn_cast<CrossEntropyOp>(op))
      countTargets(loss, loss.getCount());
    else if (auto both = dyn_cast<CrossEntropyWithGradOp>(op))
      countTargets(both, both.getCount());
    if (!isa<AttentionOp, AttentionGradOp>(op))
      continue;
    const int64_t keyHeads = tensorType(op.getOperand(1)).getDimSize(2);
    if (const int64_t times = std::lcm(keyHeads, ranks) / keyHeads; times > 1)
      repeatKeyHeads(&op, times, repeated);
  }
}
