//===- ChooseSizes.cpp - Sizes of ZeRO that the configuration leaves open ---------===//
//
// A collective takes a latency and its bytes at the link's bandwidth. A bucket should be so large that the
// first hardly counts, and no larger: what is exchanged late cannot overlap. A parameter whose own gather is
// mostly latency is cheap to keep whole, as long as all of them together are few.
//
//===---------------------------------------------------------------------------===//
#include "ChooseSizes.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

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

static StringRef spell(cost::Collective kind) {
  return kind == cost::Collective::AllGather       ? "an all_gather"
         : kind == cost::Collective::ReduceScatter ? "a reduce_scatter"
                                                   : "an all_reduce";
}

/// "60 us at 3.00 GB/s".
static std::string spellRate(const Line &line) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g us and %.3g GB/s", line.latency * 1e6,
                                                 line.bytesPerSecond * 1e-9);
  return text;
}

/// Chooses the bound of a bucket whose exchange is `line`.
static std::string chooseBucket(StringRef key, int64_t &size, const Line &line) {
  size = line.elementsAt(kWantedShare);
  std::string text;
  llvm::raw_string_ostream(text) << key << ": " << size << " elements, of which " << spell(line.kind)
                                 << " reaches " << llvm::format("%.0f %%", kWantedShare * 100)
                                 << " of the link's bandwidth (" << spellRate(line) << ")";
  return text;
}

SmallVector<std::string> mlir::ds::chooseSizes(ShardingOptions &options, const SizeBasis &basis,
                                               const cost::Rates &rates) {
  SmallVector<std::string> notes;
  auto isOpen = [](int64_t size) { return size == ShardingOptions::kChosen; };
  Line gather(cost::Collective::AllGather, basis.parameterBytes, basis, rates);
  Line reduce(options.stage == 0 ? cost::Collective::AllReduce : cost::Collective::ReduceScatter,
              basis.gradientBytes, basis, rates);
  if (isOpen(options.reduceBucketSize))
    notes.push_back(chooseBucket("reduce_bucket_size", options.reduceBucketSize, reduce));
  if (isOpen(options.gatherBucketSize))
    notes.push_back(chooseBucket("allgather_bucket_size", options.gatherBucketSize, gather));
  if (isOpen(options.subGroupSize)) {
    options.subGroupSize = std::numeric_limits<int64_t>::max();
    notes.push_back("sub_group_size: as the other bounds of a bucket, for nothing is updated piece by piece");
  }
  bool boundsAll = isOpen(options.modelThreshold) || isOpen(options.parameterThreshold);
  if (isOpen(options.parameterThreshold)) {
    double latencyElements = gather.perElement > 0 ? gather.latency / gather.perElement : 0;
    options.parameterThreshold = int64_t(std::min(latencyElements, 1e15));
    if (options.stage == 3)
      notes.push_back("stage3_param_persistence_threshold: " + std::to_string(options.parameterThreshold) +
                      " elements, whose gather alone spends more time waiting than sending (" +
                      spellRate(gather) + ")");
  }
  if (boundsAll) {
    int64_t given =
        isOpen(options.modelThreshold) ? std::numeric_limits<int64_t>::max() : options.modelThreshold;
    options.modelThreshold = std::min(given, basis.elements / kWholePart);
    if (options.stage == 3)
      notes.push_back(
          "stage3_model_persistence_threshold: " + std::to_string(options.modelThreshold) + " elements" +
          (options.modelThreshold == given ? std::string() : ", one part in " + std::to_string(kWholePart)));
  }
  return notes;
}
