//===- AttentionWorkspace.cpp - What cuDNN takes for attention's gradient ----------===//
//
// Programs for GPUs ask cuDNN for gradients that repeat their bits, which take a workspace, or for fast ones,
// which take less of it (ds/Runtime/Program/AttentionPieces.h). A program's plan has it among its buffers;
// here the same formula says its size.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Estimate.h"
#include "ds/Runtime/Program/AttentionPieces.h"

#include <algorithm>

namespace ds::cost {

/// One rank's attention. Ranks that share a sequence divide the heads while they attend.
static rt::AttentionSizes attentionOf(const ModelShape &shape, const ParallelPlan &plan) {
  int64_t ranks = plan.tp * plan.sp, keyHeads = shape.kvHeads == 0 ? shape.heads : shape.kvHeads;
  auto whole = [](int64_t value) { return static_cast<uint64_t>(std::max<int64_t>(1, value)); };
  return {whole(plan.microBatch),     whole(shape.seq),        whole(shape.seq),
          whole(shape.heads / ranks), whole(keyHeads / ranks), whole(shape.headWidth())};
}

std::optional<double> attentionWorkspace(const ModelShape &shape, const ParallelPlan &plan,
                                         const config::Cluster &cluster, double room) {
  bool isGpu = cluster.device.architecture.starts_with("sm_");
  if (!isGpu || !plan.flashAttention || plan.dtype == DType::F32)
    return std::nullopt;
  double usual = std::clamp(room, 0.0, static_cast<double>(rt::kUsualPieceBytes));
  auto pieces =
      rt::attentionPieces(attentionOf(shape, plan),
                          {.isCausal = true, .isFast = plan.fastAttention, .drops = shape.dropsAttention},
                          static_cast<uint64_t>(usual));
  if (!pieces)
    return std::nullopt;
  double bytes = static_cast<double>(pieces->workspaceBytes);
  return bytes <= room ? bytes : 0;
}

} // namespace ds::cost
