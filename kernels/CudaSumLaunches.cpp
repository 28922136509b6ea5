//===- CudaSumLaunches.cpp - Squares of many tensors, attention's parts ---------===//
#include "CudaLaunches.h"

#include "ds/Runtime/Program/Library.h"

namespace ds::rt::cuda {

static_assert(kSquaresBlock == ::ds::rt::kSquaresBlock);

/// As many launches as tables are wanted for the tensors, and one that adds up unless the blocks' sums are
/// wanted. Adding up such sums is the host's.
void addSumOfSquares(Launches &launches, const LibraryCall &call) {
  float *sums = static_cast<float *>(call.workspace);
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
  launches.add(
      "ds_squares_total", 1, kSquaresTotals,
      SquaresTotalCall{sums, static_cast<double *>(call.operands[call.numOperands - 1].data), finished});
}

} // namespace ds::rt::cuda
