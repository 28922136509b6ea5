//===- Resizing.cpp - Interpolation, borders and shuffles of pixels ---------------===//
//
// Interpolation is linear, and one dimension after the other: LibTorch itself says by which positions or
// factors, for it is asked for those of a count or of unit vectors.
//
//===---------------------------------------------------------------------------===//

#include "../NetworkOps.h"
#include "../Operators.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <numeric>

namespace ds::ts {

/// x along `dim` at `ids`, by looking rows of a table up.
static TensorRef lookUp(Builder &b, const TensorRef &x, int64_t dim, const at::Tensor &ids) {
  Shape perm(x->rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin(), perm.begin() + dim, perm.begin() + dim + 1);
  TensorRef front = b.transpose(x, perm);
  const int64_t rows = front->shape[0];
  TensorRef found = emitEmbedding(b, b.reshape(front, {rows, front->numel() / rows}), makeKnown(ids));
  Shape shape = front->shape, back(x->rank());
  shape[0] = ids.numel();
  for (size_t i = 0; i < perm.size(); ++i)
    back[perm[i]] = static_cast<int64_t>(i);
  return b.transpose(b.reshape(found, shape), back);
}

TensorRef flipDim(Builder &b, const TensorRef &x, int64_t dim) {
  constexpr int64_t maxPieces = 16;
  const int64_t size = x->shape[dim];
  const bool isTable = x->type == at::kFloat || x->type == at::kHalf || x->type == at::kBFloat16;
  if (size > maxPieces && isTable && x->numel() > 0)
    return lookUp(b, x, dim, at::arange(size - 1, -1, -1, at::kLong));
  Shape positions(size);
  std::iota(positions.rbegin(), positions.rend(), 0);
  return size < 2 ? x : takeKnown(b, x, dim, positions);
}

namespace {

//===----------------------------------------------------------------------===//
// Interpolation
//===----------------------------------------------------------------------===//

/// How one dimension is resized: to how many elements, and by which factor where one is given.
struct Resized {
  int64_t size = 0;
  c10::optional<double> scale;
};

std::vector<Resized> sizesOf(Call &call, const TensorRef &x, size_t numDims) {
  static constexpr const char *scales[] = {"scales_d", "scales_h", "scales_w"};
  std::vector<Resized> result(numDims);
  auto *factors = std::get_if<SequenceRef>(&call.value("scale_factors"));
  Shape sizes = call.has("output_size") ? call.integers("output_size") : Shape();
  for (size_t d = 0; d < numDims; ++d) {
    const char *name = numDims == 1 ? "scales" : scales[d + 3 - numDims];
    if (factors)
      if (auto *known = std::get_if<c10::IValue>(&(*factors)->items.at(d)); known && known->isScalar())
        result[d].scale = known->toScalar().to<double>();
    if (call.has(name))
      result[d].scale = call.number(name);
    const auto length = static_cast<double>(x->shape[d + 2]);
    result[d].size = sizes.empty() ? static_cast<int64_t>(length * result[d].scale.value_or(0)) : sizes.at(d);
    if (result[d].size < 1)
      fail(call.schema.name() + " of shape " + spellList(x->shape) + " to " + std::to_string(result[d].size) +
           " elements of a dimension");
  }
  return result;
}

TensorRef imageOf(Call &call, size_t numDims) {
  TensorRef x = call.tensor(call.has("input") ? "input" : "self");
  if (x->rank() != static_cast<int64_t>(numDims) + 2 || !c10::isFloatingType(x->type) || x->numel() == 0)
    fail(call.schema.name() + " of shape " + spellList(x->shape) + " and type " + spell(x->type),
         "check the shapes given by --input");
  return x;
}

/// x with each element of `dim` taken where the count of `positions` says.
TensorRef takeNearest(Builder &b, const TensorRef &x, int64_t dim, const Shape &positions) {
  const int64_t length = x->shape[dim], count = static_cast<int64_t>(positions.size());
  const int64_t times = count / length;
  bool isEven = times * length == count;
  for (int64_t i = 0; isEven && i < count; ++i)
    isEven = positions[i] == i / times;
  if (!isEven)
    return takeKnown(b, x, dim, positions);
  Shape wide = x->shape, shape = x->shape;
  wide.insert(wide.begin() + dim + 1, times);
  shape[dim] = count;
  return b.reshape(broadcastTo(b, unsqueeze(b, x, dim + 1), wide), shape);
}

template <bool exact>
Value nearest(Call &call) {
  const size_t numDims = dimsOf(call);
  TensorRef x = imageOf(call, numDims);
  std::vector<Resized> sizes = sizesOf(call, x, numDims);
  for (size_t d = 0; d < numDims; ++d) {
    const int64_t dim = static_cast<int64_t>(d) + 2;
    at::Tensor count = at::arange(x->shape[dim], at::kDouble).reshape({1, 1, -1});
    at::Tensor found = exact ? at::_upsample_nearest_exact1d(count, {sizes[d].size}, sizes[d].scale)
                             : at::upsample_nearest1d(count, {sizes[d].size}, sizes[d].scale);
    found = found.reshape({-1}).to(at::kLong).contiguous();
    x = takeNearest(call.b, x, dim,
                    Shape(found.data_ptr<int64_t>(), found.data_ptr<int64_t>() + found.numel()));
  }
  return x;
}

/// x @ factors along `dim`.
TensorRef mixAlong(Builder &b, const TensorRef &x, int64_t dim, const at::Tensor &factors) {
  Shape perm(x->rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[dim], perm.back());
  TensorRef matrix = makeKnown(factors.to(x->type).contiguous());
  return b.transpose(multiplyMatrices(b, b.transpose(x, perm), matrix), perm);
}

/// What becomes of unit vectors of `length` elements: the factors by which elements are mixed.
at::Tensor mixOf(bool isCubic, int64_t length, const Resized &to, bool alignCorners) {
  at::Tensor units = at::eye(length, at::kDouble);
  if (!isCubic)
    return at::upsample_linear1d(units.unsqueeze(0), {to.size}, alignCorners, to.scale).squeeze(0);
  return at::upsample_bicubic2d(units.reshape({1, length, 1, length}), {1, to.size}, alignCorners,
                                c10::nullopt, to.scale)
      .reshape({length, to.size});
}

template <bool isCubic>
Value mixed(Call &call) {
  const size_t numDims = dimsOf(call);
  TensorRef x = imageOf(call, numDims);
  std::vector<Resized> sizes = sizesOf(call, x, numDims);
  for (size_t d = 0; d < numDims; ++d) {
    const int64_t dim = static_cast<int64_t>(d) + 2;
    if (x->shape[dim] != sizes[d].size)
      x = mixAlong(call.b, x, dim, mixOf(isCubic, x->shape[dim], sizes[d], call.flag("align_corners")));
  }
  return x;
}

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

enum class Border { Reflect, Replicate, Circular };

/// `size` elements before (or behind) those of a dimension.
TensorRef borderOf(Builder &b, const TensorRef &x, int64_t dim, int64_t size, bool isBefore, Border border) {
  const int64_t length = x->shape[dim];
  Shape shape = x->shape;
  shape[dim] = size;
  switch (border) {
  case Border::Reflect:
    return flipDim(b, narrow(b, x, dim, isBefore ? 1 : length - 1 - size, size), dim);
  case Border::Replicate:
    return broadcastTo(b, narrow(b, x, dim, isBefore ? 0 : length - 1, 1), shape);
  case Border::Circular:
    return narrow(b, x, dim, isBefore ? length - size : 0, size);
  }
  return nullptr;
}

TensorRef padBorder(Call &call, TensorRef x, const Shape &amounts, Border border) {
  for (size_t i = 0; i + 1 < amounts.size(); i += 2) {
    const int64_t dim = x->rank() - 1 - static_cast<int64_t>(i / 2);
    const int64_t most = dim < 0 ? 0 : x->shape[dim] - (border == Border::Reflect ? 1 : 0);
    std::vector<TensorRef> parts = {x};
    for (bool isBefore : {true, false}) {
      const int64_t size = amounts[i + (isBefore ? 0 : 1)];
      if (size < 0)
        throw Unsupported(call.schema.name() + " by less than nothing");
      if (dim < 0 || (size > most && border != Border::Replicate))
        fail(call.schema.name() + " by " + std::to_string(size) + " elements of a tensor of shape " +
                 spellList(x->shape),
             "check the shapes given by --input");
      if (size > 0)
        parts.insert(isBefore ? parts.begin() : parts.end(),
                     borderOf(call.b, x, dim, size, isBefore, border));
    }
    x = call.b.concat(parts, dim);
  }
  return x;
}

template <Border border>
Value pad(Call &call) {
  return padBorder(call, call.tensor("self"), call.integers(call.has("pad") ? "pad" : "padding"), border);
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

/// [..., C * r * r, H, W] to [..., C, H * r, W * r].
Value pixelShuffle(Call &call) {
  TensorRef x = call.tensor("self");
  const int64_t r = call.integer("upscale_factor"), rank = x->rank();
  if (rank < 3 || r < 1 || x->shape[rank - 3] % (r * r) != 0)
    fail(call.schema.name() + " by " + std::to_string(r) + " of a tensor of shape " + spellList(x->shape));
  const int64_t c = x->shape[rank - 3] / (r * r), h = x->shape[rank - 2], w = x->shape[rank - 1];
  const int64_t outer = x->numel() / std::max<int64_t>(c * r * r * h * w, 1);
  TensorRef apart = call.b.transpose(call.b.reshape(x, {outer, c, r, r, h, w}), {0, 1, 4, 2, 5, 3});
  Shape shape(x->shape.begin(), x->shape.end() - 3);
  shape.insert(shape.end(), {c, h * r, w * r});
  return call.b.reshape(apart, shape);
}

Value pixelUnshuffle(Call &call) {
  TensorRef x = call.tensor("self");
  const int64_t r = call.integer("downscale_factor"), rank = x->rank();
  if (rank < 3 || r < 1 || x->shape[rank - 2] % r != 0 || x->shape[rank - 1] % r != 0)
    fail(call.schema.name() + " by " + std::to_string(r) + " of a tensor of shape " + spellList(x->shape));
  const int64_t c = x->shape[rank - 3], h = x->shape[rank - 2] / r, w = x->shape[rank - 1] / r;
  const int64_t outer = x->numel() / std::max<int64_t>(c * r * r * h * w, 1);
  TensorRef apart = call.b.transpose(call.b.reshape(x, {outer, c, h, r, w, r}), {0, 1, 3, 5, 2, 4});
  Shape shape(x->shape.begin(), x->shape.end() - 3);
  shape.insert(shape.end(), {c * r * r, h, w});
  return call.b.reshape(apart, shape);
}

Value channelShuffle(Call &call) {
  TensorRef x = call.tensor("self");
  const int64_t groups = call.integer("groups");
  if (x->rank() < 3 || groups < 1 || x->shape[1] % groups != 0 || x->numel() == 0)
    fail(call.schema.name() + " in " + std::to_string(groups) + " groups of a tensor of shape " +
         spellList(x->shape));
  const int64_t n = x->shape[0], c = x->shape[1] / groups;
  TensorRef apart = call.b.reshape(x, {n, groups, c, x->numel() / (n * groups * c)});
  return call.b.reshape(call.b.transpose(apart, {0, 2, 1, 3}), x->shape);
}

Value flip(Call &call) {
  TensorRef x = call.tensor("self");
  if (call.integers("dims").empty())
    return x;
  for (int64_t dim : call.dims("dims", x->rank()))
    x = flipDim(call.b, x, dim);
  return x;
}

template <int64_t dim>
Value flipOne(Call &call) {
  TensorRef x = call.tensor("self");
  if (x->rank() <= dim)
    fail(call.schema.name() + " of a tensor of shape " + spellList(x->shape));
  return flipDim(call.b, x, dim);
}

constexpr Operator operators[] = {
    {"aten::upsample_nearest1d", nearest<false>},
    {"aten::upsample_nearest2d", nearest<false>},
    {"aten::upsample_nearest3d", nearest<false>},
    {"aten::_upsample_nearest_exact1d", nearest<true>},
    {"aten::_upsample_nearest_exact2d", nearest<true>},
    {"aten::_upsample_nearest_exact3d", nearest<true>},
    {"aten::upsample_linear1d", mixed<false>},
    {"aten::upsample_bilinear2d", mixed<false>},
    {"aten::upsample_trilinear3d", mixed<false>},
    {"aten::upsample_bicubic2d", mixed<true>},
    {"aten::reflection_pad1d", pad<Border::Reflect>},
    {"aten::reflection_pad2d", pad<Border::Reflect>},
    {"aten::reflection_pad3d", pad<Border::Reflect>},
    {"aten::replication_pad1d", pad<Border::Replicate>},
    {"aten::replication_pad2d", pad<Border::Replicate>},
    {"aten::replication_pad3d", pad<Border::Replicate>},
    {"aten::_pad_circular", pad<Border::Circular>},
    {"aten::pixel_shuffle", pixelShuffle},
    {"aten::pixel_unshuffle", pixelUnshuffle},
    {"aten::channel_shuffle", channelShuffle},
    {"aten::native_channel_shuffle", channelShuffle},
    {"aten::flip", flip},
    {"aten::flipud", flipOne<0>},
    {"aten::fliplr", flipOne<1>},
};

} // namespace

Value padByMode(Call &call, const std::string &mode) {
  if (mode == "reflect")
    return pad<Border::Reflect>(call);
  if (mode == "replicate")
    return pad<Border::Replicate>(call);
  if (mode == "circular")
    return pad<Border::Circular>(call);
  throw Unsupported("aten::pad of mode " + mode);
}

OperatorList resizingOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
