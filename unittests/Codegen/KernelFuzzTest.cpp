//===- KernelFuzzTest.cpp - Random bodies against their meaning ----------------===//
//
// Bodies are grown from their output backwards: "a value of this shape" is an elementwise op of such values,
// an index op of a value of another shape, a row-wise statistic repeated over the row, or an input. Sizes are
// 0, 1, primes and powers of two; buffers are contiguous, padded or permuted.
//
//===---------------------------------------------------------------------------===//

#include "KernelHarness.h"
#include "ds/Codegen/KernelClass.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace ds::test;

namespace {

using Shape = std::vector<int64_t>;

/// Writes random kernels as text.
class BodyWriter {
public:
  BodyWriter(unsigned seed, std::string element) : generator(seed), element(std::move(element)) {}

  /// A whole ds.kernel; `inputs` receives values for its inputs.
  std::string kernel(const std::string &name, std::vector<Tensor> &inputs);

private:
  struct Written {
    std::string name, type;
    Shape shape;
    double bound; ///< no element is larger
    bool exact;   ///< the interpreter gets the same bits
  };

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(generator); }
  Shape randomShape();
  std::string typeOf(const Shape &shape, const std::string &element) const;
  std::string bufferType(const Shape &shape, const std::string &element);
  Written line(const std::string &text, const Shape &shape, const std::string &type, double bound,
               bool exact = false);
  Written input(const Shape &shape, const std::string &type);
  Written make(const Shape &shape, int depth);
  Written elementwise(const Shape &shape, int depth);
  Written indexed(const Shape &shape, int depth);
  Written leaf(const Shape &shape);
  Written truth(const Shape &shape);
  Written broadcastOf(const Shape &shape, int depth);
  Written sliceOf(const Shape &shape, int depth);
  Written padOf(const Shape &shape, int depth);
  Written concatOf(const Shape &shape, int depth);
  Written reshapeOf(const Shape &shape, int depth);
  Written transposeOf(const Shape &shape, int depth);
  Written statisticOf(const Shape &shape, int depth);
  Written bounded(Written value, double most);

  std::mt19937 generator;
  std::string element; ///< of everything that is not said to be of another type
  std::string body;
  std::vector<Written> arguments, written;
  std::vector<Tensor> tensors;
  unsigned statisticDims =
      0; ///< trailing (or, where negative dims are kept, leading) dimensions statistics reduce
  bool columns = false;
  unsigned count = 0;
};

Shape BodyWriter::randomShape() {
  static const int64_t sizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 32, 33, 64, 67, 130};
  Shape shape;
  int64_t total = 1;
  for (int64_t rank = pick(0, 4); int64_t(shape.size()) < rank;) {
    int64_t size = chance(0.01) ? 0 : sizes[pick(0, 15)];
    shape.push_back(total * size > 6000 ? 1 : size);
    total *= std::max<int64_t>(shape.back(), 1);
  }
  return shape;
}

std::string BodyWriter::typeOf(const Shape &shape, const std::string &element) const {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string list(const Shape &numbers) {
  std::string text = "[";
  for (size_t k = 0; k < numbers.size(); ++k)
    text += (k ? ", " : "") + std::to_string(numbers[k]);
  return text + "]";
}

std::string BodyWriter::bufferType(const Shape &shape, const std::string &element) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  if (chance(0.15))
    std::shuffle(order.begin(), order.end(), generator);
  Shape strides(shape.size());
  int64_t stride = chance(0.1) ? 2 : 1;
  bool padded = chance(0.3);
  for (size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = stride;
    stride *= std::max<int64_t>(shape[order[k]], 1) + (padded ? pick(0, 3) : 0);
  }
  return "!ds.buffer<" + typeOf(shape, element) + ", " + list(strides) + ", device>";
}

BodyWriter::Written BodyWriter::line(const std::string &text, const Shape &shape, const std::string &type,
                                     double bound, bool exact) {
  Written value{"%v" + std::to_string(count++), type, shape, bound, exact};
  body += "  " + value.name + " = " + text + "\n";
  written.push_back(value);
  return value;
}

BodyWriter::Written BodyWriter::input(const Shape &shape, const std::string &type) {
  Written value{"%a" + std::to_string(arguments.size()), type, shape, 2, true};
  Tensor tensor{shape, {}};
  for (int64_t k = 0, n = tensor.size(); k < n; ++k) {
    // Eighths: exact in every format.
    double number = double(pick(-16, 16)) / 8;
    if (type == "i1")
      number = double(pick(0, 1));
    else if (type[0] == 'i')
      number = double(pick(-3, 3));
    tensor.values.push_back(number);
  }
  arguments.push_back(value);
  tensors.push_back(tensor);
  return value;
}

