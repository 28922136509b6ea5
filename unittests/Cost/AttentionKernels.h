//===- AttentionKernels.h - The fused attention of published runs --------------------===//
//
// A built-in cluster has the rates of the fused attention that is used on its devices today. Runs of other
// years used other kernels, and are held to the rates of those, as far as these were published.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_COST_ATTENTIONKERNELS_H
#define DS_UNITTESTS_COST_ATTENTIONKERNELS_H

#include "ds/Config/Cluster.h"

namespace ds::cost {

enum class AttentionKernel : uint8_t {
  Own,             ///< the cluster's: FlashAttention-2 on A100, FlashAttention-3 on H100
  FlashAttention,  ///< the first one, also in Triton: 2022 and 2023
  Xformers,        ///< of CUTLASS: 2022 and 2023
  FlashAttention2, ///< on H100, without Hopper's instructions
};

/// TFLOP/s with a causal mask at 512, 1024 and so on to 16384 positions, forward and backward alike where the
/// papers give both together.
inline config::ShapeTable attentionRates(AttentionKernel kernel, bool isH100) {
  using Rows = std::vector<std::vector<double>>;
  const std::vector<double> lengths = {512, 1024, 2048, 4096, 8192, 16384};
  auto together = [&](const std::vector<double> &rates) {
    Rows rows;
    for (double rate : rates)
      rows.push_back({rate * 1e12, rate * 1e12});
    return config::ShapeTable{{lengths, {64}}, rows};
  };
  if (kernel == AttentionKernel::FlashAttention) // arXiv 2307.08691, figures 4c and 7c, heads of 64
    return isH100 ? together({104, 123, 136, 138, 149, 156}) : together({58, 70, 77, 87, 92, 97});
  if (kernel == AttentionKernel::Xformers) // figure 4c
    return together({51, 60, 66, 68, 69, 80});
  // Forward by arXiv 2407.08608, figure 5; backward by what arXiv 2307.08691, figure 7, leaves.
  Rows rows;
  for (auto [forward, backward] : std::vector<std::pair<double, double>>{{180, 130},
                                                                         {191, 154},
                                                                         {229, 180},
                                                                         {260, 208},
                                                                         {262, 222},
                                                                         {298, 254},
                                                                         {284, 248},
                                                                         {319, 285},
                                                                         {295, 265},
                                                                         {333, 299},
                                                                         {299, 278},
                                                                         {335, 325}})
    rows.push_back({forward * 1e12, backward * 1e12});
  return {{lengths, {64, 128}}, rows};
}

/// A cluster whose attention is that of a published run.
inline config::Cluster withKernel(config::Cluster cluster, AttentionKernel kernel) {
  if (kernel != AttentionKernel::Own)
    cluster.device.attentionShapes = attentionRates(kernel, cluster.device.architecture == "sm_90");
  return cluster;
}

} // namespace ds::cost

#endif // DS_UNITTESTS_COST_ATTENTIONKERNELS_H
