//===- SaveDirectory.h - Where a run saves, and whether it may ------------------------===//
//
// A directory has the checkpoints of one run. Those of two cannot be told apart by their numbers: the newest
// would be whichever run has come further, the oldest ones would go though they are the other's, and equal
// numbers replace each other. So a run is told before its first step that a directory is not its own.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_SAVEDIRECTORY_H
#define DS_LIB_RUNTIME_SAVING_SAVEDIRECTORY_H

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Runtime/Job/TrainOptions.h"

#include <optional>
#include <set>

namespace ds::rt {

/// Refuses to save in a directory that has checkpoints of another run: for a run that is not resumed, any;
/// for one that goes on from `from`, those of which it is known. `--resume auto` that has found nothing to go
/// on from begins anew where it is. Invalid, with the last step that is there; Io: it cannot be looked
/// through.
Status checkSaveDirectory(const TrainOptions &options, const Checkpoint *from);

/// Sets aside, and tells of, the checkpoints that a run has gone back before: those after the step `since`
/// that it goes on from (none: it begins anew), which it has chosen not to take or could not read. They would
/// else count among the newest ones, and be taken up by whoever resumes the run. To be called once, before
/// the first save of the run has its name.
Status setAsideAbandoned(FileLayer &layer, const std::string &root, std::optional<uint64_t> since);
/// The same of parts of saves, of which those count that all nodes have, but for the new one, of step
/// `saved`. To be called once all nodes have that.
Status setAsideAbandonedParts(FileLayer &layer, const std::string &root, std::optional<uint64_t> since,
                              const std::set<std::string> &everywhere, uint64_t saved);

/// Gives `unfinished`, which has its manifest, the name of a checkpoint of `step` in the directory of saves,
/// and looks at it again: at sizes and headers always, at all contents where `options` ask for it. Returns
/// the path. What does not read well is removed.
Result<std::string> publishChecked(FileLayer &layer, const TrainOptions &options,
                                   const std::string &unfinished, uint64_t step);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_SAVEDIRECTORY_H
