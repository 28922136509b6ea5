//===- LowerPrecision.cpp - 16-bit parameters, activations and products ----------===//
//
// Types are assigned in one walk over the forward, as PyTorch's autocast does it while running: each op says
// in which type it is to be computed (PrecisionOpInterface), and what it reads is converted. It is done
// before differentiation, so that gradients are of the types of what they belong to and need no table of
// their own.
//
// Sixteen bits are for storage. Arithmetic on elements is done in f32, and its result is rounded where it
// would be stored: a value that only one elementwise op reads is a register of that op's kernel, and stays as
// it is. A value may therefore be *held* in f32 although it *counts* as 16-bit for those that look for the
// widest type.
//
//===----------------------------------------------------------------------------===//
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Stages.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_LOWERPRECISION
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

static FloatType elementOf(Value value) { return cast<FloatType>(tensorType(value).getElementType()); }

/// True for ops that compute on elements and fuse: their results may stay in registers.
static bool isArithmetic(Operation *op) {
  auto fusable = dyn_cast<FusableOpInterface>(op);
  return fusable && fusable.getFusionKind() != FusionKind::Index && !isa<ConvertOp>(op);
}

/// True when `value` is read by one op alone, and that computes on elements.
static bool staysInRegister(Value value) {
  if (value.use_empty())
    return false;
  Operation *first = *value.user_begin();
  return llvm::all_of(value.getUsers(), [&](Operation *user) { return user == first; }) &&
         (isArithmetic(first) || isa<ConvertOp>(first));
}

/// True for numbers that take the type of the tensors they meet: constants, and scalars that are repeated.
static bool isScalar(Value value) {
  if (getSplatValue(value))
    return true;
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  return broadcast && tensorType(broadcast.getInput()).getRank() == 0;
}

namespace {

/// Assigns types in one function.
class Lowering {
public:
  Lowering(func::FuncOp func, const PrecisionOptions &options, const SymbolTable &symbols)
      : func(func), options(options), symbols(symbols), low(toFloatType(func.getContext(), options.compute)),
        single(Float32Type::get(func.getContext())) {}

  LogicalResult run();

private:
  void visitArgument(BlockArgument argument);
  void visit(PrecisionOpInterface op);
  void finish();

  FloatType findType(PrecisionOpInterface op);
  FloatType widestOf(PrecisionOpInterface op);
  void setState(BlockArgument argument, StateOp state, FloatType element);
  void setResult(PrecisionOpInterface op, OpResult result, FloatType counted, FloatType computed);
  /// The type that a value counts as.
  FloatType counted(Value value) {
    return countedTypes.lookup(value) ? countedTypes.lookup(value) : elementOf(value);
  }
  /// `value` in `element`, converted before `user` unless it has been already.
  Value as(Value value, FloatType element, Operation *user);

  func::FuncOp func;
  const PrecisionOptions &options;
  const SymbolTable &symbols;
  FloatType low, single;
  DenseMap<Value, FloatType> countedTypes; ///< of values that are held in another type
  DenseMap<std::pair<Value, Type>, Value> converted;
};

void Lowering::setState(BlockArgument argument, StateOp state, FloatType element) {
  RankedTensorType type = state.getTensorType().clone(element);
  state.setType(type);
  argument.setType(type);
}

/// Parameters change their type in their declaration; inputs come as they are, and count as 16-bit.
void Lowering::visitArgument(BlockArgument argument) {
  if (!isFloatTensor(argument))
    return;
  auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), DsDialect::kStateAttr);
  auto state = name ? symbols.lookup<StateOp>(name.getValue()) : StateOp();
  if (state && state.getRole() == Role::Parameter && options.lowersParameters())
    setState(argument, state, low);
  else if (state && state.getRole() == Role::Buffer && options.convertsBuffers)
    setState(argument, state, toFloatType(func.getContext(), options.buffer));
  else if (!name && options.lowersParameters())
    countedTypes[argument] = low;
}

Value Lowering::as(Value value, FloatType element, Operation *user) {
  if (elementOf(value) == element)
    return value;
  Value &known = converted[{value, element}];
  if (!known) {
    OpBuilder builder(user);
    known = Emitter(builder, user->getLoc()).convert(value, element);
  }
  return known;
}

