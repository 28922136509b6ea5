//===- ConvForm.h - What a convolution command computes ------------------------===//
//
// The command, oneDNN, cuDNN and the runtime's own kernels describe the same windows in words of their own;
// all of them start from this struct.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_CONVFORM_H
#define DS_RUNTIME_PROGRAM_CONVFORM_H

#include "ds/Runtime/Program/Program.h"

#include <cstdint>
#include <span>

namespace ds::rt {

inline constexpr int kConvMaxDims = 3;

enum class ConvKind : int32_t { Forward, BackwardInput, BackwardWeight };

/// Sizes and windows. A plain C struct: it crosses a dlopen border.
struct ConvForm {
  ConvKind kind;
  int32_t dims; ///< sliding ones, 1 to kConvMaxDims
  int32_t bias; ///< 0 or 1; forward only
  int64_t batch, groups, inputChannels, outputChannels;
  int64_t input[kConvMaxDims], window[kConvMaxDims], output[kConvMaxDims];
  int64_t stride[kConvMaxDims], padding[kConvMaxDims], dilation[kConvMaxDims];
};

/// Elements of the three tensors of a form.
int64_t inputElements(const ConvForm &form);
int64_t weightElements(const ConvForm &form);
int64_t outputElements(const ConvForm &form);

/// Whether `fn` is one of the three functions.
bool isConvolution(LibraryFn fn);

/// The form of a convolution command of Library.h. Requires operands and params that verifyProgram accepts.
ConvForm describeConv(LibraryFn fn, std::span<const Buffer *const> operands, const int64_t *params);

/// Bytes that cuDNN may use to run a form: a copy of each operand with channels last, those of a group in
/// whole 16 bytes, and a little. Its engines mostly ask for that or less; 0 where cuDNN is not asked.
uint64_t cudnnConvBytes(const ConvForm &form, DType dtype);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_CONVFORM_H
