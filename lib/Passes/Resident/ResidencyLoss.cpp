//===- ResidencyLoss.cpp - How losses are made, in a step's problem -----------------===//
//
// All losses of a step are one value, as all are made alike: whole, or in pieces of so many rows, those that
// offer them. Its bytes are those of all that has a row for each token and a column for each word, from where
// the whole step has it to where that is read last, so that each moment of the whole step stands for the
// moments of all pieces.
//
//===---------------------------------------------------------------------------===//
#include "ResidencyModel.h"

#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// What `memory` holds of the device whatever is chosen, as addLiveBytes and addForward have it.
SmallVector<analysis::ResidencyHold> ResidencyModel::holdsOf(const Segment &segment, uint32_t index) const {
  const ValueMemory &memory = segment.memory.memories[index];
  SmallVector<analysis::ResidencyHold> holds;
  auto add = [&](uint32_t begin, uint32_t end) {
    if (begin < end)
      holds.push_back({kDevice, memory.bytes, segment.begin + begin, segment.begin + end});
  };
  if (memory.isSent || memory.isInState)
    return holds;
  if (memory.isStored && memory.joined < 0)
    add(memory.begin + memory.isInPlace, memory.end + 1);
  if (segment.alwaysKept.contains(index))
    add(memory.isStored ? memory.end + 1 : memory.begin, memory.lastRead + 1);
  return holds;
}

/// Losses in pieces of `rows` where they offer them; nothing: whole.
analysis::ResidencyWay ResidencyModel::wayInPieces(std::optional<int64_t> rows) const {
  analysis::ResidencyWay way;
  double seconds = 0;
  for (const Segment &segment : segments)
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
      seconds += segment.runs * loss.moreSeconds(*rows, costs);
      const uint32_t begin = segment.begin + loss.begin;
      for (uint32_t memory : loss.ofAll)
        if (SmallVector<analysis::ResidencyHold> holds = holdsOf(segment, memory);
            !holds.empty() && begin < holds.front().begin)
          way.holds.push_back({kDevice, holds.front().bytes, begin, holds.front().begin});
      way.holds.push_back({kDevice, loss.sumBytes, begin, segment.begin + loss.end});
    }
  way.charges.push_back({kCompute, seconds});
  return way;
}

/// Takes what `loss` holds if it is whole out of what is live whatever is chosen.
void ResidencyModel::releaseWhole(const Segment &segment, const LossPieces &loss) {
  for (uint32_t memory : loss.ofPiece)
    for (const analysis::ResidencyHold &hold : holdsOf(segment, memory))
      for (uint32_t moment = hold.begin; moment < hold.end; ++moment)
        problem.spaces[kDevice].liveBytes[moment] -= hold.bytes;
}

void ResidencyModel::addLosses() {
  std::set<int64_t, std::greater<>> offered;
  for (const Segment &segment : segments)
    for (const LossPieces &loss : segment.losses)
      offered.insert(loss.offered.begin(), loss.offered.end());
  if (offered.empty())
    return;
  analysis::ResidencyValue value;
  value.isRead = true;
  ResidencyChoice choice;
  value.homes.push_back(wayInPieces(std::nullopt));
  choice.lossRows.push_back(std::nullopt);
  for (int64_t rows : offered) {
    (limits.isLossOpen ? value.homes : choice.refused).push_back(wayInPieces(rows));
    choice.lossRows.push_back(rows);
  }
  for (const Segment &segment : segments)
    for (const LossPieces &loss : segment.losses)
      releaseWhole(segment, loss);
  problem.values.push_back(std::move(value));
  choices.push_back(std::move(choice));
}

std::optional<size_t> ResidencyModel::findLosses() const {
  auto found = llvm::find_if(choices, [](const ResidencyChoice &choice) { return choice.isOfLosses(); });
  return found == choices.end() ? std::nullopt : std::optional<size_t>(found - choices.begin());
}

CrossEntropyOp ResidencyModel::getLoss() const {
  const LossPieces *most = nullptr;
  for (const Segment &segment : segments)
    for (const LossPieces &loss : segment.losses)
      if (!most || loss.allRows > most->allRows)
        most = &loss;
  return most->loss;
}

int64_t ResidencyModel::countPieces(int64_t rows) const {
  int64_t most = 1;
  for (const Segment &segment : segments)
    for (const LossPieces &loss : segment.losses)
      if (llvm::is_contained(loss.offered, rows))
        most = std::max<int64_t>(most, llvm::divideCeil(loss.allRows, rows));
  return most;
}

int64_t ResidencyModel::peakWith(const analysis::ResidencyPlan &plan, size_t index,
                                 const analysis::ResidencyWay &way) const {
  const std::vector<int64_t> &live = problem.spaces[kDevice].liveBytes;
  std::vector<int64_t> changes(live.size() + 1, 0);
  for (size_t value = 0; value < plan.ways.size(); ++value) {
    const int32_t chosen = plan.ways[value];
    if (value != index && chosen == analysis::kNotHad)
      continue;
    const analysis::ResidencyValue &of = problem.values[value];
    for (const analysis::ResidencyHold &hold : value == index                    ? way.holds
                                               : chosen == analysis::kRecomputed ? of.recompute->holds
                                                                                 : of.homes[chosen].holds)
      if (hold.space == kDevice)
        changes[hold.begin] += hold.bytes, changes[hold.end] -= hold.bytes;
  }
  int64_t held = 0, most = 0;
  for (size_t moment = 0; moment < live.size(); ++moment)
    most = std::max(most, live[moment] + (held += changes[moment]));
  return most;
}
