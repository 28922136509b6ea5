//===- CudnnGraph.cpp - Computes graphs as cuDNN documents them ---------------------------===//
//
// One operation after another, in f32; what is declared to have 16 bits is rounded to them. Tensors have four
// dimensions.
//
//===---------------------------------------------------------------------------===//
#include "CudnnNode.h"
#include "Elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

namespace ds::rt::fake {
namespace {

using Index = std::array<int64_t, 4>;

Index asIndex(const std::vector<int64_t> &words) { return {words[0], words[1], words[2], words[3]}; }
Index sizesOf(const Node &tensor) { return asIndex(tensor.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS)); }
Index stridesOf(const Node &tensor) { return asIndex(tensor.numbers(CUDNN_ATTR_TENSOR_STRIDES)); }
int64_t idOf(const Node &tensor) { return tensor.number(CUDNN_ATTR_TENSOR_UNIQUE_ID); }
bool isVirtual(const Node &tensor) { return tensor.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0; }
bool isByValue(const Node &tensor) { return tensor.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0; }

/// Memory that a product adds to.
bool isSum(const Node &tensor) {
  return !isVirtual(tensor) &&
         tensor.number(CUDNN_ATTR_TENSOR_REORDERING_MODE) == CUDNN_TENSOR_REORDERING_F16x16;
}

int64_t count(const Index &sizes) { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
int64_t offset(const Index &at, const Index &strides) {
  return at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2] + at[3] * strides[3];
}
Index packed(const Index &sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}

void forEach(const Index &sizes, const std::function<void(const Index &)> &body) {
  Index at;
  for (at[0] = 0; at[0] < sizes[0]; ++at[0])
    for (at[1] = 0; at[1] < sizes[1]; ++at[1])
      for (at[2] = 0; at[2] < sizes[2]; ++at[2])
        for (at[3] = 0; at[3] < sizes[3]; ++at[3])
          body(at);
}

/// The place in a tensor of `sizes` that belongs to `at` in one of `other`: sizes of 1 repeat, and fewer
/// heads are shared.
int64_t broadcast(const Index &at, const Index &other, const Index &sizes) {
  Index here;
  for (size_t d = 0; d < 4; ++d)
    here[d] = at[d] * sizes[d] / other[d];
  return offset(here, packed(sizes));
}

/// The cudaDataType of a tensor; CUDA_R_32F for numbers that only exist here.
int typeOf(const Node &tensor) {
  const int64_t type = tensor.number(CUDNN_ATTR_TENSOR_DATA_TYPE);
  return type == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF : type == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_32F;
}

/// A number in host memory.
float readScalar(const Node &tensor, const void *place) {
  const bool whole = tensor.number(CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_INT32;
  return whole ? static_cast<float>(*static_cast<const int32_t *>(place))
               : *static_cast<const float *>(place);
}

float combine(int64_t mode, float x, float y, bool condition) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD:
    return x + y;
  case CUDNN_POINTWISE_SUB:
    return x - y;
  case CUDNN_POINTWISE_MUL:
    return x * y;
  case CUDNN_POINTWISE_DIV:
    return x / y;
  case CUDNN_POINTWISE_IDENTITY:
    return x;
  case CUDNN_POINTWISE_EXP:
    return std::exp(x);
  case CUDNN_POINTWISE_LOG:
    return std::log(x);
  case CUDNN_POINTWISE_TANH_FWD:
    return std::tanh(x);
  case CUDNN_POINTWISE_TANH_BWD: // of x, by the gradient y
    return y * (1 - std::tanh(x) * std::tanh(x));
  case CUDNN_POINTWISE_CMP_GE:
    return x >= y;
  case CUDNN_POINTWISE_CMP_GT:
    return x > y;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return condition ? x : y;
  default:
    return std::numeric_limits<float>::quiet_NaN();
  }
}

} // namespace

bool CudnnRun::readScalars() {
  for (const auto &operation : graph->children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    for (const auto &[name, list] : operation->children)
      for (const std::shared_ptr<Node> &tensor : list) {
        if (tensor->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR || isVirtual(*tensor))
          continue;
        const auto place = places.find(idOf(*tensor));
        if (place == places.end() || !place->second)
          return false;
        if (isByValue(*tensor))
          scalars[idOf(*tensor)] = readScalar(*tensor, place->second);
        else if (reinterpret_cast<uintptr_t>(place->second) %
                     static_cast<uintptr_t>(tensor->number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)) !=
                 0)
          return false;
      }
  return true;
}

