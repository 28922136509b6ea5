//===- ConvWorkspace.cpp - Lays out what a convolution needs besides operands --===//
#include "ds/Runtime/OnednnConv.h"
#include "ds/Runtime/OnednnPlugin.h"

namespace ds::rt {

static uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Elements of the command's operands, in its order.
static std::array<int64_t, 4> operandElements(const ConvForm &form) {
  const int64_t x = inputElements(form), w = weightElements(form), y = outputElements(form);
  switch (form.kind) {
  case ConvKind::Forward:
    return {x, w, y, form.bias ? form.outputChannels : 0};
  case ConvKind::BackwardInput:
    return {w, y, x, 0};
  case ConvKind::BackwardWeight:
    return {x, y, w, 0};
  }
  return {};
}

Result<ConvWorkspace> layoutConvWorkspace(const ConvForm &form, DType dtype, uint32_t threads) {
  Result<const OnednnApi *> api = openOnednn();
  if (!api)
    return api.error();
  char message[256] = "";
  ConvWorkspace result{};
  result.libraryBytes = (*api)->convBytes(&form, threads, message, sizeof message);
  if (result.libraryBytes == UINT64_MAX)
    return Error{ExitCode::Device, std::string("oneDNN: ") + message, ""};
  result.bytes = aligned(result.libraryBytes);
  if (dtype == DType::F32)
    return result;
  const std::array<int64_t, 4> elements = operandElements(form);
  for (size_t k = 0; k < elements.size(); ++k) {
    result.widened[k] = result.bytes;
    result.bytes += aligned(static_cast<uint64_t>(elements[k]) * sizeof(float));
  }
  return result;
}

} // namespace ds::rt
