//===- LossScaleGuard.h - Ends a run whose loss scale can fall no lower --------===//
//
// As DeepSpeed does: an overflow while the scale is at its minimum, with no hysteresis left to spend, raises.
// The program moves the scale; what it would have done is seen from the states before and after the step: an
// overflow that spent the last hysteresis and did not lower the scale met the minimum.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_LOSSSCALEGUARD_H
#define DS_LIB_RUNTIME_LOSSSCALEGUARD_H

#include "ds/Runtime/Executor.h"
#include "ds/Runtime/Formats/JsonLog.h"

#include <optional>

namespace ds::rt {

class LossScaleGuard {
public:
  /// Looks at the scalar states "loss_scale" and "hysteresis" before a step. Without them (no scaling, or a
  /// static scale) `check` has nothing to say.
  explicit LossScaleGuard(const Executor &executor);

  /// ExitCode::Diverged if the step of `record` overflowed at the minimum.
  Status check(const Executor &executor, const StepRecord &record) const;

private:
  std::optional<double> scale, hysteresis;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_LOSSSCALEGUARD_H
