//===- OpenStorage.h - The storage arena of a program --------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_OPENSTORAGE_H
#define DS_LIB_RUNTIME_ENGINE_OPENSTORAGE_H

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Storage/Storage.h"

namespace ds::rt {

/// What `program`, which has one stage, keeps in storage on `rank`; null where that is nothing. Fails with
/// ExitCode::Usage where nobody names a directory, and as Storage::open does.
Result<std::unique_ptr<Storage>> openStorage(const Program &program, uint32_t rank,
                                             const StoragePlace &place);

/// What has gone through `storage` since it was opened, for the end of a run.
std::string describeTotals(const Storage &storage);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_OPENSTORAGE_H
