//===- CudnnCommands.cpp - What cuDNN runs where it can, else kernels of the runtime -===//
#include "CudnnCommands.h"

#include "Cuda/Cudnn/CudnnEngines.h"
#include "Program/Verify.h"

#include "ds/Runtime/Program/AttentionParams.h"
#include "ds/Runtime/Program/ConvForm.h"

#include <fmt/format.h>

#include <utility>

namespace ds::rt::cuda {

CudnnCommands::CudnnCommands() = default;
CudnnCommands::~CudnnCommands() = default;

namespace {

/// A task of engines, or of kernels in its place where one of the engines is not chosen.
class ChosenTask final : public CudaTask {
public:
  ChosenTask(std::unique_ptr<CudaTask> task, size_t waiting) : task(std::move(task)), waiting(waiting) {}
  Status issue(CUstream stream) override { return task->issue(stream); }

  std::unique_ptr<CudaTask> task;
  std::unique_ptr<CudaTask> engines; ///< what was not taken, which choices that wait still name
  size_t waiting;                    ///< engines that are not chosen yet
  bool isByKernels = false;
};

} // namespace

/// Whether a command is a gradient that may be added up in any order.
static bool isFastGradient(const Program &program, const Command &command) {
  const int64_t *params = program.params.data() + command.firstParam;
  return static_cast<LibraryFn>(command.callee) == LibraryFn::AttentionBackward &&
         attentionParams({params, command.numParams}).isFast;
}

Result<std::unique_ptr<CudaTask>> CudnnCommands::bindKernel(const Binding &binding, const Command &command,
                                                            Tally &tally, const Error &why) {
  if (tally.byKernels++ == 0)
    tally.reason = why.message;
  return bindLibraryKernel(binding, command);
}

Result<std::unique_ptr<CudaTask>> CudnnCommands::bind(const Binding &binding, uint32_t index) {
  const Command &command = binding.program.commands[index];
  Tally &tally = isConvolution(static_cast<LibraryFn>(command.callee)) ? convolutions : attention;
  if (!engines)
    engines = std::make_unique<CudnnEngines>(binding.hardware);
  const LaunchBinder launch = [&binding](CudaLaunch what) { return bindLaunch(binding, std::move(what)); };
  Result<EngineWork> work = engines->bind(binding, command, launch);
  if (!work)
    return bindKernel(binding, command, tally, work.error());
  auto task = std::make_unique<ChosenTask>(std::move(work->task), work->choices.size());
  for (Choice &choice : work->choices) {
    choice.what = describeCommand(binding.program, index);
    choice.taken = [&tally, chosen = task.get(), isFast = isFastGradient(binding.program, command)] {
      const bool isWhole = --chosen->waiting == 0;
      tally.byCudnn += isWhole;
      tally.fast += isWhole && isFast;
    };
    choice.refuse = [this, binding, &command, &tally, chosen = task.get()](const Error &why) -> Status {
      if (std::exchange(chosen->isByKernels, true))
        return {}; // another of its engines was refused before
      Result<std::unique_ptr<CudaTask>> kernel = bindKernel(binding, command, tally, why);
      if (!kernel)
        return kernel.error();
      chosen->engines = std::exchange(chosen->task, std::move(*kernel));
      return {};
    };
    binding.libraries.choices->add(std::move(choice));
  }
  return std::unique_ptr<CudaTask>(std::move(task));
}

std::string CudnnCommands::describe(const char *what, const Tally &tally) const {
  if (tally.byCudnn + tally.byKernels == 0)
    return "";
  if (tally.byCudnn == 0)
    return fmt::format("{} by the runtime's kernels ({})", what, tally.reason);
  const std::string all = fmt::format("{} by cuDNN {}{}", what, engines->version(),
                                      tally.fast > 0 ? ", fast: two runs may differ in bits" : "");
  return tally.byKernels == 0 ? all
                              : fmt::format("{} in {} of {} commands ({})", all, tally.byCudnn,
                                            tally.byCudnn + tally.byKernels, tally.reason);
}

std::string CudnnCommands::describe() const {
  const std::string first = describe("convolutions", convolutions), second = describe("attention", attention);
  return first + (first.empty() || second.empty() ? "" : "; ") + second;
}

} // namespace ds::rt::cuda
