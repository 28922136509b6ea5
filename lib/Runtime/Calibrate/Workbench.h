//===- Workbench.h - Single library commands to measure --------------------------===//
//
// A command is measured as a program runs it: bound by the same code to memory of its own. The operands of
// successive runs lie in different places, as those of a step do: a product that finds its weights in the
// nearest cache says little about one that does not.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_WORKBENCH_H
#define DS_LIB_RUNTIME_CALIBRATE_WORKBENCH_H

#include "CommandList.h"
#include "Cpu/Task.h"
#include "Sampling.h"

#include "ds/Runtime/Cpu/Arena.h"

namespace ds::rt {

/// Memory like a program's arena, full of small numbers.
class Pool {
public:
  static Result<Pool> create(uint64_t bytes);
  std::byte *data() const { return arena.data(); }
  uint64_t size() const { return arena.size(); }
  /// Writes the small numbers again over the first `count` bytes.
  void refill(uint64_t count);

private:
  Arena arena;
};

/// Library commands on this processor.
class Workbench : public CommandList {
public:
  Workbench(Pool &pool, uint32_t threads);

  /// Binds all commands, once for each place. Fails with Io where the pool is too small.
  Status bind();
  /// Runs one command in place number `run` modulo the places.
  Status run(uint32_t command, uint32_t run);
  Result<Sample> measure(uint32_t command, const SamplingOptions &options, const CalibrationClock &clock);

private:
  Status addWorkspace(Command &command);
  void fillIds();

  Pool &pool;
  uint64_t places = 1;
  const KernelImage image;
  const CommunicatorOf noRanks;
  std::vector<std::vector<std::unique_ptr<Task>>> tasks; ///< by place, then command
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_WORKBENCH_H
