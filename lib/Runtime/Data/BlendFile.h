//===- BlendFile.h - A blend of data as JSON -----------------------------------===//
#ifndef DS_LIB_RUNTIME_DATA_BLENDFILE_H
#define DS_LIB_RUNTIME_DATA_BLENDFILE_H

#include "ds/Runtime/Data/DataFiles.h"

namespace ds::rt {

/// The sources of {"sources": [{"path": "a.bin", "weight": 0.7, "token_dtype": "u32"}, ...]}, their files not
/// yet looked for. Relative paths start where the file is. Corrupt: something else; Io: it cannot be read.
Result<DataFiles> readBlendFile(const std::string &path);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_DATA_BLENDFILE_H
