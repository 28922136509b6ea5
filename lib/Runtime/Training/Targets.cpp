//===- Targets.cpp - How many targets of a step the loss counts ---------------------===//
#include "Targets.h"

#include "StepOutcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace ds::rt {

void TargetCounts::add(uint64_t targets) { add(TargetCounts{targets, targets, targets, targets > 0}); }

void TargetCounts::add(const TargetCounts &other) {
  total += other.total;
  least = std::min(least, other.least);
  most = std::max(most, other.most);
  parts += other.parts;
}

Targets::Targets(const Executor &executor, Team &team)
    : executor(executor), team(team), normalizer(findMeanTargets(executor.whole())) {}

Result<std::optional<TargetCounts>> Targets::count(DataSource &data, uint64_t batch, uint32_t accumulation) {
  if (!data.mayLeaveOutTargets())
    return std::optional<TargetCounts>();
  TargetCounts mine;
  for (uint32_t microBatch = 0; microBatch < accumulation; ++microBatch) {
    const Result<uint64_t> found = data.countTargets(batch, microBatch, dataPositionOf(executor));
    if (!found)
      return found.error();
    mine.add(*found);
  }
  const Result<TargetCounts> all = ofAllRanks(mine);
  return all ? Result<std::optional<TargetCounts>>(*all) : all.error();
}

/// Ranks that read the same part of the data are counted once.
Result<TargetCounts> Targets::ofAllRanks(const TargetCounts &mine) {
  if (team.world() == 1)
    return mine;
  std::vector<TargetCounts> counts(team.world());
  if (Status status = team.own()->allGather(&mine, counts.data(), sizeof mine, kTargetCount); !status)
    return status.error();
  const Program &program = executor.program();
  TargetCounts all;
  std::vector<bool> seen(program.mesh.size(program.dataAxes));
  for (uint32_t rank = 0; rank < team.world(); ++rank)
    if (const uint32_t part = program.mesh.position(rank, program.dataAxes); !seen[part]) {
      seen[part] = true;
      all.add(counts[rank]);
    }
  return all;
}

Status Targets::setMean(Executor &on, const DataSource &data, const std::optional<TargetCounts> &counts,
                        uint64_t microBatches) const {
  const double mean = counts ? static_cast<double>(counts->total) / static_cast<double>(microBatches)
                             : static_cast<double>(data.numTargets());
  return setMeanTargets(on, static_cast<float>(mean));
}

std::string Targets::notice(const TargetCounts &counts, uint64_t step) {
  if (normalizes() || counts.least == counts.most || std::exchange(isTold, true))
    return {};
  return fmt::format(
      "step {}: its micro-batches count {} to {} targets, and each weighs the same in the loss, as "
      "in DeepSpeed; \"loss_normalization\": \"tokens\" weighs each target the same",
      step, counts.least, counts.most);
}

Result<bool> hasTargets(DataSource &data, uint32_t ranks) {
  if (!data.mayLeaveOutTargets())
    return true;
  for (uint64_t batch = 0; batch < data.numBatches(); ++batch)
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const Result<uint64_t> count = data.countTargets(batch, 0, rank);
      if (!count)
        return count.error();
      if (*count > 0)
        return true;
    }
  return false;
}

} // namespace ds::rt