BodyWriter::Written BodyWriter::leaf(const Shape &shape) {
  std::string type = typeOf(shape, element);
  switch (pick(0, 9)) {
  case 0:
    return line("ds.constant dense<0.75> : " + type, shape, element, 1, true);
  case 1:
    if (!shape.empty())
      return line("ds.iota dim " + std::to_string(pick(0, shape.size() - 1)) + " start -3 step 2 : " + type,
                  shape, element, 300, true);
    break;
  case 2: {
    Written integer = input(shape, chance(0.5) ? "i64" : "i32");
    return line("ds.convert " + integer.name + " : " + typeOf(shape, integer.type) + " -> " + type, shape,
                element, 3, true);
  }
  case 3: {
    Written half = input(shape, chance(0.5) ? "bf16" : "f16");
    return line("ds.convert " + half.name + " : " + typeOf(shape, half.type) + " -> " + type, shape, element,
                2, true);
  }
  case 4: {
    Written rng = input({2}, "i64");
    Written draw = line("ds.random_uniform " + rng.name + " id " + std::to_string(pick(0, 9)) + " first " +
                            std::to_string(pick(0, 70)) + " : tensor<2xi64> -> " + typeOf(shape, "f32"),
                        shape, "f32", 1, true);
    if (element == "f32")
      return draw;
    return line("ds.convert " + draw.name + " : " + typeOf(shape, "f32") + " -> " + type, shape, element, 1,
                true);
  }
  default:
    break;
  }
  return input(shape, element);
}

/// A truth value of exact operands: a rounding error must not turn it.
BodyWriter::Written BodyWriter::truth(const Shape &shape) {
  if (chance(0.3))
    return input(shape, "i1");
  static const char *predicates[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  Written x = input(shape, element), y = input(shape, element);
  Written result = line("ds.compare " + std::string(predicates[pick(0, 5)]) + " " + x.name + ", " + y.name +
                            " : " + typeOf(shape, element),
                        shape, "i1", 1, true);
  if (chance(0.3))
    return line("ds.not " + result.name + " : " + typeOf(shape, "i1"), shape, "i1", 1, true);
  return result;
}

BodyWriter::Written BodyWriter::bounded(Written value, double most) {
  if (value.bound <= most)
    return value;
  return line("ds.tanh " + value.name + " : " + typeOf(value.shape, element), value.shape, element, 1);
}

BodyWriter::Written BodyWriter::elementwise(const Shape &shape, int depth) {
  std::string type = typeOf(shape, element);
  Written x = bounded(make(shape, depth - 1), 50);
  auto unary = [&](const std::string &name, const Written &of, double bound) {
    return line("ds." + name + " " + of.name + " : " + type, shape, element, bound);
  };
  auto binary = [&](const std::string &name, const Written &y, double bound) {
    return line("ds." + name + " " + x.name + ", " + y.name + " : " + type, shape, element, bound);
  };
  auto positive = [&](const Written &y) {
    Written half = line("ds.constant dense<0.5> : " + type, shape, element, 1, true);
    Written magnitude = unary("abs", y, y.bound);
    return line("ds.add " + magnitude.name + ", " + half.name + " : " + type, shape, element, y.bound + 1);
  };
  static const char *smooth[] = {"tanh", "erf", "sigmoid", "sin", "cos"};
  // One step of a 16-bit float at 50 would turn a sine by a quarter.
  double mostAngle = element == "f32" ? 50 : 3;
  switch (pick(0, 11)) {
  case 0:
    return unary(smooth[pick(0, 4)], bounded(x, mostAngle), 1);
  case 1:
    return unary("exp", bounded(x, 3), 21);
  case 2:
    return unary("log", positive(x), 5);
  case 3:
    return unary(chance(0.5) ? "sqrt" : "rsqrt", positive(x), x.bound + 2);
  case 4:
    return unary(chance(0.5) ? "neg" : "abs", x, x.bound);
  case 5: {
    Written y = positive(bounded(make(shape, depth - 1), 50));
    return binary("div", y, 2 * x.bound);
  }
  case 6: {
    Written condition = truth(shape), y = make(shape, depth - 1);
    return line("ds.select " + condition.name + ", " + x.name + ", " + y.name + " : " + type, shape, element,
                std::max(x.bound, y.bound));
  }
  case 7: {
    x = bounded(x, mostAngle);
    Written wide =
        line("ds.convert " + x.name + " : " + type + " -> " + typeOf(shape, "f64"), shape, "f64", x.bound);
    Written back = line("ds.sin " + wide.name + " : " + typeOf(shape, "f64"), shape, "f64", 1);
    return line("ds.convert " + back.name + " : " + typeOf(shape, "f64") + " -> " + type, shape, element, 1);
  }
  default:
    break;
  }
  Written y = bounded(make(shape, depth - 1), 50);
  switch (pick(0, 3)) {
  case 0:
    return binary("add", y, x.bound + y.bound);
  case 1:
    return binary("sub", y, x.bound + y.bound);
  case 2:
    return binary("mul", y, x.bound * y.bound);
  default:
    return binary(chance(0.5) ? "max" : "min", y, std::max(x.bound, y.bound));
  }
}

BodyWriter::Written BodyWriter::broadcastOf(const Shape &shape, int depth) {
  Shape inner, dims;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (chance(0.4))
      continue;
    inner.push_back(chance(0.2) ? 1 : shape[k]);
    dims.push_back(k);
  }
  Written x = make(inner, depth - 1);
  return line("ds.broadcast " + x.name + " dims " + list(dims) + " : " + typeOf(inner, element) + " -> " +
                  typeOf(shape, element),
              shape, element, x.bound);
}

