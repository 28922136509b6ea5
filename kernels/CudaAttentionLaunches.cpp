//===- CudaAttentionLaunches.cpp - Attention as launches of CUDA kernels ----------===//

#include "CudaLaunches.h"

#include "ds/Runtime/Program/Library.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ds::rt::cuda {
namespace {

Heads headsOf(const View &view) { return {view.data, view.strides[0], view.strides[1], view.strides[2]}; }

/// Mask, slopes, generator and first head, from operand `first` on.
void readAddends(AttentionCall &c, const LibraryCall &call, uint32_t first) {
  for (uint32_t k = first; k < call.numOperands; ++k) {
    const View &operand = call.operands[k];
    if (operand.dtype == DType::I64) {
      (operand.rank == 0 ? c.firstHead : c.generator) = static_cast<const int64_t *>(operand.data);
      continue;
    }
    if (operand.rank == 1) {
      c.slopes = static_cast<const float *>(operand.data);
      continue;
    }
    c.mask = static_cast<const float *>(operand.data);
    for (int d = 0; d < 3; ++d)
      c.maskStrides[d] = operand.shape[d] == 1 ? 0 : operand.strides[d];
  }
}

/// What is dropped of probabilities: u < p for u = word / 2^24, where p is an f32.
void readDropout(AttentionCall &c, const LibraryCall &call) {
  const double probability = asDouble(call.params[4]);
  c.least = static_cast<uint32_t>(std::ceil(static_cast<double>(static_cast<float>(probability)) * 0x1p24));
  c.keptFactor = static_cast<float>(1.0 / (1.0 - probability));
  c.drawId = static_cast<uint32_t>(call.params[5]);
  c.allHeads = static_cast<int32_t>(call.params[6]);
}

/// What forward and backward share; they have `fixed` operands that all commands have.
AttentionCall attentionOf(const LibraryCall &call, uint32_t fixed) {
  const View &q = call.operands[0], &k = call.operands[1], &lse = call.operands[4];
  const bool hasForm = call.numParams > 3; // three: a block, which is cuDNN's
  AttentionCall c{};
  c.q = headsOf(q);
  c.k = headsOf(k);
  c.v = headsOf(call.operands[2]);
  c.out = headsOf(call.operands[3]);
  c.lse = static_cast<float *>(lse.data);
  for (int d = 0; d < 3; ++d)
    c.lseStrides[d] = lse.strides[d];
  readAddends(c, call, fixed);
  c.batch = static_cast<int32_t>(q.shape[0]);
  c.queries = static_cast<int32_t>(q.shape[1]);
  c.heads = static_cast<int32_t>(q.shape[2]);
  c.size = static_cast<int32_t>(q.shape[3]);
  c.keys = static_cast<int32_t>(k.shape[1]);
  c.groups = static_cast<int32_t>(k.shape[2]);
  c.causal = call.params[0] != 0;
  c.scale = static_cast<float>(asDouble(call.params[1]));
  c.cap = hasForm ? static_cast<float>(asDouble(call.params[3])) : 0;
  const int64_t all = q.shape[1] + k.shape[1], window = hasForm && call.params[2] != 0 ? call.params[2] : all;
  c.before = static_cast<int32_t>(std::min(window, all) - 1);
  c.after = c.causal ? 0 : c.before;
  if (c.generator)
    readDropout(c, call);
  return c;
}

AttentionCall attentionGradientOf(const LibraryCall &call) {
  AttentionCall c = attentionOf(call, 9);
  c.dout = headsOf(call.operands[5]);
  c.dq = headsOf(call.operands[6]);
  c.dk = headsOf(call.operands[7]);
  c.dv = headsOf(call.operands[8]);
  return c;
}

constexpr int64_t kTileRows = 32; // of queries or keys that a block has; Attention.cu

/// Two tiles: rows of the other side one float longer than a head, and the block's own rows.
uint32_t attentionShared(const AttentionCall &c, int ownTiles) {
  const uint32_t width = static_cast<uint32_t>(c.size);
  return 4 * 32 * ((width + 1) + static_cast<uint32_t>(ownTiles) * width);
}

} // namespace

void addAttention(Launches &launches, const LibraryCall &call) {
  const AttentionCall c = attentionOf(call, 5);
  const int64_t blocks = int64_t(c.batch) * c.heads * divideUp(c.queries, kTileRows);
  launches.add(pick(call.operands[0].dtype, "ds_attention_forward_f32", "ds_attention_forward_bf16",
                    "ds_attention_forward_f16"),
               blocks, 256, c, attentionShared(c, 1));
}

void addAttentionGradient(Launches &launches, const LibraryCall &call) {
  const AttentionCall c = attentionGradientOf(call);
  const DType dtype = call.operands[0].dtype;
  const int64_t queryBlocks = int64_t(c.batch) * c.heads * divideUp(c.queries, kTileRows);
  const int64_t keyBlocks = int64_t(c.batch) * c.groups * divideUp(c.keys, kTileRows);
  launches.add(pick(dtype, "ds_attention_dq_f32", "ds_attention_dq_bf16", "ds_attention_dq_f16"), queryBlocks,
               256, c, attentionShared(c, 2));
  launches.add(pick(dtype, "ds_attention_dkdv_f32", "ds_attention_dkdv_bf16", "ds_attention_dkdv_f16"),
               keyBlocks, 256, c, attentionShared(c, 2));
}

AttentionCall attentionCall(LibraryFn fn, const LibraryCall &call) {
  return fn == LibraryFn::AttentionBackward ? attentionGradientOf(call) : attentionOf(call, 5);
}

CudaLaunch attentionMaskLaunch(const AttentionCall &call, const ProbabilityRange &r, void *mask,
                               DType dtype) {
  assert((r.samples == 1 || r.heads == call.heads) && "the heads of a range follow one another");
  constexpr int64_t kThreads = 256, kSize = 8; // elements of 16 bits in a vector
  const int64_t perHead = int64_t(call.queries) * call.keys;
  AttentionMaskCall c{};
  c.mask = mask;
  c.generator = call.generator;
  c.first =
      static_cast<uint64_t>((r.sample * call.allHeads + r.head) * perHead + r.query * call.keys + r.key);
  c.firstHead = call.firstHead;
  c.perSample = (call.allHeads - call.heads) * perHead;
  c.heads = call.heads;
  c.perHead = perHead;
  c.perQuery = call.keys;
  c.rows = r.samples * r.heads * r.queries;
  c.queries = static_cast<int32_t>(r.queries);
  c.keys = static_cast<int32_t>(r.keys);
  c.own = static_cast<int32_t>(r.query + call.keys - call.queries - r.key);
  c.before = std::min(call.before, call.queries + call.keys); // which may be all that there are
  c.after = std::min(call.after, call.queries + call.keys);
  c.isWhole = r.keys % kSize == 0 && call.keys % kSize == 0 && r.key % kSize == 0;
  c.drawId = call.drawId;
  c.least = call.least;
  Launches launches;
  launches.add(dtype == DType::F16 ? "ds_attention_mask_f16" : "ds_attention_mask_bf16",
               divideUp(c.rows, kThreads / 32), uint32_t(kThreads), c);
  return std::move(launches.list.front());
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
