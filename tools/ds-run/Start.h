//===- Start.h - What both command lines of ds-run begin with ----------------------===//
#ifndef DS_TOOLS_DSRUN_START_H
#define DS_TOOLS_DSRUN_START_H

#include "ds/Runtime/Communicator.h"

#include <optional>

/// Tells the user of an error; returns its exit code.
int report(const ds::Error &error);

/// Finds out which rank this is, or becomes the launcher of all `ranks`: then the exit code is the result.
/// `asked`: the user gave --ranks.
std::optional<int> takePlace(ds::rt::Place &place, uint32_t ranks, bool asked, double timeoutSeconds,
                             char **argv);

#endif // DS_TOOLS_DSRUN_START_H
