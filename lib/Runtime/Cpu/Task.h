//===- Task.h - One command, bound to its memory -------------------------------===//
//
// A task holds addresses, not indices: nothing is looked up while a step runs.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CPU_TASK_H
#define DS_LIB_RUNTIME_CPU_TASK_H

#include "ds/Kernels/Kernels.h"
#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Cpu/KernelImage.h"
#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <functional>
#include <memory>
#include <vector>

namespace ds::rt {

class Storage;

class Task {
public:
  virtual ~Task() = default;
  virtual Status run() = 0;
  // Of storage commands: `run` in three parts, see StreamWorkers::Overlapped.
  virtual Status begin() { return {}; }
  virtual bool advance() { return true; }
  virtual Status complete() { return run(); }
};

/// What binding a command needs to know of the executor. Outlives the tasks.
struct Binding {
  const Program &program;
  const KernelImage &image;
  std::function<void *(uint32_t buffer)> address;
  Isa isa;
  const CommunicatorOf &communicator; ///< see ExecutorOptions
  Storage *storage = nullptr;         ///< null where the program has none
};

/// The task of program.commands[index], or null for an event and for a message that another command carries.
/// Fails with ExitCode::Device when a plugin is missing or cannot do what the plan asks.
Result<std::unique_ptr<Task>> bindCommand(const Binding &binding, uint32_t index);

/// The same for a collective, and for all messages of an exchange with its first one. Fails with
/// ExitCode::Internal when its stream has no communicator of as many ranks as the mesh has along its axes.
Result<std::unique_ptr<Task>> bindCollective(const Binding &binding, uint32_t index);

/// The same for a storage command.
Result<std::unique_ptr<Task>> bindStorage(const Binding &binding, uint32_t index);

/// The same for a convolution.
Result<std::unique_ptr<Task>> bindConvolution(const Binding &binding, uint32_t index);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_TASK_H
