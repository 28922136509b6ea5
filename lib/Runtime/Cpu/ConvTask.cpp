//===- ConvTask.cpp - Convolutions on the CPU -----------------------------------===//
//
// oneDNN computes them in f32. Operands of 16 bits are widened into the workspace before and the result is
// rounded after it, which gives the same numbers on processors with and without instructions for them.
//
//===---------------------------------------------------------------------------===//
#include "Task.h"

#include "Program/Verify.h"
#include "ds/Runtime/Onednn/OnednnConv.h"
#include "ds/Runtime/Onednn/OnednnPlugin.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

namespace ds::rt {
namespace {

/// Packed memory of `rows` times `columns` elements in 16 bits, and of their f32 copy.
struct Narrow {
  void *data;
  float *copy;
  int64_t rows, columns;
};

class ConvTask final : public Task {
public:
  ConvTask(const OnednnApi &api, const Binding &binding, DType dtype, std::string where)
      : api(api), dtype(dtype), threads(binding.program.threads), isa(binding.isa), where(std::move(where)) {}
  ~ConvTask() override {
    if (primitive)
      api.destroyConv(primitive);
  }

  Status bind(const ConvForm &form, const ConvWorkspace &layout, const ConvMemory &memory) {
    char message[256] = "";
    primitive = api.createConv(&form, threads, layout.libraryBytes, &memory, message, sizeof message);
    return primitive ? Status() : fail(message);
  }
  /// Operand 2 is the one that is written.
  void widen(uint32_t operand, const Narrow &narrow) {
    if (operand == 2)
      result = narrow;
    else
      read.push_back(narrow);
  }

  Status run() override {
    for (const Narrow &n : read)
      widenBlock({n.data, n.copy, dtype, n.rows, n.columns, n.columns, true, threads}, isa);
    char message[256] = "";
    if (!api.runConv(primitive, message, sizeof message))
      return fail(message);
    if (result.data)
      finishBlock({result.copy, result.data, nullptr, dtype, dtype, result.rows, result.columns,
                   result.columns, 1, false, false, false, threads},
                  isa);
    return {};
  }

private:
  Status fail(const char *message) const {
    return Error{ExitCode::Device, fmt::format("{}: oneDNN: {}", where, message), ""};
  }

  const OnednnApi &api;
  const DType dtype;
  const uint32_t threads;
  const Isa isa;
  const std::string where;
  ConvPrimitive *primitive = nullptr;
  std::vector<Narrow> read;
  Narrow result{};
};

/// The addresses of a command's operands as the library sees them: of f32 copies where `layout` has them.
std::vector<void *> placeOperands(const Binding &binding, const Command &command, const ConvWorkspace &layout,
                                  std::byte *workspace, ConvTask &task) {
  const Program &p = binding.program;
  std::vector<void *> places;
  for (uint32_t k = 0; k < command.numOperands; ++k) {
    const uint32_t id = p.operands[command.firstOperand + k];
    const Buffer &buffer = p.buffers[id];
    places.push_back(binding.address(id));
    if (buffer.dtype == DType::F32)
      continue;
    auto *copy = reinterpret_cast<float *>(workspace + layout.widened[k]);
    const int64_t rows = buffer.shape.size() > 1 ? buffer.shape[0] * buffer.shape[1] : 1;
    task.widen(k, {places.back(), copy, rows, numElements(buffer) / rows});
    places.back() = copy;
  }
  places.resize(4);
  return places;
}

} // namespace

Result<std::unique_ptr<Task>> bindConvolution(const Binding &binding, uint32_t index) {
  const Program &p = binding.program;
  const Command &command = p.commands[index];
  std::vector<const Buffer *> operands;
  for (uint32_t k = 0; k < command.numOperands; ++k)
    operands.push_back(&p.buffers[p.operands[command.firstOperand + k]]);
  const ConvForm form =
      describeConv(static_cast<LibraryFn>(command.callee), operands, p.params.data() + command.firstParam);
  const DType dtype = operands[0]->dtype;
  Result<ConvWorkspace> layout = layoutConvWorkspace(form, dtype, p.threads);
  if (!layout)
    return layout.error();
  const bool planned = command.workspace != UINT32_MAX;
  const uint64_t bytes = planned ? extentBytes(p.buffers[command.workspace]) : 0;
  std::string where = describeCommand(p, index);
  if (layout->bytes > bytes)
    return Error{
        ExitCode::Device,
        fmt::format("{} needs {} bytes of workspace, but {} are planned", where, layout->bytes, bytes),
        "compile the model on this machine, so that the plan knows its oneDNN"};
  auto *workspace = planned ? static_cast<std::byte *>(binding.address(command.workspace)) : nullptr;
  Result<const OnednnApi *> api = openOnednn();
  if (!api)
    return api.error();
  auto task = std::make_unique<ConvTask>(**api, binding, dtype, std::move(where));
  const std::vector<void *> at = placeOperands(binding, command, *layout, workspace, *task);
  if (Status status = task->bind(form, *layout, {at[0], at[1], at[3], at[2], workspace}); !status)
    return status.error();
  return std::unique_ptr<Task>(std::move(task));
}

} // namespace ds::rt