BodyWriter::Written BodyWriter::sliceOf(const Shape &shape, int depth) {
  Shape outer, offsets, strides;
  for (int64_t size : shape) {
    bool cut = chance(0.5);
    offsets.push_back(cut ? pick(0, 5) : 0);
    strides.push_back(cut && chance(0.3) ? pick(1, 3) : 1);
    outer.push_back(offsets.back() + strides.back() * std::max<int64_t>(size - 1, 0) + (size > 0) +
                    (cut ? pick(0, 4) : 0));
  }
  Written x = make(outer, depth - 1);
  return line("ds.slice " + x.name + " offsets " + list(offsets) + " strides " + list(strides) + " : " +
                  typeOf(outer, element) + " -> " + typeOf(shape, element),
              shape, element, x.bound);
}

BodyWriter::Written BodyWriter::padOf(const Shape &shape, int depth) {
  Shape inner, offsets, strides;
  for (int64_t size : shape) {
    int64_t stride = chance(0.3) ? 2 : 1, offset = size > 1 && chance(0.5) ? pick(0, size - 1) : 0;
    int64_t most = size == 0 ? 0 : (size - 1 - offset) / stride + 1;
    inner.push_back(chance(0.6) ? most : pick(0, most));
    offsets.push_back(offset);
    strides.push_back(stride);
  }
  Written x = make(inner, depth - 1);
  return line("ds.pad " + x.name + " offsets " + list(offsets) + " strides " + list(strides) + " : " +
                  typeOf(inner, element) + " -> " + typeOf(shape, element),
              shape, element, x.bound);
}

BodyWriter::Written BodyWriter::concatOf(const Shape &shape, int depth) {
  if (shape.empty())
    return leaf(shape);
  size_t dim = pick(0, shape.size() - 1);
  int64_t left = shape[dim];
  std::string names, types;
  double bound = 0;
  do {
    Shape piece = shape;
    piece[dim] = chance(0.3) ? left : pick(0, left);
    left -= piece[dim];
    Written x = make(piece, depth - 2);
    names += (names.empty() ? "" : ", ") + x.name;
    types += (types.empty() ? "" : ", ") + typeOf(piece, element);
    bound = std::max(bound, x.bound);
  } while (left > 0);
  return line("ds.concat " + names + " dim " + std::to_string(dim) + " : " + types + " -> " +
                  typeOf(shape, element),
              shape, element, bound);
}

