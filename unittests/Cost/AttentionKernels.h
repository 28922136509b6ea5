//===- AttentionKernels.h - The kernels of published runs ----------------------------===//
//
// A built-in cluster has the rates of the kernels that are used on its devices today. Runs of other years
// used other fused attention, and are held to the rates of that, as far as these were published. Products of
// frameworks on H100 were slower in 2023 and 2024 than cuBLASLt's are by themselves; `matmul_flops` was read
// from such runs, and those of these years are held to it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_COST_ATTENTIONKERNELS_H
#define DS_UNITTESTS_COST_ATTENTIONKERNELS_H

#include "ds/Config/Cluster.h"

namespace ds::cost {

enum class AttentionKernel : uint8_t {
  Own,             ///< the cluster's: FlashAttention-2 on A100, cuDNN with a repeatable gradient on H100
  FlashAttention,  ///< the first one, also in Triton: 2022 and 2023
  Xformers,        ///< of CUTLASS: 2022 and 2023
  FlashAttention2, ///< on H100, without Hopper's instructions
  FlashAttention3, ///< on H100, with a gradient that adds up in any order: in 2024
  Cudnn,           ///< NVIDIA's on H100 and H200, with such a gradient: since 2025
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
  Rows rows;
  auto add = [&](const std::vector<std::pair<double, double>> &both) {
    for (auto [forward, backward] : both)
      rows.push_back({forward * 1e12, backward * 1e12});
  };
  // Forward by arXiv 2407.08608, figure 5, with a causal mask. Backward by figure 6, which has none, times
  // what the mask costs forward in figure 5 (estimate); of FlashAttention-2 by what arXiv 2307.08691, figure
  // 7, leaves.
  if (kernel == AttentionKernel::Cudnn) // NVIDIA's benchmark of cuDNN 9.19 on H200, from 2048 positions
    return {{{2048, 4096, 8192, 16384}, {128}},
            {{484e12, 370e12}, {591e12, 474e12}, {644e12, 541e12}, {673e12, 579e12}}};
  if (kernel == AttentionKernel::FlashAttention3)
    add({{197, 161},
         {292, 198},
         {265, 245},
         {423, 317},
         {371, 340},
         {521, 418},
         {420, 400},
         {579, 492},
         {460, 438},
         {602, 521},
         {473, 451},
         {616, 533}});
  else
    add({{180, 130},
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
         {335, 325}});
  return {{lengths, {64, 128}}, rows};
}

/// A cluster with the kernels of a published run.
inline config::Cluster withKernel(config::Cluster cluster, AttentionKernel kernel) {
  if (kernel == AttentionKernel::Own)
    return cluster;
  cluster.device.attentionShapes = attentionRates(kernel, cluster.device.architecture == "sm_90");
  if (kernel != AttentionKernel::Cudnn)
    cluster.device.kernels.tileFlops = {};
  return cluster;
}

} // namespace ds::cost

#endif // DS_UNITTESTS_COST_ATTENTIONKERNELS_H
