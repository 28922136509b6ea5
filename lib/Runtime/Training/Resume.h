//===- Resume.h - Goes on from a checkpoint ------------------------------------------===//
//
// Rank 0 chooses, all ranks look, and all vote: what one of them cannot use none uses. `--resume auto` then
// takes the next older one, and says why; a directory that was named is the user's choice, and refused with
// the name of the one that would do.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_RESUME_H
#define DS_LIB_RUNTIME_TRAINING_RESUME_H

#include "Cpu/Team.h"
#include "Restore.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <deque>
#include <optional>

namespace ds::rt {

class Resume {
public:
  Resume(const TrainOptions &options, Team &team) : options(options), team(team) {}

  /// Opens the newest checkpoint that can be used, older than any that was given up. Collective. There need
  /// be none with `--resume auto`.
  Status choose(const Program &program);

  /// What the run goes on from; null: it starts anew.
  const Checkpoint *checkpoint() const { return chosen ? &*chosen : nullptr; }

  /// Which states of `program` `restore` gives a value, all of them that this rank holds; none without a
  /// checkpoint.
  std::vector<bool> restored(const Program &program) const;

  /// Reads the states, the others having their first values. Collective. False: the checkpoint turned out to
  /// be damaged, and with `--resume auto` another must be chosen.
  Result<bool> restore(Executor &executor);

  /// What `--dry-run` prints: what would happen, and what it would cost. Collective.
  Result<std::string> describe(const Program &program);

private:
  Status list();
  Result<std::string> nextName();
  Status look(const Program &program, const std::string &path);
  Result<std::string> vote(const Status &mine);
  Status giveUp(const std::string &path, const std::string &why);
  bool isAuto() const { return options.resume == "auto"; }

  const TrainOptions &options;
  Team &team;
  bool listed = false;
  std::deque<std::string> candidates; ///< paths, newest first; rank 0's
  std::optional<Checkpoint> chosen;
  RestorePlan plan; ///< of `chosen`
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_RESUME_H
