//===- LibraryKernels.cpp - The runtime's kernels on the fake device -----------------------------------===//
//
// The .cu files as C++ (unittests/Cuda/CudaEmulation.h), run thread by thread as they are launched.
//
//===---------------------------------------------------------------------------===//
#include "Fake.h"

#include "../../../Cuda/CudaEmulation.h"

#include "ds/Runtime/Program.h"

#include "../../../../kernels/Attention.cu"
#include "../../../../kernels/CrossEntropy.cu"
#include "../../../../kernels/Embedding.cu"
#include "../../../../kernels/FillCopy.cu"
#include "../../../../kernels/Random.cu"

#include <cstring>

namespace ds::rt::fake {
namespace {

template <class Call, void (*kernel)(Call)>
void enter(const std::vector<unsigned char> &argument) {
  Call call;
  std::memcpy(&call, argument.data(), sizeof call);
  kernel(call);
}

struct Entry {
  const char *name;
  size_t bytes; ///< of the argument
  void (*run)(const std::vector<unsigned char> &argument);
};
#define ENTRY(NAME, CALL)                                                                                    \
  { #NAME, sizeof(cuda::CALL), enter < cuda::CALL, NAME> }
#define ENTRIES(NAME, CALL) ENTRY(NAME##_f32, CALL), ENTRY(NAME##_bf16, CALL), ENTRY(NAME##_f16, CALL)
constexpr Entry kEntries[] = {ENTRIES(ds_embedding_forward, EmbeddingCall),
                              ENTRIES(ds_embedding_backward, EmbeddingCall),
                              ENTRIES(ds_cross_entropy_rows, CrossEntropyCall),
                              ENTRIES(ds_cross_entropy_mean, CrossEntropyCall),
                              ENTRIES(ds_cross_entropy_backward, CrossEntropyCall),
                              ENTRIES(ds_attention_forward, AttentionCall),
                              ENTRIES(ds_attention_dq, AttentionCall),
                              ENTRIES(ds_attention_dkdv, AttentionCall),
                              ENTRY(ds_walk_1, WalkCall),
                              ENTRY(ds_walk_2, WalkCall),
                              ENTRY(ds_walk_4, WalkCall),
                              ENTRY(ds_walk_8, WalkCall),
                              ENTRY(ds_move_16, WalkCall),
                              ENTRY(ds_fill_random, FillRandomCall)};

} // namespace

std::optional<LibraryEntry> findLibraryEntry(const std::string &name) {
  for (const Entry &entry : kEntries)
    if (name == entry.name)
      return LibraryEntry{entry.bytes,
                          [run = entry.run](const std::vector<unsigned char> &argument, unsigned blocks,
                                            unsigned threads, unsigned sharedBytes) {
                            namespace e = cuda::emulation;
                            ds::test::Block block(threads);
                            e::block = &block;
                            e::blocks = blocks;
                            e::threads = threads;
                            for (e::blockNumber = 0; e::blockNumber < blocks; ++e::blockNumber) {
                              std::memset(e::dynamicShared, 0xff, sharedBytes); // NaN
                              if (!block.run([&](unsigned) { run(argument); }))
                                return false;
                            }
                            return true;
                          }};
  return std::nullopt;
}

} // namespace ds::rt::fake
