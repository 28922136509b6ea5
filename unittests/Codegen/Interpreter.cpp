//===- Interpreter.cpp - What a body means, in double precision ----------------===//

#include "KernelHarness.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <functional>
#include <limits>

using namespace mlir;

namespace ds::test {
namespace {

using Position = std::vector<int64_t>;

Position positionOf(int64_t number, const std::vector<int64_t> &shape) {
  Position position(shape.size());
  for (size_t k = shape.size(); k-- > 0; number /= shape[k])
    position[k] = number % shape[k];
  return position;
}

int64_t numberOf(const Position &position, const std::vector<int64_t> &shape) {
  int64_t number = 0;
  for (size_t k = 0; k < shape.size(); ++k)
    number = number * shape[k] + position[k];
  return number;
}

/// A tensor of `shape` whose element at each position is `element(position)`.
Tensor generate(const std::vector<int64_t> &shape, const std::function<double(const Position &)> &element) {
  Tensor result{shape, {}};
  for (int64_t number = 0, count = result.size(); number < count; ++number)
    result.values.push_back(element(positionOf(number, shape)));
  return result;
}

double at(const Tensor &tensor, const Position &position) {
  return tensor.values[numberOf(position, tensor.shape)];
}

/// What erf or tanh is taken of, in the form of GELU that says so.
double geluGate(double x, bool tanh) {
  return tanh ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)) : std::erf(x / M_SQRT2);
}

double geluSlope(double x, bool tanh) {
  double gate = geluGate(x, tanh);
  double bell = tanh ? (1 - gate * gate) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x) / 2
                     : std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  return (1 + gate) / 2 + x * bell;
}

double applyUnary(Operation *op, double x) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([&](mlir::ds::NegOp) { return -x; })
      .Case([&](mlir::ds::AbsOp) { return std::abs(x); })
      .Case([&](mlir::ds::SignOp) { return x > 0   ? 1.0
                                           : x < 0 ? -1.0
                                                   : x; })
      .Case([&](mlir::ds::ExpOp) { return std::exp(x); })
      .Case([&](mlir::ds::LogOp) { return std::log(x); })
      .Case([&](mlir::ds::SqrtOp) { return std::sqrt(x); })
      .Case([&](mlir::ds::RsqrtOp) { return 1 / std::sqrt(x); })
      .Case([&](mlir::ds::TanhOp) { return std::tanh(x); })
      .Case([&](mlir::ds::ErfOp) { return std::erf(x); })
      .Case([&](mlir::ds::SigmoidOp) { return 1 / (1 + std::exp(-x)); })
      .Case([&](mlir::ds::GeluOp gelu) { return x * (1 + geluGate(x, gelu.getTanh())) / 2; })
      .Case([&](mlir::ds::SinOp) { return std::sin(x); })
      .Case([&](mlir::ds::CosOp) { return std::cos(x); })
      .Case([&](mlir::ds::FloorOp) { return std::floor(x); })
      .Case([&](mlir::ds::NotOp) { return x == 0 ? 1.0 : 0.0; })
      .Case([&](mlir::ds::ConvertOp convert) {
        Type to = cast<RankedTensorType>(convert.getType()).getElementType();
        if (to.isInteger(1))
          return x != 0 ? 1.0 : 0.0;
        return isa<FloatType>(to) ? x : std::trunc(x);
      })
      .Default([](Operation *) { return std::nan(""); });
}

bool compares(mlir::ds::Predicate predicate, double x, double y) {
  switch (predicate) {
  case mlir::ds::Predicate::EQ:
    return x == y;
  case mlir::ds::Predicate::NE:
    return x != y;
  case mlir::ds::Predicate::LT:
    return x < y;
  case mlir::ds::Predicate::LE:
    return x <= y;
  case mlir::ds::Predicate::GT:
    return x > y;
  case mlir::ds::Predicate::GE:
    return x >= y;
  }
  return false;
}

double larger(double x, double y) { return std::isnan(x) || std::isnan(y) ? std::nan("") : std::max(x, y); }
double smaller(double x, double y) { return std::isnan(x) || std::isnan(y) ? std::nan("") : std::min(x, y); }

