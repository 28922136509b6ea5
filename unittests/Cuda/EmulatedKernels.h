//===- EmulatedKernels.h - The runtime's CUDA kernels, run by name -------------===//
//
// The .cu files as C++, a block at a time and thread by thread.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_CUDA_EMULATEDKERNELS_H
#define DS_UNITTESTS_CUDA_EMULATEDKERNELS_H

#include "CudaEmulation.h"

#include "../../kernels/Attention.cu"
#include "../../kernels/AttentionParts.cu"
#include "../../kernels/Conv.cu"
#include "../../kernels/CrossEntropy.cu"
#include "../../kernels/Embedding.cu"
#include "../../kernels/FillCopy.cu"
#include "../../kernels/Gelu.cu"
#include "../../kernels/Random.cu"
#include "../../kernels/SortIds.cu"
#include "../../kernels/SumOfSquares.cu"

#include <string_view>

namespace ds::rt::cuda::emulation {

struct Entry {
  const char *name;
  size_t bytes; ///< of the argument
  void (*run)(const unsigned char *argument);
};

/// What an entry runs; `Call` is what the kernel takes.
template <class Call, void (*kernel)(Call)>
void enter(const unsigned char *argument) {
  Call call;
  std::memcpy(&call, argument, sizeof call);
  kernel(call);
}

// The formatter takes the template in here for a comparison.
// clang-format off
#define ENTRY(NAME, CALL) {#NAME, sizeof(CALL), enter<CALL, NAME>}
// clang-format on
#define ENTRIES(NAME, CALL) ENTRY(NAME##_f32, CALL), ENTRY(NAME##_bf16, CALL), ENTRY(NAME##_f16, CALL)

static constexpr Entry kEntries[] = {ENTRIES(ds_embedding_forward, EmbeddingCall),
                                     ENTRIES(ds_embedding_few, EmbeddingCall),
                                     ENTRIES(ds_embedding_many, EmbeddingCall),
                                     ENTRY(ds_sort_count, SortCall),
                                     ENTRY(ds_sort_sum, SortCall),
                                     ENTRY(ds_sort_place, SortCall),
                                     ENTRIES(ds_cross_entropy_rows, CrossEntropyCall),
                                     ENTRIES(ds_cross_entropy_mean, CrossEntropyCall),
                                     ENTRIES(ds_cross_entropy_backward, CrossEntropyCall),
                                     ENTRIES(ds_cross_entropy_with_gradient, CrossEntropyCall),
                                     ENTRY(ds_cross_entropy_count, CrossEntropyCall),
                                     ENTRY(ds_cross_entropy_terms, CrossEntropyCall),
                                     ENTRIES(ds_attention_forward, AttentionCall),
                                     ENTRIES(ds_attention_mask, AttentionMaskCall),
                                     ENTRIES(ds_attention_dq, AttentionCall),
                                     ENTRIES(ds_attention_dkdv, AttentionCall),
                                     ENTRIES(ds_conv_forward, ConvCall),
                                     ENTRIES(ds_conv_backward_input, ConvCall),
                                     ENTRIES(ds_conv_backward_weight, ConvCall),
                                     ENTRY(ds_attention_parts_bf16, AttentionPartsCall),
                                     ENTRY(ds_attention_parts_f16, AttentionPartsCall),
                                     ENTRY(ds_attention_shift, AttentionShiftCall),
                                     ENTRY(ds_gelu_bf16, GeluCall),
                                     ENTRY(ds_gelu_f16, GeluCall),
                                     ENTRY(ds_gelu_gradient_bf16, GeluCall),
                                     ENTRY(ds_gelu_gradient_f16, GeluCall),
                                     ENTRY(ds_walk_1, WalkCall),
                                     ENTRY(ds_walk_2, WalkCall),
                                     ENTRY(ds_walk_4, WalkCall),
                                     ENTRY(ds_walk_8, WalkCall),
                                     ENTRY(ds_walk_16, WalkCall),
                                     ENTRY(ds_move_16, WalkCall),
                                     ENTRIES(ds_fill_random, FillRandomCall),
                                     ENTRY(ds_squares_blocks, SquaresCall),
                                     ENTRY(ds_squares_total, SquaresTotalCall)};

/// The kernel of that name, or null.
inline const Entry *findEntry(std::string_view name) {
  for (const Entry &entry : kEntries)
    if (name == entry.name)
      return &entry;
  return nullptr;
}

/// Runs all blocks of a launch; false if threads of one wait for one another for ever.
inline bool run(const Entry &entry, const unsigned char *argument, unsigned numBlocks, unsigned numThreads,
                unsigned sharedBytes) {
  block = &ds::test::Block::kept(numThreads);
  blocks = numBlocks;
  threads = numThreads;
  for (blockNumber = 0; blockNumber < numBlocks; ++blockNumber) {
    std::memset(dynamicShared, 0xff, sharedBytes); // NaN
    if (!block->run([&](unsigned) { entry.run(argument); }))
      return false;
  }
  return true;
}

} // namespace ds::rt::cuda::emulation

#endif // DS_UNITTESTS_CUDA_EMULATEDKERNELS_H
