//===- CudaSumLaunches.cpp - Squares of many tensors, attention's parts ---------===//
#include "CudaLaunches.h"

#include "ds/Runtime/Program/Library.h"

namespace ds::rt::cuda {

static_assert(kSquaresBlock == ::ds::rt::kSquaresBlock);

/// As many launches as tables are wanted for the tensors, and one that adds up unless the blocks' sums are
/// wanted. Adding up such sums is the host's.
void addSumOfSquares(Launches &launches, const LibraryCall &call) {
  const View &result = call.operands[call.numOperands - 1];
  const bool givesBlocks = result.dtype == DType::F32;
  float *sums = static_cast<float *>(givesBlocks ? result.data : call.workspace);
  int64_t finished = 0, blocks = 0; ///< of the launches before, of this one
  SquaresCall table{sums, 0, {}};
  const auto flush = [&] {
    launches.add("ds_squares_blocks", blocks, kSquaresThreads, table);
    finished += blocks;
    blocks = table.tensors = 0;
    table.sums = sums + finished;
  };
  for (uint32_t k = 0; k + 1 < call.numOperands; ++k) {
    const View &input = call.operands[k];
    const int64_t count = countOf(input);
    if (count == 0)
      continue;
    if (table.tensors == SquaresCall::kMaxTensors)
      flush();
    table.list[table.tensors++] = {input.data, count, static_cast<uint32_t>(blocks),
                                   input.dtype == DType::BF16  ? SquaresTensor::kBFloat16
                                   : input.dtype == DType::F16 ? SquaresTensor::kHalf
                                                               : SquaresTensor::kFloat};
    blocks += divideUp(count, kSquaresBlock);
  }
  flush();
  if (!givesBlocks)
    launches.add("ds_squares_total", 1, kSquaresTotals,
                 SquaresTotalCall{sums, static_cast<double *>(result.data), finished});
}

CudaLaunch attentionShiftLaunch(const AttentionShiftCall &call) {
  constexpr uint32_t kThreads = 256;
  Launches launches;
  launches.add("ds_attention_shift", divideUp(int64_t(call.heads) * call.rows, kThreads), kThreads, call);
  return std::move(launches.list.front());
}

CudaLaunch attentionPartsLaunch(const AttentionPartsCall &call, DType dtype) {
  constexpr uint32_t kThreads = 256;
  int64_t vectors = 0;
  for (const AttentionPart &part : call.parts)
    vectors += part.rows * part.heads * (call.size / kAttentionVector);
  Launches launches;
  launches.add(dtype == DType::F16 ? "ds_attention_parts_f16" : "ds_attention_parts_bf16",
               divideUp(vectors, kThreads), kThreads, call);
  return std::move(launches.list.front());
}

} // namespace ds::rt::cuda