double applyBinary(Operation *op, double x, double y) {
  bool isInteger = isa<IntegerType>(cast<RankedTensorType>(op->getOperand(0).getType()).getElementType());
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([&](mlir::ds::AddOp) { return x + y; })
      .Case([&](mlir::ds::SubOp) { return x - y; })
      .Case([&](mlir::ds::MulOp) { return x * y; })
      .Case([&](mlir::ds::DivOp) { return isInteger ? (y == 0 ? x : std::trunc(x / y)) : x / y; })
      .Case([&](mlir::ds::MaxOp) { return larger(x, y); })
      .Case([&](mlir::ds::MinOp) { return smaller(x, y); })
      .Case([&](mlir::ds::GeluGradOp grad) { return x * geluSlope(y, grad.getTanh()); })
      .Case([&](mlir::ds::PowOp) { return std::pow(x, y); })
      .Case([&](mlir::ds::AndOp) { return x != 0 && y != 0 ? 1.0 : 0.0; })
      .Case([&](mlir::ds::OrOp) { return x != 0 || y != 0 ? 1.0 : 0.0; })
      .Case([&](mlir::ds::CompareOp compare) { return compares(compare.getPredicate(), x, y) ? 1.0 : 0.0; })
      .Default([](Operation *) { return std::nan(""); });
}

