//===- Start.h - What both command lines of ds-run begin with ----------------------===//
#ifndef DS_TOOLS_DSRUN_START_H
#define DS_TOOLS_DSRUN_START_H

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Files/Outputs.h"
#include "ds/Runtime/Training/Restarts.h"

#include <optional>
#include <vector>

/// Tells the user of an error; returns its exit code.
int report(const ds::Error &error);

/// The files that a command line reads and writes; an empty path was not given.
struct Files {
  std::vector<ds::rt::FileArgument> inputs, outputs;
};

/// Finds out which rank this is, or becomes the launcher of all `ranks`: then the exit code is the result.
/// `asked`: the user gave --ranks. With restarts there is a launcher even of one rank. Refuses outputs that
/// cannot be written or that are inputs, where this process writes them or starts the one that does.
std::optional<int> takeIdentity(ds::rt::RankIdentity &place, uint32_t ranks, bool asked,
                                double timeoutSeconds, Files files, char **argv,
                                const ds::rt::RestartOptions &restarts = {});

#endif // DS_TOOLS_DSRUN_START_H
