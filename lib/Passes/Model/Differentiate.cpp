//===- Differentiate.cpp - Gradients by a reverse sweep -------------------------===//
//
// The forward is one block in SSA form, so its reverse is: visit ops last to first, and by the time an op is
// visited all uses of its results have been, hence their gradients are complete. What passes through an op is
// the op's own knowledge (DifferentiableOpInterface). Activity - does a trainable parameter influence this
// value? - is computed first, so that gradients that nothing reads are never built.
//
//===----------------------------------------------------------------------------===//
#include "ActiveValues.h"
#include "Support/FoldAccumulators.h"
#include "Support/LossScale.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Stages.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {

/// The reverse sweep over one function.
class Sweep {
public:
  Sweep(func::FuncOp func, SymbolTable &symbols)
      : func(func), body(func.getBody().front()), symbols(symbols), active(findActiveValues(func)) {
    findParameters();
    findShared();
  }

  /// Builds all gradients before the terminator, starting from d loss / d loss = `seed` * `scale`, which may
  /// be null for 1. `loss` is null on a stage of a pipeline that has none: it starts from what is sent.
  void run(Value loss, double seed, Value scale);

  /// Arguments that hold trainable parameters.
  ArrayRef<BlockArgument> getParameters() const { return parameters; }
  /// The complete gradient by `value`, in its type, or null where the loss does not depend on it.
  Value getGradient(Value value);

private:
  void findParameters();
  void findShared();
  void visit(Operation *op, OpBuilder &builder);
  bool visitMessage(Operation *op, OpBuilder &builder);
  void accumulate(Value value, Value gradient, OpBuilder &builder, Location loc);
  SmallVector<bool> activeOperands(Operation *op) const;

  func::FuncOp func;
  Block &body;
  SymbolTable &symbols;
  SmallVector<BlockArgument> parameters;
  const DenseSet<Value> active;     ///< floats that a trainable parameter influences
  DenseSet<Value> shared;           ///< 16-bit weights and biases that several products read
  DenseMap<Value, Value> gradients; ///< of those in f32, as long as they are summed up
};

void Sweep::findParameters() {
  for (BlockArgument argument : body.getArguments()) {
    auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), DsDialect::kStateAttr);
    auto state = name ? symbols.lookup<StateOp>(name.getValue()) : StateOp();
    if (!state || !state.getTrainable())
      continue;
    parameters.push_back(argument);
  }
}

/// Of a loss in chunks, each chunk's product makes a part of one sum, which is to be rounded where the whole
/// product would have been.
void Sweep::findShared() {
  DenseSet<Value> read;
  auto add = [&](Value weight) {
    if (tensorType(weight).getElementTypeBitWidth() == 16 && !read.insert(weight).second)
      shared.insert(weight);
  };
  for (MatmulOp product : body.getOps<MatmulOp>()) {
    if (tensorType(product.getRhs()).getRank() == 2)
      add(product.getRhs());
    if (product.getBias())
      add(product.getBias());
  }
}

SmallVector<bool> Sweep::activeOperands(Operation *op) const {
  return llvm::map_to_vector(op->getOperands(), [&](Value operand) { return active.contains(operand); });
}

void Sweep::run(Value loss, double seed, Value scale) {
  Operation *terminator = body.getTerminator();
  if (loss && !active.contains(loss))
    return;
  SmallVector<Operation *> forward;
  for (Operation &op : body.without_terminator())
    forward.push_back(&op);
  markWork(body, Work::Forward);
  WorkListener listener;
  OpBuilder builder(terminator, &listener);
  if (loss) {
    Emitter emit(builder, loss.getLoc());
    Value start = emit.splatLike(loss, seed);
    if (scale)
      start = emit.mul(start, emit.convert(scale, tensorType(loss).getElementType()));
    gradients[loss] = start;
  }
  for (Operation *op : llvm::reverse(forward)) {
    listener.follow(op, Work::Backward);
    if (!visitMessage(op, builder))
      visit(op, builder);
  }
  markWork(body, Work::Backward);
}

/// Of what was sent to be trained the gradient comes back, and of what was received it goes back; zero where
/// the loss does not depend on it, for the other stage waits. Returns whether `op` is a message.
bool Sweep::visitMessage(Operation *op, OpBuilder &builder) {
  if (auto sent = dyn_cast<SendOp>(op)) {
    if (sent.getTrained())
      accumulate(sent.getInput(),
                 builder.create<RecvOp>(op->getLoc(), sent.getInput().getType(), sent.getPeer(),
                                        sent.getAxes(), sent.getCarries(), /*trained=*/false),
                 builder, op->getLoc());
    return true;
  }
  auto received = dyn_cast<RecvOp>(op);
  if (received && received.getTrained()) {
    Value gradient = getGradient(received.getResult());
    if (!gradient)
      gradient = Emitter(builder, op->getLoc()).splatLike(received.getResult(), 0);
    builder.create<SendOp>(op->getLoc(), gradient, received.getPeer(), received.getAxes(),
                           received.getCarries(),
                           /*trained=*/false);
  }
  return received != nullptr;
}

void Sweep::visit(Operation *op, OpBuilder &builder) {
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return;
  SmallVector<bool> needed = activeOperands(op);
  if (llvm::none_of(op->getResults(), [&](Value result) { return gradients.contains(result); }) ||
      !llvm::is_contained(needed, true))
    return;
  SmallVector<Value> resultGrads =
      llvm::map_to_vector(op->getResults(), [&](Value result) { return getGradient(result); });
  SmallVector<Value> operandGrads;
  differentiable.buildGradients(builder, resultGrads, needed, operandGrads);
  assert(operandGrads.size() == op->getNumOperands() && "one gradient, or null, per operand");
  for (auto [operand, grad, isNeeded] : llvm::zip_equal(op->getOperands(), operandGrads, needed))
    if (grad && isNeeded)
      accumulate(operand, grad, builder, op->getLoc());
}

