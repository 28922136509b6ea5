//===- MaskElements.cpp - Elements of what masks are computed from ---------------===//
#include "MaskElements.h"
#include "ds/Dialect/Emitter.h"

using namespace mlir;
using namespace mlir::ds;

using Elements = std::optional<std::vector<double>>;

/// A line of what is made of more ops than this, each counted for each reader, is not found out.
static constexpr int64_t kMaxOps = 4096;

Elements MaskElements::at(Value value, const ElementLine &line, int64_t numElements) {
  opsLeft = kMaxOps;
  count = numElements;
  return evaluate(value, line);
}

/// Elements between neighbours along each dimension, in row-major order.
static SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

/// Row-major position of the line's first element.
static int64_t positionOf(ArrayRef<int64_t> strides, const ElementLine &line) {
  int64_t position = 0;
  for (auto [stride, index] : llvm::zip_equal(strides, line.first))
    position += stride * index;
  return position;
}

Elements MaskElements::atConstant(ConstantOp op, const ElementLine &line) {
  if (std::optional<double> splat = getSplatValue(op.getResult()))
    return std::vector<double>{*splat};
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
  SmallVector<int64_t> strides = stridesOf(tensorType(op.getResult()).getShape());
  int64_t position = positionOf(strides, line);
  if (!line.dim)
    return std::vector<double>{elements[position]};
  std::vector<double> result(count);
  for (int64_t i = 0; i < count; ++i)
    result[i] = elements[position + i * line.step * strides[*line.dim]];
  return result;
}

Elements MaskElements::atIota(IotaOp op, const ElementLine &line) {
  auto dim = static_cast<int64_t>(op.getDim());
  double step = static_cast<double>(static_cast<int64_t>(op.getStep()));
  double first =
      static_cast<double>(static_cast<int64_t>(op.getStart())) + step * static_cast<double>(line.first[dim]);
  if (line.dim != dim)
    return std::vector<double>{first};
  std::vector<double> result(count);
  for (int64_t i = 0; i < count; ++i)
    result[i] = first + step * static_cast<double>(i * line.step);
  return result;
}

Elements MaskElements::atReshape(ReshapeOp op, const ElementLine &line) {
  SmallVector<int64_t> outer = stridesOf(tensorType(op.getResult()).getShape());
  ArrayRef<int64_t> shape = tensorType(op.getInput()).getShape();
  SmallVector<int64_t> strides = stridesOf(shape);
  const int64_t position = positionOf(outer, line), jump = line.dim ? line.step * outer[*line.dim] : 0;
  ElementLine source;
  for (auto [size, stride] : llvm::zip_equal(shape, strides))
    source.first.push_back(position / stride % size);
  if (!line.dim || count == 1)
    return evaluate(op.getInput(), source);
  // The line stays one where it runs along one dimension of the source without leaving it.
  for (auto [dim, size] : llvm::enumerate(shape))
    if (jump % strides[dim] == 0 && jump / strides[dim] < std::max<int64_t>(size, 1) &&
        source.first[dim] + (count - 1) * (jump / strides[dim]) < size) {
      source.dim = dim;
      source.step = jump / strides[dim];
      return evaluate(op.getInput(), source);
    }
  return std::nullopt;
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

/// compute(a, b, c) of the elements of up to three operands, of which each has one or `count`.
template <typename Compute>
static Elements map(ArrayRef<std::vector<double>> operands, Compute compute) {
  size_t size = 1;
  for (const std::vector<double> &operand : operands)
    size = std::max(size, operand.size());
  auto element = [&](size_t operand, size_t i) {
    if (operand >= operands.size())
      return 0.0;
    return operands[operand][operands[operand].size() == 1 ? 0 : i];
  };
  std::vector<double> result(size);
  for (size_t i = 0; i < size; ++i)
    result[i] = compute(element(0, i), element(1, i), element(2, i));
  return result;
}

Elements MaskElements::atElementwise(Operation *op, const ElementLine &line) {
  if (!isa<CompareOp, AddOp, SubOp, MulOp, NegOp, AbsOp, NotOp, AndOp, OrOp, ConvertOp, SelectOp>(op))
    return std::nullopt;
  SmallVector<std::vector<double>, 3> x;
  for (Value operand : op->getOperands()) {
    Elements elements = evaluate(operand, line);
    if (!elements)
      return std::nullopt;
    x.push_back(std::move(*elements));
  }
  if (auto comparison = dyn_cast<CompareOp>(op))
    return map(x, [&](double a, double b, double) { return compare(comparison.getPredicate(), a, b); });
  if (isa<AddOp>(op))
    return map(x, [](double a, double b, double) { return a + b; });
  if (isa<SubOp>(op))
    return map(x, [](double a, double b, double) { return a - b; });
  if (isa<MulOp>(op))
    return map(x, [](double a, double b, double) { return a * b; });
  if (isa<NegOp>(op))
    return map(x, [](double a, double, double) { return -a; });
  if (isa<AbsOp>(op))
    return map(x, [](double a, double, double) { return std::abs(a); });
  if (isa<NotOp>(op))
    return map(x, [](double a, double, double) { return a == 0; });
  if (isa<AndOp>(op))
    return map(x, [](double a, double b, double) { return a != 0 && b != 0; });
  if (isa<OrOp>(op))
    return map(x, [](double a, double b, double) { return a != 0 || b != 0; });
  if (isa<SelectOp>(op))
    return map(x, [](double a, double b, double c) { return a != 0 ? b : c; });
  Type element = tensorType(op->getResult(0)).getElementType();
  if (element.isInteger(1))
    return map(x, [](double a, double, double) { return a != 0; });
  return isa<FloatType>(element) ? Elements(std::move(x[0]))
                                 : map(x, [](double a, double, double) { return std::trunc(a); });
}

/// The element that an op takes from elsewhere.
Elements MaskElements::evaluateMove(Operation *op, const ElementLine &line) {
  ElementLine source{{}, std::nullopt, line.step};
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    ArrayRef<int64_t> sizes = tensorType(broadcast.getInput()).getShape();
    for (auto [index, dim] : llvm::enumerate(broadcast.getDims())) {
      source.first.push_back(sizes[index] == 1 ? 0 : line.first[dim]);
      if (sizes[index] != 1 && line.dim == dim)
        source.dim = index;
    }
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    for (auto [i, offset, stride] : llvm::zip_equal(line.first, slice.getOffsets(), slice.getStrides()))
      source.first.push_back(offset + stride * i);
    source.dim = line.dim;
    source.step *= line.dim ? slice.getStrides()[*line.dim] : 1;
  } else {
    auto transpose = cast<TransposeOp>(op);
    source.first.resize(line.first.size());
    for (auto [i, dim] : llvm::zip_equal(line.first, transpose.getPerm()))
      source.first[dim] = i;
    if (line.dim)
      source.dim = transpose.getPerm()[*line.dim];
  }
  return evaluate(op->getOperand(0), source);
}

Elements MaskElements::evaluate(Value value, const ElementLine &line) {
  Operation *op = value.getDefiningOp();
  if (!op || opsLeft-- <= 0)
    return std::nullopt;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return atConstant(constant, line);
  if (auto iota = dyn_cast<IotaOp>(op))
    return atIota(iota, line);
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return atReshape(reshape, line);
  if (isa<BroadcastOp, SliceOp, TransposeOp>(op))
    return evaluateMove(op, line);
  return atElementwise(op, line);
}
