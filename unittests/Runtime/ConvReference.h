//===- ConvReference.h - Convolutions as their definition has them -------------===//
//
// One loop over every product of an element of the input, a weight and an element of the output, in double:
// what it adds up, and where, is all that the three functions differ in.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CONVREFERENCE_H
#define DS_UNITTESTS_RUNTIME_CONVREFERENCE_H

#include "ProgramBuilder.h"

#include "ds/Runtime/Program/ConvForm.h"

#include <functional>
#include <vector>

namespace ds::rt::test {

inline constexpr LibraryFn kConvFunctions[] = {LibraryFn::ConvForward, LibraryFn::ConvBackwardInput,
                                               LibraryFn::ConvBackwardWeight};

/// A convolution by its sizes; lists have one number for each sliding dimension.
struct ConvCase {
  const char *name;
  int64_t batch, inputChannels, outputChannels, groups;
  std::vector<int64_t> input, window, stride, padding, dilation;
  bool bias = false;

  std::vector<int64_t> output() const {
    std::vector<int64_t> sizes;
    for (size_t d = 0; d < input.size(); ++d)
      sizes.push_back((input[d] + 2 * padding[d] - dilation[d] * (window[d] - 1) - 1) / stride[d] + 1);
    return sizes;
  }
  static std::vector<int64_t> join(int64_t first, int64_t second, const std::vector<int64_t> &rest) {
    std::vector<int64_t> shape = {first, second};
    shape.insert(shape.end(), rest.begin(), rest.end());
    return shape;
  }
  std::vector<int64_t> inputShape() const { return join(batch, inputChannels, input); }
  std::vector<int64_t> weightShape() const { return join(outputChannels, inputChannels / groups, window); }
  std::vector<int64_t> outputShape() const { return join(batch, outputChannels, output()); }
  /// Shapes of the operands of `fn`, in its order.
  std::vector<std::vector<int64_t>> operandShapes(LibraryFn fn) const {
    if (fn == LibraryFn::ConvBackwardInput)
      return {weightShape(), outputShape(), inputShape()};
    if (fn == LibraryFn::ConvBackwardWeight)
      return {inputShape(), outputShape(), weightShape()};
    std::vector<std::vector<int64_t>> shapes = {inputShape(), weightShape(), outputShape()};
    if (bias)
      shapes.push_back({outputChannels});
    return shapes;
  }
  std::vector<int64_t> params() const {
    std::vector<int64_t> list = {groups};
    for (size_t d = 0; d < input.size(); ++d)
      list.insert(list.end(), {stride[d], padding[d], dilation[d]});
    return list;
  }
};

/// What the tests of every back end go through.
inline std::vector<ConvCase> convCases() {
  return {{"patches", 2, 3, 20, 1, {12, 8}, {4, 4}, {4, 4}, {0, 0}, {1, 1}, true},
          {"window of three", 3, 16, 32, 1, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, true},
          {"uneven stride and dilation", 2, 4, 6, 2, {11, 10}, {3, 2}, {2, 3}, {1, 2}, {1, 3}, true},
          {"depthwise", 1, 6, 12, 6, {8, 5}, {3, 3}, {1, 2}, {1, 0}, {2, 1}},
          {"pointwise", 2, 5, 7, 1, {3, 4}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
          {"one dimension", 2, 8, 32, 1, {30}, {3}, {2}, {1}, {1}, true},
          {"dilated one dimension", 3, 4, 6, 2, {17}, {4}, {1}, {3}, {2}, true},
          {"three dimensions", 2, 3, 4, 1, {5, 6, 4}, {2, 3, 2}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}, true},
          {"more padding than window", 1, 2, 3, 1, {4, 4}, {2, 2}, {3, 1}, {3, 2}, {1, 1}},
          {"unread last column", 1, 2, 3, 1, {9, 8}, {2, 3}, {4, 3}, {0, 0}, {1, 1}}};
}

/// What the command of `fn` computes.
inline ConvForm formOf(const ConvCase &c, LibraryFn fn) {
  std::vector<Buffer> buffers;
  for (const std::vector<int64_t> &shape : c.operandShapes(fn))
    buffers.push_back({Space::Device, DType::F32, 0, shape, {}});
  std::vector<const Buffer *> operands;
  for (const Buffer &buffer : buffers)
    operands.push_back(&buffer);
  return describeConv(fn, operands, c.params().data());
}

/// A program of one convolution, and what it works on.
struct OneConv {
  ProgramBuilder b;
  std::vector<uint32_t> operands;

  OneConv(const ConvCase &c, LibraryFn fn, DType dtype) {
    for (const std::vector<int64_t> &shape : c.operandShapes(fn))
      operands.push_back(b.keep(shape, dtype));
    b.library(fn, operands, c.params());
    b.segment();
  }
  uint32_t &workspace() { return b.program.commands[0].workspace; }
};

/// Calls body(input element, weight, output element) for every product, by their places in packed memory.
inline void forEachProduct(const ConvCase &c, const std::function<void(size_t, size_t, size_t)> &body) {
  auto at = [](std::vector<int64_t> sizes, const std::vector<int64_t> &index) {
    int64_t place = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      place = place * sizes[d] + index[d];
    return static_cast<size_t>(place);
  };
  const std::vector<int64_t> x = c.inputShape(), w = c.weightShape(), y = c.outputShape();
  const size_t dims = c.input.size();
  auto forEach = [](const std::vector<int64_t> &sizes, auto f) {
    std::vector<int64_t> index(sizes.size(), 0);
    for (;;) {
      f(index);
      size_t d = sizes.size();
      while (d-- > 0 && ++index[d] == sizes[d])
        index[d] = 0;
      if (d == SIZE_MAX)
        return;
    }
  };
  forEach(y, [&](const std::vector<int64_t> &to) {
    forEach({w.begin() + 1, w.end()}, [&](const std::vector<int64_t> &of) {
      const int64_t group = to[1] / (c.outputChannels / c.groups);
      std::vector<int64_t> from = {to[0], group * w[1] + of[0]}, weight = {to[1]};
      weight.insert(weight.end(), of.begin(), of.end());
      bool inside = true;
      for (size_t d = 0; d < dims; ++d) {
        from.push_back(to[d + 2] * c.stride[d] + of[d + 1] * c.dilation[d] - c.padding[d]);
        inside = inside && from.back() >= 0 && from.back() < c.input[d];
      }
      if (inside)
        body(at(x, from), at(w, weight), at(y, to));
    });
  });
}

/// The result of `fn` on operands of doubles.
inline std::vector<double> convolve(const ConvCase &c, LibraryFn fn,
                                    const std::vector<std::vector<double>> &operands) {
  auto count = [](const std::vector<int64_t> &shape) {
    size_t elements = 1;
    for (int64_t size : shape)
      elements *= static_cast<size_t>(size);
    return elements;
  };
  std::vector<double> result(count(c.operandShapes(fn)[2]));
  if (fn == LibraryFn::ConvForward && c.bias)
    for (size_t i = 0, inner = count(c.output()); i < result.size(); ++i)
      result[i] = operands[3][i / inner % operands[3].size()];
  const std::vector<double> &a = operands[0], &b = operands[1];
  forEachProduct(c, [&](size_t x, size_t w, size_t y) {
    if (fn == LibraryFn::ConvForward)
      result[y] += a[x] * b[w];
    else if (fn == LibraryFn::ConvBackwardInput)
      result[x] += a[w] * b[y];
    else
      result[w] += a[x] * b[y];
  });
  return result;
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_CONVREFERENCE_H
