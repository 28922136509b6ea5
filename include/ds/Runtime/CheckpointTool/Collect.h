//===- Collect.h - Removes what a directory of checkpoints needs no more ------------------===//
#ifndef DS_RUNTIME_CHECKPOINTTOOL_COLLECT_H
#define DS_RUNTIME_CHECKPOINTTOOL_COLLECT_H

#include "ds/Runtime/Checkpoint/Keep.h"
#include "ds/Runtime/CheckpointTool/Place.h"

#include <cstdint>
#include <optional>

namespace ds::rt {

struct CollectOptions {
  std::string root = {};
  std::optional<KeepRule> keep = {}; ///< whole checkpoints that stay; none: all
  bool damaged = false;              ///< also those that are not whole
  bool setAside = false;             ///< also those that a run has set aside which went back before them
  bool dryRun = false;               ///< only say what would go
};

/// Something that was removed, or would be.
struct Removed {
  std::string name, why;
  uint64_t bytes = 0;
};

/// Removes what unfinished saves have left, and what the options ask for; `told` hears of each when it is
/// gone. A leftover that is itself whole stays as long as there is no whole checkpoint. Links, and
/// directories with something that no save makes, stay, of which `notice` hears. Io: a run saves there (not
/// for a dry run), or something cannot be removed.
Status collectGarbage(const CollectOptions &options, const std::function<void(const Removed &)> &told,
                      const Notice &notice);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINTTOOL_COLLECT_H
