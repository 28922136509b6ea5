//===- ReplicaCheck.h - Whether ranks that hold the same hold the same ----------===//
//
// Ranks that differ along none of the axes by which a state is cut hold replicas of its elements, and every
// update keeps them equal to the bit. A bit that flips in one rank's memory goes unnoticed from then on: the
// ranks train models of their own. So from time to time each rank forms a digest of each parameter and each
// master that others hold as well, and the digests are compared.
//
// What a check costs is reading that memory once: docs/ranks.md has figures. Of digests travel 8 bytes a rank
// and set of axes, and only where they differ 8 a rank and state.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_REPLICACHECK_H
#define DS_LIB_RUNTIME_TRAINING_REPLICACHECK_H

#include "ds/Runtime/Engine/Executor.h"

#include <functional>
#include <string>
#include <vector>

namespace ds::rt {

/// Made once, after loading. One rank's side of the checks.
class ReplicaCheck {
public:
  /// `communicator` is of all ranks, or null for one. Both outlive this. `name` says who a rank is.
  ReplicaCheck(const Executor &executor, Communicator *communicator,
               std::function<std::string(uint32_t rank)> name);

  /// How many bytes this rank has replicas of; 0: every rank holds what no other does, here and elsewhere.
  uint64_t bytes() const { return replicatedBytes; }

  /// Compares all replicas after step `step`. ExitCode::Diverged, on every rank, names the first state that
  /// differs, in the order of the program, and the ranks. Every rank calls it at the same point of its run.
  Status run(uint64_t step);

  /// "replicas of 1.2 GiB compared 10 times in 2.3 s"; empty before the first time.
  std::string summary() const;

private:
  /// A parameter or master that lies on several ranks.
  struct Replicated {
    const State *state;
    AxisSet cut; ///< ranks that differ along none of these have the same
  };

  Result<uint64_t> digestOf(const State &state) const;
  Result<std::vector<uint64_t>> gather(const std::vector<uint64_t> &mine);
  std::vector<uint32_t> differing(AxisSet cut, const std::vector<uint64_t> &all, size_t stride,
                                  size_t at) const;
  Status nameFirst(uint64_t step, const std::vector<uint64_t> &digests);

  const Executor &executor;
  Communicator *const communicator;
  const std::function<std::string(uint32_t)> name;
  std::vector<Replicated> replicated;
  uint64_t replicatedBytes = 0, count = 0;
  int64_t spentNs = 0;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_REPLICACHECK_H