/// `gradient` of 16 bits, which nothing reads yet, as the f32 sums that it was rounded from.
static Value makeUnrounded(Emitter &emit, Value gradient) {
  auto sum = gradient.getDefiningOp<ReduceOp>();
  if (sum && sum.getKind() == ReduceKind::Sum)
    return emit.sum(emit.widen(sum.getInput()), sum.getDims());
  return makeIn(emit, gradient, emit.getBuilder().getF32Type());
}

void Sweep::accumulate(Value value, Value gradient, OpBuilder &builder, Location loc) {
  assert(value.getType() == gradient.getType() && "a gradient has its value's type");
  Emitter emit(builder, loc);
  if (shared.contains(value))
    gradient = makeUnrounded(emit, gradient);
  Value &sum = gradients[value];
  sum = sum ? emit.add(sum, gradient) : gradient;
}

Value Sweep::getGradient(Value value) {
  Value gradient = gradients.lookup(value);
  if (!gradient || gradient.getType() == value.getType())
    return gradient;
  OpBuilder builder(body.getTerminator());
  builder.setInsertionPointAfterValue(gradient);
  gradients[value] =
      Emitter(builder, gradient.getLoc()).convert(gradient, tensorType(value).getElementType());
  copyWork(gradient.getDefiningOp(), gradients[value].getDefiningOp());
  return gradients[value];
}

struct Differentiate : mlir::ds::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    auto forward = symbols.lookup<func::FuncOp>("forward");
    if (!forward) {
      emitError(getOperation().getLoc(),
                "expects a function @forward to differentiate, but the module has none");
      return signalPassFailure();
    }
    if (failed(checkLoss(forward)))
      return signalPassFailure();
    const TrainingOptions training = getTraining(getOperation());
    Sweep sweep(forward, symbols);
    const LossScaleOptions &scaler = training.lossScale;
    double scale = scaler.scales && !scaler.dynamic ? scaler.initial : 1.0;
    const bool isLast = givesLoss(forward);
    FailureOr<Value> dynamicScale = readLossScale(forward, scaler, isLast);
    if (failed(dynamicScale))
      return signalPassFailure();
    int64_t ranks = training.rankReduction == RankReduction::Mean ? MeshOp::countSampleRanks(forward) : 1;
    Value loss = isLast ? forward.getBody().front().getTerminator()->getOperand(0) : Value();
    sweep.run(loss, scale / (training.accumulation * ranks), *dynamicScale);
    appendGradients(forward, sweep);
  }

  /// The first result must be a rank-0 float, and no gradient may have been appended before.
  static LogicalResult checkLoss(func::FuncOp forward) {
    ArrayRef<Type> results = forward.getResultTypes();
    if (!givesLoss(forward))
      return success();
    auto type = results.empty() ? RankedTensorType() : dyn_cast<RankedTensorType>(results.front());
    if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType())) {
      InFlightDiagnostic error = forward.emitOpError("expects a rank-0 float loss as first result, but got ");
      if (results.empty())
        return error << "no result";
      return error << results.front();
    }
    for (unsigned index = 0; index < results.size(); ++index)
      if (GradientAttr::stateOf(forward, index))
        return forward.emitOpError("expects a forward without gradients, but result ") << index << " is one";
    return success();
  }

  /// The argument that holds the scale of the loss; null where that is known now.
  static FailureOr<Value> readLossScale(func::FuncOp forward, const LossScaleOptions &scaler, bool hasLoss) {
    if (!scaler.scales || !scaler.dynamic)
      return Value();
    StateOp state = declareLossScale(forward->getParentOfType<ModuleOp>(), scaler);
    if (!state)
      return failure();
    if (!hasLoss) // every stage unscales
      return Value();
    unsigned index = forward.getNumArguments();
    Builder builder(forward.getContext());
    auto attr = builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(state));
    forward.insertArgument(index, state.getTensorType(), builder.getDictionaryAttr(attr), state.getLoc());
    return Value(forward.getArgument(index));
  }

  /// Returns each gradient after the forward's own results.
  void appendGradients(func::FuncOp forward, Sweep &sweep) {
    Operation *terminator = forward.getBody().front().getTerminator();
    SmallVector<Value> gradients;
    SmallVector<DictionaryAttr> allAttrs;
    for (BlockArgument parameter : sweep.getParameters()) {
      auto name =
          forward.getArgAttrOfType<FlatSymbolRefAttr>(parameter.getArgNumber(), DsDialect::kStateAttr);
      Value gradient = sweep.getGradient(parameter);
      if (!gradient) {
        if (remarks)
          forward.emitRemark() << "parameter " << name << " does not influence the loss: it has no gradient";
        continue;
      }
      Builder builder(&getContext());
      gradients.push_back(gradient);
      allAttrs.push_back(builder.getDictionaryAttr(
          builder.getNamedAttr(DsDialect::kStateAttr, GradientAttr::get(&getContext(), name))));
    }
    // All at once: each insertion makes the function's type anew.
    forward.insertResults(SmallVector<unsigned>(gradients.size(), forward.getNumResults()),
                          llvm::to_vector(TypeRange(ValueRange(gradients))), allAttrs);
    terminator->insertOperands(terminator->getNumOperands(), gradients);
  }
};
} // namespace
