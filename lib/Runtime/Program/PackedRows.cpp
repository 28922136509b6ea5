//===- PackedRows.cpp - Operands of a product that are copied into longer rows -----===//
#include "ds/Runtime/Program/PackedRows.h"

#include "ds/Support/Align.h"

namespace ds::rt {
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
