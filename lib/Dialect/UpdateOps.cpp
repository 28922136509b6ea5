//===- UpdateOps.cpp - Updates of parameters, whole or in part -------------------===//
#include "ds/Dialect/Emitter.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::ds;

//===----------------------------------------------------------------------===//
// UpdateOp
//===----------------------------------------------------------------------===//

bool UpdateOp::isNeededWhole() { return true; }

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto state = symbolTable.lookupNearestSymbolFrom<StateOp>(*this, getParameterAttr());
  if (state && state.getRole() == Role::Parameter) // C1.
    return success();
  return emitOpError("expects a parameter's state, but got ") << getParameterAttr();
}

/// Verifies that `op` computes each element from the operands' elements at the same place, or from what all
/// elements have in common (C4).
static LogicalResult verifyInUpdate(UpdateOp update, Operation &op) {
  auto fusable = dyn_cast<FusableOpInterface>(op);
  bool isElementwise = fusable && fusable.getFusionKind() == FusionKind::Elementwise;
  if (auto constant = dyn_cast<ConstantOp>(op))
    isElementwise = isa<SplatElementsAttr>(constant.getValue());
  else if (auto broadcast = dyn_cast<BroadcastOp>(op))
    isElementwise = broadcast.getInput().getType().getRank() == 0;
  if (isElementwise)
    return success();
  InFlightDiagnostic error = update.emitOpError(
      "expects elementwise ops, splat constants and broadcasts of rank 0 in its body, but got ");
  error << op.getName();
  error.attachNote(op.getLoc()) << "this op";
  return error;
}

LogicalResult UpdateOp::verifyRegions() {
  Block &block = getBody().front();
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!llvm::equal(block.getArgumentTypes(), getOperandTypes())) // C2.
    return emitOpError("expects ") << getNumOperands() << " block arguments of the operands' types";
  if (!yield || !llvm::equal(yield.getValues().getTypes(), getResultTypes())) // C2.
    return emitOpError("expects to yield ") << getNumResults() << " values of the results' types";
  ArrayRef<int64_t> shape = getGradient().getType().getShape();
  SmallVector<Type> types(getStates().getTypes());
  llvm::append_range(types, getResultTypes());
  for (Type type : types)
    if (cast<RankedTensorType>(type).getShape() != shape) // C3.
      return emitOpError("expects states and results of the shape of ")
             << getGradient().getType() << ", but got " << type;
  for (Type type : getScalars().getTypes())
    if (cast<RankedTensorType>(type).getRank() != 0) // C3.
      return emitOpError("expects scalars of rank 0, but got ") << type;
  for (Operation &op : block.without_terminator())
    if (failed(verifyInUpdate(*this, op)))
      return failure();
  return success();
}

namespace {
/// Builds a body for another shape. A value is `wide` when it has that shape, and narrow when it is one
/// number for all elements; for parameters of rank 0 only what it is made of tells the two apart.
class BodyBuilder {
public:
  BodyBuilder(OpBuilder &builder, ArrayRef<int64_t> shape) : builder(builder), shape(shape) {}

  void bind(Value inner, Value outer, bool isWide) { values[inner] = {outer, isWide}; }
  Value lookup(Value inner) { return values.at(inner).first; }
  /// The value in the full shape.
  Value widen(Value inner, Location loc);
  void visit(Operation &op);

private:
  RankedTensorType inShape(Type type) { return cast<RankedTensorType>(type).clone(shape); }

  OpBuilder &builder;
  ArrayRef<int64_t> shape;
  DenseMap<Value, std::pair<Value, bool>> values;
};

Value BodyBuilder::widen(Value inner, Location loc) {
  auto [value, isWide] = values.at(inner);
  return isWide ? value : Emitter(builder, loc).broadcast(value, {}, shape);
}

void BodyBuilder::visit(Operation &op) {
  Value result = op.getResult(0);
  bool isRanked = tensorType(result).getRank() != 0;
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    RankedTensorType type = isRanked ? inShape(result.getType()) : constant.getType();
    return bind(result, builder.create<ConstantOp>(op.getLoc(), type, splat.resizeSplat(type)), isRanked);
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return bind(result, widen(broadcast.getInput(), op.getLoc()), true);
  bool isWide =
      isRanked || llvm::any_of(op.getOperands(), [&](Value operand) { return values.at(operand).second; });
  IRMapping mapping;
  for (Value operand : op.getOperands())
    mapping.map(operand, isWide ? widen(operand, op.getLoc()) : lookup(operand));
  Operation *clone = builder.clone(op, mapping);
  for (auto [from, to] : llvm::zip_equal(op.getResults(), clone->getResults())) {
    if (isWide)
      to.setType(inShape(from.getType()));
    bind(from, to, isWide);
  }
}
} // namespace

