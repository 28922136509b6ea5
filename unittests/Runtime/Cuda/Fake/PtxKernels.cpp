//===- PtxKernels.cpp - The kernels of a compiled program on the fake device ---------------===//
//
// Blocks run one after another, the last first; threads that wait for one another are fibers. Every access is
// held to what a GPU asks of it: a multiple of its own size, within one allocation of device memory, or
// within the block's shared memory where the instruction says so.
//
//===---------------------------------------------------------------------------===//
#include "Fake.h"
#include "PtxThread.h"
#include "State.h"

#include "../../../Cuda/Fibers.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace ds::rt::fake {
namespace {

constexpr uint32_t kSharedBytes = 48 << 10;
alignas(256) char shared[kSharedBytes];

/// What the running block is; its first fault.
struct Running {
  ds::test::Block *block = nullptr;
  uint32_t sharedBytes = 0;
  CUresult fault = CUDA_SUCCESS;
};
Running running;

/// The library that DS_FAKE_KERNELS names.
void *translated() {
  static void *const library = [] {
    const char *path = std::getenv("DS_FAKE_KERNELS");
    void *opened = path ? ::dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (path && !opened)
      std::fprintf(stderr, "DS_FAKE_KERNELS: %s\n", ::dlerror());
    return opened;
  }();
  return library;
}
template <class T>
const T *symbol(const char *name) {
  return static_cast<const T *>(translated() ? ::dlsym(translated(), name) : nullptr);
}

bool isTable(uint64_t address, uint32_t bytes) {
  static const auto *const tables = symbol<ptx::Table>("dsPtxTables");
  for (const ptx::Table *table = tables; table && table->data; ++table)
    if (const uint64_t at = address - reinterpret_cast<uint64_t>(table->data); at + bytes <= table->bytes)
      return true;
  return false;
}

bool isShared(uint64_t address, uint32_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(shared);
  return address >= begin && address + bytes <= begin + running.sharedBytes;
}

bool isGlobal(uint64_t address, uint32_t bytes) {
  const auto &all = state().allocations;
  auto next = all.upper_bound(address);
  return (next != all.begin() && (--next, address + bytes <= next->first + next->second)) ||
         isTable(address, bytes);
}

bool reaches(uint64_t address, uint32_t bytes, ptx::Space space) {
  const bool inside = (space != ptx::Space::Shared && isGlobal(address, bytes)) ||
                      (space != ptx::Space::Global && isShared(address, bytes));
  const CUresult fault = !inside                ? CUDA_ERROR_ILLEGAL_ADDRESS
                         : address % bytes != 0 ? CUDA_ERROR_MISALIGNED_ADDRESS
                                                : CUDA_SUCCESS;
  if (running.fault == CUDA_SUCCESS)
    running.fault = fault;
  return fault == CUDA_SUCCESS;
}

/// False if threads wait for one another for ever.
bool runBlock(const ptx::Entry &entry, const uint64_t *parameters, ptx::Thread thread) {
  if (!entry.meets) {
    for (; thread.thread < thread.threads; ++thread.thread)
      entry.run(parameters, thread);
    return true;
  }
  running.block = &ds::test::Block::kept(thread.threads);
  return running.block->run([&](unsigned number) {
    ptx::Thread own = thread;
    own.thread = number;
    entry.run(parameters, own);
  });
}

CUresult runGrid(const ptx::Entry &entry, const std::vector<uint64_t> &arguments, unsigned blocks,
                 unsigned threads) {
  if (threads > entry.threads) // .maxntid
    return CUDA_ERROR_INVALID_VALUE;
  running = {nullptr, entry.sharedBytes, CUDA_SUCCESS};
  const ptx::Thread first{0,
                          0,
                          blocks,
                          threads,
                          shared,
                          reaches,
                          [](uint32_t word, uint32_t mask) { return running.block->shuffle(word, mask); },
                          [] { running.block->blockBarrier(); },
                          [] { running.block->warpBarrier(); }};
  for (unsigned number = blocks; number-- > 0 && running.fault == CUDA_SUCCESS;) {
    std::memset(shared, 0xff, sizeof shared); // NaN
    ptx::Thread thread = first;
    thread.block = number;
    if (!runBlock(entry, arguments.data(), thread))
      return CUDA_ERROR_LAUNCH_TIMEOUT;
  }
  return running.fault;
}

} // namespace

std::optional<PtxEntry> findPtxEntry(const std::string &name) {
  static const auto *const entries = symbol<ptx::Entry>("dsPtxEntries");
  for (const ptx::Entry *entry = entries; entry && entry->name; ++entry)
    if (name == entry->name && entry->sharedBytes <= kSharedBytes)
      return PtxEntry{entry->parameters,
                      [entry](const std::vector<uint64_t> &arguments, unsigned blocks, unsigned threads) {
                        return runGrid(*entry, arguments, blocks, threads);
                      }};
  return std::nullopt;
}

} // namespace ds::rt::fake
