//===- Profile.h - Operations of a model, counted as DeepSpeed's profiler does -------===//
//
// flops_profiler reports parameters, multiply-accumulates and operations per module of one forward pass. Its
// rules are simple and a little arbitrary (a bias costs nothing in a linear layer but something in addmm, a
// norm five operations per element); they are followed to the letter, so that reports can be compared.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_COST_PROFILE_H
#define DS_COST_PROFILE_H

#include "ds/Cost/Model.h"

namespace ds::cost {

/// Operations and multiply-accumulates of one op.
struct OpCount {
  double flops = 0, macs = 0;

  OpCount operator+(const OpCount &other) const { return {flops + other.flops, macs + other.macs}; }
};

/// F.linear, matmul, bmm, mm: [rows, in] x [in, out], `rows` over all leading dimensions. A bias is free.
OpCount countProduct(double rows, double in, double out);
/// addmm and baddbmm: the product, and one operation per element of what is added.
OpCount countAddmm(double rows, double in, double out, double added);
/// A convolution: per output position, the window times channels; a bias is one operation per output.
OpCount countConvolution(double outputs, double window, double inChannels, double outChannels, double groups,
                         bool bias);
/// Activation functions, pooling, softmax, and arithmetic of two operands (of the broadcast shape).
OpCount countElementwise(double elements);
/// layer_norm, group_norm, instance_norm and a training batch_norm: four operations, five with a weight.
OpCount countNorm(double elements, bool affine);

/// One row of the report; embeddings and dropout count nothing.
struct ModuleProfile {
  std::string name;
  int depth = 0; ///< below the model
  double parameters = 0;
  OpCount count; ///< with all modules inside
};

/// The forward pass of `batch` samples: the model, its layers as one and their halves. Attention is written
/// out as products, scaling, mask and softmax, as models have it without a fused kernel.
std::vector<ModuleProfile> profileModel(const ModelShape &shape, int64_t batch);

} // namespace ds::cost

#endif // DS_COST_PROFILE_H