SmallVector<Value> UpdateOp::build(OpBuilder &builder, ValueRange operands) {
  Block &block = getBody().front();
  size_t numWide = getStates().size() + 1;
  BodyBuilder body(builder, tensorType(operands[numWide - 1]).getShape());
  for (auto [index, inner, outer] : llvm::enumerate(block.getArguments(), operands))
    body.bind(inner, outer, index < numWide);
  for (Operation &op : block.without_terminator())
    body.visit(op);
  return llvm::map_to_vector(cast<YieldOp>(block.getTerminator()).getValues(),
                             [&](Value value) { return body.widen(value, getLoc()); });
}

SmallVector<Value> UpdateOp::decompose(OpBuilder &builder) { return build(builder, getOperands()); }

//===----------------------------------------------------------------------===//
// SumOfSquaresOp
//===----------------------------------------------------------------------===//

LogicalResult SumOfSquaresOp::verify() {
  return getInputs().empty() ? emitOpError("expects an operand, but got none") : success(); // C1.
}

bool SumOfSquaresOp::isNeededWhole() { return true; }

bool SumOfSquaresOp::isLibraryCall() {
  return getInputs().size() > 1 && llvm::none_of(getInputs().getTypes(), [](Type type) {
           return cast<RankedTensorType>(type).getElementType().isF64();
         });
}

LibraryCall SumOfSquaresOp::getLibraryCall() {
  LibraryCall call;
  call.callee = ::ds::rt::LibraryFn::SumOfSquares;
  llvm::append_range(call.order, llvm::seq(0u, getNumOperands() + 1));
  return call;
}

/// `a` + `b`, of which `a` may be null.
static Value addTo(Emitter &emit, Value a, Value b) { return a ? emit.add(a, b) : b; }

/// Adds the squares of `x`'s elements to `total`, which is null before the first.
static Value addSquares(Emitter &emit, Value x, Value total) {
  constexpr int64_t kBlock = SumOfSquaresOp::kBlock;
  OpBuilder &builder = emit.getBuilder();
  Type f64 = builder.getF64Type();
  int64_t count = tensorType(x).getNumElements(), main = count / kBlock * kBlock;
  Value flat = emit.reshape(x, {count});
  // Widened behind the windows: each sum reads the narrow values, and no wide copy of them is kept.
  auto sumOfSquares = [&](Value part, int64_t dim) {
    return emit.convert(emit.sum(emit.square(emit.widen(part)), {dim}), f64);
  };
  auto window = [&](int64_t begin, int64_t size) -> Value {
    if (size == count)
      return flat;
    return builder.create<SliceOp>(emit.getLoc(), tensorType(flat).clone({size}), flat,
                                   ArrayRef<int64_t>{begin}, ArrayRef<int64_t>{1});
  };
  if (main) {
    Value blocks = emit.reshape(window(0, main), {main / kBlock, kBlock});
    total = addTo(emit, total, emit.sum(sumOfSquares(blocks, 1), {0}));
  }
  if (main < count)
    total = addTo(emit, total, sumOfSquares(window(main, count - main), 0));
  return total;
}

SmallVector<Value> SumOfSquaresOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  Value total;
  for (Value input : getInputs())
    total = addSquares(emit, input, total);
  return {total ? total : emit.scalar(builder.getF64Type(), 0)};
}

//===----------------------------------------------------------------------===//
// PresumeOp
//===----------------------------------------------------------------------===//

LogicalResult PresumeOp::verify() {
  if (cast<RankedTensorType>(getTruth().getType()).getRank() == 0) // C1.
    return success();
  return emitOpError("expects scalars, but got ") << getTruth().getType();
}
