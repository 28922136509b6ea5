//===- Constants.cpp - Known tensors become ops ---------------------------------===//
//
// A mask or a position table that the archive stores as megabytes is a few ops that a kernel computes where
// it needs them. So a known tensor is looked at before it is written: one value, a count along one dimension,
// two values that meet at a diagonal, or of which one lies between two diagonals, or numbers of heads times
// distances (Slopes.h) are ops; a small tensor is a literal; what remains is a state with its data in the
// weights file. What a dimension repeats is looked at once.
//
//===---------------------------------------------------------------------------===//

#include "Builder.h"
#include "Literals.h"
#include "Slopes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace ds::ts {

/// Tensors of more elements than this are not written into the module.
static constexpr int64_t maxLiteral = 4096;

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
/// Two values that meet at a diagonal of the last two dimensions: `lower` where column <= row + diagonal.
struct Triangle {
  c10::Scalar lower, upper;
  int64_t diagonal = 0;
};

/// One of two values between two diagonals of the last two dimensions: `inside` where row + first <=
/// column <= row + last, as a sliding window hides or shows.
struct Band {
  c10::Scalar inside, outside;
  int64_t first = 0, last = 0;
};

/// start + step * i[dim].
struct Count {
  int64_t dim = 0, start = 0, step = 0;
};
} // namespace

/// How many elements of `count`, `size` bytes each, equal the first.
static int64_t leadingRun(const char *data, int64_t count, size_t size) {
  int64_t run = 1;
  while (run < count && std::memcmp(data, data + run * size, size) == 0)
    ++run;
  return run;
}

/// Whether each row r begins with clamp(r + diagonal + 1) elements `lower` and ends with elements `upper`.
static bool isTriangle(const at::Tensor &t, int64_t diagonal, const char *lower, const char *upper) {
  int64_t rows = t.size(-2), columns = t.size(-1);
  size_t size = t.element_size();
  auto *data = static_cast<const char *>(t.data_ptr());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column, data += size)
      if (std::memcmp(data, column <= row + diagonal ? lower : upper, size) != 0)
        return false;
  return true;
}

static std::optional<Triangle> findTriangle(const at::Tensor &t) {
  if (t.dim() < 2 || t.numel() != t.size(-2) * t.size(-1) || t.size(-1) < 2 || t.size(-2) < 2)
    return std::nullopt;
  int64_t rows = t.size(-2), columns = t.size(-1);
  size_t size = t.element_size();
  auto *data = static_cast<const char *>(t.data_ptr());
  auto *lower = data + (rows - 1) * columns * size, *upper = data + (columns - 1) * size;
  if (std::memcmp(lower, upper, size) == 0)
    return std::nullopt;
  bool firstRowHasLower = std::memcmp(data, lower, size) == 0;
  int64_t diagonal =
      firstRowHasLower ? leadingRun(data, columns, size) - 1 : leadingRun(lower, columns, size) - rows;
  if (!isTriangle(t, diagonal, lower, upper))
    return std::nullopt;
  at::Tensor flat = t.reshape({-1});
  return Triangle{flat[(rows - 1) * columns].item(), flat[columns - 1].item(), diagonal};
}

/// The elements as integers, which are equal where their bytes are.
static at::Tensor bitsOf(const at::Tensor &t) {
  if (!t.is_floating_point())
    return t;
  constexpr std::array byBytes = {at::kByte, at::kShort, at::kInt, at::kLong}; // of 1, 2, 4 and 8 bytes
  size_t place = 0;
  for (size_t bytes = t.element_size(); bytes > 1; bytes /= 2)
    ++place;
  return t.view(byBytes[place]);
}

/// A band whose last row ends with it, and whose first row begins with it: what a position sees that is the
/// last of as many keys.
static std::optional<Band> findBand(const at::Tensor &t) {
  if (t.dim() < 2 || t.numel() != t.size(-2) * t.size(-1))
    return std::nullopt;
  const int64_t rows = t.size(-2), columns = t.size(-1), own = columns - rows;
  if (rows < 2 || own < 0)
    return std::nullopt;
  at::Tensor flat = t.reshape({-1}), bits = bitsOf(flat), isLast = bits.eq(bits[rows * columns - 1]);
  const auto *data = isLast.data_ptr<bool>();
  const bool *other = std::find(data, data + rows * columns, false);
  if (other == data + rows * columns)
    return std::nullopt;
  if (!bits.eq(bits[other - data]).equal(isLast.logical_not())) // a third value
    return std::nullopt;
  const auto at = [&](int64_t row, int64_t column) { return data[row * columns + column]; };
  Band band{flat[rows * columns - 1].item(), flat[other - data].item(), own, own};
  while (band.first - 1 >= own - columns + 1 && at(rows - 1, rows - 1 + band.first - 1))
    --band.first;
  while (band.last + 1 < columns && at(0, band.last + 1))
    ++band.last;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (at(row, column) != (column >= row + band.first && column <= row + band.last))
        return std::nullopt;
  return band;
}

