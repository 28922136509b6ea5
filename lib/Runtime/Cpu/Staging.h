//===- Staging.h - The host memory that storage commands go through -----------------===//
#ifndef DS_LIB_RUNTIME_CPU_STAGING_H
#define DS_LIB_RUNTIME_CPU_STAGING_H

#include "ds/Runtime/Program/Program.h"
#include "ds/Runtime/Storage/Storage.h"

namespace ds::rt {

/// Tells `storage` which memory of the host's arena at `host` the commands of `program` on `rank` go through.
void useStaging(const Program &program, uint32_t rank, std::byte *host, Storage &storage);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_STAGING_H
