//===- Library.cpp - What is asked of library commands -------------------------===//
//
// Their scratch memory is asked by the planner, which reserves it, and by the verifier, which holds programs
// to it.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Program/Library.h"

#include "ds/Runtime/Program/AttentionParams.h"
#include "ds/Runtime/Program/IdSort.h"

#include <bit>

namespace ds::rt {
namespace {

/// The product of sizes, or the largest number where it is larger.
uint64_t product(std::initializer_list<uint64_t> factors) {
  uint64_t result = 1;
  for (uint64_t factor : factors)
    if (__builtin_mul_overflow(result, factor, &result))
      return UINT64_MAX;
  return result;
}

uint64_t size(int64_t extent) { return static_cast<uint64_t>(extent); }

uint64_t countOf(const Buffer &buffer) {
  uint64_t count = 1;
  for (int64_t extent : buffer.shape)
    count = product({count, size(extent)});
  return count;
}

} // namespace

uint64_t libraryWorkspaceBytes(LibraryFn fn, std::span<const Buffer *const> operands, uint32_t threads) {
  if (fn == LibraryFn::AttentionBackward && operands[0]->dtype != DType::F32) {
    const Buffer &keys = *operands[1];
    return product({2 * sizeof(float), threads, size(keys.shape[1]), size(keys.shape[3])});
  }
  if (fn == LibraryFn::EmbeddingBackward && operands[2]->dtype != DType::F32)
    return product({2 * sizeof(int32_t), countOf(*operands[0])});
  if (fn == LibraryFn::SumOfSquares && operands.back()->dtype == DType::F32)
    return 0; // the result has what it keeps
  if (fn == LibraryFn::SumOfSquares) {
    uint64_t blocks = 0; // each count is one of a buffer within the arenas, and a command's operands are few
    for (const Buffer *input : operands.first(operands.size() - 1))
      blocks += countOf(*input) / kSquaresBlock + (countOf(*input) % kSquaresBlock != 0);
    return product({sizeof(float), blocks});
  }
  if (fn == LibraryFn::CrossEntropyWithGradient)
    return product({sizeof(float), size(operands[0]->shape[0])});
  return 0;
}

uint64_t cudaWorkspaceBytes(LibraryFn fn, std::span<const Buffer *const> operands) {
  if (fn == LibraryFn::EmbeddingBackward) {
    const uint64_t ids = countOf(*operands[0]);
    constexpr uint64_t kMost = INT32_MAX; // more are no numbers of 32 bits
    return ids > kMost ? UINT64_MAX
                       : IdSort::of(static_cast<int64_t>(ids), operands[2]->shape[0]).workspaceBytes();
  }
  if (fn == LibraryFn::SumOfSquares || fn == LibraryFn::CrossEntropyWithGradient)
    return libraryWorkspaceBytes(fn, operands, 1);
  return 0;
}

MatmulExtras matmulExtras(std::span<const Buffer *const> operands, std::span<const int64_t> params) {
  MatmulExtras extras;
  if (summedOf(params) != Summed::None && operands.size() > 3) {
    extras.sumsIndex = static_cast<uint32_t>(operands.size()) - 1;
    extras.sums = operands.back();
    operands = operands.first(extras.sumsIndex);
  }
  for (uint32_t k = 3; k < operands.size(); ++k)
    if (operands[k]->shape.size() == 1) {
      extras.bias = operands[k];
      extras.biasIndex = k;
    } else {
      extras.input = operands[k];
      extras.inputIndex = k;
    }
  return extras;
}

AttentionParams attentionParams(std::span<const int64_t> params) {
  AttentionParams result{params[0] != 0, std::bit_cast<double>(params[1])};
  if (hasAttentionBlock(params.size())) {
    result.isFast = params.back() == kFastGradient;
    if (!result.isFast)
      result.block = params.back();
  }
  if (params.size() < kAttentionParams + kAttentionFormParams)
    return result;
  if (params[2] != 0)
    result.window = params[2];
  if (const double cap = std::bit_cast<double>(params[3]); cap != 0)
    result.cap = cap;
  if (params.size() >= kAttentionParams + kAttentionFormParams + kAttentionDropoutParams)
    result.dropout = {std::bit_cast<double>(params[4]), params[5], params[6]};
  return result;
}

AttentionExtras attentionExtras(LibraryFn fn, std::span<const Buffer *const> operands) {
  AttentionExtras extras;
  for (const Buffer *operand : operands.subspan(fixedAttentionOperands(fn)))
    (operand->shape.empty()         ? extras.firstHead
     : operand->shape.size() != 1   ? extras.mask
     : operand->dtype == DType::I64 ? extras.generator
                                    : extras.slopes) = operand;
  return extras;
}

MatmulExtras matmulExtras(const Program &program, const Command &command) {
  std::vector<const Buffer *> operands;
  for (uint32_t k = 0; k < command.numOperands; ++k)
    operands.push_back(&program.buffers[program.operands[command.firstOperand + k]]);
  return matmulExtras(operands, {program.params.data() + command.firstParam, command.numParams});
}

} // namespace ds::rt
