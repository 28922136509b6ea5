//===- ConvPlugin.cpp - Convolutions by oneDNN ----------------------------------===//
//
// oneDNN is fast where it may choose how operands lie: in blocks of 8 or 16 channels. So it is asked for any
// layout, and what it wants otherwise than row-major is reordered into the workspace and back. Winograd's
// algorithm, which rounds more, is not asked for. All of it is one list of primitives with their memory.
//
//===---------------------------------------------------------------------------===//
#include "Engine.h"

#include "ds/Support/Align.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace ds::rt {

/// Reorders, the convolution, reorders: running them allocates nothing.
struct ConvPrimitive {
  std::vector<onednn::Step> steps;
  uint32_t threads;
};

namespace onednn {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

Dims dimsOf(const int64_t *values, int32_t count) { return {values, values + count}; }

Dims inputDims(const ConvForm &f) {
  Dims dims = {f.batch, f.inputChannels};
  dims.insert(dims.end(), f.input, f.input + f.dims);
  return dims;
}
Dims outputDims(const ConvForm &f) {
  Dims dims = {f.batch, f.outputChannels};
  dims.insert(dims.end(), f.output, f.output + f.dims);
  return dims;
}
/// With groups as a dimension of their own.
Dims weightDims(const ConvForm &f) {
  Dims dims = {f.outputChannels / f.groups, f.inputChannels / f.groups};
  if (f.groups > 1)
    dims.insert(dims.begin(), f.groups);
  dims.insert(dims.end(), f.window, f.window + f.dims);
  return dims;
}

Desc anyOrder(const Dims &dims) {
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

Desc rowMajor(const Dims &dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 0; --d)
    strides[d - 1] = strides[d] * dims[d];
  return {dims, dnnl::memory::data_type::f32, strides};
}

/// The library's first choice. It counts a dilation from 0.
dnnl::primitive_desc choose(const ConvForm &f) {
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  const Desc x = anyOrder(inputDims(f)), w = anyOrder(weightDims(f)), y = anyOrder(outputDims(f));
  const Dims stride = dimsOf(f.stride, f.dims), padding = dimsOf(f.padding, f.dims);
  Dims dilation = dimsOf(f.dilation, f.dims);
  for (auto &gap : dilation)
    --gap;
  const auto kind =
      f.kind == ConvKind::Forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  using Forward = dnnl::convolution_forward;
  const Forward::desc what = f.bias
                                 ? Forward::desc(kind, kDirect, x, w, rowMajor({f.outputChannels}), y, stride,
                                                 dilation, padding, padding)
                                 : Forward::desc(kind, kDirect, x, w, y, stride, dilation, padding, padding);
  const Forward::primitive_desc forward(what, attributes(), engine());
  if (f.kind == ConvKind::Forward)
    return forward;
  if (f.kind == ConvKind::BackwardInput)
    return dnnl::convolution_backward_data::primitive_desc(
        {kDirect, x, w, y, stride, dilation, padding, padding}, attributes(), engine(), forward);
  return dnnl::convolution_backward_weights::primitive_desc(
      {kDirect, x, w, y, stride, dilation, padding, padding}, attributes(), engine(), forward);
}

/// One operand: how it lies, how the library wants it, and where in the workspace it then is.
struct Operand {
  int argument;
  Desc given, wanted;
  uint64_t offset = 0;

  bool moves() const { return given != wanted; }
};

/// A convolution's choice and the layout of its workspace: scratch memory that all steps share, then
/// operands.
struct Plan {
  dnnl::primitive_desc chosen;
  std::vector<Operand> operands; ///< two that are read, then the one that is written
  uint64_t bytes;

