//===- AttentionOperands.cpp - An attention command's memory, as engines see it ----===//
#include "AttentionOperands.h"

#include "CudnnSession.h"

#include "../../../../kernels/CudaCommands.h"
#include "ds/Kernels/Kernels.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace ds::rt::cuda {

Result<AttentionOperands> readAttention(const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  const auto function = static_cast<LibraryFn>(command.callee);
  std::vector<const Buffer *> buffers;
  std::vector<View> views;
  for (uint32_t i = 0; i < command.numOperands; ++i) {
    const uint32_t id = p.operands[command.firstOperand + i];
    const Buffer &b = p.buffers[id];
    buffers.push_back(&b);
    views.push_back({binding.address(id), b.shape.data(), b.strides.data(),
                     static_cast<uint32_t>(b.shape.size()), b.dtype});
    if (!isCudnnAligned(views.back().data))
      return Error{ExitCode::Device, "an operand does not lie on 16 bytes", ""};
  }
  const int64_t *params = p.params.data() + command.firstParam;
  const bool planned = command.workspace != UINT32_MAX;
  const uint64_t bytes = planned ? extentBytes(p.buffers[command.workspace]) : 0;
  std::byte *workspace = planned ? binding.address(command.workspace) : nullptr;
  const AttentionParams said = attentionParams({params, command.numParams});
  if (const std::optional<AttentionRefusal> refusal = attentionRefusal(function, buffers, said))
    return Error{ExitCode::Device, fmt::format("cuDNN is not asked for {}", spell(*refusal)), ""};
  const std::optional<AttentionPieces> pieces = attentionPieces(function, buffers, said, bytes);
  if (bytes < pieces->workspaceBytes || reinterpret_cast<uintptr_t>(workspace) % kAttentionAlignment != 0)
    return Error{ExitCode::Device, "no workspace is planned for it", ""};
  return AttentionOperands{
      attentionCall(function, {views.data(), params, command.numOperands, command.numParams, 1}),
      attentionSizes(buffers),
      attentionForm(function, buffers, said),
      *pieces,
      views[0].dtype,
      function == LibraryFn::AttentionBackward,
      said.isFast,
      workspace,
      bytes - pieces->scratch.bytes()};
}

/// Whether a window hides keys that there are.
static bool isWindow(const AttentionCall &c) { return c.before < c.queries + c.keys - 1; }

std::string engineKey(const AttentionOperands &o, const AttentionCall &c) {
  std::string key = fmt::format("attention {} {} causal {} {}x{}x{}x{} of {} heads, {}",
                                o.fast       ? "fast gradient"
                                : o.gradient ? "gradient"
                                             : "forward",
                                spell(o.dtype), c.causal, o.pieces.batch, o.pieces.groups, c.queries, c.keys,
                                c.heads / c.groups, c.size);
  for (const Heads *heads : {&c.q, &c.k, &c.v, &c.out, &c.dout, &c.dq, &c.dk, &c.dv})
    key += fmt::format(" {}/{}/{}", heads->batchStride, heads->headStride, heads->rowStride);
  if (c.lseStrides[1] != c.queries)
    key += fmt::format(" lse {}", c.lseStrides[1]);
  if (c.mask)
    key += fmt::format(" mask {}", fmt::join(c.maskStrides, "/"));
  if (isWindow(c))
    key += " window";
  if (c.cap != 0)
    key += " cap";
  if (c.slopes)
    key += " slopes";
  if (c.generator)
    key += " dropout";
  return key + fmt::format(" workspace {}", o.workspaceBytes);
}

AttentionScalars::AttentionScalars(const AttentionCall &c, int64_t own)
    : scale(c.scale), cap(c.cap), shift(static_cast<int32_t>(own) + c.after),
      reach(c.before + 1 - static_cast<int32_t>(own)), keptFactor(c.keptFactor), keptShare(1 / c.keptFactor),
      minusInfinity(-std::numeric_limits<float>::infinity()) {}

void *addressOf(AttentionTensor tensor, const AttentionCall &c, const AttentionOperands &o,
                AttentionScalars &scalars) {
  switch (tensor) {
  case AttentionTensor::Q:
    return c.q.data;
  case AttentionTensor::K:
    return c.k.data;
  case AttentionTensor::V:
    return c.v.data;
  case AttentionTensor::Out:
    return c.out.data;
  case AttentionTensor::Lse:
    return c.lse;
  case AttentionTensor::Dout:
    return c.dout.data;
  case AttentionTensor::Dq:
    return c.dq.data;
  case AttentionTensor::Dk:
    return c.dk.data;
  case AttentionTensor::Dv:
    return c.dv.data;
  case AttentionTensor::Mask:
    return const_cast<float *>(c.mask);
  case AttentionTensor::Kept:
    return o.workspace;
  case AttentionTensor::KeptFactor:
    return &scalars.keptFactor;
  case AttentionTensor::KeptShare:
    return &scalars.keptShare;
  case AttentionTensor::RowSums:
    return o.workspace + o.pieces.scratch.dropMask;
  case AttentionTensor::QuerySums:
    return o.workspace + o.pieces.scratch.dropMask + o.pieces.scratch.rowSums;
  case AttentionTensor::Scale:
    return &scalars.scale;
  case AttentionTensor::One:
    return &scalars.one;
  case AttentionTensor::MinusInfinity:
    return &scalars.minusInfinity;
  case AttentionTensor::Cap:
    return &scalars.cap;
  case AttentionTensor::Slopes:
    return const_cast<float *>(c.slopes);
  case AttentionTensor::Shift:
    return &scalars.shift;
  case AttentionTensor::Reach:
    return &scalars.reach;
  }
  return nullptr;
}

void move(Heads &heads, int64_t elements, DType dtype) {
  if (heads.data)
    heads.data = static_cast<std::byte *>(heads.data) + elements * static_cast<int64_t>(byteSize(dtype));
}

AttentionCall pieceOf(AttentionCall c, int64_t batch, int64_t group, DType dtype) {
  const int64_t head = group * (c.heads / c.groups);
  for (Heads *each : {&c.q, &c.out, &c.dout, &c.dq})
    move(*each, batch * each->batchStride + head * each->headStride, dtype);
  for (Heads *each : {&c.k, &c.v, &c.dk, &c.dv})
    move(*each, batch * each->batchStride + group * each->headStride, dtype);
  c.lse += batch * c.lseStrides[0] + head * c.lseStrides[1];
  if (c.mask)
    c.mask += batch * c.maskStrides[0] + head * c.maskStrides[1];
  if (c.slopes)
    c.slopes += head;
  return c;
}

} // namespace ds::rt::cuda
