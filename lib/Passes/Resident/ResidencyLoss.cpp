//===- ResidencyLoss.cpp - How losses are made, in a step's problem -----------------===//
//
// All losses of a step are one value, as all are made alike: whole, or in pieces of so many rows, those that
// offer them. Its bytes are those of all that has a row for each token and a column for each word, from where
// the whole step has it to where that is read last, so that each moment of the whole step stands for the
// moments of all pieces.
//
//===---------------------------------------------------------------------------===//
#include "StepProblem.h"

#include <set>

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// What memory `index` holds of the device whatever is chosen, as StepProblem and ResidencyForward have it.
static SmallVector<analysis::ResidencyHold> holdsOf(const StepSegment &segment, uint32_t index) {
  const ValueMemory &memory = segment.memory.memories[index];
  SmallVector<analysis::ResidencyHold> holds;
  if (memory.isSent || memory.isInState)
    return holds;
  if (const auto hold = segment.holdUntil(index, memory.end);
      hold && memory.isStored && hold->begin < hold->end)
    holds.push_back({hold->space, hold->bytes, hold->begin, hold->end});
  if (const auto kept = segment.alwaysKept.find(index);
      kept != segment.alwaysKept.end() && kept->second.begin < kept->second.end)
    holds.push_back(kept->second);
  return holds;
}

/// Losses in pieces of `rows` where they offer them; nothing: whole.
static analysis::ResidencyWay wayInPieces(const StepProblem &step, std::optional<int64_t> rows) {
  analysis::ResidencyWay way;
  double seconds = 0;
  for (const StepSegment &segment : step.segments)
    for (const LossPieces &loss : segment.losses) {
      const bool isWhole = !rows || !llvm::is_contained(loss.offered, *rows);
      for (uint32_t memory : loss.ofPiece)
        for (analysis::ResidencyHold hold : holdsOf(segment, memory)) {
          if (!isWhole)
            hold.bytes = loss.shareOf(hold.bytes, *rows);
          way.holds.push_back(hold);
        }
      if (isWhole)
        continue;
      seconds += segment.runs * loss.moreSeconds(*rows, step.costs);
      const uint32_t begin = segment.at(loss.begin);
      for (uint32_t memory : loss.ofAll)
        if (SmallVector<analysis::ResidencyHold> holds = holdsOf(segment, memory);
            !holds.empty() && begin < holds.front().begin)
          way.holds.push_back({StepProblem::kDevice, holds.front().bytes, begin, holds.front().begin});
      way.holds.push_back({StepProblem::kDevice, loss.sumBytes, begin, segment.since(loss.end)});
    }
  way.charges.push_back({StepProblem::kCompute, seconds});
  return way;
}

/// Takes what `loss` holds if it is whole out of what is live whatever is chosen.
static void releaseWhole(const StepSegment &segment, const LossPieces &loss, analysis::StepMemory &live) {
  for (uint32_t memory : loss.ofPiece)
    for (const analysis::ResidencyHold &hold : holdsOf(segment, memory))
      live.release(hold);
}

void mlir::ds::addLosses(StepProblem &step) {
  std::set<int64_t, std::greater<>> offered;
  for (const StepSegment &segment : step.segments)
    for (const LossPieces &loss : segment.losses)
      offered.insert(loss.offered.begin(), loss.offered.end());
  if (offered.empty())
    return;
  analysis::ResidencyValue value;
  value.isRead = true;
  ResidencyChoice choice;
  value.homes.push_back(wayInPieces(step, std::nullopt));
  choice.lossRows.push_back(std::nullopt);
  for (int64_t rows : offered) {
    (step.limits.isLossOpen ? value.homes : choice.refused).push_back(wayInPieces(step, rows));
    choice.lossRows.push_back(rows);
  }
  for (const StepSegment &segment : step.segments)
    for (const LossPieces &loss : segment.losses)
      releaseWhole(segment, loss, step.live);
  step.add(std::move(value), std::move(choice));
}
