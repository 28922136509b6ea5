//===- Collectives.h - What the runtime's table says of a collective ---------------===//
#ifndef DS_DIALECT_COLLECTIVES_H
#define DS_DIALECT_COLLECTIVES_H

#include "ds/Dialect/Ds.h"
#include "ds/Runtime/Program/Collective.h"

namespace mlir::ds {

/// The runtime's kind, which has the same number.
constexpr ::ds::rt::CollectiveKind toRuntimeKind(CollectiveKind kind) {
  return static_cast<::ds::rt::CollectiveKind>(kind);
}
static_assert(toRuntimeKind(CollectiveKind::AllGather) == ::ds::rt::CollectiveKind::AllGather &&
                  getMaxEnumValForCollectiveKind() == static_cast<unsigned>(::ds::rt::kLastCollective),
              "names are compared by LowerShardedTest, so that a new kind need not be named here");

constexpr const ::ds::rt::CollectiveTraits &traitsOf(CollectiveKind kind) {
  return ::ds::rt::traitsOf(toRuntimeKind(kind));
}

/// Whether updates and the host alone read what it brings, so that no layer waits for it.
constexpr bool isForUpdate(Payload payload) {
  return payload == Payload::Bucket || payload == Payload::Statistic;
}

/// Whether `op` exchanges values of layers that are cut among ranks. Ranks run one text, so that what one of
/// them does again all do.
inline bool isExchange(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && collective.getCarries() == Payload::Exchange;
}

/// Whether one rank's part is the output, not the input: what is received, or reduced and scattered.
constexpr bool isOutputPart(CollectiveKind kind) {
  const ::ds::rt::CollectiveTraits &traits = traitsOf(kind);
  return traits.input != ::ds::rt::Parts::One && traits.output == ::ds::rt::Parts::One;
}

} // namespace mlir::ds

#endif // DS_DIALECT_COLLECTIVES_H
