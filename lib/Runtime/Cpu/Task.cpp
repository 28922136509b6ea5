//===- Task.cpp - Binds commands to addresses ----------------------------------===//
//
// One class per way of executing: generated kernels, the kernels of kernels/, oneDNN's products, and copies.
//
//===---------------------------------------------------------------------------===//
#include "Task.h"

#include "BlockedProduct.h"
#include "Program/MatmulOperands.h"
#include "Program/Verify.h"
#include "ds/Kernels/Parallel.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {
namespace {

/// Threads of the stream that `command` is on.
uint32_t threadsOf(const Program &program, const Command &command) {
  return program.streams[command.stream] == StreamKind::Host ? program.hostThreads : program.threads;
}

/// A generated kernel, the units of each item divided among the threads. Those of the host stream have no
/// processors of their own: there a thread that is done takes a part of what others have not begun.
class KernelTask final : public Task {
public:
  KernelTask(const Binding &binding, const Command &command)
      : threads(threadsOf(binding.program, command)),
        shares(binding.program.streams[command.stream] == StreamKind::Host) {
    const Program &p = binding.program;
    const Kernel &kernel = p.kernels[command.callee];
    const KernelFunction function = binding.image.function(command.callee);
    for (uint32_t k = 0; k < command.numOperands; ++k)
      buffers.push_back(binding.address(p.operands[command.firstOperand + k]));
    const uint32_t count = kernel.items != 0 ? command.numParams : 1;
    for (uint32_t item = 0; item < count; ++item) {
      const int64_t *scalars = p.params.data() + command.firstParam + item;
      items.push_back({function, buffers.data() + item * (buffers.size() / count), scalars,
                       kernel.extent != 0 ? kernel.extent : *scalars});
    }
    grain = kernel.grain;
  }
  Status run() override {
    for (Item &item : items)
      shares ? runShared(item)
             : parallelRanges(item.extent, grain, threads, &item, [](void *self, int64_t begin, int64_t end) {
                 static_cast<Item *>(self)->run(begin, end);
               });
    return {};
  }

private:
  struct Item {
    KernelFunction function;
    void *const *buffers;
    const int64_t *scalars;
    int64_t extent;

    void run(int64_t begin, int64_t end) const { function(buffers, scalars, begin, end); }
  };
  struct Shared {
    const Item &item;
    int64_t part; ///< units
  };

  /// In parts of whole grains, four or so for each thread.
  void runShared(const Item &item) const {
    constexpr int64_t kParts = 4;
    const int64_t grains = (item.extent + grain - 1) / grain;
    const int64_t most = std::max<int64_t>(int64_t(threads) * kParts, 1);
    Shared work{item, std::max<int64_t>((grains + most - 1) / most, 1) * grain};
    parallelTasks((item.extent + work.part - 1) / work.part, threads, &work,
                  [](void *self, int64_t index, uint32_t) {
                    const auto &[item, part] = *static_cast<Shared *>(self);
                    item.run(index * part, std::min((index + 1) * part, item.extent));
                  });
  }

