//===- ReplicaCheck.cpp - Whether ranks that hold the same hold the same --------===//
#include "ReplicaCheck.h"

#include "Job/Team.h"
#include "Process/Clock.h"
#include "Process/Messages.h"
#include "Program/Stages.h"
#include "StartUp.h"
#include "State/LocalState.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ds::rt {
namespace {

/// What is brought from a device at once.
constexpr uint64_t kPieceBytes = uint64_t(64) << 20;

} // namespace

ReplicaCheck::ReplicaCheck(const Executor &executor, Communicator *communicator,
                           std::function<std::string(uint32_t)> name)
    : executor(executor), communicator(communicator), name(std::move(name)) {
  for (const State &state : executor.whole().states)
    if (state.role == Role::Parameter || state.role == Role::Master)
      add(state);
  const StageGrid stages(executor.whole());
  std::erase_if(replicated, [&](const Replicated &entry) {
    return ranksLike(stages.firstRank(entry.state->stage), entry.holders).size() == 1;
  });
  for (const Replicated &entry : replicated)
    if (entry.own) {
      const LocalState local(executor, *entry.own);
      replicatedBytes += local.held.count * local.elementBytes();
    }
}

/// Copies on several stages are one entry where they are cut alike; else each stage has its own.
void ReplicaCheck::add(const State &state) {
  const auto isCopy = [&](const Replicated &entry) {
    return entry.state->name == state.name && entry.state->layout == state.layout;
  };
  auto entry = std::ranges::find_if(replicated, isCopy);
  if (entry == replicated.end())
    entry = replicated.insert(entry, {&state, nullptr, {{}, state.layout.axes()}});
  entry->holders.stages.insert(state.stage);
  if (isLoaded(executor, state))
    entry->own = &state;
}

/// The ranks, ascending, that have the part which a rank with the coordinates of `rank` has, whatever its
/// stage.
std::vector<uint32_t> ReplicaCheck::ranksLike(uint32_t rank, const Holders &holders) const {
  const Program &whole = executor.whole();
  std::vector<uint32_t> ranks = whole.mesh.group(rank, whole.mesh.all() - holders.cut);
  std::erase_if(ranks, [&](uint32_t each) { return !holders.stages.contains(stageWithin(whole, each)); });
  return ranks;
}

Result<uint64_t> ReplicaCheck::digestOf(const State &state) const {
  const LocalState local(executor, state);
  const uint64_t bytes = local.held.count * local.elementBytes();
  uint64_t digest = 0;
  for (uint64_t at = 0; at < bytes; at += kPieceBytes) {
    const uint64_t size = std::min(kPieceBytes, bytes - at);
    const Status status =
        executor.inspect(local.address(local.held.at) + at, size, [&](const std::byte *host) -> Status {
          digest = addToSign(digest, {host, size});
          return {};
        });
    if (!status)
      return status.error();
  }
  return digest;
}

/// Every rank's numbers, in rank order.
Result<std::vector<uint64_t>> ReplicaCheck::gather(const std::vector<uint64_t> &mine) {
  std::vector<uint64_t> all(mine.size() * communicator->size());
  if (Status status =
          communicator->allGather(mine.data(), all.data(), mine.size() * sizeof(uint64_t), kComparison);
      !status)
    return status.error();
  return all;
}

/// The ranks whose digest is not that of most replicas of the same part; all that have the part where none is
/// most ranks' digest. `all` has `stride` digests of each rank, of which number `at` counts.
std::vector<uint32_t> ReplicaCheck::differing(const Holders &holders, const std::vector<uint64_t> &all,
                                              size_t stride, size_t at) const {
  const Mesh &mesh = executor.whole().mesh;
  std::vector<uint32_t> found;
  for (uint32_t first = 0; first < mesh.size(); ++first) {
    if (mesh.firstOfGroup(first, mesh.all() - holders.cut) != first)
      continue;
    const std::vector<uint32_t> ranks = ranksLike(first, holders);
    std::map<uint64_t, size_t> counts;
    for (const uint32_t rank : ranks)
      ++counts[all[rank * stride + at]];
    std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(found),
                 [&](uint32_t rank) { return 2 * counts[all[rank * stride + at]] <= ranks.size(); });
  }
  std::sort(found.begin(), found.end());
  return found;
}

Status ReplicaCheck::run(uint64_t step) {
  if (!communicator || replicated.empty())
    return {};
  const int64_t begin = nowNs();
  std::vector<uint64_t> digests;
  std::map<Holders, uint64_t> bySet; // the same sets on every rank
  for (const Replicated &entry : replicated) {
    const Result<uint64_t> digest = entry.own ? digestOf(*entry.own) : Result<uint64_t>(uint64_t(0));
    if (!digest)
      return digest.error();
    digests.push_back(*digest);
    uint64_t &together = bySet[entry.holders];
    together = addToSign(together, std::as_bytes(std::span(&*digest, 1)));
  }
  std::vector<uint64_t> mine;
  for (const auto &[holders, digest] : bySet)
    mine.push_back(digest);
  const Result<std::vector<uint64_t>> all = gather(mine);
  if (!all)
    return all.error();
  ++count;
  spentNs += nowNs() - begin;
  size_t at = 0;
  bool differ = false;
  for (const auto &[holders, digest] : bySet)
    differ |= !differing(holders, *all, mine.size(), at++).empty();
  return differ ? nameFirst(step, digests) : Status();
}

Status ReplicaCheck::nameFirst(uint64_t step, const std::vector<uint64_t> &digests) {
  const Result<std::vector<uint64_t>> all = gather(digests);
  if (!all)
    return all.error();
  for (size_t i = 0; i < replicated.size(); ++i) {
    const std::vector<uint32_t> ranks = differing(replicated[i].holders, *all, digests.size(), i);
    if (ranks.empty())
      continue;
    std::string who;
    for (const uint32_t rank : ranks)
      who += (who.empty() ? "" : ", ") + name(rank);
    return Error{
        ExitCode::Diverged,
        fmt::format("step {}: replicas of '{}' differ: {}", step, replicated[i].state->name, who) +
            (ranks.size() == 1 ? " has other values than most"
                               : " are not what most are, or agree with nobody"),
        "a memory or a processor may have failed there: resume from the last checkpoint, without it"};
  }
  return Error{ExitCode::Internal, fmt::format("step {}: replicas differ, but no state does", step), ""};
}

std::string ReplicaCheck::summary() const {
  if (count == 0 || replicatedBytes == 0)
    return {};
  return fmt::format("replicas of {} compared {} time{} in {:.3g} s", bytesText(double(replicatedBytes)),
                     count, count == 1 ? "" : "s", double(spentNs) * 1e-9);
}

} // namespace ds::rt
