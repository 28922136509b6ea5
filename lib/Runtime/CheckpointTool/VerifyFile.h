//===- VerifyFile.h - Whether one file of a checkpoint is what was written -------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINTTOOL_VERIFYFILE_H
#define DS_LIB_RUNTIME_CHECKPOINTTOOL_VERIFYFILE_H

#include "ds/Runtime/Checkpoint/Manifest.h"
#include "ds/Runtime/CheckpointTool/Verify.h"

namespace ds::rt {

/// What is wrong with `file` of the manifest, in the order of its bytes. Io: it is there and cannot be read.
Result<std::vector<Damage>> verifyFile(const std::string &directory, const CheckpointFile &file,
                                       uint64_t chunkBytes);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINTTOOL_VERIFYFILE_H
