//===- CountedMemory.cpp - How much a test allocates ----------------------------===//

#include "CountedMemory.h"

#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <new>

using namespace ds::rt;

namespace {
std::atomic<size_t> liveBytes = 0, peakBytes = 0;
} // namespace

#ifndef DS_SANITIZED
static void count(void *pointer) {
  size_t now = liveBytes += malloc_usable_size(pointer);
  size_t peak = peakBytes;
  while (now > peak && !peakBytes.compare_exchange_weak(peak, now)) {
  }
}
void *operator new(size_t bytes) {
  void *pointer = malloc(bytes);
  if (!pointer)
    throw std::bad_alloc();
  count(pointer);
  return pointer;
}
void operator delete(void *pointer) noexcept {
  liveBytes -= malloc_usable_size(pointer);
  free(pointer);
}
void operator delete(void *pointer, size_t) noexcept { operator delete(pointer); }
#endif

PeakMemory::PeakMemory() : before(liveBytes) { peakBytes = before; }

size_t PeakMemory::bytes() const { return peakBytes - before; }
