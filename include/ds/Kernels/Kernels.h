//===- Kernels.h - The library functions that the runtime brings itself --------===//
//
// The functions of kernels/ behind one signature, once per instruction set, so that ds-run runs on any x86-64
// and uses what the machine has. The operands are those that Library.h documents and verifyProgram has
// checked: the kernels check nothing but the ids and targets, whose values only exist at run time.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_KERNELS_H
#define DS_KERNELS_KERNELS_H

#include "ds/Runtime/Program/Program.h"

namespace ds::rt {

/// A buffer in memory: a plain struct, because it crosses between translation units of different -march.
struct View {
  void *data;           ///< element (0, ..., 0)
  const int64_t *shape; ///< `rank` entries
  const int64_t *strides;
  uint32_t rank;
  DType dtype;
};

/// One call. `threads` is how many threads the function may use; results never depend on it.
struct LibraryCall {
  const View *operands;
  const int64_t *params;
  uint32_t numOperands;
  uint32_t numParams;
  uint32_t threads;
  void *workspace = nullptr; ///< libraryWorkspaceBytes of scratch memory, 64-byte aligned; null if 0
};

using LibraryFunction = void (*)(const LibraryCall &);

/// Instruction sets that the kernels are built for; each includes the ones before it.
enum class Isa : uint8_t { X86_64, X86_64_V3, X86_64_V4 };
const char *spell(Isa isa);

/// The best instruction set that this machine and its operating system support.
Isa bestIsa();

/// The kernel for `fn`, or null for convolutions, which a plugin brings. So it does products: the kernel for
/// Matmul is the activation that comes after one. Requires isa <= bestIsa().
LibraryFunction libraryFunction(LibraryFn fn, Isa isa);

/// A matrix of 16-bit floats (or f32) in memory with one unit stride, to be packed as f32: to[r * columns +
/// c] where `byRows`, else to[c * rows + r]. Where a product has no instruction for its operands, it is
/// formed of such blocks.
struct WidenCall {
  const void *from; ///< element (0, 0)
  float *to;
  DType dtype;
  int64_t rows, columns;
  int64_t stride; ///< elements, between rows where `byRows`, else between columns
  bool byRows;
  uint32_t threads;
};
void widenBlock(const WidenCall &call, Isa isa);

/// result = act(sums + bias (+ result)), rounded once. `sums` is packed, [rows, columns].
struct FinishCall {
  const float *sums;
  void *result;     ///< element (0, 0)
  const void *bias; ///< or null; packed
  DType resultType, biasType;
  int64_t rows, columns;
  int64_t rowStride, columnStride; ///< of the result
  bool biasByRow;                  ///< one element of the bias for each row, not each column
  bool accumulate, relu;
  uint32_t threads;
};
void finishBlock(const FinishCall &call, Isa isa);

/// A tensor, or elements [first, first + count) of one, to be filled with random numbers: offset + scale * x,
/// x standard normal or uniform in [0, 1). Element i of the tensor depends on seed, stream and i alone: not
/// on threads, not on the instruction set, not on where the part begins.
struct RandomCall {
  float *data;
  int64_t count;
  uint64_t seed, stream;
  float offset, scale;
  bool normal;
  uint32_t threads;
  int64_t first = 0;
};
void fillRandom(const RandomCall &call, Isa isa);

/// One run of a loop that isolates a resource of the machine, for calibration.
enum class ProbeKind : uint8_t {
  Add,         ///< out[i] = a[i] + b[i]: memory
  Columns,     ///< out[c] = sum of a[r * width + c]: memory in strips of columns
  Update,      ///< out, and two streams behind it, of themselves and of b: memory in four streams
  Exp,         ///< out[i] = e^a[i] for whole vectors: arithmetic, where the elements stay in a cache
  Divide,      ///< out[i] = a[i] / b[i]
  Root,        ///< out[i] = the square root of a[i]
  Rows,        ///< out[r] = the variance of row r of a, whose rows have a multiple of 64 elements
  MultiplyAdd, ///< `elements` multiply-adds in registers; reads 256 elements of a and 16 of b
};
struct ProbeCall {
  ProbeKind kind;
  const float *a, *b;
  float *out; ///< `elements` elements; Update: three times as many; MultiplyAdd: one for every 4096
  int64_t elements;
  uint32_t threads;
  int64_t width = 0; ///< of Columns and Rows: elements of a row
  int64_t strip = 0; ///< of Columns: elements of a row that one unit of work takes, a multiple of 16
};
void probe(const ProbeCall &call, Isa isa);

/// out[i] = parts[0][i] op parts[1][i] op ..., in this order, with fp32 in between for f32, bf16 and f16.
/// `out` may be one of the parts.
struct ReduceCall {
  const void *const *parts;
  void *out;
  int64_t elements;
  uint32_t numParts;
  DType dtype;
  Reduction reduction;
};

/// False if the type is not one of f32, bf16, f16, f64, i64 and i32, or the reduction is None.
bool reduceParts(const ReduceCall &call, Isa isa);

} // namespace ds::rt

#endif // DS_KERNELS_KERNELS_H
