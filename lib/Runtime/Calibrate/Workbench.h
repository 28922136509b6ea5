//===- Workbench.h - Single library commands to measure --------------------------===//
//
// A command is measured as a program runs it: bound by the same code to memory of its own. The operands of
// successive runs lie in different places, as those of a step do: a product that finds its weights in the
// nearest cache says little about one that does not.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_WORKBENCH_H
#define DS_LIB_RUNTIME_CALIBRATE_WORKBENCH_H

#include "../Task.h"
#include "Sampling.h"

#include "ds/Runtime/Arena.h"

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

/// Some library commands on common buffers.
class Workbench {
public:
  Workbench(Pool &pool, uint32_t threads);

  /// A packed buffer; `ids` of i64 with a limit hold numbers below it.
  uint32_t buffer(DType dtype, std::vector<int64_t> shape, int64_t idLimit = 0);
  /// The memory of `other` in another shape of at most its size.
  uint32_t alias(uint32_t other, std::vector<int64_t> shape);
  /// A window of `other` from its first element on, with other strides.
  uint32_t window(uint32_t other, std::vector<int64_t> shape, std::vector<int64_t> strides);
  /// Adds a command; returns its index.
  uint32_t call(LibraryFn fn, std::vector<uint32_t> operands, std::vector<int64_t> params);

  /// Binds all commands, once for each place. Fails with Io where the pool is too small.
  Status bind();
  /// Runs one command in place number `run` modulo the places.
  Status run(uint32_t command, uint32_t run);
  Result<Sample> measure(uint32_t command, const SamplingOptions &options, const CalibrationClock &clock);

  /// Bytes of the elements of one command's operands, each operand counted once.
  uint64_t bytes(uint32_t command) const;

private:
  Status addWorkspace(Command &command);
  void fillIds();

  Pool &pool;
  Program program;
  std::vector<std::pair<uint32_t, int64_t>> ids; ///< buffer and limit
  uint64_t used = 0;                             ///< bytes of one place
  uint64_t places = 1;
  const KernelImage image;
  const std::vector<Communicator *> communicators;
  std::vector<std::vector<std::unique_ptr<Task>>> tasks; ///< by place, then command
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_WORKBENCH_H
