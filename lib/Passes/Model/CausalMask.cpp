//===- CausalMask.cpp - Recognises masks that hide the future -------------------===//
//
// A causal mask is written in many ways: a comparison of counters in either sense, a triangle of ones, a
// slice of a larger one, repeated over batch and heads. Instead of listing them, the condition is evaluated
// at each (t, s), which decides the question whatever it is made of.
//
//===----------------------------------------------------------------------------===//
#include "CausalMask.h"
#include "ds/Dialect/Emitter.h"

using namespace mlir;
using namespace mlir::ds;

using Index = SmallVector<int64_t, 4>;

/// More elements than this are not examined: 8192 positions squared.
static constexpr int64_t kMaxElements = 1 << 26;
/// One element of what is made of more ops than this, each counted for each reader, is not found out.
static constexpr int64_t kMaxOps = 4096;

namespace {
/// Evaluates elements of tensors that are made of counters and constants. All numbers that occur in masks are
/// exact in double precision.
class ElementEvaluator {
public:
  std::optional<double> at(Value value, const Index &index) {
    opsLeft = kMaxOps;
    return evaluate(value, index);
  }

private:
  std::optional<double> evaluate(Value value, const Index &index);
  std::optional<double> atConstant(ConstantOp op, const Index &index);
  std::optional<double> atReshape(ReshapeOp op, const Index &index);
  std::optional<double> atElementwise(Operation *op, const Index &index);

  DenseMap<Operation *, std::vector<double>> constants; ///< unpacked elements of the constants seen so far
  int64_t opsLeft = 0;                                  ///< for the element that is asked for
};
} // namespace

/// Row-major position of `index` in `shape`.
static int64_t linearize(ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  int64_t position = 0;
  for (auto [size, i] : llvm::zip_equal(shape, index))
    position = position * size + i;
  return position;
}

std::optional<double> ElementEvaluator::atConstant(ConstantOp op, const Index &index) {
  if (std::optional<double> splat = getSplatValue(op.getResult()))
    return splat;
  std::vector<double> &elements = constants[op];
  if (elements.empty()) {
    auto values = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!values)
      return std::nullopt;
    if (isa<FloatType>(values.getElementType()))
      for (const APFloat &value : values.getValues<APFloat>())
        elements.push_back(value.convertToDouble());
    else
      for (const APInt &value : values.getValues<APInt>())
        elements.push_back(value.getBitWidth() == 1 ? value.getZExtValue() : value.getSExtValue());
  }
  return elements[linearize(tensorType(op.getResult()).getShape(), index)];
}

std::optional<double> ElementEvaluator::atReshape(ReshapeOp op, const Index &index) {
  int64_t position = linearize(tensorType(op.getResult()).getShape(), index);
  ArrayRef<int64_t> shape = tensorType(op.getInput()).getShape();
  Index source(shape.size());
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    source[dim] = position % shape[dim];
    position /= shape[dim];
  }
  return evaluate(op.getInput(), source);
}

static bool compare(Predicate predicate, double a, double b) {
  switch (predicate) {
  case Predicate::EQ:
    return a == b;
  case Predicate::NE:
    return a != b;
  case Predicate::LT:
    return a < b;
  case Predicate::LE:
    return a <= b;
  case Predicate::GT:
    return a > b;
  case Predicate::GE:
    return a >= b;
  }
  llvm_unreachable("all predicates are handled");
}

