//===- PackedRows.h - Operands of a product that are copied into longer rows -------===//
//
// cuBLASLt's fast kernels want rows that begin on 16 bytes and sizes of whole 16 bytes. Memory whose layout
// is the model's, as a weight of [768, 50257] in 16 bits, has neither. Such an operand can be copied into
// rows that lie further apart, in the product's workspace, and the product be made there in two calls: of
// 50256 columns and of one. The copy costs a little; without it the product runs several times slower.
//
// The compiler plans the workspace where that is predicted to be faster, and the runtime times both.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_PACKEDROWS_H
#define DS_RUNTIME_PROGRAM_PACKEDROWS_H

#include "ds/Runtime/Program/MatmulDesc.h"

#include <array>
#include <optional>

namespace ds::rt {

/// Of which the copies' places in a workspace are multiples, in bytes.
inline constexpr uint64_t kPackedAlignment = 256;

struct PackedRows {
  /// Of a, b and the result, in elements from one row, or column where those lie together, to the next; 0
  /// where it is used as it lies.
  std::array<int64_t, 3> pitch{};
  std::array<uint64_t, 3> offset{}; ///< of the copies in the workspace, in bytes
  uint64_t bytes = 0;               ///< of all copies
  uint64_t copied = 0;              ///< bytes that are read and written to copy
};

/// The copies with which all operands of `desc` have rows that begin on 16 bytes, in whole lines of 128.
/// Nothing where none is needed or they would not help: batches, factors of other than 16 bits, other than
/// one odd size, a rest that is more than 1/16 of it.
std::optional<PackedRows> packRows(const MatmulDesc &desc);

/// The operand as its copy lies.
MatmulOperand packed(MatmulOperand operand, int64_t pitch);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_PACKEDROWS_H
