//===- Commands.h - The subcommands of ds-ckpt ---------------------------------------===//
#ifndef DS_TOOLS_DSCKPT_COMMANDS_H
#define DS_TOOLS_DSCKPT_COMMANDS_H

#include "ds/Runtime/CheckpointTool/Collect.h"
#include "ds/Runtime/CheckpointTool/Describe.h"
#include "ds/Runtime/CheckpointTool/Export.h"
#include "ds/Runtime/CheckpointTool/Import.h"

#include <string>

/// Each does its work and returns the exit code; a Refusal comes out where it cannot.
int runList(const std::string &directory, bool json);
int runShow(const std::string &path, const ds::rt::DescribeOptions &options);
int runVerify(const std::string &path, unsigned threads, bool json);
int runDiff(const std::string &a, const std::string &b, bool json);
int runExport(ds::rt::ExportOptions options);
int runImport(const ds::rt::ImportOptions &options);
int runCollect(ds::rt::CollectOptions options);

#endif // DS_TOOLS_DSCKPT_COMMANDS_H
