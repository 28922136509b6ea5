//===- CommandCost.h - How long commands take, as far as schedules must know -----===//
//
// The cost model's figures for launches, calls and collectives. They decide where collectives are issued and
// waited for, never what is computed: wrong ones cost time.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_COMMANDCOST_H
#define DS_LIB_PASSES_COMMANDCOST_H

#include "ds/Cost/Rates.h"
#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Seconds to wake a stream: a futex and a switch to another thread.
inline constexpr double kIssueSeconds = 20e-6;

/// The rates of a cluster: a file, or the name of a built-in one. Fails with a diagnostic at `op`.
FailureOr<::ds::cost::Rates> readRates(Operation *op, StringRef cluster);

/// Seconds that a launch or call takes. `distances` are those of its operands (ReuseDistance.h), where they
/// are known.
double computeSeconds(Operation *command, const ::ds::cost::Rates &rates, ArrayRef<double> distances = {});

/// Seconds that a collective takes when its stream is free.
double collectiveSeconds(CommunicateOp op, const ::ds::cost::Rates &rates);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_COMMANDCOST_H
