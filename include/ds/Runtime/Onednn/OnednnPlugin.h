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
#ifndef DS_RUNTIME_ONEDNN_ONEDNNPLUGIN_H
#define DS_RUNTIME_ONEDNN_ONEDNNPLUGIN_H

#include "ds/Runtime/Program/ConvForm.h"
#include "ds/Runtime/Program/MatmulDesc.h"
#include "ds/Support/Error.h"

#include <cstddef>
#include <cstdint>

namespace ds::rt {

inline constexpr uint32_t kOnednnAbi = 5;

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

/// Exact scratch memory of a product that oneDNN makes on this machine: rounded up to 64 bytes.
Result<uint64_t> matmulScratchpadBytes(const MatmulDesc &desc, uint32_t threads);

} // namespace ds::rt

#endif // DS_RUNTIME_ONEDNN_ONEDNNPLUGIN_H