std::optional<double> ElementEvaluator::atElementwise(Operation *op, const Index &index) {
  if (!isa<CompareOp, AddOp, SubOp, MulOp, NotOp, AndOp, OrOp, ConvertOp, SelectOp>(op))
    return std::nullopt;
  SmallVector<double, 3> x;
  for (Value operand : op->getOperands()) {
    std::optional<double> element = evaluate(operand, index);
    if (!element)
      return std::nullopt;
    x.push_back(*element);
  }
  if (auto op_ = dyn_cast<CompareOp>(op))
    return compare(op_.getPredicate(), x[0], x[1]);
  if (isa<AddOp>(op))
    return x[0] + x[1];
  if (isa<SubOp>(op))
    return x[0] - x[1];
  if (isa<MulOp>(op))
    return x[0] * x[1];
  if (isa<NotOp>(op))
    return x[0] == 0;
  if (isa<AndOp>(op))
    return x[0] != 0 && x[1] != 0;
  if (isa<OrOp>(op))
    return x[0] != 0 || x[1] != 0;
  if (isa<SelectOp>(op))
    return x[0] != 0 ? x[1] : x[2];
  Type element = tensorType(op->getResult(0)).getElementType();
  if (element.isInteger(1))
    return x[0] != 0;
  return isa<FloatType>(element) ? x[0] : std::trunc(x[0]);
}

std::optional<double> ElementEvaluator::evaluate(Value value, const Index &index) {
  Operation *op = value.getDefiningOp();
  if (!op || opsLeft-- <= 0)
    return std::nullopt;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return atConstant(constant, index);
  if (auto iota = dyn_cast<IotaOp>(op))
    return iota.getStart() + static_cast<int64_t>(iota.getStep()) * index[iota.getDim()];
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return atReshape(reshape, index);
  Index source;
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    for (auto [size, dim] : llvm::zip_equal(tensorType(broadcast.getInput()).getShape(), broadcast.getDims()))
      source.push_back(size == 1 ? 0 : index[dim]);
    return evaluate(broadcast.getInput(), source);
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    for (auto [i, offset, stride] : llvm::zip_equal(index, slice.getOffsets(), slice.getStrides()))
      source.push_back(offset + stride * i);
    return evaluate(slice.getInput(), source);
  }
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    source.resize(index.size());
    for (auto [i, dim] : llvm::zip_equal(index, transpose.getPerm()))
      source[dim] = i;
    return evaluate(transpose.getInput(), source);
  }
  return atElementwise(op, index);
}

/// The value that `condition` repeats along its leading dimensions; what is left of those is examined in
/// full.
static Value stripRepetition(Value condition) {
  while (auto broadcast = condition.getDefiningOp<BroadcastOp>()) {
    int64_t rank = tensorType(condition).getRank();
    RankedTensorType input = tensorType(broadcast.getInput());
    ArrayRef<int64_t> dims = broadcast.getDims();
    size_t count = dims.size();
    bool keepsMatrix = count >= 2 && dims[count - 1] == rank - 1 && dims[count - 2] == rank - 2 &&
                       input.getShape().take_back(2) == tensorType(condition).getShape().take_back(2);
    if (!keepsMatrix)
      break;
    condition = broadcast.getInput();
  }
  return condition;
}

std::optional<Visibility> mlir::ds::matchCausal(Value condition) {
  condition = stripRepetition(condition);
  RankedTensorType type = tensorType(condition);
  if (type.getRank() < 2 || type.getNumElements() > kMaxElements || type.getNumElements() == 0)
    return std::nullopt;
  int64_t rows = type.getDimSize(type.getRank() - 2), columns = type.getShape().back();
  ElementEvaluator evaluator;
  std::optional<bool> trueMeansVisible;
  Index index(type.getRank(), 0);
  for (int64_t count = type.getNumElements(); count; --count) {
    std::optional<double> element = evaluator.at(condition, index);
    if (!element)
      return std::nullopt;
    bool visible = index.back() <= index[index.size() - 2] + (columns - rows);
    bool agrees = visible == (*element != 0);
    if (trueMeansVisible.value_or(agrees) != agrees)
      return std::nullopt;
    trueMeansVisible = agrees;
    for (int64_t dim = index.size() - 1; dim >= 0 && ++index[dim] == type.getDimSize(dim); --dim)
      index[dim] = 0;
  }
  return *trueMeansVisible ? Visibility::Visible : Visibility::Hidden;
}
