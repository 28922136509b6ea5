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
static constexpr Range<double> kFactors{1e-6, 1e6};

//===----------------------------------------------------------------------===//
// Frequencies
//===----------------------------------------------------------------------===//

/// 1 / theta^(2i / R), in f32 as PyTorch computes them.
static std::vector<float> plainFrequencies(double theta, int64_t rotated) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < rotated; i += 2)
    frequencies.push_back(
        1.0f / std::pow(static_cast<float>(theta), static_cast<float>(i) / static_cast<float>(rotated)));
  return frequencies;
}

/// Llama 3.1: long waves are stretched by `factor`, short ones kept, those between blended.
static void scaleLlama3(const Section &scaling, int64_t positions, std::vector<float> &frequencies) {
  double factor = scaling.number("factor", kFactors);
  double low = scaling.number("low_freq_factor", kFactors),
         high = scaling.number("high_freq_factor", kFactors);
  int64_t original = scaling.integer("original_max_position_embeddings", {1, positions}, positions);
  if (low >= high)
    return scaling.refuse("low_freq_factor", "expects less than high_freq_factor, which is " +
                                                 scaling.describe("high_freq_factor") + ", but got " +
                                                 scaling.describe("low_freq_factor"));
  for (float &frequency : frequencies) {
    float wave = static_cast<float>(2 * M_PI) / frequency;
    auto context = static_cast<float>(original);
    if (wave > context / static_cast<float>(low)) {
      frequency /= static_cast<float>(factor);
    } else if (wave >= context / static_cast<float>(high)) {
      float smooth = (context / wave - static_cast<float>(low)) / static_cast<float>(high - low);
      frequency = (1 - smooth) * frequency / static_cast<float>(factor) + smooth * frequency;
    }
  }
}

/// Where the parameters stand: rope_parameters where there are any, else rope_scaling.
static Section findScaling(const Section &config) {
  Section parameters = config.section("rope_parameters"), scaling = config.section("rope_scaling");
  if (parameters && scaling)
    config.refuse("rope_scaling", "contradicts rope_parameters, which is its new name", "keep one of them");
  return parameters ? parameters : scaling;
}

static void scaleFrequencies(const Section &scaling, int64_t positions, std::vector<float> &frequencies) {
  std::string kind = scaling.text("rope_type|type");
  if (kind == "linear") {
    auto factor = static_cast<float>(scaling.number("factor", kFactors));
    for (float &frequency : frequencies)
      frequency /= factor;
  } else if (kind == "llama3") {
    scaleLlama3(scaling, positions, frequencies);
  } else if (kind == "dynamic") {
    scaling.number("factor",
                   kFactors); // changes nothing up to max_position_embeddings, and no more are accepted
  } else if (!kind.empty() && kind != "default") {
    scaling.refuse("rope_type|type", "expects one of default, linear, dynamic, llama3, but got " +
                                         scaling.describe("rope_type|type"));
  } else if (kind.empty() && scaling.has("factor")) {
    scaling.refuse("rope_type|type",
                   "expects one of default, linear, dynamic, llama3, but the key is missing");
  }
}

Rotary hf::readRotary(const Section &config, int64_t size, const RotaryKeys &keys) {
  static constexpr Range<double> kThetas{1, 1e12};
  Section scaling = findScaling(config);
  std::optional<double> outer = config.optional(keys.theta, kThetas);
  std::optional<double> inner = scaling.optional("rope_theta", kThetas);
  if (outer && inner && *outer != *inner)
    config.refuse(keys.theta,
                  "contradicts the rope_theta of rope_parameters, " + scaling.describe("rope_theta") +
                      ": got " + config.describe(keys.theta),
                  "keep one of them");
  double theta = inner ? *inner : outer.value_or(keys.defaultTheta);
  std::optional<double> share = scaling.optional("partial_rotary_factor", Range<double>{0, 1});
  if (!share)
    share = config.number(keys.share, {0, 1}, keys.defaultShare);
  if (!keys.allowsPartial && *share != 1)
    config.refuse(keys.share, "expects 1 for this model_type, but got " + config.describe(keys.share));
  auto rotated = static_cast<int64_t>(static_cast<double>(size) * *share);
  if (rotated < 2 || rotated % 2 != 0) {
    config.refuse(keys.share, "expects an even number of rotated elements in a head, but got " +
                                  std::to_string(rotated) + " of " + std::to_string(size));
    rotated = 2;
  }
  Rotary rotary{plainFrequencies(theta, rotated)};
  scaleFrequencies(scaling, keys.positions, rotary.frequencies);
  return rotary;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// The table of `function` (of f32) as a literal.
template <class Function>
static Value literalTable(Emitter &e, RankedTensorType type, const Rotary &rotary, Function function) {
  std::vector<float> values;
  for (int64_t position = 0; position < type.getDimSize(0); ++position)
    for (int half = 0; half < 2; ++half)
      for (float frequency : rotary.frequencies)
        values.push_back(function(static_cast<float>(position) * frequency));
  return e.getBuilder().create<ConstantOp>(e.getLoc(), type,
                                           DenseElementsAttr::get(type, llvm::ArrayRef(values)));
}

/// The tables of positions 0 ... `length` - 1.
static RotaryTables tablesInOrder(Graph &g, const Rotary &rotary, int64_t length) {
  Emitter e = g.ops();
  OpBuilder &b = e.getBuilder();
  auto half = static_cast<int64_t>(rotary.frequencies.size());
  auto type = RankedTensorType::get({length, 2 * half}, b.getF32Type());
  if (type.getNumElements() <= kMaxLiteral)
    return {literalTable(e, type, rotary, [](float angle) { return std::cos(angle); }),
            literalTable(e, type, rotary, [](float angle) { return std::sin(angle); })};
  auto row = RankedTensorType::get({half}, b.getF32Type());
  Value frequencies =
      b.create<ConstantOp>(e.getLoc(), row, DenseElementsAttr::get(row, llvm::ArrayRef(rotary.frequencies)));
  Value positions = b.create<IotaOp>(e.getLoc(), row.clone({length, half}), 0, 0, 1);
  Value angles = e.mul(positions, e.repeatRows(frequencies, {length, half}));
  Value both = b.create<ConcatOp>(e.getLoc(), type, ValueRange{angles, angles}, 1);
  return {e.unary<CosOp>(both), e.unary<SinOp>(both)};
}

RotaryTables hf::makeTables(Graph &g, const Rotary &rotary, int64_t length) {
  RotaryTables tables = tablesInOrder(g, rotary, length);
  if (Value positions = g.tokens.positions)
    tables = {lookUp(g.ops(), tables.cos, positions), lookUp(g.ops(), tables.sin, positions)};
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

Value hf::rotate(Graph &g, Value x, const RotaryTables &tables) {
  Emitter e = g.ops();
  int64_t rotated = tensorType(tables.cos).getShape().back(), size = tensorType(x).getShape().back();
  Value rest;
  if (rotated < size)
    std::tie(x, rest) = cut(e, x, rotated);
  auto [first, second] = cut(e, x, rotated / 2);
  Value turned = join(e, e.neg(second), first);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  SmallVector<int64_t> dims = {1, 3};
  if (tensorType(tables.cos).getRank() == 3)
    dims = {0, 1, 3};
  Value cos = e.broadcast(tables.cos, dims, shape), sin = e.broadcast(tables.sin, dims, shape);
  Value result = e.add(e.mul(x, cos), e.mul(turned, sin));
  return rest ? join(e, result, rest) : result;
}
