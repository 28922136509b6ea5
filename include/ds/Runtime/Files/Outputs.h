//===- Outputs.h - Refuses outputs before the work for them is done --------------===//
#ifndef DS_RUNTIME_FILES_OUTPUTS_H
#define DS_RUNTIME_FILES_OUTPUTS_H

#include "ds/Support/Error.h"

#include <string>
#include <vector>

namespace ds::rt {

/// A file of the command line.
struct FileArgument {
  std::string option; ///< as it is spelt: "--trace"
  std::string path;
};

/// Refuses an output that could not be written (Io): a directory, or a file where there is no directory that
/// can be written. Makes and opens nothing, for a reader at a pipe's other end would see it end.
Status checkOutputPath(const FileArgument &output);

/// Also refuses (Usage) an output that is an input, the running program, the file behind standard output or
/// error, or another output, however it is spelt or linked. Of an input that is a directory the weights are
/// meant. Devices and pipes are no files.
Status checkOutputs(std::vector<FileArgument> inputs, std::vector<FileArgument> outputs);

} // namespace ds::rt

#endif // DS_RUNTIME_FILES_OUTPUTS_H
