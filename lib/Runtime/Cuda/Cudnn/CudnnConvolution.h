//===- CudnnConvolution.h - Convolutions as graphs that cuDNN has engines for -------===//
//
// Packed operands, as programs have them: engines that want channels last turn them over in their workspace,
// for which the plan has a budget. A bias is added by the engine before it rounds.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNCONVOLUTION_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNCONVOLUTION_H

#include "CudnnPlan.h"

#include "ds/Runtime/Program/ConvForm.h"

namespace ds::rt::cuda {

/// The graph of a convolution, its tensors by the number of the command's operand. Fails for three sliding
/// dimensions, and with what the library refuses to describe.
Result<NamedGraph> describeConvolution(const Cudnn &cudnn, const ConvForm &form, DType dtype);

/// Engines that are not taken: other bits in another run, factors or sums of fewer bits than the operands and
/// f32 have. With `tf32` fp32 may lose bits of its fractions.
NumericalNotes unwantedForConvolutions(DType dtype, bool tf32);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNCONVOLUTION_H
