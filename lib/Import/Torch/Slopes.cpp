//===- Slopes.cpp - Known addends of scores that grow with the distance -----------===//
//
// A trace of a model with ALiBi (arXiv 2108.12409) computes the addend of its scores from numbers that it
// knows, and what is left are megabytes: [H, 1, T], or [H, T, T] with the mask in it, once more for each
// sample of a batch. Here they become the product that they were, by value: one slope for each head, each
// element compared.
//
//===---------------------------------------------------------------------------===//

#include "Slopes.h"

namespace ds::ts {

/// Numbers above this hide nothing.
static constexpr float kHiddenScore = -1e4F;

namespace {
/// What slopes are multiplied by, at key s and query t.
enum class Distance {
  FromFirst,  ///< s
  FromLast,   ///< s - (S - 1)
  FromQuery,  ///< s - (t + (S - T))
  Undirected, ///< -|s - (t + (S - T))|
};

/// slopes[h] * distance, with a number added where a key lies ahead.
struct SlopedAddend {
  at::Tensor slopes; ///< [H]
  Distance distance = Distance::FromFirst;
  std::optional<float> hidden; ///< what is added ahead
  int64_t dim = 0;             ///< which dimension has heads, the last of what it has
};

/// [..., T, S] as leading indices, rows and columns.
struct Matrices {
  explicit Matrices(const at::Tensor &t)
      : rows(t.size(-2)), columns(t.size(-1)), count(t.numel() / (rows * columns)),
        elements(t.reshape({count, rows, columns})) {}

  int64_t rows, columns, count;
  at::Tensor elements;
};
} // namespace

/// The distances [T, S] of f32.
static at::Tensor distances(Distance kind, int64_t rows, int64_t columns) {
  at::Tensor key = at::arange(columns, at::kFloat).unsqueeze(0);
  if (kind == Distance::FromFirst)
    return key;
  if (kind == Distance::FromLast)
    return key - static_cast<double>(columns - 1);
  at::Tensor query = at::arange(columns - rows, columns, at::kFloat).unsqueeze(1);
  return kind == Distance::FromQuery ? key - query : -(key - query).abs();
}

/// The slope of each leading index: the element at the last query whose distance is 1 or -1.
static at::Tensor slopesAt(Distance kind, const Matrices &of) {
  const bool isFirst = kind == Distance::FromFirst;
  at::Tensor unit = of.elements.select(1, of.rows - 1).select(1, isFirst ? 1 : of.columns - 2);
  return (isFirst ? unit : -unit).contiguous();
}

/// What is added to keys that lie ahead, where the first query's last key is hidden.
static std::optional<float> hiddenNumber(const Matrices &of) {
  const auto corner = of.elements[0][0][of.columns - 1].item<float>();
  return of.rows > 1 && corner <= kHiddenScore ? std::optional(corner) : std::nullopt;
}

/// Whether all elements are what slopes, distances and the number for keys ahead make of them.
static bool isMadeOf(const Matrices &of, const at::Tensor &slopes, Distance kind,
                     std::optional<float> hidden) {
  at::Tensor distance = distances(kind, of.rows, of.columns), ahead;
  if (hidden)
    ahead =
        at::zeros({of.rows, of.columns}, at::kFloat)
            .masked_fill_(at::ones({of.rows, of.columns}, at::kBool).triu(of.columns - of.rows + 1), *hidden);
  for (int64_t index = 0; index < of.count; ++index) {
    at::Tensor expected = distance * slopes[index];
    if (!of.elements[index].equal(hidden ? expected + ahead : expected))
      return false;
  }
  return true;
}

/// How many leading indices there are until their slopes begin anew.
static int64_t periodOf(const at::Tensor &slopes) {
  const int64_t count = slopes.numel();
  for (int64_t period = 1; period < count; ++period)
    if (count % period == 0 && slopes.slice(0, period).equal(slopes.slice(0, 0, count - period)))
      return period;
  return count;
}

static std::optional<SlopedAddend> findSlopes(const at::Tensor &t) {
  if (t.dim() < 3 || t.scalar_type() != at::kFloat || t.size(-1) < 2 || t.numel() == 0)
    return std::nullopt;
  Matrices of(t);
  SlopedAddend found;
  found.dim = -1;
  for (int64_t dim = 0; dim < t.dim() - 2; ++dim)
    if (t.size(dim) > 1) {
      if (found.dim >= 0)
        return std::nullopt;
      found.dim = dim;
    }
  if (found.dim < 0 || of.rows > of.columns)
    return std::nullopt;
  found.hidden = hiddenNumber(of);
  for (Distance kind : {Distance::FromFirst, Distance::FromLast, Distance::FromQuery, Distance::Undirected}) {
    at::Tensor slopes = slopesAt(kind, of);
    if (!isMadeOf(of, slopes, kind, found.hidden))
      continue;
    found.slopes = slopes.slice(0, 0, periodOf(slopes)).contiguous();
    found.distance = kind;
    return found.slopes.numel() > 1 ? std::optional(found) : std::nullopt;
  }
  return std::nullopt;
}

/// The distances in `shape`.
static TensorRef emitDistances(Builder &b, Distance kind, const Shape &shape) {
  const auto rank = static_cast<int64_t>(shape.size()), rows = shape[rank - 2], columns = shape[rank - 1];
  TensorRef key = b.iota(rank - 1, kind == Distance::FromLast ? 1 - columns : 0, 1, shape, at::kFloat);
  if (kind == Distance::FromFirst || kind == Distance::FromLast)
    return key;
  TensorRef ahead = b.binary("sub", key, b.iota(rank - 2, columns - rows, 1, shape, at::kFloat));
  return kind == Distance::FromQuery ? ahead : b.unary("neg", b.unary("abs", ahead));
}

/// 0, and `hidden` for keys that lie ahead, in `shape`.
static TensorRef emitAhead(Builder &b, float hidden, const Shape &shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  const Shape square = {shape[rank - 2], shape[rank - 1]};
  TensorRef row = b.iota(0, square[1] - square[0], 1, square, at::kLong),
            column = b.iota(1, 0, 1, square, at::kLong);
  TensorRef mask = b.select(b.compare("ge", row, column), b.splat(0, square, at::kFloat),
                            b.splat(hidden, square, at::kFloat));
  return b.broadcast(mask, {rank - 2, rank - 1}, shape);
}

TensorRef makeSlopes(Builder &b, const at::Tensor &t) {
  std::optional<SlopedAddend> found = findSlopes(t);
  if (!found)
    return nullptr;
  Shape shape = t.sizes().vec();
  const int64_t heads = found->slopes.numel(), repeats = shape[found->dim] / heads;
  int64_t dim = found->dim;
  if (repeats > 1) { // samples and heads in one dimension
    shape[dim] = heads;
    shape.insert(shape.begin() + dim++, repeats);
  }
  TensorRef slopes =
      b.text.emit("ds.constant dense<" + spellLiteral(found->slopes) + "> : " + spell({heads}, at::kFloat),
                  {heads}, at::kFloat);
  TensorRef result =
      b.binary("mul", b.broadcast(slopes, {dim}, shape), emitDistances(b, found->distance, shape));
  if (found->hidden)
    result = b.binary("add", result, emitAhead(b, *found->hidden, shape));
  return b.reshape(result, t.sizes().vec());
}

} // namespace ds::ts
