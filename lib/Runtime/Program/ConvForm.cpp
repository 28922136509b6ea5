//===- ConvForm.cpp - What a convolution command computes ----------------------===//
#include "ds/Runtime/Program/ConvForm.h"

#include "ds/Support/Align.h"

namespace ds::rt {
namespace {

int64_t product(const int64_t *sizes, int32_t count) {
  int64_t result = 1;
  for (int32_t d = 0; d < count; ++d)
    result *= sizes[d];
  return result;
}

/// Input, weight and output of a command: its operands are the two that it reads, then the one it writes.
struct Roles {
  const Buffer &input, &weight, &output;
};

Roles rolesOf(LibraryFn fn, std::span<const Buffer *const> o) {
  if (fn == LibraryFn::ConvBackwardInput)
    return {*o[2], *o[0], *o[1]};
  if (fn == LibraryFn::ConvBackwardWeight)
    return {*o[0], *o[2], *o[1]};
  return {*o[0], *o[1], *o[2]};
}

} // namespace

int64_t inputElements(const ConvForm &f) { return f.batch * f.inputChannels * product(f.input, f.dims); }
int64_t weightElements(const ConvForm &f) {
  return f.outputChannels * (f.inputChannels / f.groups) * product(f.window, f.dims);
}
int64_t outputElements(const ConvForm &f) { return f.batch * f.outputChannels * product(f.output, f.dims); }

bool isConvolution(LibraryFn fn) {
  return fn == LibraryFn::ConvForward || fn == LibraryFn::ConvBackwardInput ||
         fn == LibraryFn::ConvBackwardWeight;
}

ConvForm describeConv(LibraryFn fn, std::span<const Buffer *const> operands, const int64_t *params) {
  const Roles roles = rolesOf(fn, operands);
  ConvForm form{};
  form.kind = fn == LibraryFn::ConvForward         ? ConvKind::Forward
              : fn == LibraryFn::ConvBackwardInput ? ConvKind::BackwardInput
                                                   : ConvKind::BackwardWeight;
  form.dims = static_cast<int32_t>(roles.input.shape.size()) - 2;
  form.bias = operands.size() > 3;
  form.batch = roles.input.shape[0];
  form.groups = params[0];
  form.inputChannels = roles.input.shape[1];
  form.outputChannels = roles.output.shape[1];
  for (int32_t d = 0; d < form.dims; ++d) {
    const auto dim = static_cast<size_t>(d) + 2;
    form.input[d] = roles.input.shape[dim];
    form.window[d] = roles.weight.shape[dim];
    form.output[d] = roles.output.shape[dim];
    form.stride[d] = params[1 + 3 * d];
    form.padding[d] = params[2 + 3 * d];
    form.dilation[d] = params[3 + 3 * d];
  }
  return form;
}

uint64_t cudnnConvBytes(const ConvForm &f, DType dtype) {
  constexpr int64_t kAlignment = 256, kLittle = 64 << 10;
  if (f.dims > 2)
    return 0;
  const int64_t vector = 16 / byteSize(dtype);
  const auto padded = [&](int64_t channels) { return alignTo(channels / f.groups, vector) * f.groups; };
  const int64_t inputs = padded(f.inputChannels), outputs = padded(f.outputChannels);
  const int64_t elements = f.batch * inputs * product(f.input, f.dims) +
                           outputs * (inputs / f.groups) * product(f.window, f.dims) +
                           f.batch * outputs * product(f.output, f.dims);
  const int64_t bytes = elements * byteSize(dtype) + kLittle;
  return static_cast<uint64_t>(alignTo(bytes, kAlignment));
}

} // namespace ds::rt
