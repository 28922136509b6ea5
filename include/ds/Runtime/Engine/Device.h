//===- Device.h - The border between the executor and an accelerator ------------===//
//
// An accelerator runs what it is told on queues of its own: every call here but `synchronize` may return
// before the work is done, and an error may show up in a later call. The executor tells it the commands of a
// segment in issue order, which is one order for all streams, so that one host thread drives them all; the
// program's events say what really waits for what.
//
// The CPU needs no such border: its commands run where they are called (Executor.h). CUDA stands behind this
// one, in a plugin (libds-cuda.so) that is opened when `--device cuda` asks for it.
//
// All calls come from one thread. A device is given its program once and lives as long as the executor.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_ENGINE_DEVICE_H
#define DS_RUNTIME_ENGINE_DEVICE_H

#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include "ds/Runtime/Program/Groups.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

class RankGroup;
struct RandomCall;

/// What a device's memory is used for, in bytes, as measured now.
struct DeviceMemory {
  uint64_t arenas = 0;   ///< what the plan lists
  uint64_t overhead = 0; ///< what this process holds beyond it: context, modules, graphs, libraries
  uint64_t free = 0;     ///< what any process may still take
  uint64_t total = 0;    ///< of the device
};

/// A recorded sequence of work that is started as one.
using GraphId = uint32_t;

/// The queues of a device: one stream for each of the program's, and the program's events among them. Behind
/// these it has an event for each execution of a step that another lane waits for (Execution.h).
class DeviceStreams {
public:
  virtual ~DeviceStreams() = default;

  virtual Status record(uint32_t event, uint32_t stream) = 0;
  virtual Status wait(uint32_t event, uint32_t stream) = 0;

  /// Calls `body` with `argument` on a thread of the device's own when the work before it on `stream` is
  /// done; what is behind it there waits. `body` asks nothing of the device.
  virtual Status callHost(uint32_t stream, void (*body)(void *), void *argument) = 0;

  /// Other streams wait for what is on the compute stream, or the compute stream for what is on others.
  virtual Status fork(std::span<const uint32_t> others) = 0;
  virtual Status join(std::span<const uint32_t> others) = 0;

  /// Copies between any two places, in order with the compute stream's work.
  virtual Status copy(std::byte *to, const std::byte *from, uint64_t bytes) = 0;

  /// Sets every byte, in order with the compute stream's work.
  virtual Status fill(std::byte *at, uint8_t byte, uint64_t bytes) = 0;
};

/// Work that is recorded once and started as one.
class DeviceGraphs {
public:
  virtual ~DeviceGraphs() = default;

  /// Between the two calls work is recorded and does not run. The device may refuse to record (a library that
  /// cannot); the calls that follow then run as usual.
  virtual Status begin() = 0;
  virtual Result<GraphId> end() = 0;
  /// In place of `end`: what was recorded is thrown away.
  virtual void abandon() = 0;
  virtual Status launch(GraphId graph) = 0;
};

/// How far a device has come, and when.
class DeviceTelemetry {
public:
  virtual ~DeviceTelemetry() = default;

  /// In a mark: the command is not done, the stream stands in it.
  static constexpr uint32_t kBegun = uint32_t(1) << 31;

  /// When the work before it on `stream` is done, `reached(stream)` becomes `command`: survives errors after
  /// which nothing else can be asked.
  virtual Status mark(uint32_t stream, uint32_t command) = 0;
  virtual uint32_t reached(uint32_t stream) const = 0;
  /// Sets what `reached` gives before the first mark of a segment.
  virtual void resetMarks(uint32_t command) = 0;

  /// Takes the time at this place of `stream` as number `index`; `secondsBetween` requires that both have
  /// passed.
  virtual Status stamp(uint32_t index, uint32_t stream) = 0;
  virtual Result<double> secondsBetween(uint32_t from, uint32_t to) = 0;

