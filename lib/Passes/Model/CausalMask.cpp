//===- CausalMask.cpp - Recognises masks that hide the future and the distant ----===//
//
// Such a mask is written in many ways: comparisons of counters in either sense, a triangle of ones, two of
// them, a slice of a larger one, repeated over batch and heads. Instead of listing them, the condition is
// evaluated at each (t, s), which decides the question whatever it is made of. The last row says how far one
// sees: with 4 positions of a window of 2 it is 0 0 1 1.
//
//===----------------------------------------------------------------------------===//
#include "CausalMask.h"
#include "MaskElements.h"
#include "ds/Dialect/Emitter.h"

using namespace mlir;
using namespace mlir::ds;

/// More elements than this are not examined: 16384 positions squared.
static constexpr int64_t kMaxScores = 1 << 28;

/// The value that `condition` repeats along its leading dimensions; what is left of those is examined in
/// full.
static Value stripRepetition(Value condition) {
  while (auto broadcast = condition.getDefiningOp<BroadcastOp>()) {
    int64_t rank = tensorType(condition).getRank();
    RankedTensorType input = tensorType(broadcast.getInput());
    ArrayRef<int64_t> dims = broadcast.getDims();
    size_t count = dims.size();
    bool keepsMatrix = count >= 2 && dims[count - 1] == rank - 1 && dims[count - 2] == rank - 2 &&
                       input.getShape().take_back(2) == tensorType(condition).getShape().take_back(2);
    if (!keepsMatrix)
      break;
    condition = broadcast.getInput();
  }
  return condition;
}

namespace {
/// The rows of a condition over [..., T, S].
class Rows {
public:
  explicit Rows(Value condition)
      : condition(condition), type(tensorType(condition)), queries(type.getDimSize(type.getRank() - 2)),
        keys(type.getShape().back()) {}

  /// Row `t` of matrix `matrix`, counted over the leading dimensions.
  std::optional<std::vector<double>> at(int64_t matrix, int64_t t) {
    ElementLine line{SmallVector<int64_t, 4>(type.getRank(), 0), type.getRank() - 1};
    line.first[type.getRank() - 2] = t;
    for (int64_t dim = type.getRank() - 3; dim >= 0; --dim) {
      line.first[dim] = matrix % type.getDimSize(dim);
      matrix /= type.getDimSize(dim);
    }
    std::optional<std::vector<double>> row = elements.at(condition, line, keys);
    if (row)
      row->resize(keys, row->front());
    return row;
  }
  int64_t matrices() const { return type.getNumElements() / (queries * keys); }
  /// The key at position t.
  int64_t ownKey(int64_t t) const { return t + keys - queries; }

private:
  Value condition;
  RankedTensorType type;
  MaskElements elements;

public:
  const int64_t queries, keys;
};
} // namespace

/// What the last row, and the first that has a future, say of all; the own position is seen.
static std::optional<SeenKeys> guess(Rows &rows) {
  std::optional<std::vector<double>> last = rows.at(0, rows.queries - 1);
  if (!last)
    return std::nullopt;
  const bool isSeen = last->back() != 0;
  SeenKeys seen{isSeen ? Visibility::Visible : Visibility::Hidden, /*isCausal=*/true, std::nullopt};
  auto past = std::find_if(last->rbegin(), last->rend(), [&](double x) { return (x != 0) != isSeen; });
  if (past != last->rend())
    seen.window = past - last->rbegin();
  const int64_t first = std::max<int64_t>(0, rows.queries - rows.keys); // whose own key there is
  if (first + 1 >= rows.queries || seen.window == 1)
    return seen;
  std::optional<std::vector<double>> row = rows.at(0, first);
  if (!row)
    return std::nullopt;
  seen.isCausal = ((*row)[rows.ownKey(first) + 1] != 0) != isSeen;
  return seen;
}

/// Whether row `t` is as `seen` says.
static bool agrees(const SeenKeys &seen, ArrayRef<double> row, int64_t own) {
  const auto keys = static_cast<int64_t>(row.size());
  const int64_t reach = seen.window.value_or(std::max(keys, keys + std::abs(own)) + 1) - 1;
  const int64_t begin = own - reach, end = own + (seen.isCausal ? 0 : reach) + 1;
  const bool isSeen = seen.whenTrue == Visibility::Visible;
  for (int64_t s = 0; s < keys; ++s)
    if ((row[s] != 0) != (s >= begin && s < end ? isSeen : !isSeen))
      return false;
  return true;
}

std::optional<SeenKeys> mlir::ds::matchSeenKeys(Value condition) {
  condition = stripRepetition(condition);
  RankedTensorType type = tensorType(condition);
  if (type.getRank() < 2 || type.getNumElements() > kMaxScores || type.getNumElements() == 0)
    return std::nullopt;
  Rows rows(condition);
  std::optional<SeenKeys> seen = guess(rows);
  if (!seen || (!seen->isCausal && !seen->window)) // what hides nothing is no mask
    return std::nullopt;
  for (int64_t matrix = 0; matrix < rows.matrices(); ++matrix)
    for (int64_t t = 0; t < rows.queries; ++t) {
      std::optional<std::vector<double>> row = rows.at(matrix, t);
      if (!row || !agrees(*seen, *row, rows.ownKey(t)))
        return std::nullopt;
    }
  return seen;
}
