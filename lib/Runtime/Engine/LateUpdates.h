//===- LateUpdates.h - Updates that a step leaves to the next one --------------------===//
//
// Where a program has late updates, each step leaves its own and the next one begins with them. Until then
// parameters and what the optimizer keeps are those of before the step, so whoever reads states in between
// asks for the updates first:
//
//   runStep    forward, backward                 leaves updates
//   runStep    updates, forward, backward        leaves others
//   finish     updates                           leaves none: states may be read
//   runStep    forward, backward
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_LATEUPDATES_H
#define DS_LIB_RUNTIME_ENGINE_LATEUPDATES_H

#include "ds/Runtime/Engine/Executor.h"

namespace ds::rt {

/// What the steps of one run have left.
class LateUpdates {
public:
  /// Executor::runStep, with what the step before has left. Collective, as `finish` is.
  Status runStep(Executor &executor, const Engine::Fill &fill);
  bool areLeft() const { return left; }
  /// Makes the updates that the last step has left, if it has.
  Status finish(Executor &executor);
  /// The states have become others: what a step has left is not for them.
  void drop() { left = false; }

private:
  bool left = false;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_LATEUPDATES_H