bool CudnnRun::read(const std::shared_ptr<Node> &tensor, std::vector<float> &into) {
  const int64_t id = idOf(*tensor);
  const Index sizes = sizesOf(*tensor), strides = stridesOf(*tensor);
  if (isByValue(*tensor)) {
    into = {scalars.at(id)};
    return true;
  }
  if (const auto found = values.find(id); found != values.end()) {
    into = found->second;
    return true;
  }
  if (isVirtual(*tensor))
    return false;
  into.clear();
  forEach(sizes, [&](const Index &at) {
    into.push_back(load(places.at(id), offset(at, strides), typeOf(*tensor)));
  });
  return true;
}

void CudnnRun::write(const Node &tensor, std::vector<float> computed) {
  const Index sizes = sizesOf(tensor), strides = stridesOf(tensor);
  const int type = typeOf(tensor);
  for (float &value : computed) { // rounded as memory of this type would
    uint32_t bits = 0;
    store(&bits, 0, type, value);
    value = load(&bits, 0, type);
  }
  if (!isVirtual(tensor))
    forEach(sizes, [&](const Index &at) {
      store(places.at(idOf(tensor)), offset(at, strides), type,
            computed[static_cast<size_t>(offset(at, packed(sizes)))]);
    });
  values[idOf(tensor)] = std::move(computed);
}

