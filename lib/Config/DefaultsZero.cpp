//===- DefaultsZero.cpp - zero_optimization from the resolved entries ----------------------===//
//
// Plain transcription of the section with the most keys, as far as something reads them.
//
//===---------------------------------------------------------------------------===//
#include "Build.h"

#include <algorithm>
#include <limits>

namespace ds::config {

#define ZERO "zero_optimization."

static Home readHome(const std::string &device) {
  return device == "cpu" ? Home::Cpu : device == "nvme" ? Home::Nvme : Home::Device;
}

static void fillOffload(Zero &zero, const Resolved &r) {
#define PARAM ZERO "offload_param."
#define OPTIMIZER ZERO "offload_optimizer."
  zero.offloadParam = {readHome(r.text(PARAM "device")), r.text(PARAM "nvme_path"),
                       r.integer(PARAM "buffer_size"), r.integer(PARAM "max_in_cpu"),
                       r.flag(PARAM "pin_memory")};
  zero.offloadOptimizer = {readHome(r.text(OPTIMIZER "device")), r.text(OPTIMIZER "nvme_path"),
                           r.flag(OPTIMIZER "pin_memory"),       r.number(OPTIMIZER "ratio"),
                           r.flag(OPTIMIZER "super_offload"),    r.number(OPTIMIZER "cpuadam_cores_perc")};
#undef PARAM
#undef OPTIMIZER
}

static void fillExtensions(Zero &zero, const Resolved &r) {
#define FLOW ZERO "zenflow."
  if (!r.isNull(ZERO "zenflow"))
    zero.zenflow = ZenFlow{r.number(FLOW "topk_ratio"), r.maybeInteger(FLOW "select_interval"),
                           r.maybeInteger(FLOW "update_interval")};
#undef FLOW
  if (!r.isNull(ZERO "zeropp_loco_param")) {
    zero.locoErrBeta = r.number(ZERO "zeropp_loco_param.err_beta");
    zero.locoResetT = r.integer(ZERO "zeropp_loco_param.reset_T");
  }
  if (zero.stage != 3) // the other stages read none of the rest
    return;
  zero.hpzPartitionSize = r.integer(ZERO "zero_hpz_partition_size");
  zero.quantizedWeights = r.flag(ZERO "zero_quantized_weights");
  zero.quantizedGradients = r.flag(ZERO "zero_quantized_gradients");
  zero.micsShardSize = r.integer(ZERO "mics_shard_size");
}

static void fillStage3(Zero &zero, const Resolved &r) {
  zero.prefetchBucketSize = r.maybeInteger(ZERO "stage3_prefetch_bucket_size");
  zero.paramPersistenceThreshold = r.maybeInteger(ZERO "stage3_param_persistence_threshold");
  zero.modelPersistenceThreshold = r.maybeInteger(ZERO "stage3_model_persistence_threshold");
  zero.maxLiveParameters = r.maybeInteger(ZERO "stage3_max_live_parameters");
  zero.maxReuseDistance = r.maybeInteger(ZERO "stage3_max_reuse_distance");
}

/// The bound of a bucket that is sent at once: 0 leaves every parameter alone, as a single element does.
static PlannedSize bucketBound(PlannedSize size) {
  return size ? PlannedSize(std::max<int64_t>(*size, 1)) : size;
}

/// A sub-group of 0 is a piece of one parameter for DeepSpeed's optimizer, and says nothing of what is sent.
static PlannedSize subGroupBound(PlannedSize size) {
  return size == 0 ? PlannedSize(std::numeric_limits<int64_t>::max()) : size;
}

Zero fillZero(const Resolved &r) {
  Zero zero;
  zero.stage = r.integer(ZERO "stage");
  zero.contiguousGradients = r.flag(ZERO "contiguous_gradients");
  zero.reduceScatter = r.flag(ZERO "reduce_scatter");
  zero.reduceBucketSize = bucketBound(r.maybeInteger(ZERO "reduce_bucket_size"));
  zero.allgatherBucketSize = bucketBound(r.maybeInteger(ZERO "allgather_bucket_size"));
  zero.overlapComm = r.flag(ZERO "overlap_comm");
  zero.subGroupSize = subGroupBound(r.maybeInteger(ZERO "sub_group_size"));
  fillOffload(zero, r);
  fillStage3(zero, r);
  fillExtensions(zero, r);
  return zero;
}
#undef ZERO

PlannedSize Zero::bucketLimit() const {
  PlannedSize least;
  for (const PlannedSize &bound : {reduceBucketSize, allgatherBucketSize, subGroupSize})
    if (bound && (!least || *bound < *least))
      least = bound;
  return least;
}

const std::string &Zero::parameterPath() const {
  return offloadParam.nvmePath.empty() ? offloadOptimizer.nvmePath : offloadParam.nvmePath;
}

const std::string &Zero::statePath() const {
  return offloadOptimizer.nvmePath.empty() ? offloadParam.nvmePath : offloadOptimizer.nvmePath;
}

} // namespace ds::config
