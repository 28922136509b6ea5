//===- Rotary.cpp - Rotary position embeddings ----------------------------------===//
//
// Tables of at most 4096 elements are literals, as the TorchScript importer writes them. Larger ones are
// computed in the step, from the frequencies: no weights file has to carry them, and where a fused region
// reads them they never reach memory.
//
//===---------------------------------------------------------------------------===//

#include "Rotary.h"

#include "Layers.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

static constexpr int64_t kMaxLiteral = 4096;
/// The frequency of each of the R elements.
static std::vector<float> spread(const Rotary &rotary, ArrayRef<float> frequencies) {
  std::vector<float> wide;
  if (rotary.interleaved)
    for (float frequency : frequencies)
      wide.insert(wide.end(), 2, frequency);
  else
    for (int half = 0; half < 2; ++half)
      wide.insert(wide.end(), frequencies.begin(), frequencies.end());
  return wide;
}

/// The table of `function` (of f32) as a literal.
template <class Function>
static Value literalTable(Emitter &e, RankedTensorType type, ArrayRef<float> wide, Function function) {
  std::vector<float> values;
  for (int64_t position = 0; position < type.getDimSize(0); ++position)
    for (float frequency : wide)
      values.push_back(function(static_cast<float>(position) * frequency));
  return e.getBuilder().create<ConstantOp>(e.getLoc(), type,
                                           DenseElementsAttr::get(type, llvm::ArrayRef(values)));
}

/// The angles of positions 0 ... `length` - 1 by `frequencies`, [length, R/2 or R].
static Value anglesInOrder(Emitter &e, ArrayRef<float> frequencies, int64_t length) {
  OpBuilder &b = e.getBuilder();
  auto columns = static_cast<int64_t>(frequencies.size());
  auto row = RankedTensorType::get({columns}, b.getF32Type());
  Value constant = b.create<ConstantOp>(e.getLoc(), row, DenseElementsAttr::get(row, frequencies));
  Value positions = b.create<IotaOp>(e.getLoc(), row.clone({length, columns}), 0, 0, 1);
  return e.mul(positions, e.repeatRows(constant, {length, columns}));
}

/// The tables of positions 0 ... `length` - 1.
static RotaryTables tablesInOrder(Graph &g, const Rotary &rotary, int64_t length) {
  Emitter e = g.ops();
  OpBuilder &b = e.getBuilder();
  const bool isLong = !rotary.longFrequencies.empty() && length > rotary.shortLength;
  const std::vector<float> &frequencies = isLong ? rotary.longFrequencies : rotary.frequencies;
  auto type = RankedTensorType::get({length, 2 * static_cast<int64_t>(frequencies.size())}, b.getF32Type());
  const std::vector<float> wide = spread(rotary, frequencies);
  if (type.getNumElements() <= kMaxLiteral) {
    auto factor = static_cast<float>(rotary.factor);
    return {literalTable(e, type, wide, [=](float angle) { return std::cos(angle) * factor; }),
            literalTable(e, type, wide, [=](float angle) { return std::sin(angle) * factor; })};
  }
  Value angles = anglesInOrder(e, rotary.interleaved ? wide : frequencies, length);
  if (!rotary.interleaved)
    angles = b.create<ConcatOp>(e.getLoc(), type, ValueRange{angles, angles}, 1);
  Value cos = e.unary<CosOp>(angles), sin = e.unary<SinOp>(angles);
  return {e.scale(cos, rotary.factor), e.scale(sin, rotary.factor)};
}

RotaryTables hf::makeTables(Graph &g, const Rotary &rotary, int64_t length) {
  RotaryTables tables = tablesInOrder(g, rotary, length);
  if (Value positions = g.tokens.positions)
    tables = {lookUp(g.ops(), tables.cos, positions), lookUp(g.ops(), tables.sin, positions)};
  tables.interleaved = rotary.interleaved;
  return tables;
}

/// Cuts x along its last dimension.
static std::pair<Value, Value> cut(Emitter &e, Value x, int64_t first) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  int64_t last = shape.back() - first;
  shape.back() = first;
  RankedTensorType head = tensorType(x).clone(shape);
  shape.back() = last;
  auto split = e.getBuilder().create<SplitOp>(e.getLoc(), TypeRange{head, tensorType(x).clone(shape)}, x,
                                              e.getBuilder().getI64IntegerAttr(tensorType(x).getRank() - 1));
  return {split.getResult(0), split.getResult(1)};
}

static Value join(Emitter &e, Value first, Value second) {
  SmallVector<int64_t> shape(tensorType(first).getShape());
  shape.back() += tensorType(second).getShape().back();
  return e.getBuilder().create<ConcatOp>(e.getLoc(), tensorType(first).clone(shape),
                                         ValueRange{first, second}, shape.size() - 1);
}

/// Each pair (a, b) as (-b, a).
static Value turn(Emitter &e, Value x, bool interleaved) {
  SmallVector<int64_t> shape(tensorType(x).getShape()), pairs = shape;
  int64_t rotated = shape.back();
  if (interleaved) {
    pairs.back() = rotated / 2;
    pairs.push_back(2);
    x = e.reshape(x, pairs);
  }
  auto [first, second] = cut(e, x, interleaved ? 1 : rotated / 2);
  return e.reshape(join(e, e.neg(second), first), shape);
}

Value hf::rotate(Graph &g, Value x, const RotaryTables &tables) {
  Emitter e = g.ops();
  int64_t rotated = tensorType(tables.cos).getShape().back(), size = tensorType(x).getShape().back();
  Value rest;
  if (rotated < size)
    std::tie(x, rest) = cut(e, x, rotated);
  Value turned = turn(e, x, tables.interleaved);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  SmallVector<int64_t> dims = {1, 3};
  if (tensorType(tables.cos).getRank() == 3)
    dims = {0, 1, 3};
  Value cos = e.broadcast(tables.cos, dims, shape), sin = e.broadcast(tables.sin, dims, shape);
  Value result = e.add(e.mul(x, cos), e.mul(turned, sin));
  return rest ? join(e, result, rest) : result;
}
