//===- ChildProcess.h - Runs a program with chosen descriptors and a time limit -===//
#ifndef DS_LIB_IMPORT_CLIENT_CHILDPROCESS_H
#define DS_LIB_IMPORT_CLIENT_CHILDPROCESS_H

#include "ds/Support/Descriptor.h"
#include "ds/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace ds {

/// How a process ended.
struct ChildResult {
  bool timedOut = false;
  int exitCode = -1; ///< when it exited
  int signal = 0;    ///< when a signal ended it
};

/// Runs `program` and waits for it. `descriptors` are pairs (here, number in the child). The child reads
/// nothing from standard input.
Result<ChildResult> runChild(const std::string &program, const std::vector<std::string> &arguments,
                             const std::vector<std::pair<int, int>> &descriptors, unsigned timeLimitSeconds);

} // namespace ds

#endif // DS_LIB_IMPORT_CLIENT_CHILDPROCESS_H
