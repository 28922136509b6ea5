//===- MatmulDesc.cpp - A product as libraries see it --------------------------===//
#include "ds/Runtime/Program/MatmulDesc.h"

#include "ds/Runtime/Program/Library.h"
#include "ds/Runtime/Program/PackedRows.h"
#include "ds/Support/Align.h"

#include <utility>

namespace ds::rt {
namespace {

/// A dimension of size 1 may have any stride in a program; oneDNN derives leading dimensions from strides.
void normalizeStrides(MatmulOperand &operand, int rank) {
  int64_t &rows = operand.strides[rank - 2], &columns = operand.strides[rank - 1];
  const int64_t numRows = operand.shape[rank - 2], numColumns = operand.shape[rank - 1];
  if (numColumns == 1)
    columns = numRows == 1 || rows != 1 ? 1 : numRows;
  if (numRows == 1)
    rows = columns == 1 ? numColumns : 1;
  for (int d = rank - 3; d >= 0; --d)
    if (operand.shape[d] == 1)
      operand.strides[d] = operand.shape[d + 1] * operand.strides[d + 1];
}

MatmulOperand toOperand(const Buffer &buffer, bool transpose, size_t rank) {
  MatmulOperand operand{};
  operand.dtype = static_cast<int32_t>(buffer.dtype);
  const size_t missing = rank - buffer.shape.size();
  for (size_t d = 0; d < rank; ++d) {
    operand.shape[d] = d < missing ? 1 : buffer.shape[d - missing];
    operand.strides[d] = d < missing ? 0 : buffer.strides[d - missing];
  }
  if (transpose) {
    std::swap(operand.shape[rank - 1], operand.shape[rank - 2]);
    std::swap(operand.strides[rank - 1], operand.strides[rank - 2]);
  }
  return operand;
}

/// Merges the leading dimensions of `buffer` into its rows, if memory has them one after another.
bool foldRows(Buffer &buffer) {
  while (buffer.shape.size() > 2) {
    const size_t rows = buffer.shape.size() - 2;
    const bool adjacent = buffer.shape[rows] == 1 || buffer.shape[rows - 1] == 1 ||
                          buffer.strides[rows - 1] == buffer.shape[rows] * buffer.strides[rows];
    if (!adjacent)
      return false;
    const int64_t stride = buffer.shape[rows] == 1 ? buffer.strides[rows - 1] : buffer.strides[rows];
    buffer.shape[rows - 1] *= buffer.shape[rows];
    buffer.strides[rows - 1] = stride;
    buffer.shape.erase(buffer.shape.begin() + static_cast<ptrdiff_t>(rows));
    buffer.strides.erase(buffer.strides.begin() + static_cast<ptrdiff_t>(rows));
  }
  return true;
}

} // namespace

MatmulDesc describeMatmul(const Buffer &a, const Buffer &b, const Buffer &result, const Buffer *bias,
                          const int64_t *params) {
  Buffer left = a, out = result;
  if (b.shape.size() == 2 && !params[0] && a.shape.size() > 2) {
    Buffer foldedLeft = a, foldedOut = result;
    if (foldRows(foldedLeft) && foldRows(foldedOut)) {
      left = std::move(foldedLeft);
      out = std::move(foldedOut);
    }
  }
  MatmulDesc desc{};
  desc.rank = static_cast<int32_t>(left.shape.size());
  desc.a = toOperand(left, params[0] != 0, left.shape.size());
  desc.b = toOperand(b, params[1] != 0, left.shape.size());
  desc.result = toOperand(out, false, left.shape.size());
  for (MatmulOperand *operand : {&desc.a, &desc.b, &desc.result})
    normalizeStrides(*operand, desc.rank);
  desc.bias = bias ? static_cast<int32_t>(bias->dtype) : -1;
  desc.accumulate = params[2] != 0;
  desc.activation = params[3] == static_cast<int64_t>(Activation::Relu);
  return desc;
}

//===----------------------------------------------------------------------===//
// Operands that are copied into longer rows
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t kVector = 16, kLine = 128; // bytes
constexpr int64_t kElements = 8;             // of 16 bits in a vector
constexpr int64_t kLeastMain = 16;           // how many times the rest the main part is at least

int64_t bytesOf(const MatmulOperand &operand) { return byteSize(static_cast<DType>(operand.dtype)); }

/// Whether one of `sizes` is odd, and only by a little.
bool isOnceOdd(const std::array<int64_t, 3> &sizes) {
  unsigned odd = 0;
  for (int64_t size : sizes)
    if (const int64_t rest = size % kElements; rest != 0)
      odd += size - rest >= kLeastMain * rest ? 1 : 2;
  return odd == 1;
}

} // namespace

std::optional<PackedRows> packRows(const MatmulDesc &desc) {
  if (desc.rank != 2 || bytesOf(desc.a) != 2 ||
      !isOnceOdd({desc.result.shape[0], desc.result.shape[1], desc.a.shape[1]}))
    return std::nullopt;
  PackedRows rows;
  const MatmulOperand *operands[] = {&desc.a, &desc.b, &desc.result};
  for (size_t i = 0; i < 3; ++i) {
    const MatmulOperand &operand = *operands[i];
    const int along = operand.strides[1] == 1 ? 1 : 0; // the dimension that lies together
    const int64_t bytes = bytesOf(operand), length = operand.shape[along], count = operand.shape[1 - along];
    if (operand.strides[1 - along] * bytes % kVector == 0)
      continue;
    rows.pitch[i] = static_cast<int64_t>(alignTo(static_cast<uint64_t>(length * bytes), kLine)) / bytes;
    rows.offset[i] = rows.bytes;
    rows.bytes += alignTo(static_cast<uint64_t>(count * rows.pitch[i] * bytes), kPackedAlignment);
    const bool isCopiedTwice = i == 2 && desc.accumulate;
    rows.copied += static_cast<uint64_t>(2 * count * length * bytes) * (isCopiedTwice ? 2 : 1);
  }
  return rows.bytes > 0 ? std::optional(rows) : std::nullopt;
}

MatmulOperand packed(MatmulOperand operand, int64_t pitch) {
  if (pitch > 0)
    operand.strides[operand.strides[1] == 1 ? 0 : 1] = pitch;
  return operand;
}

} // namespace ds::rt
