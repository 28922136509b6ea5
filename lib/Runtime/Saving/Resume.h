//===- Resume.h - Goes on from a checkpoint ------------------------------------------===//
//
// Rank 0 chooses, all ranks look, and all vote: what one of them cannot use none uses. `--resume auto` then
// takes the next older one, and says why; a directory that was named is the user's choice, and refused with
// the name of the one that would do. Where nodes have directories of their own each rank looks into its own:
// what is not there on all nodes, of one save, was never finished and is passed over; where nothing is left
// but parts the run is refused, not begun anew.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_RESUME_H
#define DS_LIB_RUNTIME_SAVING_RESUME_H

#include "Job/Team.h"
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
  struct Verdict {
    enum class Kind {
      Taken,
      Refused,       ///< some rank cannot use it
      NotEverywhere, ///< not on all nodes: its save was not finished, or is lost
    } kind = Kind::Taken;
    std::string why; ///< not Taken
  };
  Result<Verdict> vote(const std::string &path, const Status &mine);
  Status giveUp(const std::string &path, const Verdict &verdict);
  Status endWithout();
  bool isAuto() const { return options.resume == "auto"; }
  const std::string &directory() const { return isAuto() ? options.save : options.resume; }

  const TrainOptions &options;
  Team &team;
  bool listed = false;
  std::deque<std::string> candidates; ///< paths, newest first; rank 0's
  std::optional<Checkpoint> chosen;
  RestorePlan plan; ///< of `chosen`
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_RESUME_H
