//===- PinnedMemory.cpp - Memory of the host that a device copies from and to --------===//
#include "PinnedMemory.h"

#include "ds/Runtime/Cpu/Arena.h"
#include "ds/Support/Align.h"

namespace ds::rt {

Result<std::byte *> takePinned(Device &device, uint64_t bytes, const char *what) {
  constexpr uint64_t kMuch = uint64_t(64) << 20, kPage = 4096;
  if (bytes >= kMuch) {
    Result<Arena> arena = Arena::create(alignTo(bytes, kPage), what);
    if (!arena)
      return arena.error();
    const auto owner = std::make_shared<Arena>(std::move(*arena));
    if (device.lock(owner->data(), owner->size(), owner))
      return owner->data();
  } // its pages are given back first
  return device.allocate(Space::Host, bytes, what);
}

} // namespace ds::rt
