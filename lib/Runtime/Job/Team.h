//===- Team.h - This rank among those of its run --------------------------------===//
//
// What a trainer needs of the other ranks besides the collectives of the program: that all have come to train
// the same thing, that all stop after the same step, and that all learn why one of them gives up.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_JOB_TEAM_H
#define DS_LIB_RUNTIME_JOB_TEAM_H

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Job/TrainOptions.h"
#include "ds/Runtime/Program/Program.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ds::rt {

/// What the collectives that compare replicas are called.
inline constexpr const char *kComparison = "comparison of replicas";
/// What the collectives that add up the ranks' targets are called.
inline constexpr const char *kTargetCount = "count of targets";
/// What the collectives that bring what stages give to all ranks are called.
inline constexpr const char *kStageValues = "values of stages";

/// What must be the same on every rank, by the name that a refusal calls it.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// What is wrong with the facts of all ranks, in rank order: the first that differs, and who has what. Empty
/// when all are the same. `name` says who a rank is.
std::string findDisagreement(const std::vector<Facts> &facts,
                             const std::function<std::string(uint32_t rank)> &name);

/// What the collectives of the program have moved and taken so far, on this rank.
struct CommTotals {
  uint64_t bytes = 0;
  double seconds = 0;
};

class Team {
public:
  /// Connects this process to the others of its place. Collective.
  static Result<std::unique_ptr<Team>> join(const TrainOptions &options);

  uint32_t rank() const { return group->rank(); }
  uint32_t world() const { return group->world(); }
  bool leads() const { return rank() == 0; } ///< prints, logs and writes files
  RankGroup &ranks() { return *group; }
  /// "rank 2 on host alpha"
  std::string name(uint32_t rank) const;

  /// Connects what the streams of `program` go through: the channels that it needs beside this thread's.
  /// Collective, once. Ranks that have read different programs get as many as any of them needs.
  Status connectFor(const Program &program);

  /// What the collectives of `program` go through, for which connectFor was called. Each stream that
  /// communicates has a channel; compute shares this thread's. What it gives lives as long as the team.
  Result<CommunicatorOf> communicatorsFor(const Program &program);

  /// The channel of the thread that trains; null when this rank is alone.
  Communicator *own() { return world() > 1 ? &group->channel(0) : nullptr; }

  /// Refuses with ExitCode::Peer, on every rank, when the ranks have not the same facts.
  Status agree(const Facts &facts);

  /// Whether `flag` is set on any rank. Every rank calls it at the same point of its run.
  Result<bool> anyOf(bool flag);
  /// The same for several flags at once.
  static constexpr size_t kFlags = 3;
  using Flags = std::array<bool, kFlags>;
  Result<Flags> anyOf(const Flags &flags);

  /// Rank 0's text or error on every rank; what others bring does not count. Collective. Peer: not even rank
  /// 0 could be heard.
  Result<std::string> fromLeader(const Result<std::string> &mine, const char *what);

  /// Every rank's text, by rank, on every rank. Collective. The first error that a rank has brought, told of
  /// with its number, is everybody's. Peer: not all could be heard.
  Result<std::vector<std::string>> fromAll(const Result<std::string> &mine, const char *what);

  CommTotals totals() const;
  /// The table of the program's collectives, of at most so many rows; empty when this rank is alone.
  std::string summary(size_t rows) const;

  /// Lets the others know that this rank fails for a reason of its own.
  void abort(const Error &error);

  /// Ends a run that ends with `status`: together when every rank has come to the same end, else by abort.
  Status leave(Status status);

private:
  explicit Team(std::unique_ptr<RankGroup> group);
  std::vector<CommStat> stats() const;

  std::unique_ptr<RankGroup> group;
  std::vector<std::byte> staging; ///< of anyOf, enough for the flags of every rank
  uint32_t channels = 1;          ///< that are connected, as far as this rank knows
  bool agreed = true;             ///< false: every rank has refused to start
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_JOB_TEAM_H
