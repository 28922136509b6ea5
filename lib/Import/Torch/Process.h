//===- Process.h - What a process does that imports one archive -----------------===//
//
// Gives up its rights, checks the archive, loads the module and writes what it found to descriptors that were
// opened before. A process imports once: its rights do not come back.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_PROCESS_H
#define DS_LIB_IMPORT_TORCH_PROCESS_H

#include <cstdint>
#include <string>
#include <vector>

namespace ds::ts {

struct ProcessOptions {
  std::string path, loss;
  std::vector<std::string> inputs;
  int modelFd = -1, mlirFd = 1, weightsFd = -1, reportFd = -1; ///< -1: by name, none, standard error
  uint64_t memoryBytes = 0, seconds = 0;                       ///< 0: derived
  bool allowUnsandboxed = false;
};

/// Makes LibTorch and its libraries open and start what they open and start at their first use.
void warmUp();

/// Imports, and tells the parent, or the person at the terminal, what went wrong. Returns the exit code; the
/// process is to end without what exit() would run, for that may need rights that it has no more.
int runProcess(const ProcessOptions &options);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_PROCESS_H
