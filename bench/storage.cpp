//===- storage.cpp - How fast the storage arena is read and written ------------------===//
//
// Sequentially, as a step moves states: one piece of staging memory after the other. Prints rates as JSON;
// see storage.py, which holds them against fio.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Storage/Storage.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <sys/mman.h>

using namespace ds;
using namespace ds::rt;

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Moves all of the arena piece by piece, through two pieces of memory in turn: one begins while the other is
/// under way. Bytes a second, or 0.
static double move(Storage &storage, bool writes, std::byte *memory, uint64_t bytes, uint64_t piece) {
  const double begin = now();
  std::optional<uint64_t> under[2];
  for (uint64_t i = 0; i < bytes / piece + 2; ++i) {
    if (under[i % 2])
      if (const Status status = storage.finish(*under[i % 2]); !status) {
        std::fprintf(stderr, "storage: %s\n", status.error().message.c_str());
        return 0;
      }
    under[i % 2].reset();
    if (i * piece < bytes)
      under[i % 2] = *storage.begin(writes, i * piece, memory + i % 2 * piece, piece);
  }
  return static_cast<double>(bytes) / (now() - begin);
}

int main(int argc, char **argv) {
  if (argc != 6 && argc != 7) {
    std::fprintf(stderr, "usage: storage DIRECTORY BYTES BLOCK DEPTH PIECE [threads]\n");
    return 2;
  }
  StorageOptions options;
  options.directory = argv[1];
  options.bytes = std::strtoull(argv[2], nullptr, 10);
  options.settings.blockBytes = std::strtoull(argv[3], nullptr, 10);
  options.settings.queueDepth = static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10));
  options.threads = argc == 7;
  options.warn = [](const std::string &line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  const uint64_t piece = std::strtoull(argv[5], nullptr, 10);
  const Result<std::unique_ptr<Storage>> storage = Storage::open(options);
  if (!storage || piece == 0 || options.bytes % piece != 0) {
    std::fprintf(stderr, "storage: %s\n",
                 storage ? "pieces do not fill the arena" : storage.error().message.c_str());
    return 6;
  }
  auto *memory = static_cast<std::byte *>(std::aligned_alloc(uint64_t(2) << 20, 2 * piece));
  ::madvise(memory, 2 * piece, MADV_HUGEPAGE); // as arenas are
  std::memset(memory, 1, 2 * piece);
  const std::span<std::byte> staging(memory, 2 * piece);
  (*storage)->useMemory(std::span(&staging, 1));
  for (std::string word; std::getline(std::cin, word);) {
    std::printf("%.0f\n", move(**storage, word == "write", memory, options.bytes, piece));
    std::fflush(stdout);
  }
  std::free(memory);
  return 0;
}