/// The widest type that the operands count as; scalars have a say only among themselves.
FloatType Lowering::widestOf(PrecisionOpInterface op) {
  FloatType tensors, scalars;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!isFloatTensor(value) || op.getOperandPrecision(operand.getOperandNumber()) != Precision::Widest)
      continue;
    FloatType &widest = isScalar(value) ? scalars : tensors;
    FloatType type = counted(value);
    if (!widest || type.getWidth() > widest.getWidth())
      widest = type;
    else if (type != widest && type.getWidth() == widest.getWidth()) // bf16 and f16: neither holds the other
      widest = single;
  }
  return tensors ? tensors : scalars;
}

/// The type that the op's results of a kind count as; null where nothing is to be done.
FloatType Lowering::findType(PrecisionOpInterface op) {
  for (unsigned index = 0; index < op->getNumOperands(); ++index) {
    if (!isFloatTensor(op->getOperand(index)))
      continue;
    switch (op.getOperandPrecision(index)) {
    case Precision::Low:
      return low;
    case Precision::Single:
      return elementOf(op->getOperand(index)).isF64() ? elementOf(op->getOperand(index)) : single;
    case Precision::Widest:
      return widestOf(op);
    case Precision::AsIs:
      continue;
    }
  }
  return {};
}

void Lowering::visit(PrecisionOpInterface op) {
  FloatType type = findType(op);
  if (!type)
    return;
  FloatType computed = isArithmetic(op) && type.getWidth() < 32 ? single : type;
  for (OpOperand &operand : op->getOpOperands()) {
    Precision precision = op.getOperandPrecision(operand.getOperandNumber());
    if (!isFloatTensor(operand.get()) || precision == Precision::AsIs)
      continue;
    // A mask beside 16-bit operands is read in f32.
    bool isOther = precision == Precision::Single && type.getWidth() < 32;
    operand.set(as(operand.get(), isOther ? single : computed, op));
  }
  for (OpResult result : op->getResults())
    if (isFloatTensor(result) && op.getResultPrecision(result.getResultNumber()) != Precision::AsIs)
      setResult(op, result, type, computed);
}

/// Gives `result` the type it was computed in, and where it is stored, the type it counts as.
void Lowering::setResult(PrecisionOpInterface op, OpResult result, FloatType counted, FloatType computed) {
  result.setType(tensorType(result).clone(computed));
  if (counted == computed)
    return;
  if (staysInRegister(result)) {
    countedTypes[result] = counted;
    return;
  }
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value rounded = Emitter(builder, op.getLoc()).convert(result, counted);
  result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
}

/// What the function returns has the types it had, or those of the states it goes to.
void Lowering::finish() {
  Operation *terminator = func.getBody().front().getTerminator();
  SmallVector<Type> types;
  for (auto [index, type] : llvm::enumerate(func.getResultTypes())) {
    auto name = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr);
    auto state = name ? symbols.lookup<StateOp>(name.getValue()) : StateOp();
    types.push_back(state ? state.getTensorType() : type);
    OpOperand &operand = terminator->getOpOperand(index);
    if (isFloatTensor(operand.get()))
      operand.set(as(operand.get(), cast<FloatType>(getElementTypeOrSelf(types.back())), terminator));
  }
  func.setType(FunctionType::get(func.getContext(), func.getBody().front().getArgumentTypes(), types));
}

LogicalResult Lowering::run() {
  Block &body = func.getBody().front();
  SmallVector<PrecisionOpInterface> ops;
  for (Operation &op : body.without_terminator()) {
    auto rule = dyn_cast<PrecisionOpInterface>(&op);
    if (!rule && llvm::any_of(op.getOperands(), isFloatTensor))
      return op.emitOpError("expects an entry in the table of precision, but has none");
    if (rule)
      ops.push_back(rule);
  }
  for (BlockArgument argument : body.getArguments())
    visitArgument(argument);
  for (PrecisionOpInterface op : ops)
    visit(op);
  finish();
  return success();
}

struct LowerPrecision : mlir::ds::impl::LowerPrecisionBase<LowerPrecision> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    const TrainingOptions training = getTraining(getOperation());
    SymbolTable symbols(getOperation());
    auto forward = symbols.lookup<func::FuncOp>("forward");
    if (!forward) {
      emitError(getOperation().getLoc(), "expects a function @forward to lower, but the module has none");
      return signalPassFailure();
    }
    const PrecisionOptions &options = training.precision;
    // A stage is in final types since it was cut.
    if (isStage(forward) || (options.compute == FloatKind::F32 && !options.convertsBuffers))
      return;
    if (failed(Lowering(forward, options, symbols).run()))
      signalPassFailure();
  }
};
} // namespace
