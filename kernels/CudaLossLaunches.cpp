//===- CudaLossLaunches.cpp - Cross-entropy and its gradient as launches --------===//
//
// Targets are counted first and rows summed up last, each by one block; between them a block has a row.
//
//===---------------------------------------------------------------------------===//
#include "CudaLaunches.h"

#include <algorithm>

namespace ds::rt::cuda {
namespace {

constexpr uint32_t kRowThreads = 512, kCountThreads = 1024,
                   kMeanThreads = 256; ///< as the entries are bounded

/// Shared memory that a block may have on every GPU from sm_80 on, but for what the kernel has of its own.
/// Two such blocks fit into a multiprocessor of sm_90. It holds 50304 logits of 16 bits.
constexpr int64_t kMostShared = 99 * 1024 - 512;

CrossEntropyCall crossEntropyOf(const LibraryCall &call) {
  const View &logits = call.operands[0], &targets = call.operands[1];
  CrossEntropyCall c{};
  c.logits = logits.data;
  c.targets = targets.data;
  c.rows = logits.shape[0];
  c.size = logits.shape[1];
  c.stride = logits.strides[0];
  c.ignoreIndex = call.params[0];
  c.wideIds = targets.dtype == DType::I64;
  c.cap = call.numParams > 1 ? static_cast<float>(asDouble(call.params[1])) : 0;
  return c;
}

float *floatsOf(const View &view) { return static_cast<float *>(view.data); }

void setGradient(CrossEntropyCall &c, const View &dlogits) {
  c.dlogits = dlogits.data;
  c.dstride = dlogits.strides[0];
}

} // namespace

void addCrossEntropy(Launches &launches, const LibraryCall &call) {
  CrossEntropyCall c = crossEntropyOf(call);
  c.loss = floatsOf(call.operands[2]);
  c.lse = floatsOf(call.operands[3]);
  c.count = floatsOf(call.operands[4]);
  c.denominator = call.numOperands > 5 ? floatsOf(call.operands[5]) : nullptr;
  const DType dtype = call.operands[0].dtype;
  launches.add("ds_cross_entropy_count", 1, kCountThreads, c);
  launches.add(
      pick(dtype, "ds_cross_entropy_rows_f32", "ds_cross_entropy_rows_bf16", "ds_cross_entropy_rows_f16"),
      c.rows, threadsFor(c.size, kRowThreads), c);
  launches.add(
      pick(dtype, "ds_cross_entropy_mean_f32", "ds_cross_entropy_mean_bf16", "ds_cross_entropy_mean_f16"), 1,
      kMeanThreads, c);
}

void addCrossEntropyGradient(Launches &launches, const LibraryCall &call) {
  CrossEntropyCall c = crossEntropyOf(call);
  c.lse = floatsOf(call.operands[2]);
  c.count = floatsOf(call.operands[3]);
  c.dloss = floatsOf(call.operands[4]);
  setGradient(c, call.operands[5]);
  launches.add(pick(call.operands[0].dtype, "ds_cross_entropy_backward_f32", "ds_cross_entropy_backward_bf16",
                    "ds_cross_entropy_backward_f16"),
               c.rows, threadsFor(c.size, kRowThreads), c);
}

void addCrossEntropyWithGradient(Launches &launches, const LibraryCall &call) {
  CrossEntropyCall c = crossEntropyOf(call);
  c.dloss = floatsOf(call.operands[2]);
  c.loss = floatsOf(call.operands[3]);
  c.count = floatsOf(call.operands[4]);
  setGradient(c, call.operands[5]);
  c.denominator = call.numOperands > 6 ? floatsOf(call.operands[6]) : nullptr;
  c.lse = static_cast<float *>(call.workspace);
  const DType dtype = call.operands[0].dtype;
  const int64_t rowBytes = c.size * byteSize(dtype);
  c.kept = static_cast<int32_t>(std::min(rowBytes, kMostShared) / 16);
  launches.add("ds_cross_entropy_count", 1, kCountThreads, c);
  launches.add(pick(dtype, "ds_cross_entropy_with_gradient_f32", "ds_cross_entropy_with_gradient_bf16",
                    "ds_cross_entropy_with_gradient_f16"),
               c.rows, threadsFor(c.size, kRowThreads), c, static_cast<uint32_t>(c.kept) * 16);
  launches.add("ds_cross_entropy_terms", 1, kMeanThreads, c);
}

} // namespace ds::rt::cuda