  explicit Plan(const ConvForm &f) : chosen(choose(f)) {
    const Desc x = rowMajor(inputDims(f)), w = rowMajor(weightDims(f)), y = rowMajor(outputDims(f));
    if (f.kind == ConvKind::Forward)
      operands = {{DNNL_ARG_SRC, x, {}}, {DNNL_ARG_WEIGHTS, w, {}}, {DNNL_ARG_DST, y, {}}};
    else if (f.kind == ConvKind::BackwardInput)
      operands = {{DNNL_ARG_WEIGHTS, w, {}}, {DNNL_ARG_DIFF_DST, y, {}}, {DNNL_ARG_DIFF_SRC, x, {}}};
    else
      operands = {{DNNL_ARG_SRC, x, {}}, {DNNL_ARG_DIFF_DST, y, {}}, {DNNL_ARG_DIFF_WEIGHTS, w, {}}};
    uint64_t scratch = chosen.scratchpad_desc().get_size();
    for (Operand &operand : operands) {
      operand.wanted = chosen.query_md(dnnl::query::exec_arg_md, operand.argument);
      if (operand.moves())
        scratch = std::max<uint64_t>(scratch, mover(operand).scratchpad_desc().get_size());
    }
    bytes = alignTo(scratch, 64);
    for (Operand &operand : operands)
      if (operand.moves()) {
        operand.offset = bytes;
        bytes += alignTo(uint64_t(operand.wanted.get_size()), 64);
      }
  }

  bool isRead(const Operand &operand) const { return &operand != &operands.back(); }
  dnnl::reorder::primitive_desc mover(const Operand &operand) const {
    return isRead(operand) ? reorder(operand.given, operand.wanted) : reorder(operand.wanted, operand.given);
  }
};

/// The steps of a plan, on `memory`.
std::vector<Step> bindSteps(const Plan &plan, const ConvMemory &memory) {
  auto *workspace = static_cast<std::byte *>(memory.workspace);
  const void *places[] = {memory.first, memory.second, memory.result};
  std::vector<Step> before, after;
  std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SCRATCHPAD, wrap(plan.chosen.scratchpad_desc(), workspace)}};
  for (size_t k = 0; k < plan.operands.size(); ++k) {
    const Operand &operand = plan.operands[k];
    const dnnl::memory given = wrap(operand.given, places[k]);
    if (!operand.moves()) {
      arguments.emplace(operand.argument, given);
      continue;
    }
    const dnnl::memory wanted = wrap(operand.wanted, workspace + operand.offset);
    arguments.emplace(operand.argument, wanted);
    if (plan.isRead(operand))
      before.push_back(copyStep(given, wanted, workspace));
    else
      after.push_back(copyStep(wanted, given, workspace));
  }
  if (memory.bias)
    arguments.emplace(DNNL_ARG_BIAS,
                      wrap(plan.chosen.query_md(dnnl::query::exec_arg_md, DNNL_ARG_BIAS), memory.bias));
  before.push_back({dnnl::primitive(plan.chosen), std::move(arguments)});
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

} // namespace

uint64_t convBytes(const ConvForm *form, uint32_t threads, char *message, size_t messageBytes) {
  return guarded(UINT64_MAX, message, messageBytes, [&] {
    useThreads(threads);
    return Plan(*form).bytes;
  });
}

ConvPrimitive *createConv(const ConvForm *form, uint32_t threads, uint64_t workspaceBytes,
                          const ConvMemory *memory, char *message, size_t messageBytes) {
  return guarded(static_cast<ConvPrimitive *>(nullptr), message, messageBytes, [&] {
    useThreads(threads);
    const Plan plan(*form);
    if (plan.bytes > workspaceBytes)
      throw std::runtime_error("oneDNN asks for " + std::to_string(plan.bytes) + " bytes of workspace, but " +
                               std::to_string(workspaceBytes) + " are planned");
    return new ConvPrimitive{bindSteps(plan, *memory), threads};
  });
}

bool runConv(ConvPrimitive *primitive, char *message, size_t messageBytes) {
  return runSteps(*primitive, message, messageBytes);
}

void destroyConv(ConvPrimitive *primitive) { delete primitive; }

} // namespace onednn
} // namespace ds::rt
