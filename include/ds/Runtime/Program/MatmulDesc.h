//===- MatmulDesc.h - A product as libraries see it ----------------------------===//
//
// What a Matmul command says in the words of a library for products: shapes and strides of matrices. Plain C
// structs, for they cross the border of a plugin.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_MATMULDESC_H
#define DS_RUNTIME_PROGRAM_MATMULDESC_H

#include "ds/Runtime/Program/Program.h"

#include <algorithm>
#include <cstdint>

namespace ds::rt {

inline constexpr int kMatmulMaxRank = 12;

/// One matrix, or a batch of them, as oneDNN sees it: [..., rows, columns] with the strides that say whether
/// it is transposed. A plain C struct: it crosses a dlopen border.
struct MatmulOperand {
  int64_t shape[kMatmulMaxRank];
  int64_t strides[kMatmulMaxRank]; ///< elements
  int32_t dtype;                   ///< DType
};

/// What is done with operands before they are multiplied.
enum class OperandCopies : int32_t {
  None,
  Packed, ///< b in the order that the library likes best
  Padded, ///< a and b, where their rows are whole pages, in rows that are longer
};

/// Whether rows of `operand`, or columns where those lie together, begin whole pages after one another: then
/// the same few sets of a cache have to hold all that is read of a column.
inline bool hasRowsOfPages(const MatmulOperand &operand, int32_t rank) {
  constexpr int64_t kPage = 4096;
  const int64_t row = std::max(operand.strides[rank - 2], operand.strides[rank - 1]);
  return row * static_cast<int64_t>(byteSize(static_cast<DType>(operand.dtype))) % kPage == 0;
}

/// result = act(a * b + bias (+ result if accumulate)); all operands have `rank` dimensions. The plugin
/// leaves the activation to what comes after it, for oneDNN's relu makes 0 of NaN.
struct MatmulDesc {
  MatmulOperand a, b, result;
  int32_t rank;
  int32_t bias;         ///< DType of the bias [N], or -1
  int32_t accumulate;   ///< 0 or 1
  int32_t activation;   ///< 0 none, 1 relu
  OperandCopies copies; ///< into the workspace; of products of rank 2
};

/// Where the operands of one product lie; bias and workspace may be null.
struct MatmulMemory {
  const void *a, *b, *bias;
  void *result, *workspace;
};

/// The product that a Matmul command of Library.h describes: transposes become strides, a's leading
/// dimensions are folded into the rows where memory allows it. `params` are the command's four. GELU is left
/// out: it comes after the product. Requires operands that verifyProgram accepts.
MatmulDesc describeMatmul(const Buffer &a, const Buffer &b, const Buffer &result, const Buffer *bias,
                          const int64_t *params);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_MATMULDESC_H