bool CudnnRun::multiply(const Node &operation) {
  const auto x = operation.child(CUDNN_ATTR_OPERATION_MATMUL_ADESC),
             y = operation.child(CUDNN_ATTR_OPERATION_MATMUL_BDESC),
             to = operation.child(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  const Index xs = sizesOf(*x), ys = sizesOf(*y), sizes = sizesOf(*to);
  std::vector<float> a, b, result(static_cast<size_t>(count(sizes)));
  if (!read(x, a) || !read(y, b) || xs[3] != ys[2] || xs[2] != sizes[2] || ys[3] != sizes[3])
    return false;
  if (isSum(*to))
    read(to, result);
  forEach(sizes, [&](const Index &at) {
    const int64_t hx = at[1] * xs[1] / sizes[1], hy = at[1] * ys[1] / sizes[1];
    float sum = 0;
    for (int64_t k = 0; k < xs[3]; ++k)
      sum += a[static_cast<size_t>(offset({at[0], hx, at[2], k}, packed(xs)))] *
             b[static_cast<size_t>(offset({at[0], hy, k, at[3]}, packed(ys)))];
    float &element = result[static_cast<size_t>(offset(at, packed(sizes)))];
    element = isSum(*to) ? element + sum : sum;
  });
  write(*to, std::move(result));
  return true;
}

namespace {

/// The attributes of the three operations that a convolution is.
struct ConvNames {
  int type, how, x, w, y;
};
constexpr ConvNames kConvolutions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

const ConvNames *namesOf(const Node &operation) {
  const auto found = std::find_if(std::begin(kConvolutions), std::end(kConvolutions),
                                  [&](const ConvNames &names) { return names.type == operation.type; });
  return found == std::end(kConvolutions) ? nullptr : found;
}

/// Where the window at `y` reads with its element `w`, by the windows of `how`.
Index readBy(const Node &how, const Index &y, const Index &w) {
  const auto number = [&](int name, size_t d) { return how.numbers(name)[d]; };
  Index x = {y[0], w[1], 0, 0};
  for (size_t d = 0; d < 2; ++d)
    x[d + 2] = y[d + 2] * number(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, d) +
               w[d + 2] * number(CUDNN_ATTR_CONVOLUTION_DILATIONS, d) -
               number(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, d);
  return x;
}

} // namespace

/// Cross-correlation over two dimensions, or one of its gradients. Groups follow from the channels.
bool CudnnRun::convolve(const Node &operation) {
  const ConvNames &names = *namesOf(operation);
  const std::shared_ptr<Node> tensors[] = {operation.child(names.x), operation.child(names.w),
                                           operation.child(names.y)};
  const Node &how = *operation.child(names.how);
  const size_t written = names.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 2
                         : names.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 0
                                                                                                      : 1;
  std::vector<float> values[3];
  Index sizes[3];
  for (size_t t = 0; t < 3; ++t) {
    sizes[t] = sizesOf(*tensors[t]);
    if (t == written)
      values[t].assign(static_cast<size_t>(count(sizes[t])), 0);
    else if (!read(tensors[t], values[t]))
      return false;
  }
  if (how.number(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION ||
      sizes[0][1] % sizes[1][1] != 0)
    return false;
  const int64_t groups = sizes[0][1] / sizes[1][1], filters = sizes[1][0] / groups;
  forEach(sizes[2], [&](const Index &y) {
    forEach({1, sizes[1][1], sizes[1][2], sizes[1][3]}, [&](const Index &k) {
      const Index w = {y[1], k[1], k[2], k[3]};
      Index x = readBy(how, y, w);
      x[1] += y[1] / filters * sizes[1][1];
      if (x[2] < 0 || x[2] >= sizes[0][2] || x[3] < 0 || x[3] >= sizes[0][3])
        return;
      const size_t places[] = {static_cast<size_t>(offset(x, packed(sizes[0]))),
                               static_cast<size_t>(offset(w, packed(sizes[1]))),
                               static_cast<size_t>(offset(y, packed(sizes[2])))};
      const size_t a = written == 0 ? 1 : 0, b = written == 2 ? 1 : 2;
      values[written][places[written]] += values[a][places[a]] * values[b][places[b]];
    });
  });
  write(*tensors[written], std::move(values[written]));
  return true;
}

bool CudnnRun::reduce(const Node &operation) {
  const auto x = operation.child(CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
             to = operation.child(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  const bool largest =
      operation.child(CUDNN_ATTR_OPERATION_REDUCTION_DESC)->number(CUDNN_ATTR_REDUCTION_OPERATOR) ==
      CUDNN_REDUCE_TENSOR_MAX;
  const Index from = sizesOf(*x), sizes = sizesOf(*to);
  std::vector<float> a,
      result(static_cast<size_t>(count(sizes)), largest ? -std::numeric_limits<float>::infinity() : 0.0f);
  if (!read(x, a))
    return false;
  forEach(from, [&](const Index &at) {
    float &into = result[static_cast<size_t>(broadcast(at, from, sizes))];
    const float value = a[static_cast<size_t>(offset(at, packed(from)))];
    into = largest ? std::max(into, value) : into + value;
  });
  write(*to, std::move(result));
  return true;
}

/// The same memory, read in another order.
bool CudnnRun::reshape(const Node &operation) {
  const auto x = operation.child(CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
             to = operation.child(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  const Index from = sizesOf(*x), sizes = sizesOf(*to);
  std::vector<float> a, result(static_cast<size_t>(count(sizes)));
  if (!read(x, a) || count(from) != count(sizes))
    return false;
  std::map<int64_t, float> memory;
  forEach(from, [&](const Index &at) {
    memory[offset(at, stridesOf(*x))] = a[static_cast<size_t>(offset(at, packed(from)))];
  });
  bool known = true;
  forEach(sizes, [&](const Index &at) {
    const auto found = memory.find(offset(at, stridesOf(*to)));
    known = known && found != memory.end();
    if (known)
      result[static_cast<size_t>(offset(at, packed(sizes)))] = found->second;
  });
  write(*to, std::move(result));
  return known;
}

bool CudnnRun::pointwise(const Node &operation) {
  const auto gradient = operation.child(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC);
  const auto x = operation.child(CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
             y = gradient ? gradient : operation.child(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
             condition = operation.child(CUDNN_ATTR_OPERATION_POINTWISE_TDESC),
             to = operation.child(gradient ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                                           : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  const Node &how = *operation.child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const int64_t mode = how.number(CUDNN_ATTR_POINTWISE_MODE);
  const auto axis = static_cast<size_t>(how.number(CUDNN_ATTR_POINTWISE_AXIS));
  const Index sizes = sizesOf(*to);
  std::vector<float> a, b, c, result;
  if (!read(x, a) || (y && !read(y, b)) || (condition && !read(condition, c)))
    return false;
  const auto value = [&](const std::shared_ptr<Node> &tensor, const std::vector<float> &list,
                         const Index &at) {
    return tensor ? list[static_cast<size_t>(broadcast(at, sizes, sizesOf(*tensor)))] : 0.0f;
  };
  forEach(sizes, [&](const Index &at) {
    result.push_back(mode == CUDNN_POINTWISE_GEN_INDEX
                         ? static_cast<float>(at[axis])
                         : combine(mode, value(x, a, at), value(y, b, at), value(condition, c, at) != 0));
  });
  write(*to, std::move(result));
  return true;
}

bool CudnnRun::compute() {
  for (const auto &operation : graph->children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    const bool done = operation->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR      ? multiply(*operation)
                      : namesOf(*operation)                                             ? convolve(*operation)
                      : operation->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ? reduce(*operation)
                      : operation->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR   ? reshape(*operation)
                      : operation->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR
                          ? pointwise(*operation)
                          : false;
    if (!done)
      return false;
  }
  return true;
}

} // namespace ds::rt::fake