  /// When the work of one command ran, in nanoseconds since `startObserving`.
  struct Observed {
    uint32_t index;
    int64_t beginNs, endNs;
  };
  /// Where the device can tell when the work itself ran, it does from here to `takeObserved`, which requires
  /// that all work is done: what is issued after `observe(index)` belongs to that index, until the next call;
  /// kNoIndex: to none. False where it cannot: stamps then have to do.
  virtual bool startObserving() = 0;
  virtual void observe(uint32_t index) = 0;
  virtual std::vector<Observed> takeObserved() = 0;
  static constexpr uint32_t kNoIndex = UINT32_MAX;

  /// Names what is issued until `endRange` for a profiler. Costs next to nothing without one.
  virtual void beginRange(const char *name) = 0;
  virtual void endRange() = 0;
};

/// One context of a device: a program's memory and commands there, and the parts above.
class Device {
public:
  virtual ~Device() = default;

  /// "NVIDIA H200 (sm_90), driver for CUDA 13.0", for the head of a run.
  virtual std::string describe() const = 0;

  /// Takes the program that it will run, on `rank`: checks that it was compiled for this device, loads its
  /// kernels and makes its streams and events. `program` outlives the device's work; `groups` are those of
  /// all of its stages, which all ranks make together.
  virtual Status load(const Program &program, uint32_t rank, std::vector<GroupUse> groups) = 0;

  /// Zeroed memory, aligned to 256 bytes; Space::Host is memory that the device copies from and to directly,
  /// of whole pages.
  /// It stays until the device is destroyed. Fails with ExitCode::DoesNotFit, saying who holds the rest.
  virtual Result<std::byte *> allocate(Space space, uint64_t bytes, const char *what) = 0;
  /// Gives memory of Space::Host back before that, once no work uses it any more.
  virtual void release(std::byte *memory) = 0;
  /// Makes `bytes` bytes at `memory`, of whole pages that the caller has taken, memory that the device copies
  /// from and to directly. `owner` is kept until the device is destroyed. Fails where the system locks no
  /// such pages; then nothing is kept.
  virtual Status lock(std::byte *memory, uint64_t bytes, std::shared_ptr<void> owner) = 0;
  virtual DeviceMemory memory() const = 0;

  /// Tells where a buffer's element (0, ..., 0) lies on this rank while a micro-batch is worked on.
  using Address = std::function<std::byte *(uint32_t buffer, uint32_t microBatch)>;

  /// Makes a command that is no event ready to be issued for any micro-batch: finds its kernel. `address` is
  /// the same for all. Once for each, after `allocate`.
  virtual Status bind(uint32_t command, const Address &address) = 0;

  /// Chooses algorithms for the commands that were bound, the same on all ranks: collective. Errors name the
  /// command. Once, after the last `bind`.
  virtual Status choose() = 0;

  /// Fills its memory at `at` with the random numbers of `call`, whose own data are not looked at, rounded
  /// once to `dtype`: f32, bf16 or f16. The bits are the CPU's. In order with the compute stream's work.
  virtual Status draw(std::byte *at, DType dtype, const RandomCall &call) = 0;

  /// Puts a bound command on its stream, with the addresses of `microBatch`.
  virtual Status issue(uint32_t command, uint32_t microBatch) = 0;

  /// Returns when all work is done, or with the first error of any of it.
  virtual Status synchronize() = 0;

  /// What there is once a program is loaded.
  virtual DeviceStreams &streams() = 0;
  virtual DeviceGraphs &graphs() = 0;
  virtual DeviceTelemetry &telemetry() = 0;
};

struct DeviceOptions {
  RankGroup *ranks = nullptr; ///< the job's; outlives the device
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

/// Opens the plugin and the device of this rank. Fails with ExitCode::Device, naming what is missing: the
/// plugin, the driver, a device, a library, each with the version that is needed.
Result<std::unique_ptr<Device>> openCudaDevice(const DeviceOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_ENGINE_DEVICE_H
