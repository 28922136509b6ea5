//===- BucketLayout.cpp - Which parameters lie side by side -----------------------===//
#include "ds/Analysis/Packing/BucketLayout.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace ds::analysis;

/// Rounds `value` up to a multiple of `unit`.
static int64_t alignTo(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// For each parameter whether every rank keeps it whole. One that would go beyond the bound of all is passed
/// over, later smaller ones may still fit.
static std::vector<bool> findPersistent(const std::vector<BucketParameter> &parameters,
                                        const BucketLimits &limits) {
  std::vector<bool> persistent(parameters.size());
  int64_t total = 0;
  for (size_t index = 0; index < parameters.size(); ++index) {
    int64_t elements = parameters[index].elements;
    if (elements > limits.parameterThreshold || elements > limits.modelThreshold - total)
      continue;
    persistent[index] = true;
    total += elements;
  }
  return persistent;
}

namespace {
/// Fills buckets: one is open per kind until it is full or its layer ends.
class BucketFiller {
public:
  BucketFiller(const std::vector<BucketParameter> &parameters, const BucketLimits &limits)
      : parameters(parameters), limits(limits) {}

  void add(uint32_t index, bool isPersistent);
  /// What follows belongs to another layer.
  void endLayer() { layerBuckets.clear(); }
  std::vector<BucketPlan> finish();

private:
  const std::vector<BucketParameter> &parameters;
  const BucketLimits &limits;
  std::vector<BucketPlan> buckets;
  std::map<uint32_t, size_t> layerBuckets, persistentBuckets; ///< kind -> the open bucket
};
} // namespace

void BucketFiller::add(uint32_t index, bool isPersistent) {
  std::map<uint32_t, size_t> &open = isPersistent ? persistentBuckets : layerBuckets;
  const BucketParameter &parameter = parameters[index];
  int64_t size = alignTo(parameter.elements, kBucketAlignment);
  auto known = open.find(parameter.kind);
  if (known == open.end() || size > limits.maxElements - buckets[known->second].elements) {
    open[parameter.kind] = buckets.size();
    known = open.find(parameter.kind);
    buckets.emplace_back().isPersistent = isPersistent;
  }
  BucketPlan &bucket = buckets[known->second];
  bucket.members.push_back(index);
  bucket.offsets.push_back(bucket.elements);
  bucket.elements += size;
}

std::vector<BucketPlan> BucketFiller::finish() {
  for (BucketPlan &bucket : buckets)
    bucket.elements = alignTo(bucket.elements, kBucketAlignment * limits.ranks);
  return std::move(buckets);
}

std::vector<BucketPlan> ds::analysis::layOutBuckets(const std::vector<BucketParameter> &parameters,
                                                    const BucketLimits &limits) {
  std::vector<bool> persistent = findPersistent(parameters, limits);
  BucketFiller filler(parameters, limits);
  std::optional<uint32_t> layer;
  for (uint32_t index = 0; index < parameters.size(); ++index) {
    if (!persistent[index]) {
      if (layer && *layer != parameters[index].layer)
        filler.endLayer();
      layer = parameters[index].layer;
    }
    filler.add(index, persistent[index]);
  }
  return filler.finish();
}
