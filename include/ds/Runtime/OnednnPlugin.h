//===- OnednnPlugin.h - Products and convolutions of oneDNN, opened on demand --===//
//
// libds-onednn.so is the only file that links oneDNN. It has one C entry point, which both the compiler (to
// plan each workspace exactly) and the executor (to run it) find by dlopen; a machine without oneDNN gets an
// error that names the file, and only when a program multiplies matrices or slides filters.
//
// Scratch memory depends on the processor, the library's version and the number of threads: the compiler
// plans what its machine asks for, and the executor takes the first implementation that fits the plan or
// refuses.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_ONEDNNPLUGIN_H
#define DS_RUNTIME_ONEDNNPLUGIN_H

#include "ds/Runtime/ConvForm.h"
#include "ds/Runtime/Program.h"
#include "ds/Support/Error.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ds::rt {

inline constexpr int kMatmulMaxRank = 12;
inline constexpr uint32_t kOnednnAbi = 5;

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

/// A product bound to its memory.
struct MatmulPrimitive;

/// Where the f32 operands of a convolution lie: the two that it reads and the one that it writes, in the
/// command's order. bias and workspace may be null.
struct ConvMemory {
  const void *first, *second, *bias;
  void *result, *workspace;
};

/// A convolution bound to its memory.
struct ConvPrimitive;

/// What the plugin's entry point `dsOnednn` returns. Functions that fail return null or UINT64_MAX and write
/// a zero-terminated reason into `message`.
struct OnednnApi {
  uint32_t abi; ///< kOnednnAbi
  /// Bytes of scratch memory that the library's first choice for `desc` asks for with `threads` threads,
  /// copies of operands among them.
  uint64_t (*scratchpadBytes)(const MatmulDesc *desc, uint32_t threads, char *message, size_t messageBytes);
  /// Takes the first implementation that needs at most `workspaceBytes`; binds it to `memory`.
  MatmulPrimitive *(*create)(const MatmulDesc *desc, uint32_t threads, uint64_t workspaceBytes,
                             const MatmulMemory *memory, char *message, size_t messageBytes);
  /// Runs the product on the calling thread's team; false (and a reason) if the library reports a failure.
  bool (*run)(MatmulPrimitive *primitive, char *message, size_t messageBytes);
  void (*destroy)(MatmulPrimitive *primitive);
  /// Name of the chosen implementation, for diagnostics and traces.
  const char *(*implementation)(const MatmulPrimitive *primitive);
  /// Whether the library uses bf16 instructions here (AVX512-BF16 or AMX; ONEDNN_MAX_CPU_ISA may hide them).
  bool (*multipliesBFloat16)();

  /// The same for convolutions in f32. Their workspace holds what the library's first choice asks for as
  /// scratch memory, and the operands that it wants in another order than row-major.
  uint64_t (*convBytes)(const ConvForm *form, uint32_t threads, char *message, size_t messageBytes);
  ConvPrimitive *(*createConv)(const ConvForm *form, uint32_t threads, uint64_t workspaceBytes,
                               const ConvMemory *memory, char *message, size_t messageBytes);
  bool (*runConv)(ConvPrimitive *primitive, char *message, size_t messageBytes);
  void (*destroyConv)(ConvPrimitive *primitive);
};

/// Opens the plugin: `libds-onednn.so` beside the executable's directory (../lib) or on the loader's path. It
/// stays open. Fails with ExitCode::Device, naming what is missing.
Result<const OnednnApi *> openOnednn();

/// The product that a Matmul command of Library.h describes: transposes become strides, a's leading
/// dimensions are folded into the rows where memory allows it. `params` are the command's four. GELU is left
/// out: it comes after the product. Requires operands that verifyProgram accepts.
MatmulDesc describeMatmul(const Buffer &a, const Buffer &b, const Buffer &result, const Buffer *bias,
                          const int64_t *params);

/// Exact scratch memory of a product that oneDNN makes on this machine: rounded up to 64 bytes.
Result<uint64_t> matmulScratchpadBytes(const MatmulDesc &desc, uint32_t threads);

} // namespace ds::rt

#endif // DS_RUNTIME_ONEDNNPLUGIN_H