/// Philox-4x32-10 as its authors describe it.
double drawUniform(uint64_t seed, uint64_t counter, uint64_t id, uint64_t number) {
  uint64_t block = number / 4;
  uint32_t c[4] = {uint32_t(block), uint32_t(block >> 32), uint32_t(id), uint32_t(counter)};
  uint32_t key[2] = {uint32_t(seed), uint32_t(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53) * c[0], p1 = uint64_t(0xCD9E8D57) * c[2];
    uint32_t next[4] = {uint32_t(p1 >> 32) ^ c[1] ^ key[0], uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ key[1],
                        uint32_t(p0)};
    std::copy(next, next + 4, c);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return double(c[number % 4] >> 8) * 0x1p-24;
}

Tensor reduce(mlir::ds::ReduceOp op, const Tensor &input, const std::vector<int64_t> &shape) {
  auto kind = op.getKind();
  double infinity = std::numeric_limits<double>::infinity();
  double start = kind == mlir::ds::ReduceKind::Sum   ? 0
                 : kind == mlir::ds::ReduceKind::Max ? -infinity
                                                     : infinity;
  Tensor result{shape, {}};
  result.values.assign(result.size(), start);
  for (int64_t number = 0, count = input.size(); number < count; ++number) {
    Position from = positionOf(number, input.shape), to;
    for (size_t k = 0; k < from.size(); ++k)
      if (!llvm::is_contained(op.getDims(), int64_t(k)))
        to.push_back(from[k]);
    double &total = result.values[numberOf(to, shape)], x = input.values[number];
    total = kind == mlir::ds::ReduceKind::Sum   ? total + x
            : kind == mlir::ds::ReduceKind::Max ? larger(total, x)
                                                : smaller(total, x);
  }
  return result;
}

Tensor pad(mlir::ds::PadOp op, const Tensor &input, const std::vector<int64_t> &shape) {
  Tensor result{shape, {}};
  result.values.assign(result.size(), 0);
  for (int64_t number = 0, count = input.size(); number < count; ++number) {
    Position position = positionOf(number, input.shape);
    for (size_t k = 0; k < position.size(); ++k)
      position[k] = op.getOffsets()[k] + op.getStrides()[k] * position[k];
    result.values[numberOf(position, shape)] = input.values[number];
  }
  return result;
}

Tensor constantTensor(mlir::ds::ConstantOp op, const std::vector<int64_t> &shape) {
  Tensor result{shape, {}};
  auto elements = cast<DenseElementsAttr>(op.getValue());
  for (Attribute element : elements.getValues<Attribute>()) {
    if (auto number = dyn_cast<FloatAttr>(element))
      result.values.push_back(number.getValueAsDouble());
    else if (cast<IntegerAttr>(element).getType().isInteger(1))
      result.values.push_back(cast<IntegerAttr>(element).getValue().getBoolValue());
    else
      result.values.push_back(double(cast<IntegerAttr>(element).getValue().getSExtValue()));
  }
  return result;
}

/// The element at `p` of tensors that stand one after the other along `dim`.
double atJoined(const std::vector<Tensor> &pieces, size_t dim, Position p) {
  size_t piece = 0;
  for (; p[dim] >= pieces[piece].shape[dim]; ++piece)
    p[dim] -= pieces[piece].shape[dim];
  return at(pieces[piece], p);
}

Tensor evaluate(Operation *op, const std::vector<Tensor> &x, const std::vector<int64_t> &shape) {
  return llvm::TypeSwitch<Operation *, Tensor>(op)
      .Case([&](mlir::ds::ConstantOp constant) { return constantTensor(constant, shape); })
      .Case([&](mlir::ds::IotaOp iota) {
        return generate(shape, [&](const Position &p) {
          return double(int64_t(iota.getStart()) + int64_t(iota.getStep()) * p[iota.getDim()]);
        });
      })
      .Case([&](mlir::ds::RandomUniformOp random) {
        return generate(shape, [&](const Position &p) {
          return drawUniform(uint64_t(x[0].values[0]), uint64_t(x[0].values[1]), random.getId(),
                             random.getFirst() + numberOf(p, shape));
        });
      })
      .Case([&](mlir::ds::BroadcastOp broadcast) {
        return generate(shape, [&](const Position &p) {
          Position from;
          for (size_t k = 0; k < x[0].shape.size(); ++k)
            from.push_back(x[0].shape[k] == 1 ? 0 : p[broadcast.getDims()[k]]);
          return at(x[0], from);
        });
      })
      .Case([&](mlir::ds::ReshapeOp) {
        return Tensor{shape, x[0].values};
      })
      .Case([&](mlir::ds::TransposeOp transpose) {
        return generate(shape, [&](const Position &p) {
          Position from(p.size());
          for (size_t k = 0; k < p.size(); ++k)
            from[transpose.getPerm()[k]] = p[k];
          return at(x[0], from);
        });
      })
      .Case([&](mlir::ds::SliceOp slice) {
        return generate(shape, [&](const Position &p) {
          Position from(p.size());
          for (size_t k = 0; k < p.size(); ++k)
            from[k] = slice.getOffsets()[k] + slice.getStrides()[k] * p[k];
          return at(x[0], from);
        });
      })
      .Case([&](mlir::ds::PadOp padding) { return pad(padding, x[0], shape); })
      .Case([&](mlir::ds::ConcatOp concat) {
        return generate(shape, [&](const Position &p) { return atJoined(x, concat.getDim(), p); });
      })
      .Case([&](mlir::ds::ReduceOp reduction) { return reduce(reduction, x[0], shape); })
      .Case([&](mlir::ds::SelectOp) {
        return generate(shape,
                        [&](const Position &p) { return at(x[0], p) != 0 ? at(x[1], p) : at(x[2], p); });
      })
      .Default([&](Operation *) {
        return generate(shape, [&](const Position &p) {
          return x.size() == 1 ? applyUnary(op, at(x[0], p)) : applyBinary(op, at(x[0], p), at(x[1], p));
        });
      });
}
} // namespace

std::vector<Tensor> interpretBody(Block &block, const std::vector<Tensor> &arguments) {
  llvm::DenseMap<Value, Tensor> values;
  int64_t dynamicSize = 0;
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments)) {
    values[argument] = tensor;
    if (!cast<RankedTensorType>(argument.getType()).hasStaticShape())
      dynamicSize = tensor.size();
  }
  std::vector<Tensor> results;
  for (Operation &op : block) {
    std::vector<Tensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values[operand]);
    if (isa<mlir::ds::YieldOp>(op))
      return operands;
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    std::vector<int64_t> shape = type.getShape().vec();
    for (int64_t &size : shape)
      size = ShapedType::isDynamic(size) ? dynamicSize : size;
    Tensor result = evaluate(&op, operands, shape);
    for (double &value : result.values)
      value = roundTo(type.getElementType(), value);
    values[op.getResult(0)] = std::move(result);
  }
  return results;
}

} // namespace ds::test
