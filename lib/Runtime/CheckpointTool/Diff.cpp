//===- Diff.cpp - In what two checkpoints differ ---------------------------------------===//

#include "ds/Runtime/CheckpointTool/Diff.h"

#include "Batches.h"
#include "Formats/Convert.h"
#include "Program/Shape.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_set>

namespace ds::rt {
namespace {

/// Adds what elements of type T say to a comparison: sums of squares, until the last piece is in.
template <class T>
void compareElements(const std::byte *a, const std::byte *b, const Piece &piece, TensorDifference &sums) {
  // Whole numbers of 64 bits have differences that a double would round away.
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, long double>;
  for (uint64_t i = 0; i < piece.count; ++i) {
    T x, y;
    std::memcpy(&x, a + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b + i * sizeof(T), sizeof(T));
    sums.normA += static_cast<double>(x) * static_cast<double>(x);
    sums.normB += static_cast<double>(y) * static_cast<double>(y);
    if (std::memcmp(&x, &y, sizeof(T)) == 0)
      continue;
    if (sums.differing++ == 0) {
      sums.first = piece.first + i;
      sums.firstA = fmt::format("{}", x);
      sums.firstB = fmt::format("{}", y);
    }
    const auto difference = static_cast<double>(std::abs(static_cast<Wide>(x) - static_cast<Wide>(y)));
    if (!std::isfinite(difference)) {
      ++sums.undefined;
      continue;
    }
    sums.distance += difference * difference;
    sums.largest = std::max(sums.largest, difference);
  }
}

/// Types that only files know are compared bit by bit.
void compareBits(const std::byte *a, const std::byte *b, const Piece &piece, uint64_t size,
                 TensorDifference &sums) {
  for (uint64_t i = 0; i < piece.count; ++i)
    if (std::memcmp(a + i * size, b + i * size, size) != 0 && sums.differing++ == 0) {
      sums.first = piece.first + i;
      sums.firstA = sums.firstB = "other bits";
    }
}

/// 16-bit floats become 32-bit ones, which keeps equal what is equal and different what is not.
class Comparer {
public:
  void compare(FileDType dtype, const std::byte *a, const std::byte *b, const Piece &piece,
               TensorDifference &sums) {
    switch (dtype) {
    case FileDType::F16:
    case FileDType::BF16:
      return compareElements<float>(widen(dtype, a, piece.count, wideA), widen(dtype, b, piece.count, wideB),
                                    piece, sums);
    case FileDType::F32:
      return compareElements<float>(a, b, piece, sums);
    case FileDType::F64:
      return compareElements<double>(a, b, piece, sums);
    case FileDType::I8:
      return compareElements<int8_t>(a, b, piece, sums);
    case FileDType::U8:
    case FileDType::Bool:
      return compareElements<uint8_t>(a, b, piece, sums);
    case FileDType::I16:
      return compareElements<int16_t>(a, b, piece, sums);
    case FileDType::U16:
      return compareElements<uint16_t>(a, b, piece, sums);
    case FileDType::I32:
      return compareElements<int32_t>(a, b, piece, sums);
    case FileDType::U32:
      return compareElements<uint32_t>(a, b, piece, sums);
    case FileDType::I64:
      return compareElements<int64_t>(a, b, piece, sums);
    case FileDType::U64:
      return compareElements<uint64_t>(a, b, piece, sums);
    default:
      return compareBits(a, b, piece, bitSize(dtype) / 8, sums);
    }
  }

private:
  static const std::byte *widen(FileDType dtype, const std::byte *from, uint64_t count,
                                std::vector<float> &to) {
    to.resize(std::max<size_t>(to.size(), count));
    BadElement unused; // widening is exact
    convertElements(dtype, from, DType::F32, to.data(), count, {}, unused);
    return reinterpret_cast<const std::byte *>(to.data());
  }
  std::vector<float> wideA, wideB;
};

const CheckpointTensor *findAlike(const Checkpoint &checkpoint, const CheckpointTensor &tensor) {
  const CheckpointTensor *found = checkpoint.find(tensor.name);
  for (size_t i = 0; !found && i < tensor.aliases.size(); ++i)
    found = checkpoint.find(tensor.aliases[i]);
  return found;
}

TensorDifference outlineOf(const CheckpointTensor *a, const CheckpointTensor *b) {
  TensorDifference outline;
  outline.name = a ? a->name : b->name;
  if (a) {
    outline.shapeA = a->shape;
    outline.dtypeA = a->dtype;
  }
  if (b) {
    outline.shapeB = b->shape;
    outline.dtypeB = b->dtype;
  }
  outline.kind = !b                     ? Difference::OnlyInA
                 : !a                   ? Difference::OnlyInB
                 : a->shape != b->shape ? Difference::Shape
                 : a->dtype != b->dtype ? Difference::Type
                                        : Difference::None;
  if (outline.kind == Difference::None)
    outline.elements = elementsOf(a->shape);
  return outline;
}

} // namespace

double relativeDistance(const TensorDifference &difference) {
  if (difference.distance == 0)
    return 0;
  return difference.normA > 0 ? difference.distance / difference.normA
                              : std::numeric_limits<double>::infinity();
}

Result<std::vector<TensorDifference>> diffTensors(const Checkpoint &a, const Checkpoint &b) {
  std::vector<TensorDifference> all;
  std::vector<const CheckpointTensor *> ofA, ofB; // those whose values are compared
  std::vector<size_t> places;                     // of these in `all`
  std::unordered_set<const CheckpointTensor *> seen;
  for (const CheckpointTensor &tensor : a.manifest().tensors) {
    const CheckpointTensor *other = findAlike(b, tensor);
    seen.insert(other);
    all.push_back(outlineOf(&tensor, other));
    if (all.back().kind != Difference::None)
      continue;
    ofA.push_back(&tensor);
    ofB.push_back(other);
    places.push_back(all.size() - 1);
  }
  for (const CheckpointTensor &tensor : b.manifest().tensors)
    if (!seen.contains(&tensor))
      all.push_back(outlineOf(nullptr, &tensor));
  Comparer comparer;
  std::vector<std::byte> bufferA, bufferB;
  Batches batches(ofA);
  for (std::vector<Piece> pieces = batches.next(); !pieces.empty(); pieces = batches.next()) {
    if (Status status = readBatch(a, ofA, pieces, bufferA); !status)
      return status.error();
    if (Status status = readBatch(b, ofB, pieces, bufferB); !status)
      return status.error();
    for (const Piece &piece : pieces)
      comparer.compare(ofA[piece.tensor]->dtype, bufferA.data() + piece.at, bufferB.data() + piece.at, piece,
                       all[places[piece.tensor]]);
  }
  for (TensorDifference &each : all) {
    each.normA = std::sqrt(each.normA);
    each.normB = std::sqrt(each.normB);
    each.distance = std::sqrt(each.distance);
    if (each.differing > 0)
      each.kind = Difference::Values;
  }
  return all;
}

size_t countDiffering(const std::vector<TensorDifference> &differences) {
  size_t count = 0;
  for (const TensorDifference &each : differences)
    count += each.kind != Difference::None;
  return count;
}

} // namespace ds::rt
