//===- ConvWorkspace.cpp - Lays out what a convolution needs besides operands --===//
#include "ds/Runtime/Onednn/OnednnConv.h"
#include "ds/Runtime/Onednn/OnednnPlugin.h"
#include "ds/Support/Align.h"

namespace ds::rt {

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
  result.bytes = alignTo(result.libraryBytes, 64);
  if (dtype == DType::F32)
    return result;
  const std::array<int64_t, 4> elements = operandElements(form);
  for (size_t k = 0; k < elements.size(); ++k) {
    result.widened[k] = result.bytes;
    result.bytes += alignTo(static_cast<uint64_t>(elements[k]) * sizeof(float), 64);
  }
  return result;
}

} // namespace ds::rt
