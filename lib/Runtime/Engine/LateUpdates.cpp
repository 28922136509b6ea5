//===- LateUpdates.cpp - Updates that a step leaves to the next one ------------------===//
#include "LateUpdates.h"

#include "Program/Execution.h"

#include <utility>

namespace ds::rt {

Status LateUpdates::runStep(Executor &executor, const Engine::Fill &fill) {
  Status status = executor.runStep(fill, left);
  left = !lateSegmentsOf(executor.program()).flushes.empty();
  return status;
}

Status LateUpdates::finish(Executor &executor) {
  if (!std::exchange(left, false))
    return {};
  return executor.run(lateSegmentsOf(executor.program()).flushes.front());
}

} // namespace ds::rt
