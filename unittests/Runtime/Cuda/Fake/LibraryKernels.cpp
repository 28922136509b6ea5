//===- LibraryKernels.cpp - The runtime's kernels on the fake device -----------------------------------===//
//
// They run thread by thread as they are launched; see unittests/Cuda/EmulatedKernels.h.
//
//===---------------------------------------------------------------------------===//
#include "Fake.h"

#include "../../../Cuda/EmulatedKernels.h"

namespace ds::rt::fake {

std::optional<LibraryEntry> findLibraryEntry(const std::string &name) {
  const cuda::emulation::Entry *entry = cuda::emulation::findEntry(name);
  if (!entry)
    return std::nullopt;
  return LibraryEntry{entry->bytes, [entry](const std::vector<unsigned char> &argument, unsigned blocks,
                                            unsigned threads, unsigned sharedBytes) {
                        return cuda::emulation::run(*entry, argument.data(), blocks, threads, sharedBytes);
                      }};
}

} // namespace ds::rt::fake
