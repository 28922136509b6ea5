//===- LostNumber.h - Where a step has lost its numbers ---------------------------===//
//
// That a step is not finite is known at its end, from one number; where that began, nobody has looked, for
// looking at every tensor would cost every step. So the step is made once more, if its states are those of
// before: one command after another, and after each one its operands are looked at. A run repeats its bits,
// so that what is found is what has happened.
//
//   states      a parameter that is not finite before the step is the answer
//   operands    of each command in order; the first one with a NaN or an infinity, on the first rank, and of
//               what stages send each other on the one that has sent it
//
// An infinity of minus sign alone is none: masks have it. Memory needs nothing, and good steps cost nothing.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_LOSS_LOSTNUMBER_H
#define DS_LIB_RUNTIME_LOSS_LOSTNUMBER_H

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Formats/JsonLog.h"

#include <functional>
#include <optional>
#include <string>

namespace ds::rt {

class Team;

/// Whether a step has computed a loss or a norm that is not finite, or was skipped.
bool hasLostNumbers(const StepRecord &record);

/// How a step can be repeated.
struct LostStep {
  std::function<Status(uint32_t microBatch)> fill; ///< the inputs that it had
  std::optional<double> lossScale = {};            ///< that it began with, where it has one
  bool keptGenerator = false; ///< random numbers have moved on by one step since, as in a step that was kept
};

/// Makes a lost step again and says what was not finite first, on any rank; empty where it comes out well.
/// Requires the states of before the step, but for scalars, which are afterwards what they are now.
/// Collective.
Result<std::string> findLostNumber(Executor &executor, const LostStep &step, Team &team);

/// The first NaN or infinity, but for the infinity of minus sign, of a tensor that lies packed or strided in
/// the host's memory: which element, in row-major order, and what it is. Floats only.
struct LostElement {
  uint64_t element = 0;
  double value = 0;
};
std::optional<LostElement> findLostElement(const Buffer &buffer, const std::byte *data);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_LOSS_LOSTNUMBER_H
