//===- ReplicaCheck.h - Whether ranks that hold the same hold the same ----------===//
//
// Ranks of a stage that differ along none of the axes by which a state is cut hold replicas of its elements,
// as do those of two stages that share a parameter, and every update keeps them equal to the bit. A bit that
// flips in one rank's memory goes unnoticed from then on: the ranks train models of their own. So from time
// to time each rank forms a digest of each parameter and each master that others hold as well, and the
// digests are compared.
//
// What a check costs is reading that memory once: docs/ranks.md has figures. Of digests travel 8 bytes a rank
// and set of axes, and only where they differ 8 a rank and state.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_REPLICACHECK_H
#define DS_LIB_RUNTIME_TRAINING_REPLICACHECK_H

#include "ds/Runtime/Engine/Executor.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace ds::rt {

/// Made once, after loading. One rank's side of the checks.
class ReplicaCheck {
public:
  /// `communicator` is of all ranks, or null for one. Both outlive this. `name` says who a rank is.
  ReplicaCheck(const Executor &executor, Communicator *communicator,
               std::function<std::string(uint32_t rank)> name);

  /// Whether any rank has replicas of what another one has.
  bool compares() const { return !replicated.empty(); }
  /// How many bytes this rank has replicas of.
  uint64_t bytes() const { return replicatedBytes; }

  /// Compares all replicas after step `step`. ExitCode::Diverged, on every rank, names the first state that
  /// differs, in the order of the program, and the ranks. Every rank calls it at the same point of its run.
  Status run(uint64_t step);

  /// "replicas of 1.2 GiB compared 10 times in 2.3 s"; empty before the first time.
  std::string summary() const;

private:
  /// Ranks of these stages that differ along none of the axes in `cut` have the same.
  struct Holders {
    std::set<uint32_t> stages;
    AxisSet cut;
    auto operator<=>(const Holders &) const = default;
  };
  /// A parameter or master that lies on several ranks, all of its copies.
  struct Replicated {
    const State *state;
    const State *own; ///< the copy of this rank's stage; null: it has none
    Holders holders;
  };

  void add(const State &state);
  std::vector<uint32_t> ranksLike(uint32_t rank, const Holders &holders) const;
  Result<uint64_t> digestOf(const State &state) const;
  Result<std::vector<uint64_t>> gather(const std::vector<uint64_t> &mine);
  std::vector<uint32_t> differing(const Holders &holders, const std::vector<uint64_t> &all, size_t stride,
                                  size_t at) const;
  Status nameFirst(uint64_t step, const std::vector<uint64_t> &digests);

  const Executor &executor;
  Communicator *const communicator;
  const std::function<std::string(uint32_t)> name;
  std::vector<Replicated> replicated; ///< of all stages, the same on every rank
  uint64_t replicatedBytes = 0, count = 0;
  int64_t spentNs = 0;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_REPLICACHECK_H
