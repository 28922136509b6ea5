//===- BodyWriter.cpp - Values, elementwise ops and whole kernels -------------===//
#include "BodyWriter.h"

#include <algorithm>
#include <numeric>

using namespace ds::test;

Shape BodyText::randomShape() {
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

std::string ds::test::typeOf(const Shape &shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string ds::test::list(const Shape &numbers) {
  std::string text = "[";
  for (size_t k = 0; k < numbers.size(); ++k)
    text += (k ? ", " : "") + std::to_string(numbers[k]);
  return text + "]";
}

std::string BodyText::bufferType(const Shape &shape, const std::string &element) {
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

BodyText::Written BodyText::line(const std::string &text, const Shape &shape, const std::string &type,
                                 double bound, bool exact) {
  Written value{"%v" + std::to_string(count++), type, shape, bound, exact};
  body += "  " + value.name + " = " + text + "\n";
  written.push_back(value);
  return value;
}

BodyText::Written BodyText::input(const Shape &shape, const std::string &type) {
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

void BodyText::clear() { body.clear(), arguments.clear(), written.clear(), tensors.clear(); }

std::string BodyText::kernel(const std::string &name, const std::vector<Written> &outputs,
                             std::vector<Tensor> &inputs) {
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

BodyWriter::Written BodyWriter::leaf(const Shape &shape) {
  std::string type = typeOf(shape, element);
  switch (text.pick(0, 9)) {
  case 0:
    return text.line("ds.constant dense<0.75> : " + type, shape, element, 1, true);
  case 1:
    if (!shape.empty())
      return text.line("ds.iota dim " + std::to_string(text.pick(0, shape.size() - 1)) +
                           " start -3 step 2 : " + type,
                       shape, element, 300, true);
    break;
  case 2: {
    Written integer = text.input(shape, text.chance(0.5) ? "i64" : "i32");
    return text.line("ds.convert " + integer.name + " : " + typeOf(shape, integer.type) + " -> " + type,
                     shape, element, 3, true);
  }
  case 3: {
    Written half = text.input(shape, text.chance(0.5) ? "bf16" : "f16");
    return text.line("ds.convert " + half.name + " : " + typeOf(shape, half.type) + " -> " + type, shape,
                     element, 2, true);
  }
  case 4: {
    Written rng = text.input({2}, "i64");
    Written draw =
        text.line("ds.random_uniform " + rng.name + " id " + std::to_string(text.pick(0, 9)) + " first " +
                      std::to_string(text.pick(0, 70)) + " : tensor<2xi64> -> " + typeOf(shape, "f32"),
                  shape, "f32", 1, true);
    if (element == "f32")
      return draw;
    return text.line("ds.convert " + draw.name + " : " + typeOf(shape, "f32") + " -> " + type, shape, element,
                     1, true);
  }
  default:
    break;
  }
  return text.input(shape, element);
}

/// A truth value of exact operands: a rounding error must not turn it.
BodyWriter::Written BodyWriter::truth(const Shape &shape) {
  if (text.chance(0.3))
    return text.input(shape, "i1");
  static const char *predicates[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  Written x = text.input(shape, element), y = text.input(shape, element);
  Written result = text.line("ds.compare " + std::string(predicates[text.pick(0, 5)]) + " " + x.name + ", " +
                                 y.name + " : " + typeOf(shape, element),
                             shape, "i1", 1, true);
  if (text.chance(0.3))
    return text.line("ds.not " + result.name + " : " + typeOf(shape, "i1"), shape, "i1", 1, true);
  return result;
}

BodyWriter::Written BodyWriter::bounded(Written value, double most) {
  if (value.bound <= most)
    return value;
  return text.line("ds.tanh " + value.name + " : " + typeOf(value.shape, element), value.shape, element, 1);
}

BodyWriter::Written BodyWriter::gelu(const Shape &shape, int depth, Written x) {
  const std::string form = text.chance(0.5) ? "tanh " : "", type = typeOf(shape, element);
  if (text.chance(0.5))
    return text.line("ds.gelu " + form + " " + x.name + " : " + type, shape, element, x.bound);
  Written grad = bounded(make(shape, depth - 1), 50);
  return text.line("ds.gelu_grad " + form + grad.name + ", " + x.name + " : " + type, shape, element,
                   2 * grad.bound);
}

BodyWriter::Written BodyWriter::arithmetic(const Shape &shape, int depth, Written x) {
  Written y = bounded(make(shape, depth - 1), 50);
  auto binary = [&](const std::string &name, double bound) {
    return text.line("ds." + name + " " + x.name + ", " + y.name + " : " + typeOf(shape, element), shape,
                     element, bound);
  };
  switch (text.pick(0, 3)) {
  case 0:
    return binary("add", x.bound + y.bound);
  case 1:
    return binary("sub", x.bound + y.bound);
  case 2:
    return binary("mul", x.bound * y.bound);
  default:
    return binary(text.chance(0.5) ? "max" : "min", std::max(x.bound, y.bound));
  }
}

BodyWriter::Written BodyWriter::elementwise(const Shape &shape, int depth) {
  std::string type = typeOf(shape, element);
  Written x = bounded(make(shape, depth - 1), 50);
  auto unary = [&](const std::string &name, const Written &of, double bound) {
    return text.line("ds." + name + " " + of.name + " : " + type, shape, element, bound);
  };
  auto positive = [&](const Written &y) {
    Written half = text.line("ds.constant dense<0.5> : " + type, shape, element, 1, true);
    Written magnitude = unary("abs", y, y.bound);
    return text.line("ds.add " + magnitude.name + ", " + half.name + " : " + type, shape, element,
                     y.bound + 1);
  };
  static const char *smooth[] = {"tanh", "erf", "sigmoid", "sin", "cos"};
  // One step of a 16-bit float at 50 would turn a sine by a quarter.
  double mostAngle = element == "f32" ? 50 : 3;
  switch (text.pick(0, 12)) {
  case 0:
    return unary(smooth[text.pick(0, 4)], bounded(x, mostAngle), 1);
  case 1:
    return unary("exp", bounded(x, 3), 21);
  case 2:
    return unary("log", positive(x), 5);
  case 3:
    return unary(text.chance(0.5) ? "sqrt" : "rsqrt", positive(x), x.bound + 2);
  case 4:
    return unary(text.chance(0.5) ? "neg" : "abs", x, x.bound);
  case 5: {
    Written y = positive(bounded(make(shape, depth - 1), 50));
    return text.line("ds.div " + x.name + ", " + y.name + " : " + type, shape, element, 2 * x.bound);
  }
  case 6: {
    Written condition = truth(shape), y = make(shape, depth - 1);
    return text.line("ds.select " + condition.name + ", " + x.name + ", " + y.name + " : " + type, shape,
                     element, std::max(x.bound, y.bound));
  }
  case 7: {
    x = bounded(x, mostAngle);
    Written wide = text.line("ds.convert " + x.name + " : " + type + " -> " + typeOf(shape, "f64"), shape,
                             "f64", x.bound);
    Written back = text.line("ds.sin " + wide.name + " : " + typeOf(shape, "f64"), shape, "f64", 1);
    return text.line("ds.convert " + back.name + " : " + typeOf(shape, "f64") + " -> " + type, shape, element,
                     1);
  }
  case 8:
    return gelu(shape, depth, bounded(x, 3));
  default:
    return arithmetic(shape, depth, x);
  }
}

BodyWriter::Written BodyWriter::make(const Shape &shape, int depth) {
  if (text.chance(0.15)) {
    for (const Written &value : text.written)
      if (value.shape == shape && value.type == element && text.chance(0.5))
        return value;
  }
  if (depth <= 0)
    return leaf(shape);
  if (text.chance(0.3))
    return indexed(shape, depth);
  return elementwise(shape, depth);
}

/// A difference to a statistic, and often what a softmax makes of it.
std::vector<BodyWriter::Written> BodyWriter::reductions(const Shape &shape, int depth) {
  columns = text.chance(0.4);
  statisticDims = text.pick(1, shape.size());
  Written centred = statisticOf(shape, depth);
  Written x = bounded(make(shape, 1), 50), y = bounded(centred, 50);
  Written both =
      text.line("ds.sub " + x.name + ", " + y.name + " : " + typeOf(shape, element), shape, element, 100);
  if (!text.chance(0.5))
    return {both};
  Written again = bounded(both, 3);
  Written e = text.line("ds.exp " + again.name + " : " + typeOf(shape, element), shape, element, 21);
  text.written = {e};
  Halves halves = split(shape);
  Written total = text.line("ds.reduce sum " + e.name + " dims " + list(halves.reduced) + " : " +
                                typeOf(shape, element) + " -> " + typeOf(halves.keptShape, element),
                            halves.keptShape, element, 21.0 * double(std::max<int64_t>(halves.elements, 1)));
  if (text.chance(0.5))
    return {both, total, e};
  return {both, total};
}

/// Values of one shape, not all of one type.
std::vector<BodyWriter::Written> BodyWriter::maps(const Shape &shape, int depth) {
  std::vector<Written> outputs = {make(shape, depth)};
  if (text.chance(0.3))
    outputs.push_back(elementwise(shape, 1));
  if (text.chance(0.15))
    outputs.push_back(truth(shape));
  if (text.chance(0.15))
    outputs.push_back(text.line("ds.convert " + outputs[0].name + " : " + typeOf(shape, element) + " -> " +
                                    typeOf(shape, "bf16"),
                                shape, "bf16", outputs[0].bound));
  return outputs;
}

std::string BodyWriter::kernel(const std::string &name, std::vector<Tensor> &inputs) {
  text.clear();
  Shape shape = text.randomShape();
  int depth = int(text.pick(1, 5));
  return text.kernel(name, !shape.empty() && text.chance(0.5) ? reductions(shape, depth) : maps(shape, depth),
                     inputs);
}
