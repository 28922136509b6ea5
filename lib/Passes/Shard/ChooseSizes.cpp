//===- ChooseSizes.cpp - Sizes of ZeRO that the configuration leaves open ---------===//
//
// A collective takes a latency and its bytes at the link's bandwidth. A bucket should be so large that the
// first hardly counts, and no larger: what is exchanged late cannot overlap. A parameter whose own gather is
// mostly latency is cheap to keep whole, as long as all of them together are few.
//
//===---------------------------------------------------------------------------===//
#include "ChooseSizes.h"

using namespace mlir;
using namespace mlir::ds;
namespace cost = ::ds::cost;

namespace {
/// A collective over all ranks, as a line over the elements of the whole.
struct Line {
  Line(cost::Collective kind, int64_t elementBytes, const SizeBasis &basis, const cost::Rates &rates)
      : kind(kind) {
    // An all-reduce has the whole as its operand, the others a part.
    double share = kind == cost::Collective::AllReduce ? 1.0 : 1.0 / double(basis.ranks);
    auto seconds = [&](double elements) {
      return rates.collectiveSeconds(kind, elements * double(elementBytes) * share, basis.ranks);
    };
    constexpr double kMany = 1e12;
    latency = seconds(1e-6); // of nothing at all there is none
    perElement = (seconds(kMany) - latency) / kMany;
    bytesPerSecond = perElement > 0 ? double(elementBytes) / perElement : 0;
  }
  /// Elements at which the exchange reaches `share` of what it would without latency.
  int64_t elementsAt(double share) const {
    double elements = perElement > 0 ? share / (1 - share) * latency / perElement : 0;
    int64_t power = 1024;
    while (double(power) < elements && power < int64_t(1) << 50)
      power *= 2;
    return power;
  }

  cost::Collective kind;
  double latency = 0, perElement = 0, bytesPerSecond = 0;
};
} // namespace

static CollectiveKind kindOf(cost::Collective kind) {
  return kind == cost::Collective::AllGather       ? CollectiveKind::AllGather
         : kind == cost::Collective::ReduceScatter ? CollectiveKind::ReduceScatter
                                                   : CollectiveKind::AllReduce;
}

/// Chooses the bound of a bucket whose exchange is `line`.
static OpenChoice chooseBucket(ChoiceOf of, int64_t &size, const Line &line) {
  size = line.elementsAt(kWantedShare);
  return {.kind = of,
          .elements = size,
          .collective = kindOf(line.kind),
          .latencySeconds = line.latency,
          .bytesPerSecond = line.bytesPerSecond,
          .share = kWantedShare};
}

SmallVector<OpenChoice> mlir::ds::chooseSizes(ShardingOptions &options, const SizeBasis &basis,
                                              const cost::Rates &rates) {
  SmallVector<OpenChoice> choices;
  auto isOpen = [](int64_t size) { return size == ShardingOptions::kChosen; };
  Line gather(cost::Collective::AllGather, basis.parameterBytes, basis, rates);
  Line reduce(options.stage == 0 ? cost::Collective::AllReduce : cost::Collective::ReduceScatter,
              basis.gradientBytes, basis, rates);
  if (isOpen(options.reduceBucketSize))
    choices.push_back(chooseBucket(ChoiceOf::ReduceBucket, options.reduceBucketSize, reduce));
  if (isOpen(options.gatherBucketSize))
    choices.push_back(chooseBucket(ChoiceOf::GatherBucket, options.gatherBucketSize, gather));
  if (isOpen(options.subGroupSize)) {
    options.subGroupSize = std::numeric_limits<int64_t>::max();
    choices.push_back({.kind = ChoiceOf::SubGroup}); // nothing is updated piece by piece
  }
  bool boundsAll = isOpen(options.modelThreshold) || isOpen(options.parameterThreshold);
  if (isOpen(options.parameterThreshold)) {
    double latencyElements = gather.perElement > 0 ? gather.latency / gather.perElement : 0;
    options.parameterThreshold = int64_t(std::min(latencyElements, 1e15));
    if (options.stage == 3)
      choices.push_back({.kind = ChoiceOf::ParameterThreshold,
                         .elements = options.parameterThreshold,
                         .latencySeconds = gather.latency,
                         .bytesPerSecond = gather.bytesPerSecond});
  }
  if (boundsAll) {
    int64_t given =
        isOpen(options.modelThreshold) ? std::numeric_limits<int64_t>::max() : options.modelThreshold;
    options.modelThreshold = std::min(given, basis.elements / kWholePart);
    if (options.stage == 3)
      choices.push_back({.kind = ChoiceOf::ModelThreshold,
                         .elements = options.modelThreshold,
                         .part = options.modelThreshold == given ? 0 : kWholePart});
  }
  return choices;
}
