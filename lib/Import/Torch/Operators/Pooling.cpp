//===- Pooling.cpp - Maxima and means of windows, over one to three dimensions ---===//
//
// A window of several dimensions is windows of one dimension after the other: the first largest element in
// row-major order is the first in the first row that has it, and sums are sums of sums. Along one dimension
// the windows are as many strided slices as a window has elements, which one kernel reads.
//
//===---------------------------------------------------------------------------===//

#include "../Operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ds::ts {

namespace {

/// The windows along one dimension.
struct Windows {
  int64_t size = 1, stride = 1, padding = 0, dilation = 1;
  int64_t length = 1; ///< of the dimension
  int64_t count = 1;  ///< of windows

  /// Elements that the last window reaches behind the padded front.
  int64_t reach() const { return (count - 1) * stride + dilation * (size - 1) + 1; }
  /// True where windows are one behind the other and make up the dimension.
  bool divide() const { return padding == 0 && dilation == 1 && stride == size && size * count == length; }
};

/// One number for all dimensions, one for each, or `other` where none is given.
Shape perDimOr(Call &call, const char *name, size_t numDims, const Shape &other) {
  return call.has(name) && !call.integers(name).empty() ? perDim(call, name, numDims) : other;
}

/// How many windows there are: PyTorch lets none start behind what is padded at the front and read.
int64_t countWindows(const Windows &w, bool ceil) {
  int64_t room = w.length + 2 * w.padding - w.dilation * (w.size - 1) - 1;
  if (room < 0)
    return 0;
  int64_t count = (room + (ceil ? w.stride - 1 : 0)) / w.stride + 1;
  return ceil && (count - 1) * w.stride >= w.length + w.padding ? count - 1 : count;
}

/// The dimension `d` of those that windows slide over, the last ones: inputs have batches or not.
int64_t place(const TensorRef &x, size_t numDims, size_t d) {
  return x->rank() - static_cast<int64_t>(numDims - d);
}

void checkRank(const Call &call, const TensorRef &x, size_t numDims) {
  if (x->rank() != static_cast<int64_t>(numDims) + 1 && x->rank() != static_cast<int64_t>(numDims) + 2)
    fail(call.schema.name() + " of a tensor of shape " + spellList(x->shape),
         "check the shapes given by --input");
}

std::vector<Windows> windowsOf(Call &call, const TensorRef &x) {
  const size_t numDims = dimsOf(call);
  checkRank(call, x, numDims);
  Shape size = perDimOr(call, "kernel_size", numDims, {}), stride = perDimOr(call, "stride", numDims, size),
        padding = perDimOr(call, "padding", numDims, Shape(numDims, 0)),
        dilation = perDimOr(call, "dilation", numDims, Shape(numDims, 1));
  std::vector<Windows> result;
  for (size_t d = 0; d < numDims; ++d) {
    Windows w{size[d], stride[d], padding[d], dilation[d], x->shape[place(x, numDims, d)], 0};
    if (w.size < 1 || w.stride < 1 || w.padding < 0 || w.dilation < 1 || w.padding > w.size / 2)
      fail(call.schema.name() + " with windows " + spellList(size) + ", stride " + spellList(stride) +
           ", padding " + spellList(padding) + " and dilation " + spellList(dilation));
    w.count = countWindows(w, call.flag("ceil_mode"));
    if (w.count < 1)
      fail(call.schema.name() + " of shape " + spellList(x->shape) + ": a window of " + spellList(size) +
               " is larger than the padded input",
           "check the shapes given by --input");
    result.push_back(w);
  }
  return result;
}

/// The dimension with `before` and `after` elements of `value` around it; what lies behind the last window
/// is left as it is.
TensorRef padDim(Builder &b, const TensorRef &x, int64_t dim, int64_t before, int64_t after,
                 const c10::Scalar &value) {
  std::vector<TensorRef> parts = {x};
  Shape shape = x->shape;
  auto part = [&](int64_t size) {
    shape[dim] = size;
    return b.splat(value, shape, x->type);
  };
  if (before > 0)
    parts.insert(parts.begin(), part(before));
  if (after > 0)
    parts.push_back(part(after));
  return b.concat(parts, dim);
}

TensorRef padFor(Builder &b, const TensorRef &x, int64_t dim, const Windows &w, const c10::Scalar &value) {
  return padDim(b, x, dim, w.padding, w.reach() - w.length - w.padding, value);
}

/// The elements number `index` of all windows along `dim` of the padded tensor.
TensorRef elementsOf(Builder &b, const TensorRef &padded, int64_t dim, const Windows &w, int64_t index) {
  return narrow(b, padded, dim, index * w.dilation, w.count, w.stride);
}

//===----------------------------------------------------------------------===//
// Maxima
//===----------------------------------------------------------------------===//

/// True where nothing of a window lies in the dimension before its element number `index`: in the first few.
TensorRef isFirstInside(Builder &b, const TensorRef &x, int64_t dim, const Windows &w, int64_t index) {
  const int64_t before = w.padding - (index - 1) * w.dilation; // of the window's element before this one
  TensorRef number = b.iota(dim, 0, 1, x->shape, at::kInt);
  return b.compare("lt", number, b.splat((before + w.stride - 1) / w.stride, x->shape, at::kInt));
}

/// The largest elements of windows, of equal ones the first, of NaNs the last: that element has the gradient,
/// and never one of the padding.
TensorRef largestAlong(Builder &b, const TensorRef &x, int64_t dim, const Windows &w) {
  TensorRef padded = padFor(b, x, dim, w, -std::numeric_limits<double>::infinity());
  TensorRef most = elementsOf(b, padded, dim, w, 0);
  for (int64_t index = 1; index < w.size; ++index) {
    TensorRef next = elementsOf(b, padded, dim, w, index);
    TensorRef isMore = b.binary("or", b.compare("gt", next, most), b.compare("ne", next, next));
    if (w.padding > (index - 1) * w.dilation)
      isMore = b.binary("or", isMore, isFirstInside(b, next, dim, w, index));
    most = b.select(isMore, next, most);
  }
  return most;
}

TensorRef maxPoolOf(Call &call) {
  TensorRef x = call.tensor(call.has("self") ? "self" : "input");
  if (!c10::isFloatingType(x->type))
    throw Unsupported(call.schema.name() + " of element type " + spell(x->type));
  std::vector<Windows> windows = windowsOf(call, x);
  for (size_t d = windows.size(); d-- > 0;) // the last dimension first, as in row-major order
    x = largestAlong(call.b, x, place(x, windows.size(), d), windows[d]);
  return x;
}

Value maxPool(Call &call) { return maxPoolOf(call); }

Value maxPoolWithPositions(Call &call) {
  return makeTuple({maxPoolOf(call), Unknown{"the positions of a maximum"}});
}

//===----------------------------------------------------------------------===//
// Means
//===----------------------------------------------------------------------===//

/// The sums of windows.
TensorRef sumAlong(Builder &b, const TensorRef &x, int64_t dim, const Windows &w) {
  if (w.divide()) {
    Shape shape = x->shape;
    shape[dim] = w.count;
    shape.insert(shape.begin() + dim + 1, w.size);
    return b.reduce("sum", b.reshape(x, shape), {dim + 1});
  }
  TensorRef padded = padFor(b, x, dim, w, 0);
  TensorRef sum = elementsOf(b, padded, dim, w, 0);
  for (int64_t index = 1; index < w.size; ++index)
    sum = b.binary("add", sum, elementsOf(b, padded, dim, w, index));
  return sum;
}

/// x times one factor for each position along `dim`.
TensorRef scaleAlong(Builder &b, const TensorRef &x, int64_t dim, const std::vector<double> &factors) {
  if (std::all_of(factors.begin(), factors.end(), [&](double factor) { return factor == factors.front(); }))
    return factors.front() == 1 ? x : combine(b, "mul", x, factors.front());
  at::Tensor known = at::tensor(factors, at::TensorOptions().dtype(at::kDouble)).to(x->type);
  Shape shape(x->rank(), 1);
  shape[dim] = known.numel();
  return b.binary("mul", x, broadcastTo(b, makeKnown(known.reshape(shape)), x->shape));
}

/// What divides the sums of windows: all that they reach of the padded dimension, or what lies in it.
std::vector<double> meanFactors(const Windows &w, bool countsPadding) {
  std::vector<double> factors;
  for (int64_t index = 0; index < w.count; ++index) {
    int64_t begin = index * w.stride - w.padding, end = std::min(begin + w.size, w.length + w.padding);
    int64_t inside = std::min(end, w.length) - std::max<int64_t>(begin, 0);
    factors.push_back(1.0 / static_cast<double>(std::max<int64_t>(countsPadding ? end - begin : inside, 1)));
  }
  return factors;
}

Value averagePool(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self");
  std::vector<Windows> windows = windowsOf(call, x);
  const bool countsPadding = call.flag("count_include_pad"), isDivided = !call.has("divisor_override");
  for (size_t d = windows.size(); d-- > 0;) {
    int64_t dim = place(x, windows.size(), d);
    x = sumAlong(b, x, dim, windows[d]);
    if (isDivided)
      x = scaleAlong(b, x, dim, meanFactors(windows[d], countsPadding));
  }
  if (isDivided)
    return x;
  if (call.integer("divisor_override") == 0)
    fail(call.schema.name() + " with a divisor of 0");
  return combine(b, "mul", x, 1 / call.number("divisor_override"));
}

//===----------------------------------------------------------------------===//
// Windows of adapted sizes
//===----------------------------------------------------------------------===//

enum class Adapted { Mean, Largest };

/// One of `count` windows of even sizes, which may overlap by one: from floor(i * length / count) up to
/// ceil((i + 1) * length / count).
TensorRef adaptedWindow(Builder &b, const TensorRef &x, int64_t dim, int64_t index, int64_t count,
                        Adapted kind) {
  int64_t length = x->shape[dim], begin = index * length / count,
          end = ((index + 1) * length + count - 1) / count;
  TensorRef window = narrow(b, x, dim, begin, end - begin);
  if (end - begin == 1)
    return window;
  if (kind == Adapted::Mean)
    return meanDims(b, window, {dim}, true);
  return largestAlong(b, window, dim, {end - begin, 1, 0, 1, end - begin, 1});
}

TensorRef adaptAlong(Builder &b, const TensorRef &x, int64_t dim, int64_t count, Adapted kind) {
  int64_t length = x->shape[dim];
  if (length == count)
    return x;
  Shape shape = x->shape;
  shape[dim] = count;
  if (length == 1)
    return broadcastTo(b, x, shape);
  if (length % count == 0) {
    Windows w{length / count, length / count, 0, 1, length, count};
    if (kind == Adapted::Mean)
      return combine(b, "mul", sumAlong(b, x, dim, w), 1.0 / static_cast<double>(w.size));
    return largestAlong(b, x, dim, w);
  }
  std::vector<TensorRef> windows;
  for (int64_t index = 0; index < count; ++index)
    windows.push_back(adaptedWindow(b, x, dim, index, count, kind));
  return b.concat(windows, dim);
}

TensorRef adapt(Call &call, Adapted kind) {
  TensorRef x = call.tensor("self");
  const size_t numDims = dimsOf(call);
  checkRank(call, x, numDims);
  Shape sizes = perDimOr(call, "output_size", numDims, {});
  bool isGlobal = kind == Adapted::Mean;
  Shape dims;
  for (size_t d = 0; d < numDims; ++d) {
    if (sizes.at(d) < 1)
      fail(call.schema.name() + " to sizes " + spellList(sizes));
    dims.push_back(place(x, numDims, d));
    isGlobal &= sizes[d] == 1;
  }
  if (isGlobal)
    return meanDims(call.b, x, dims, true);
  for (size_t d = numDims; d-- > 0;)
    x = adaptAlong(call.b, x, dims[d], sizes[d], kind);
  return x;
}

Value adaptiveMean(Call &call) { return adapt(call, Adapted::Mean); }

Value adaptiveMax(Call &call) {
  return makeTuple({adapt(call, Adapted::Largest), Unknown{"the positions of a maximum"}});
}

constexpr Operator operators[] = {
    {"aten::max_pool1d", maxPool},
    {"aten::max_pool2d", maxPool},
    {"aten::max_pool3d", maxPool},
    {"aten::max_pool1d_with_indices", maxPoolWithPositions},
    {"aten::max_pool2d_with_indices", maxPoolWithPositions},
    {"aten::max_pool3d_with_indices", maxPoolWithPositions},
    {"aten::avg_pool1d", averagePool},
    {"aten::avg_pool2d", averagePool},
    {"aten::avg_pool3d", averagePool},
    {"aten::adaptive_avg_pool1d", adaptiveMean},
    {"aten::adaptive_avg_pool2d", adaptiveMean},
    {"aten::adaptive_avg_pool3d", adaptiveMean},
    {"aten::_adaptive_avg_pool2d", adaptiveMean},
    {"aten::_adaptive_avg_pool3d", adaptiveMean},
    {"aten::adaptive_max_pool1d", adaptiveMax},
    {"aten::adaptive_max_pool2d", adaptiveMax},
    {"aten::adaptive_max_pool3d", adaptiveMax},
};

} // namespace

OperatorList poolingOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
