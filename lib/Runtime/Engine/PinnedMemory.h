//===- PinnedMemory.h - Memory of the host that a device copies from and to ----------===//
#ifndef DS_LIB_RUNTIME_ENGINE_PINNEDMEMORY_H
#define DS_LIB_RUNTIME_ENGINE_PINNEDMEMORY_H

#include "ds/Runtime/Engine/Device.h"

namespace ds::rt {

/// Zeroed memory of whole pages that stays until the device is destroyed. The driver clears and locks small
/// pages on one thread; much memory is taken in large pages, by all threads, and locked then: it is there
/// sooner, and needs fewer translations of addresses. What cannot be locked so the driver takes itself. Fails
/// with ExitCode::DoesNotFit; `what` names the memory in the message.
Result<std::byte *> takePinned(Device &device, uint64_t bytes, const char *what);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_PINNEDMEMORY_H
