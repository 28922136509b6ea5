//===- ElfImage.h - Whether machine code is all there ---------------------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_ELFIMAGE_H
#define DS_LIB_RUNTIME_PROGRAM_ELFIMAGE_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <vector>

namespace ds::rt {

/// An ELF file whose headers, segments and sections lie inside its bytes: loaders map what headers promise,
/// and a page that is not there ends the process. What the bytes do is not looked at. Fails with
/// ExitCode::Corrupt; `what` names the file.
Status checkElf(const std::vector<uint8_t> &bytes, const char *what);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_ELFIMAGE_H