  std::vector<void *> buffers;
  std::vector<Item> items;
  int64_t grain;
  uint32_t threads;
  bool shares;
};

/// A function of kernels/. Copies between spaces are the Copy function on one thread.
class LibraryTask final : public Task {
public:
  LibraryTask(const Binding &binding, const Command &command, LibraryFunction function, uint32_t threads)
      : function(function) {
    const Program &p = binding.program;
    for (uint32_t k = 0; k < command.numOperands; ++k) {
      const uint32_t id = p.operands[command.firstOperand + k];
      const Buffer &buffer = p.buffers[id];
      views.push_back({binding.address(id), buffer.shape.data(), buffer.strides.data(),
                       static_cast<uint32_t>(buffer.shape.size()), buffer.dtype});
    }
    void *workspace = command.workspace == UINT32_MAX ? nullptr : binding.address(command.workspace);
    call = {
        views.data(), p.params.data() + command.firstParam, command.numOperands, command.numParams, threads,
        workspace};
  }
  Status run() override {
    function(call);
    return {};
  }

private:
  LibraryFunction function;
  std::vector<View> views;
  LibraryCall call;
};

/// A product of the library, made at once or in parts one after another.
class MatmulTask final : public Task {
public:
  MatmulTask(const OnednnApi &api, std::string where) : api(api), where(std::move(where)) {}
  ~MatmulTask() override {
    for (MatmulPrimitive *primitive : primitives)
      api.destroy(primitive);
  }
  /// Adds a part, which lies at its offsets from `memory`.
  Status add(const ProductPart &part, const MatmulMemory &memory, uint32_t threads, uint64_t workspaceBytes);
  Status run() override {
    char message[256] = "";
    for (MatmulPrimitive *primitive : primitives)
      if (!api.run(primitive, message, sizeof message))
        return Error{ExitCode::Device, fmt::format("{}: oneDNN: {}", where, message), ""};
    return {};
  }

private:
  const OnednnApi &api;
  std::vector<MatmulPrimitive *> primitives;
  std::string where;
};

/// The address `elements` behind `data`, which may be null.
template <class Byte>
Byte *elementAt(Byte *data, int64_t elements, int32_t dtype) {
  return data ? data + elements * static_cast<int64_t>(byteSize(static_cast<DType>(dtype))) : nullptr;
}

Status MatmulTask::add(const ProductPart &part, const MatmulMemory &memory, uint32_t threads,
                       uint64_t workspaceBytes) {
  const MatmulDesc &desc = part.desc;
  MatmulMemory at = memory;
  at.a = elementAt(static_cast<const std::byte *>(memory.a), part.a, desc.a.dtype);
  at.b = elementAt(static_cast<const std::byte *>(memory.b), part.b, desc.b.dtype);
  at.result = elementAt(static_cast<std::byte *>(memory.result), part.result, desc.result.dtype);
  if (desc.bias >= 0)
    at.bias = elementAt(static_cast<const std::byte *>(memory.bias), part.bias, desc.bias);
  char message[256] = "";
  MatmulPrimitive *primitive = api.create(&desc, threads, workspaceBytes, &at, message, sizeof message);
  if (!primitive)
    return Error{ExitCode::Device, fmt::format("{}: oneDNN: {}", where, message),
                 "compile the model on this machine, so that the plan knows its oneDNN"};
  primitives.push_back(primitive);
  return {};
}

/// A product whose result has no element: nothing to do, and nothing that oneDNN would accept.
class NoTask final : public Task {
  Status run() override { return {}; }
};

/// Tasks one after another.
class TaskPair final : public Task {
public:
  TaskPair(std::unique_ptr<Task> first, std::unique_ptr<Task> second)
      : first(std::move(first)), second(std::move(second)) {}
  Status run() override {
    Status status = first->run();
    return status ? second->run() : status;
  }

private:
  std::unique_ptr<Task> first, second;
};

Result<std::unique_ptr<Task>> bindBlocks(const Binding &binding, const MatmulOperands &o, std::string where) {
  Result<ProductBlocks> blocks = cutProduct(o.desc, binding.program.threads, o.form);
  if (!blocks)
    return blocks.error();
  if (blocks->bytes > o.workspaceBytes)
    return Error{
        ExitCode::Device,
        fmt::format("{} is a {} product without instructions for it: it needs {} bytes of workspace, "
                    "but {} are planned",
                    where, spell(static_cast<DType>(o.desc.a.dtype)), blocks->bytes, o.workspaceBytes),
        "compile the model on this machine, so that the plan knows its processor"};
  const MatmulMemory m = o.sums();
  return bindBlockedProduct(*blocks, {m.a, m.b, m.bias, m.result, m.workspace}, binding.program.threads,
                            binding.isa, std::move(where));
}

/// The product of a Matmul command, without what comesAfter().
Result<std::unique_ptr<Task>> bindProduct(const Binding &binding, uint32_t index, const MatmulOperands &o) {
  const Program &p = binding.program;
  Result<const OnednnApi *> api = openOnednn();
  if (!api)
    return api.error();
  std::string where = describeCommand(p, index);
  if (const std::string why = whyNot(o.desc, o.form); !why.empty())
    return Error{ExitCode::Corrupt, fmt::format("{}: {}", where, why), "compile the model again with ds-opt"};
  Result<bool> inBlocks = needsBlocks(o.desc, o.form);
  if (!inBlocks)
    return inBlocks.error();
  if (*inBlocks)
    return bindBlocks(binding, o, std::move(where));
  auto task = std::make_unique<MatmulTask>(**api, std::move(where));
  for (const ProductPart &part : partsOf(o.desc, o.form))
    if (Status status = task->add(part, o.sums(), p.threads, o.workspaceBytes); !status)
      return status.error();
  return std::unique_ptr<Task>(std::move(task));
}

/// Whether the product leaves its activation to a kernel. One that is formed of blocks finishes them with
/// relu.
bool comesAfter(const MatmulOperands &o) {
  return o.hasGelu() || (o.activation == Activation::Relu && !*needsBlocks(o.desc, o.form));
}

Result<std::unique_ptr<Task>> bindMatmul(const Binding &binding, uint32_t index) {
  const Program &p = binding.program;
  const Command &command = p.commands[index];
  if (numElements(p.buffers[p.operands[command.firstOperand + 2]]) == 0)
    return std::unique_ptr<Task>(std::make_unique<NoTask>());
  const MatmulOperands o = matmulOperands(p, command, binding.address);
  Result<std::unique_ptr<Task>> product = bindProduct(binding, index, o);
  if (!product || !comesAfter(o))
    return product;
  auto activation = std::make_unique<LibraryTask>(binding, command,
                                                  libraryFunction(LibraryFn::Matmul, binding.isa), p.threads);
  return std::unique_ptr<Task>(std::make_unique<TaskPair>(std::move(*product), std::move(activation)));
}

/// A task that does nothing where a truth value is false when its turn comes.
class PredicatedTask final : public Task {
public:
  PredicatedTask(std::unique_ptr<Task> task, const void *truth)
      : task(std::move(task)), truth(static_cast<const uint8_t *>(truth)) {}
  Status run() override { return *truth != 0 ? task->run() : Status(); }

private:
  std::unique_ptr<Task> task;
  const uint8_t *truth; ///< in the host's memory, written by a command before
};

/// The task of a command, whatever its predicate.
Result<std::unique_ptr<Task>> bindPlain(const Binding &binding, uint32_t index) {
  const Command &command = binding.program.commands[index];
  switch (command.kind) {
  case CommandKind::Kernel:
    return std::unique_ptr<Task>(std::make_unique<KernelTask>(binding, command));
  case CommandKind::Library: {
    const auto callee = static_cast<LibraryFn>(command.callee);
    if (callee == LibraryFn::Matmul)
      return bindMatmul(binding, index);
    if (isConvolution(callee))
      return bindConvolution(binding, index);
    return std::unique_ptr<Task>(std::make_unique<LibraryTask>(
        binding, command, libraryFunction(callee, binding.isa), threadsOf(binding.program, command)));
  }
  case CommandKind::Copy:
    return std::unique_ptr<Task>(std::make_unique<LibraryTask>(
        binding, command, libraryFunction(LibraryFn::Copy, binding.isa), /*threads=*/1));
  case CommandKind::RecordEvent:
  case CommandKind::WaitEvent:
    return std::unique_ptr<Task>();
  case CommandKind::Collective:
    return bindCollective(binding, index);
  case CommandKind::Storage:
    return bindStorage(binding, index);
  }
  return Error{ExitCode::Internal, fmt::format("{} cannot be bound", describeCommand(binding.program, index)),
               ""};
}

} // namespace

Result<std::unique_ptr<Task>> bindCommand(const Binding &binding, uint32_t index) {
  const uint32_t predicate = binding.program.commands[index].predicate;
  Result<std::unique_ptr<Task>> task = bindPlain(binding, index);
  if (!task || predicate == UINT32_MAX)
    return task;
  return std::unique_ptr<Task>(
      std::make_unique<PredicatedTask>(std::move(*task), binding.address(predicate)));
}

} // namespace ds::rt