BodyWriter::Written BodyWriter::reshapeOf(const Shape &shape, int depth) {
  int64_t total = 1;
  for (int64_t size : shape)
    total *= size;
  Shape inner;
  for (int64_t rest = total; rest > 1 && inner.size() < 3;) {
    int64_t factor = inner.size() == 2 ? rest : pick(1, rest);
    while (rest % factor)
      --factor;
    inner.push_back(factor);
    rest /= factor;
    if (inner.size() == 3 && rest > 1)
      inner.back() *= rest;
  }
  int64_t made = 1;
  for (int64_t size : inner)
    made *= size;
  if (made != total)
    inner = {total};
  Written x = make(inner, depth - 1);
  return line("ds.reshape " + x.name + " : " + typeOf(inner, element) + " -> " + typeOf(shape, element),
              shape, element, x.bound);
}

BodyWriter::Written BodyWriter::transposeOf(const Shape &shape, int depth) {
  Shape perm(shape.size()), inner(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::shuffle(perm.begin(), perm.end(), generator);
  for (size_t k = 0; k < shape.size(); ++k)
    inner[perm[k]] = shape[k];
  Written x = make(inner, depth - 1);
  return line("ds.transpose " + x.name + " perm " + list(perm) + " : " + typeOf(inner, element) + " -> " +
                  typeOf(shape, element),
              shape, element, x.bound);
}

/// A statistic of each row (or column), repeated over it.
BodyWriter::Written BodyWriter::statisticOf(const Shape &shape, int depth) {
  Shape dims, kept, keptShape;
  int64_t elements = 1;
  for (size_t k = 0; k < shape.size(); ++k) {
    bool reduced = columns ? k < statisticDims : k + statisticDims >= shape.size();
    (reduced ? dims : kept).push_back(k);
    if (reduced)
      elements *= shape[k];
    else
      keptShape.push_back(shape[k]);
  }
  Written x = bounded(make(shape, depth - 1), 50);
  if (elements == 0)
    return x;
  static const char *kinds[] = {"sum", "max", "min"};
  std::string kind = kinds[pick(0, 2)];
  double bound = kind == "sum" ? x.bound * double(elements) : x.bound;
  Written r = line("ds.reduce " + kind + " " + x.name + " dims " + list(dims) + " : " +
                       typeOf(shape, element) + " -> " + typeOf(keptShape, element),
                   keptShape, element, bound);
  return line("ds.broadcast " + r.name + " dims " + list(kept) + " : " + typeOf(keptShape, element) + " -> " +
                  typeOf(shape, element),
              shape, element, bound);
}

BodyWriter::Written BodyWriter::indexed(const Shape &shape, int depth) {
  switch (pick(0, 5)) {
  case 0:
    return broadcastOf(shape, depth);
  case 1:
    return sliceOf(shape, depth);
  case 2:
    return padOf(shape, depth);
  case 3:
    return concatOf(shape, depth);
  case 4:
    return reshapeOf(shape, depth);
  default:
    return transposeOf(shape, depth);
  }
}

BodyWriter::Written BodyWriter::make(const Shape &shape, int depth) {
  if (chance(0.15)) {
    for (const Written &value : written)
      if (value.shape == shape && value.type == element && chance(0.5))
        return value;
  }
  if (depth <= 0)
    return leaf(shape);
  if (chance(0.3))
    return indexed(shape, depth);
  return elementwise(shape, depth);
}

std::string BodyWriter::kernel(const std::string &name, std::vector<Tensor> &inputs) {
  body.clear(), arguments.clear(), written.clear(), tensors.clear();
  Shape shape = randomShape();
  int depth = int(pick(1, 5));
  std::vector<Written> outputs;
  bool reduces = !shape.empty() && chance(0.5);
  if (reduces) {
    columns = chance(0.4);
    statisticDims = pick(1, shape.size());
    Written centred = statisticOf(shape, depth);
    Written x = bounded(make(shape, 1), 50), y = bounded(centred, 50);
    Written both =
        line("ds.sub " + x.name + ", " + y.name + " : " + typeOf(shape, element), shape, element, 100);
    outputs.push_back(both);
    if (chance(0.5)) {
      Written again = bounded(both, 3);
      Written e = line("ds.exp " + again.name + " : " + typeOf(shape, element), shape, element, 21);
      written = {e};
      Shape dims, keptShape;
      int64_t elements = 1;
      for (size_t k = 0; k < shape.size(); ++k) {
        bool reduced = columns ? k < statisticDims : k + statisticDims >= shape.size();
        if (reduced)
          dims.push_back(k), elements *= shape[k];
        else
          keptShape.push_back(shape[k]);
      }
      Written total = line("ds.reduce sum " + e.name + " dims " + list(dims) + " : " +
                               typeOf(shape, element) + " -> " + typeOf(keptShape, element),
                           keptShape, element, 21.0 * double(std::max<int64_t>(elements, 1)));
      outputs.push_back(total);
      if (chance(0.5))
        outputs.push_back(e);
    }
  } else {
    outputs.push_back(make(shape, depth));
    if (chance(0.3))
      outputs.push_back(elementwise(shape, 1));
    if (chance(0.15))
      outputs.push_back(truth(shape));
    if (chance(0.15))
      outputs.push_back(line("ds.convert " + outputs[0].name + " : " + typeOf(shape, element) + " -> " +
                                 typeOf(shape, "bf16"),
                             shape, "bf16", outputs[0].bound));
  }
  std::string buffers, parameters, yields, types;
  for (const Written &argument : arguments) {
    buffers += (buffers.empty() ? "" : ", ") + bufferType(argument.shape, argument.type);
    parameters +=
        (parameters.empty() ? "" : ", ") + argument.name + ": " + typeOf(argument.shape, argument.type);
  }
  for (const Written &output : outputs) {
    buffers += (buffers.empty() ? "" : ", ") + bufferType(output.shape, output.type);
    yields += (yields.empty() ? "" : ", ") + output.name;
    types += (types.empty() ? "" : ", ") + typeOf(output.shape, output.type);
  }
  inputs = tensors;
  return "ds.kernel @" + name + " inputs " + std::to_string(arguments.size()) + " buffers [" + buffers +
         "] {\n^bb0" + (parameters.empty() ? "" : "(" + parameters + ")") + ":\n" + body + "  ds.yield " +
         yields + " : " + types + "\n}\n";
}

/// What a rounding that goes the other way in the interpreter may have become at the end of a body.
double toleranceOf(const std::string &element, const std::string &source) {
  if (element == "bf16")
    return 4e-2;
  return element == "f16" || source.find("bf16") != std::string::npos ? 1e-2 : 2e-4;
}

class KernelFuzz : public testing::TestWithParam<std::tuple<const char *, unsigned>> {};

TEST_P(KernelFuzz, MeansWhatTheBodySays) {
  constexpr int kKernels = 40;
  auto [element, seed] = GetParam();
  BodyWriter writer(seed, element);
  std::string text;
  std::vector<std::string> sources;
  std::vector<std::vector<Tensor>> inputs;
  mlir::MLIRContext context;
  for (int tries = 0; int(sources.size()) < kKernels && tries < 10 * kKernels; ++tries) {
    std::vector<Tensor> values;
    std::string source = writer.kernel("k" + std::to_string(sources.size()), values);
    if (!KernelHarness::classifies(source))
      continue;
    text += source;
    sources.push_back(source);
    inputs.push_back(values);
  }
  ASSERT_EQ(int(sources.size()), kKernels) << "most random bodies are refused";
  KernelHarness harness(text);
  ASSERT_TRUE(harness.isLoaded());
  for (int k = 0; k < kKernels; ++k) {
    std::string name = "k" + std::to_string(k);
    std::vector<Tensor> whole = harness.run(name, inputs[k]),
                        pieces = harness.run(name, inputs[k], {0.21, 0.64});
    std::vector<Tensor> expected = harness.interpret(name, inputs[k]);
    for (size_t o = 0; o < expected.size(); ++o) {
      double largest = 1;
      for (double value : expected[o].values)
        if (std::isfinite(value))
          largest = std::max(largest, std::abs(value));
      double tolerance = toleranceOf(element, sources[k]) * largest;
      for (size_t e = 0; e < expected[o].values.size(); ++e) {
        double x = whole[o].values[e], y = expected[o].values[e];
        ASSERT_TRUE(x == y || std::abs(x - y) <= tolerance || (std::isnan(x) && std::isnan(y)))
            << "output " << o << " element " << e << ": " << x << " for " << y << "\n"
            << sources[k];
        ASSERT_EQ(std::memcmp(&x, &pieces[o].values[e], sizeof x), 0)
            << "output " << o << " element " << e << " depends on the pieces\n"
            << sources[k];
      }
    }
    ASSERT_FALSE(HasFatalFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Single, KernelFuzz,
                         testing::Combine(testing::Values("f32"), testing::Range(1u, 9u)));
INSTANTIATE_TEST_SUITE_P(Narrow, KernelFuzz,
                         testing::Combine(testing::Values("bf16", "f16"), testing::Range(1u, 4u)));

} // namespace
