//===- Describe.h - Checkpoints in words -----------------------------------------------===//
//
// What manifests say, as text for people or as JSON for programs. Contents of tensors are not read.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINTTOOL_DESCRIBE_H
#define DS_RUNTIME_CHECKPOINTTOOL_DESCRIBE_H

#include "ds/Support/Error.h"

#include <string>

namespace ds::rt {

struct DescribeOptions {
  bool tensors = false; ///< also a table of them
  bool config = false;  ///< also the configuration's text
  bool json = false;
};

/// Every checkpoint in `root`, newest first, those that are none with the reason, and what unfinished saves
/// have left.
Result<std::string> describeStore(const std::string &root, bool json);

/// One checkpoint. Corrupt: its manifest cannot be used, or a file is missing or of another size.
Result<std::string> describeCheckpoint(const std::string &directory, const DescribeOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINTTOOL_DESCRIBE_H
