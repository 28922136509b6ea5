//===- Executor.h - The door to a program that runs ------------------------------===//
//
// Loading does everything that can fail or allocate: storage is opened, and an engine maps and populates the
// arenas, finds the kernels and binds every command to the addresses that its operands have on this rank. A
// step is then a loop over bound commands. The engine is that of this processor, or with
// `ExecutorOptions::device` that of an accelerator, in whose memory the arenas then lie (Player/Engine.h).
//
// The first command that fails ends the segment: no stream starts another command, and what other streams
// already wait for in collectives is ended by `ExecutorOptions::failed`, or by its time-out.
//
// Poisoning (the environment variable DS_POISON=1, or the build option DS_POISON) fills the bytes outside
// planned lifetimes with NaNs, so that a wrong plan changes numbers; commands, collectives too, then run in
// issue order on one thread, or one after another on a device.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_ENGINE_EXECUTOR_H
#define DS_RUNTIME_ENGINE_EXECUTOR_H

#include "ds/Kernels/Kernels.h"
#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Player/Engine.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace ds::rt {

class Device;
class PhaseClock;
class StateWriter;
class Storage;

/// Where a run keeps what its program has in storage.
struct StoragePlace {
  std::string directory;          ///< for all of it; empty: what the program names
  std::string parameterDirectory; ///< for parameters; empty: as the rest
  bool verify = false;            ///< keep a digest of each MiB, and compare it when it is read
  std::function<void(const std::string &)> warn = {}; ///< one line a call
};

struct ExecutorOptions {
  std::optional<Isa> isa;             ///< of the hand-written kernels; default: the best of this machine
  std::optional<bool> poison;         ///< default: what the environment and the build say
  uint32_t rank = 0;                  ///< which of program.world this is
  std::optional<uint32_t> stage = {}; ///< that it runs; default: the one that the mesh gives its rank
  /// What collectives go through, on the CPU; empty where there are none.
  CommunicatorOf communicator = {};
  /// Told of the first failure of a segment while other streams may still wait for ranks; from any thread.
  std::function<void(const Error &)> failed = {};
  Device *device = nullptr; ///< null: this processor. It outlives the executor.
  StoragePlace storage = {};
  PhaseClock *clock = nullptr; ///< told what loading for a device consists of; may be null
};

/// The one object that a host of programs deals with: loading, memory, running and what was measured.
class Executor {
public:
  /// Takes a program that verifyProgram accepts and makes the stage of its rank ready to run, states and
  /// arenas zeroed. The thread that loads it must be the one that runs it.
  static Result<std::unique_ptr<Executor>> load(Program program, const ExecutorOptions &options = {});
  ~Executor();

  /// What was loaded: the program with one stage, this rank's.
  const Program &program() const { return prog; }
  /// The program with all its stages. Of those the host asks what all ranks do together: what is in files,
  /// who has it, and which stage gives what.
  const Program &whole() const { return all ? *all : prog; }
  /// Which of them was loaded.
  uint32_t stageNumber() const { return number; }
  const Stage &stage() const { return prog.stages.front(); }
  uint32_t rank() const { return thisRank; }

  /// Address of element (0, ..., 0) of a buffer, on this rank and for `microBatch`. The host cannot read it
  /// where it lies on a device: see `change` and `inspect`.
  void *data(uint32_t buffer, uint32_t microBatch = 0) const;

  /// Where the host writes the inputs of a micro-batch, in the program's order.
  std::vector<void *> inputs(uint32_t microBatch = 0) const;

  /// Calls `body` with memory of `bytes` bytes that the host can write; what it holds afterwards is what lies
  /// at `address` of an arena. On the CPU that is the arena itself.
  Status change(std::byte *address, uint64_t bytes, const std::function<Status(std::byte *host)> &body);
  /// Calls `body` with what lies at `address` of an arena, for reading.
  Status inspect(const std::byte *address, uint64_t bytes,
                 const std::function<Status(const std::byte *host)> &body) const;

  /// Executes one segment with the inputs of `microBatch`, which is one of a step's, that are there.
  Status run(uint32_t segment, uint32_t microBatch = 0);

  /// One training step: the executions of the schedule in order. `fill(microBatch)` is called once for each
  /// micro-batch, before anything works on it. With `late` it begins with the updates that the step before
  /// has left, where the program leaves them.
  Status runStep(const Engine::Fill &fill, bool late = false);

  /// The same step with one command after another, whatever their streams, and `after` told of each of the
  /// micro-batch that it was for, when it is done. For looking at numbers: nothing is measured or recorded.
  Status retrace(const Engine::Fill &fill, const Engine::After &after);

  /// Of a device: whether the last run was one recorded graph, and why nothing is recorded although it may
  /// be.
  GraphRun graph() const;

  /// From now on measures every command; `takeTimings` hands over what was measured since.
  void measure(bool on);
  std::vector<Timing> takeTimings();

  /// What Engine has of this name.
  int64_t takeExposedNs();

  /// Null where the program has no arena of storage.
  const Storage *storageArena() const { return storage.get(); }

private:
  friend class StateWriter; ///< of many values at once
  Executor(Program program, uint32_t rank, uint32_t stage);

  std::unique_ptr<const Program> all; ///< null where it is `prog`
  Program prog;
  uint32_t thisRank = 0, number = 0;
  Device *device = nullptr;         ///< null: this processor
  std::unique_ptr<Storage> storage; ///< null without an arena of storage; outlives what runs on it
  std::unique_ptr<Engine> engine;
};

/// Which of the data's shards the executor's rank reads: its position along Program::dataAxes.
inline uint32_t dataPositionOf(const Executor &executor) {
  return executor.program().mesh.position(executor.rank(), executor.program().dataAxes);
}

/// The value of a rank-0 output as a double; NaN if the device has failed. Requires an entry of
/// executor.program().outputs.
double readOutput(const Executor &executor, const Output &output);

} // namespace ds::rt

#endif // DS_RUNTIME_ENGINE_EXECUTOR_H
