//===- OnednnConv.h - The workspace of a convolution on the CPU ----------------===//
//
// oneDNN convolves in f32 and in blocked layouts of its own. The workspace holds everything that this takes
// besides the operands, so that the plan shows it: oneDNN's part first, then f32 copies of 16-bit operands.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_ONEDNN_ONEDNNCONV_H
#define DS_RUNTIME_ONEDNN_ONEDNNCONV_H

#include "ds/Runtime/Program/ConvForm.h"
#include "ds/Support/Error.h"

#include <array>

namespace ds::rt {

/// Bytes; offsets are multiples of 64.
struct ConvWorkspace {
  uint64_t libraryBytes; ///< from offset 0
  /// Where the f32 copy of each operand of the command lies, if it has 16 bits.
  std::array<uint64_t, 4> widened;
  uint64_t bytes; ///< of all
};

/// Lays the workspace of a convolution out for this machine. Fails with ExitCode::Device where there is no
/// oneDNN, or it has no implementation.
Result<ConvWorkspace> layoutConvWorkspace(const ConvForm &form, DType dtype, uint32_t threads);

} // namespace ds::rt

#endif // DS_RUNTIME_ONEDNN_ONEDNNCONV_H