static std::optional<Count> findCount(const at::Tensor &t) {
  int64_t dim = -1;
  for (int64_t i = 0; i < t.dim(); ++i)
    if (t.size(i) > 1) {
      if (dim >= 0)
        return std::nullopt;
      dim = i;
    }
  if (dim < 0 || t.scalar_type() == at::kBool)
    return std::nullopt;
  at::Tensor values = t.reshape({-1}).to(at::kDouble);
  double start = values[0].item<double>(), step = values[1].item<double>() - start;
  constexpr double exact = 9007199254740992.0; // 2^53
  if (std::floor(start) != start || std::floor(step) != step || std::abs(start) > exact ||
      std::abs(step) > exact)
    return std::nullopt;
  if (!values.equal(at::arange(t.numel(), at::kDouble) * step + start))
    return std::nullopt;
  return Count{dim, static_cast<int64_t>(start), static_cast<int64_t>(step)};
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// A band as ops, or null where `t` is none.
static TensorRef makeBand(Builder &b, const at::Tensor &t) {
  std::optional<Band> band = findBand(t);
  if (!band)
    return nullptr;
  Shape shape = t.sizes().vec();
  auto rank = static_cast<int64_t>(shape.size());
  TensorRef column = b.iota(rank - 1, 0, 1, shape, at::kLong),
            first = b.iota(rank - 2, band->first, 1, shape, at::kLong),
            last = b.iota(rank - 2, band->last, 1, shape, at::kLong);
  TensorRef inside = b.binary("and", b.compare("ge", column, first), b.compare("le", column, last));
  if (t.scalar_type() == at::kBool)
    return band->inside.toBool() ? inside : b.unary("not", inside);
  return b.select(inside, b.splat(band->inside, shape, t.scalar_type()),
                  b.splat(band->outside, shape, t.scalar_type()));
}

TensorRef Builder::materializePattern(const at::Tensor &t) {
  Shape shape = t.sizes().vec();
  if (auto value = splatValue(makeKnown(t)))
    return splat(*value, shape, t.scalar_type());
  if (auto count = findCount(t))
    return iota(count->dim, count->start, count->step, shape, t.scalar_type());
  auto triangle = findTriangle(t);
  if (!triangle) {
    TensorRef band = makeBand(*this, t);
    return band ? band : makeSlopes(*this, t);
  }
  auto rank = static_cast<int64_t>(shape.size());
  TensorRef row = iota(rank - 2, triangle->diagonal, 1, shape, at::kLong);
  TensorRef column = iota(rank - 1, 0, 1, shape, at::kLong);
  if (t.scalar_type() == at::kBool)
    return compare(triangle->lower.toBool() ? "ge" : "lt", row, column);
  TensorRef isLower = compare("ge", row, column);
  return select(isLower, splat(triangle->lower, shape, t.scalar_type()),
                splat(triangle->upper, shape, t.scalar_type()));
}

/// The elements, of which there are some, without the repetition of leading dimensions, which keep a size
/// of 1.
static at::Tensor withoutRepetition(at::Tensor t) {
  for (int64_t dim = 0; dim + 2 < t.dim(); ++dim) {
    const size_t count = t.size(dim), block = t.nbytes() / count;
    if (leadingRun(static_cast<const char *>(t.data_ptr()), t.size(dim), block) < t.size(dim))
      break;
    t = t.narrow(dim, 0, 1);
  }
  return t;
}

TensorRef Builder::materialize(const at::Tensor &tensor) {
  at::Tensor stem = tensor; // What remains when expanded dimensions are taken back.
  Shape dims;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    dims.push_back(i);
    if (tensor.stride(i) == 0 && tensor.size(i) > 1)
      stem = stem.narrow(i, 0, 1);
  }
  Shape shape = tensor.sizes().vec();
  stem = stem.contiguous();
  TensorRef result = materializePattern(stem);
  if (!result && stem.numel() > 0)
    if (at::Tensor once = withoutRepetition(stem); once.numel() < stem.numel())
      result = materializePattern(once);
  if (!result && stem.numel() <= maxLiteral)
    result = text.emit("ds.constant dense<" + spellLiteral(stem) +
                           "> : " + spell(stem.sizes().vec(), stem.scalar_type()),
                       stem.sizes().vec(), stem.scalar_type());
  if (!result) {
    State *buffer = states.findBuffer(stem);
    std::string name = text.argument(buffer ? *buffer : states.addConstant(stem));
    result = makeNamed(name, stem.sizes().vec(), stem.scalar_type());
  }
  return result->shape == shape ? result : broadcast(result, dims, shape);
}

} // namespace ds::ts
